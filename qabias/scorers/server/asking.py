"""Requests, over HTTP or through a caller's client: concurrent, each one once. Answers are stored, without the key."""

from __future__ import annotations

import base64
import html
import inspect
import re
import threading
import unicodedata
import urllib.parse
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache, reduce
from pathlib import Path
from typing import Any, Protocol

from qabias.answers.outcomes import Failure, failure, in_order, is_failure, whole
from qabias.answers.services import usage_of
from qabias.errors import QabiasError, arg, setting
from qabias.scorers.journal import SERVED, Journal, request_hash
from qabias.scorers.server.apis import Body
from qabias.scorers.server.options import MAX_CONNECTIONS
from qabias.support.progress import tell
from qabias.support.waiting import wait_for

KEY = "[key]"  # replaces a key and parts of it

MESSAGE_LENGTH = 300

_MOST_REJECTED = 5  # prompts that a server may reject before one has an answer; more show that it takes none

_PART = 8  # the fewest characters of a key that are a part of it
# A key with fewer letters and digits, or without a digit, may be a word for "none"; answers may hold it.
_SHORTEST_IN_ANSWERS = 16


_used: ContextVar[Counter[str]] = ContextVar("used")


def count(**used: int) -> None:
    """Count what the request of this thread used."""
    _used.get(Counter()).update(used)


def with_usage(ask_one: Callable[[Body], Any], body: Body) -> tuple[Any, Counter[str]]:
    """The answer to a request, and what it used."""
    with setting(_used, Counter()):
        return ask_one(body), _used.get()


class RefusedError(QabiasError):
    """The server rejects the request."""

    def __init__(self, problem: str, failed: Failure, fix: str = "") -> None:
        super().__init__(problem, fix)
        self.failed = failed


class NoChoiceError(QabiasError):
    """The server's answer has no choice for this prompt."""


class StoppedError(Exception):
    """Another request failed for good."""


class Asker(ABC):
    """What scorers need of a client."""

    needs_single_process = False
    has_answered = False
    """Whether any answer came, now or before the run was resumed."""
    _journal: Journal
    _secrets: tuple[str, ...] = ()

    @abstractmethod
    def ask(self, bodies: Sequence[Body], ask_one: Callable[[Body], Any]) -> list[Any]:
        """Answer requests by `ask_one`, which calls `post`; None if an answer comes later."""

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Send one request; clients that only write requests send none."""
        raise TypeError(f"{type(self).__name__} sends no request")

    def _of_one_model(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer with its choices in order, and counted; refuse one of another model than the run's first answer."""
        count(**usage_of(answer))
        if isinstance(name := answer.get("model"), str) and name:
            name = printable(name, *self._secrets)
            if (first := self._journal.get(SERVED)) is None:
                self._journal.add(SERVED, name)
            elif name != first:
                raise QabiasError(
                    f"server: the answers come from {name!r}, but this run began with {first!r}.",
                    f"Choose another {arg('output')}, and a {arg('model')} that names one version.",
                )
        return {**answer, "choices": in_order(answer.get("choices"))}

    @property
    def used(self) -> Counter[str]:
        """The answered requests of the run, of all its commands, and the sum of what they used."""
        return self._journal.used

    def is_waiting(self) -> bool:
        """Return whether `ask` skipped an answer since the last call; a server answers at once."""
        return False

    def write_requests(self) -> str:
        """Write unanswered requests, and return a note about them; "" if all are answered."""
        return ""


class ConcurrentAsker(Asker):
    """Sends several requests at a time, each one once, and stores every answer at once."""

    def __init__(self, concurrency: int, journal: Path | None, secrets: Sequence[str] = ()) -> None:
        self._concurrency = concurrency
        # A run that is resumed has had its first request.
        self.has_answered = journal is not None and journal.exists()
        self._journal = Journal(journal)
        self._secrets = tuple(filter(None, secrets))
        self.notes: dict[str, str] = {}  # what the journal keeps from the first request on
        self._stopped = threading.Event()

    def ask(self, bodies: Sequence[Body], ask_one: Callable[[Body], Any]) -> list[Any]:
        """Answer requests from the journal, else by `ask_one`, several at a time, each body once."""
        hashes = [request_hash(body) for body in bodies]
        missing = {name: body for name, body in zip(hashes, bodies, strict=True) if name not in self._journal}
        if missing:
            self._ask_missing(missing, ask_one)
        return [self._journal[name] for name in hashes]

    def _ask_missing(self, missing: Mapping[str, Body], ask_one: Callable[[Body], Any]) -> None:
        def ask_and_keep(name: str, body: Body) -> None:
            if self._stopped.is_set():
                raise StoppedError
            try:
                answer, used = with_usage(ask_one, body)
                self._journal.add(name, redacted_answer(answer, *self._secrets), used)
            except BaseException:
                self._stopped.set()  # at once: a quick client would send all the others before this is noticed
                raise

        self._stopped.clear()
        for name, note in self.notes.items():
            if name not in self._journal:
                self._journal.add(name, note)
        left = list(missing.items())
        with self._connected(), ThreadPoolExecutor(self._concurrency) as pool:
            try:
                left = self._ask_first(left, ask_and_keep)
                futures = [pool.submit(copy_context().run, ask_and_keep, name, body) for name, body in left]
                n_first = len(missing) - len(left)
                for n_answered, future in enumerate(as_completed(futures), start=1 + n_first):
                    if not isinstance(future.exception(), StoppedError):
                        future.result()
                    tell(n_answered / len(missing))
            finally:
                # After an error or Ctrl-C nothing new is sent, and waits end.
                self._stopped.set()
                pool.shutdown(cancel_futures=True)
                self._journal.close()

    def _ask_first(self, left: list[tuple[str, Body]], ask_and_keep: Callable[[str, Body], None]) -> Any:
        """Ask until one has an answer, and return the others, rejected ones included."""
        rejected: list[tuple[str, Body]] = []
        while left and not self.has_answered:
            first, *left = left
            try:
                ask_and_keep(*first)
                self.has_answered = True
            except RefusedError as error:
                rejected.append(first)
                if not (error.failed.finish and left) or len(rejected) == _MOST_REJECTED:
                    raise
                self._stopped.clear()
        return rejected + left

    def _connected(self) -> AbstractContextManager[None]:
        """Return what is open while requests are sent."""
        return nullcontext()

    def _clean(self, message: str) -> str:
        return printable(message, *self._secrets)


def may_pass(status: int) -> bool:
    """Return whether a failure of this status may be temporary."""
    return status in (408, 425, 429) or status >= 500


def redacted(text: str, *keys: str) -> str:
    """Replace keys, and every part of one of 8 characters, by `[key]`; in other spellings, the whole text."""
    return reduce(_redacted, keys, text)


def _redacted(text: str, key: str) -> str:
    begin = "|".join(map(re.escape, _parts(key)))
    # Every place where a part begins, and what the last one covers.
    covered = rf"(?:(?={begin}).(?:(?!{begin}).){{0,{min(_PART, len(key)) - 1}}})+"
    shown = re.sub(covered, KEY, text, flags=re.DOTALL) if any(part in text for part in _parts(key)) else text
    plain = _BYTE.sub(lambda sign: chr(int(sign[1], 16)), html.unescape(urllib.parse.unquote(shown)))
    return KEY if not _is_word(key) and any(map(_bare(plain).__contains__, _spellings(key))) else shown


_BYTE = re.compile(r"(?:\\u00|\\x|\b0x)([0-9a-f]{2})", re.IGNORECASE)  # as JSON and Python write a character


def _bare(text: str) -> str:
    return re.sub("[^0-9A-Za-z]+", "", text).lower()


def _parts(text: str) -> set[str]:
    return {text[start : start + _PART] for start in range(max(1, len(text) - _PART + 1))} - {""}


@cache
def _spellings(key: str) -> set[str]:
    """Parts of the key's letters and digits, in lower case: forward, backward, in Base64 and in hexadecimal digits."""
    code = key.encode()
    # Base64 depends on the bytes before it, modulo 3.
    coded = (base64.b64encode(bytes(n) + code).decode()[n + (n > 0) :].rstrip("=")[:-1] for n in range(3))
    return {part for spelled in (key, key[::-1], code.hex(), *coded) for part in _parts(_bare(spelled))}


def _is_word(key: str) -> bool:
    return sum(map(str.isalnum, key)) < _SHORTEST_IN_ANSWERS or not any(map(str.isdigit, key))


def redacted_answer(answer: Any, *keys: str) -> Any:
    """Make the texts of an answer, as JSON, safe to store and free of keys; field names stay."""
    if isinstance(answer, str):
        return redacted(whole(answer), *(key for key in keys if not _is_word(key)))
    if isinstance(answer, dict):
        return {whole(name): redacted_answer(value, *keys) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [redacted_answer(value, *keys) for value in answer]
    return answer


def printable(message: str, *keys: str) -> str:
    """Return a message in one line, shortened, without keys and without control characters."""
    spaced = "".join(" " if char.isspace() else char for char in message)
    kept = "".join(char for char in spaced if unicodedata.category(char)[0] != "C")
    # Before the cut, which might leave half a key.
    return redacted(" ".join(kept.split()), *keys)[:MESSAGE_LENGTH] or "no message"


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
        super().__init__(concurrency, journal, [key] if isinstance(key, str) else [])
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
