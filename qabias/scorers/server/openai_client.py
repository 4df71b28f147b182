"""A caller's client: one of the package `openai`, or a compatible one, synchronous or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from qabias.answers.failures import failure, is_failure
from qabias.errors import QabiasError
from qabias.scorers.server.asking import Body, ConcurrentAsker, NoChoiceError, RefusedError, may_pass
from qabias.scorers.server.options import MAX_CONNECTIONS
from qabias.support.waiting import wait_for

_EXTRA = "extra_body"
_RESUME = "To resume, repeat the call with the same output folder."


class Endpoint(Protocol):
    """Receiver of requests of one type, such as `client.chat.completions`."""

    @property
    def create(self) -> Callable[..., Any]:
        """Sends a request, with its fields as arguments; it may be async."""


class CompletionClient(Protocol):
    """A client with `completions.create`, only for log-likelihoods of options (`mode=echo`)."""

    @property
    def completions(self) -> Endpoint:
        """Its endpoint."""


class ChatClient(Protocol):
    """A client with `chat.completions.create`, such as `openai.OpenAI` and `openai.AsyncOpenAI`."""

    @property
    def chat(self) -> CompletionClient:
        """Its part with `completions.create`."""


def is_client(model: object) -> bool:
    """Return whether an object has `chat.completions.create` or `completions.create`."""
    return any(_endpoint(model, path) is not None for path in ("chat/completions", "completions"))


class OpenAIClient(ConcurrentAsker):
    """Sends requests through a caller's client."""

    def __init__(self, client: object, concurrency: int = MAX_CONNECTIONS, journal: Path | None = None) -> None:
        key = getattr(client, "api_key", None)
        super().__init__(concurrency, journal, key if isinstance(key, str) else "")
        self._client = client

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Send a request through the client, which retries by its own settings."""
        create = _endpoint(self._client, path)
        if create is None:
            raise QabiasError(f"server: the client has no {path.replace('/', '.')}.create.", "Use another mode.")
        try:
            result = create(**_arguments(create, body))
            if inspect.isawaitable(result):
                result = wait_for(result)
        except Exception as error:  # a client raises whatever its package has
            raise self._in_one_line(error) from None  # the cause may quote the request
        answer = _as_mapping(result)
        if is_failure(answer):
            raise self._failed(200, answer)
        if answer.get("choices") == []:
            raise NoChoiceError("server: the answer has an empty list of choices")
        return self._of_one_model(answer)

    def _in_one_line(self, error: Exception) -> QabiasError:
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            return QabiasError(f"server: the client raised {type(error).__name__}: {self._clean(str(error))}.", _RESUME)
        body = getattr(error, "body", None)
        return self._failed(status, body if isinstance(body, dict) else str(error))

    def _failed(self, status: int, content: Any) -> QabiasError:
        failed = failure(content, status)
        message = f"server: status {status}: {self._clean(failed.message)}"
        if may_pass(failed.status) and not failed.ends_quota:
            return QabiasError(f"{message} (after the client's max_retries).", _RESUME)
        fixes = {200: _RESUME} | dict.fromkeys((401, 403), "Check the key of the client.")
        return RefusedError(message, failed, fixes.get(failed.status, ""))


def _endpoint(client: object, path: str) -> Callable[..., Any] | None:
    """The function that sends requests of a path; None if a client has none."""
    place = client
    for name in (*path.split("/"), "create"):
        place = getattr(place, name, None)
    return place if callable(place) else None


def _arguments(create: Callable[..., Any], body: Body) -> dict[str, Any]:
    """Request fields as keyword arguments; unnamed ones go to `extra_body` if the function has it."""
    known = inspect.signature(create).parameters
    if _EXTRA not in known:
        return dict(body)
    named = {name: value for name, value in body.items() if name in known}
    others = {name: value for name, value in body.items() if name not in known}
    return {**named, _EXTRA: others} if others else named


def _as_mapping(answer: Any) -> dict[str, Any]:
    """An answer as JSON has it; clients return pydantic models or mappings."""
    if hasattr(answer, "model_dump"):
        # As over HTTP, what the server did not send is not there.
        answer = answer.model_dump(exclude_unset=True)
    if not isinstance(answer, Mapping):
        raise QabiasError(
            f"server: the client gave {'None' if answer is None else f'a {type(answer).__name__}'}, not a mapping or a "
            "pydantic model.",
            "Use a client of an OpenAI-compatible API.",
        )
    return dict(answer)
