"""A client that the caller has: that of the package `openai`, or one made like it, synchronous or not.

The requests are those of `Client`, and so are the answers in the journal. Address, key, waiting time and repetition are
the client's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from qabias.errors import QabiasError
from qabias.scorers.server.client import Body, ConcurrentAsker, NoChoiceError, RefusedError, failure, is_failure, passes
from qabias.scorers.server.options import CONCURRENCY
from qabias.scorers.server.secrets import cleaned
from qabias.support.waiting import wait_for

_EXTRA = "extra_body"


class Endpoint(Protocol):
    """Where requests of one kind go, such as `client.chat.completions`.

    Attributes:
        create: Sends a request, with its fields as arguments; it may be async.
    """

    @property
    def create(self) -> Callable[..., Any]:
        """See above."""
        ...


class ChatEndpoints(Protocol):
    """`client.chat`, with the endpoint `completions`."""

    @property
    def completions(self) -> Endpoint:
        """See above."""
        ...


class ChatClient(Protocol):
    """A client with `chat.completions.create`, such as `openai.OpenAI` and `openai.AsyncOpenAI`."""

    @property
    def chat(self) -> ChatEndpoints:
        """See above."""
        ...


class CompletionClient(Protocol):
    """A client with `completions.create`, for log-likelihoods of options alone (`mode=echo`)."""

    @property
    def completions(self) -> Endpoint:
        """See above."""
        ...


def is_client(model: object) -> bool:
    """Whether something has `chat.completions.create` or `completions.create`."""
    return any(_endpoint(model, path) is not None for path in ("chat/completions", "completions"))


class GivenClient(ConcurrentAsker):
    """Asks by a client that the caller has."""

    def __init__(self, client: object, *, concurrency: int = CONCURRENCY, journal: Path | None = None) -> None:
        key = getattr(client, "api_key", None)
        super().__init__(concurrency, journal, key if isinstance(key, str) else "")
        self._client = client

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Send a request by the client, which repeats it as often as it is set to."""
        create = _endpoint(self._client, path)
        if create is None:
            raise QabiasError(
                f"server: the client has no {path.replace('/', '.')}.create, which this mode needs; choose another mode"
            )
        try:
            given = create(**_arguments(create, body))
            if inspect.isawaitable(given):
                given = wait_for(given)
        except Exception as error:  # a client raises whatever its package has
            raise self._told(error) from None  # what lies below may quote the request
        answer = _as_mapping(given)
        if is_failure(answer):
            said = failure(answer)
            raise RefusedError(f"server: {self._clean(said.message)}", 200, said.code)
        if answer.get("choices") == []:
            raise NoChoiceError("server: the answer has an empty list of choices")
        return answer

    def _told(self, error: Exception) -> QabiasError:
        """What a client raised, in one line."""
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            return QabiasError(
                f"server: the client raised {type(error).__name__}: {self._clean(str(error))}; the same call goes on "
                "from the answers so far, if it names an output folder"
            )
        body = getattr(error, "body", None)
        said = failure(body if isinstance(body, dict) else str(error))
        message = f"server: status {status}: {self._clean(said.message)}"
        if passes(status):
            return QabiasError(
                f"{message}; the client asked no more often (see its max_retries): the same call goes on from the "
                "answers so far, if it names an output folder"
            )
        return RefusedError(f"{message}{'; the key is that of the client' * (status in (401, 403))}", status, said.code)

    def _clean(self, message: str) -> str:
        return cleaned(message, self._key)


def _endpoint(client: object, path: str) -> Callable[..., Any] | None:
    """What sends the requests of a path; None where a client has none."""
    found = client
    for name in (*path.split("/"), "create"):
        found = getattr(found, name, None)
    return found if callable(found) else None


def _arguments(create: Callable[..., Any], body: Body) -> dict[str, Any]:
    """Request fields as keyword arguments; unnamed ones go to `extra_body` if the function has it."""
    known = inspect.signature(create).parameters
    if _EXTRA not in known:
        return dict(body)
    named = {name: value for name, value in body.items() if name in known}
    others = {name: value for name, value in body.items() if name not in known}
    return {**named, _EXTRA: others} if others else named


def _as_mapping(given: Any) -> dict[str, Any]:
    """An answer as JSON would have it; a client gives models of pydantic, or mappings."""
    if hasattr(given, "model_dump"):
        # As over HTTP, what the server did not send is not there.
        given = given.model_dump(exclude_unset=True)
    if not isinstance(given, Mapping):
        raise QabiasError(
            f"server: the client gave {'None' if given is None else f'a {type(given).__name__}'}, which is neither a "
            "mapping nor a model of pydantic; is it a client of an OpenAI-compatible API?"
        )
    return dict(given)
