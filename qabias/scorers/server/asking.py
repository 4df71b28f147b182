"""Requests to a server: concurrent, each one once. Every answer is stored, without the key."""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from qabias.answers.outcomes import whole
from qabias.errors import QabiasError
from qabias.scorers.journal import SERVED, Journal, request_hash
from qabias.support.progress import tell

KEY = "[key]"  # replaces a key and parts of it

MESSAGE_LENGTH = 300

_PART = 8  # the fewest characters of a key that are a part of it
# A key with fewer letters and digits, or without a digit, may be a word for "none"; answers may hold it.
_SHORTEST_IN_ANSWERS = 16

Body = dict[str, Any]


class RefusedError(QabiasError):
    """The server rejects the request."""

    def __init__(self, problem: str, status: int, code: str = "", fix: str = "") -> None:
        super().__init__(problem, fix)
        self.status = status
        self.code = code


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
    _key = ""

    @abstractmethod
    def ask(self, bodies: Sequence[Body], ask_one: Callable[[Body], Any]) -> list[Any]:
        """Answer requests by `ask_one`, which calls `post`; None if an answer comes later."""

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Send one request; clients that only write requests send none."""
        raise TypeError(f"{type(self).__name__} sends no request")

    def _of_one_model(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Refuse an answer of another model than the one that the first answer of the run names."""
        name = answer.get("model")
        if isinstance(name, str) and name:
            name = redacted(whole(name), self._key)
            first = self._journal.get(SERVED)
            if first is None:
                self._journal.add(SERVED, name)
            elif name != first:
                raise QabiasError(
                    f"server: the answers come from {printable(name, self._key)!r}, but this run began with {first!r}.",
                    "Choose another --output, and a --model that names one version.",
                )
        return answer

    def count_without_choice(self) -> int:
        """Count an answer without a choice; return the number so far."""
        return 0

    def is_waiting(self) -> bool:
        """Return whether `ask` skipped an answer since the last call; a server answers at once."""
        return False

    def write_requests(self) -> str:
        """Write unanswered requests, and return a note about them; "" if all are answered."""
        return ""


class ConcurrentAsker(Asker):
    """Sends several requests at a time, each one once, and stores every answer at once."""

    def __init__(self, concurrency: int, journal: Path | None, key: str = "") -> None:
        self._concurrency = concurrency
        # A run that is resumed has had its first request.
        self.has_answered = journal is not None and journal.exists()
        self._journal = Journal(journal)
        self._key = key
        self._stopped = threading.Event()
        self._unread = itertools.count(1)

    def count_without_choice(self) -> int:
        """See `Asker`."""
        return next(self._unread)

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
                self._journal.add(name, redacted_answer(ask_one(body), self._key))
            except BaseException:
                self._stopped.set()  # at once: a quick client would send all the others before this is noticed
                raise

        self._stopped.clear()
        left = list(missing.items())
        with self._connected(), ThreadPoolExecutor(self._concurrency) as pool:
            try:
                if not self.has_answered:
                    ask_and_keep(*left.pop(0))
                    self.has_answered = True
                futures = [pool.submit(ask_and_keep, name, body) for name, body in left]
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

    def _connected(self) -> AbstractContextManager[None]:
        """Return what is open while requests are sent."""
        return nullcontext()

    def _clean(self, message: str) -> str:
        return printable(message, self._key)


class Failure(NamedTuple):
    """Message and code of a failure."""

    message: str
    code: str


def failure(content: Any) -> Failure:
    """Read a failure from the body of an answer, as JSON."""
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return Failure(str(error), "")
    return Failure(str(error.get("message", error)), str(error.get("code") or error.get("type") or ""))


def is_failure(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer of status 200 is a failure: some gateways wrap their server's failures so."""
    return bool(answer.get("error")) and "choices" not in answer


def may_pass(status: int) -> bool:
    """Return whether a failure of this status may be temporary."""
    return status in (408, 425, 429) or status >= 500


def redacted(text: str, key: str) -> str:
    """Replace the key, and every part of it with 8 characters or more, by `[key]`."""
    parts = {key[start : start + _PART] for start in range(max(1, len(key) - _PART + 1))} - {""}
    hits = re.finditer(f"(?=({'|'.join(map(re.escape, parts))}))", text) if parts else ()
    shown: list[str] = []
    end = 0
    for hit in hits:
        start, stop = hit.span(1)
        if start > end or not shown:
            shown += [text[end:start], KEY]
        end = stop
    return "".join([*shown, text[end:]])


def redacted_answer(answer: Any, key: str) -> Any:
    """Make the texts of an answer, as JSON, safe to store and free of the key; field names stay."""
    is_word = sum(map(str.isalnum, key)) < _SHORTEST_IN_ANSWERS or not any(map(str.isdigit, key))
    return _redacted_answer(answer, "" if is_word else key)


def _redacted_answer(answer: Any, key: str) -> Any:
    if isinstance(answer, str):
        return redacted(whole(answer), key)
    if isinstance(answer, dict):
        return {whole(name): _redacted_answer(value, key) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [_redacted_answer(value, key) for value in answer]
    return answer


def printable(message: str, key: str) -> str:
    """Return a message in one line, shortened, without the key and without control characters."""
    spaced = "".join(" " if char.isspace() else char for char in message)
    kept = "".join(char for char in spaced if unicodedata.category(char)[0] != "C")
    # Before the cut, which might leave half a key.
    return redacted(" ".join(kept.split()), key)[:MESSAGE_LENGTH] or "no message"
