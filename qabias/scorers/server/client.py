"""HTTP to an OpenAI-compatible server: a few requests at a time, patiently repeated, every answer kept.

Connection errors, timeouts, bodies that are broken or no answer, and status 408, 425, 429 and 5xx pass, and the request
is sent again: after a random wait of up to half a second, doubled with every attempt (see `Patience`), but never before
the time that the server names in `Retry-After`. Every other status from 300 is an error that the user must fix, and so
are a certificate that is not trusted and a body of more than `MOST_BYTES`.

The first request of a run is sent alone: what is wrong with the server shows at one request, and one that fails in a
way that may be a lasting one (no answer in time, status 500, a body that is no answer) `FIRST_ATTEMPTS` times is given
up. Failures of other kinds between these do not count.

The key comes from the environment (`QABIAS_API_KEY`, else `OPENAI_API_KEY`) and goes into the request's header and
nowhere else: messages and answers of a server that repeats it are cleaned, see `qabias.scorers.server.secrets`.

The client of the package `openai` would take the place of one line here, that of `post`: it waits no longer than two
minutes for a server that asks it to, sleeps where nothing can wake it, takes failures that come with status 200 for
answers, and wants a key even where a server has none. Where a caller has one all the same, see
`qabias.scorers.server.given`.
"""

import datetime
import email.utils
import json
import logging
import math
import os
import threading
import urllib.parse
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import tenacity

from qabias.errors import QabiasError
from qabias.scorers.journal import Journal, request_hash
from qabias.scorers.server.options import CONCURRENCY, KEY_VARIABLES, TIMEOUT, TOTAL_TIMEOUTS, check_url
from qabias.scorers.server.progress import Progress
from qabias.scorers.server.secrets import blanked_answer, cleaned
from qabias.support.address import without_secrets
from qabias.support.http import REDIRECTS, Bounds, HttpClient, LastingError, LateError, PassingError, Reply

OPENAI_HOST = "api.openai.com"
# A server that asks for a longer rest has a quota by the hour or day: the user decides.
LONGEST_RETRY_AFTER = 600.0

MOST_BYTES = 16_000_000
"""Most bytes of a server's answer."""

FIRST_ATTEMPTS = 3
"""How often a first request may fail in a way that may be a lasting one."""

EMPTY_ATTEMPTS = 3
"""How often a prompt may get an answer without a choice."""

Body = dict[str, Any]

_LONGER = (
    "; a server that needs longer gets it by --option timeout=SECONDS, and total_timeout=SECONDS where that is set"
)

# So many bytes of a body that is no answer are looked at for a message.
_SHOWN = 20_000

_log = logging.getLogger(__name__)


class Patience(NamedTuple):
    """How often and how long a request is repeated."""

    first_wait: float = 0.5
    longest_wait: float = 60.0
    attempts: int = 10


PATIENCE = Patience()


class RefusedError(QabiasError):
    """The server does not take the request as it is."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class ModeError(QabiasError):
    """The answer lacks what this way of asking needs."""


class NoChoiceError(QabiasError):
    """The server answers, and has no choice for this prompt."""


class GaveUpError(QabiasError):
    """Every attempt failed."""

    def __init__(self, message: str, is_doubtful: bool) -> None:
        super().__init__(message)
        self.is_doubtful = is_doubtful


class _Kind(Enum):
    """Of failures that may be over at the next attempt."""

    PASSING = "whatever is asked, and in whatever way"
    DOUBTFUL = "it may be that of a server which cannot be asked in this way"
    EMPTY = "an answer without a choice"


class _RepeatedError(Exception):
    """A failure that may be over at the next attempt."""

    def __init__(self, message: str, wait: float = 0.0, *, kind: _Kind = _Kind.PASSING, advice: str = "") -> None:
        super().__init__(message)
        self.wait = wait
        self.kind = kind
        self.advice = advice


class _Failures:
    """The failed attempts at one request."""

    def __init__(self, most: int, doubtful: int) -> None:
        self._most = most
        self._limits = {
            _Kind.PASSING: most,
            _Kind.DOUBTFUL: min(most, doubtful),
            _Kind.EMPTY: min(most, EMPTY_ATTEMPTS),
        }
        self._counts: Counter[_Kind] = Counter()

    def count(self, error: _RepeatedError) -> None:
        """Count a failed attempt."""
        self._counts[error.kind] += 1

    def limit(self, error: _RepeatedError) -> int:
        """Most attempts that fail like this one."""
        return self._limits[error.kind]

    def has_reached_limit(self, error: _RepeatedError) -> bool:
        """Whether as many attempts as may be have failed like this one."""
        return self._counts[error.kind] >= self._limits[error.kind]

    def are_enough(self, error: _RepeatedError) -> bool:
        """Whether there is no further attempt after this failure."""
        return self.has_reached_limit(error) or self._counts.total() >= self._most

    def told(self, error: _RepeatedError) -> str:
        """The last failure, and how many attempts failed like it."""
        n, n_all = self._counts[error.kind], self._counts.total()
        return f"{error}, {n} time{'s' * (n > 1)} in {'a row' if n == n_all else f'{n_all} attempts'}"


class _StoppedError(Exception):
    """Another request has failed for good."""


class Asker(ABC):
    """What scorers need of a client."""

    needs_single_process = False

    @abstractmethod
    def ask(self, bodies: Sequence[Body], ask_one: Callable[[Body], Any]) -> list[Any]:
        """Answer requests, each as `ask_one` gives it after `post`; None where an answer comes later."""

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Send one request; what only takes requests down sends none."""
        raise TypeError(f"{type(self).__name__} sends no request")

    @property
    def has_answered(self) -> bool:
        """Whether an answer has come, now or in the run before it was stopped."""
        return False

    def unread(self) -> int:
        """Count an answer that has no choice; how many there have been."""
        return 0

    def show_progress(self) -> None:
        """Show people how many requests are answered; what asks nobody shows nothing."""
        return

    def is_waiting(self) -> bool:
        """Whether `ask` has left an answer out since the last call; a server answers at once."""
        return False

    def write_requests(self) -> str:
        """Write down what is left to ask, and say it to people; "" where nothing is."""
        return ""


class ConcurrentAsker(Asker):
    """Asks several requests at a time, each once, and keeps every answer as it comes."""

    def __init__(self, concurrency: int, journal: Path | None, key: str = "") -> None:
        self._concurrency = concurrency
        # A run that goes on has had its first request.
        self._is_first = journal is None or not journal.exists()
        self._journal = Journal(journal)
        self._key = key
        self._stopped = threading.Event()
        self._progress = Progress()

    @property
    def has_answered(self) -> bool:
        """See `Asker.has_answered`."""
        return not self._is_first

    def unread(self) -> int:
        """See `Asker.unread`."""
        return self._progress.unread()

    def show_progress(self) -> None:
        """See `Asker.show_progress`."""
        self._progress.is_shown = True

    def ask(self, bodies: Sequence[Body], ask_one: Callable[[Body], Any]) -> list[Any]:
        """Answer requests: from the journal where it has them, else by `ask_one`, several at a time, each body once."""
        hashes = [request_hash(body) for body in bodies]
        missing = {name: body for name, body in zip(hashes, bodies, strict=True) if name not in self._journal}
        if missing:
            self._ask_missing(missing, ask_one)
        return [self._journal[name] for name in hashes]

    def _ask_missing(self, missing: Mapping[str, Body], ask_one: Callable[[Body], Any]) -> None:
        def ask_and_keep(name: str, body: Body) -> None:
            if self._stopped.is_set():
                raise _StoppedError
            try:
                self._journal.add(name, blanked_answer(ask_one(body), self._key))
                self._progress.answered()
            except BaseException:
                self._stopped.set()  # at once: a quick client would send all the others before this is noticed
                raise

        self._stopped.clear()
        left = list(missing.items())
        with self._connected(), self._progress.of(len(left)), ThreadPoolExecutor(self._concurrency) as pool:
            try:
                if self._is_first:
                    ask_and_keep(*left.pop(0))
                    self._is_first = False
                futures = [pool.submit(ask_and_keep, name, body) for name, body in left]
                for future in as_completed(futures):
                    if not isinstance(future.exception(), _StoppedError):
                        future.result()
            finally:
                # After an error or Ctrl-C nothing new is sent, and nobody sleeps until the next attempt.
                self._stopped.set()
                pool.shutdown(cancel_futures=True)
                self._journal.close()

    def _connected(self) -> AbstractContextManager[None]:
        """What is open while requests are sent."""
        return nullcontext()


class Client(ConcurrentAsker):
    """Asks a server."""

    def __init__(
        self,
        url: str,
        *,
        concurrency: int = CONCURRENCY,
        timeout: float = TIMEOUT,
        total_timeout: float | None = None,
        journal: Path | None = None,
        patience: Patience | None = None,
    ) -> None:
        variable, key = _read_key()
        super().__init__(concurrency, journal, key)
        self._url = check_url(url)
        host = urllib.parse.urlsplit(url).hostname
        if variable == "OPENAI_API_KEY" and host != OPENAI_HOST:
            _log.warning(
                "server: the key in OPENAI_API_KEY goes to %s; if that is not meant, set %s",
                host,
                KEY_VARIABLES[0],
            )
        self._timeout = timeout
        self._bounds = Bounds(MOST_BYTES, total_timeout or TOTAL_TIMEOUTS * timeout)
        self._patience = patience or PATIENCE
        self._has_warned = threading.Lock()
        self._http: HttpClient | None = None

    @contextmanager
    def _connected(self) -> Iterator[None]:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            client = HttpClient(self._bounds, timeout=self._timeout, connections=self._concurrency, headers=headers)
        except LastingError as error:
            raise QabiasError(f"server: {error}") from None
        with client as self._http:
            yield

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Send a request, again and again while the failure is a passing one."""
        most = self._patience.attempts
        failures = _Failures(most, doubtful or (FIRST_ATTEMPTS if self._is_first else most))

        def attempt() -> dict[str, Any]:
            try:
                return self._post_once(path, body)
            except _RepeatedError as error:
                failures.count(error)
                raise

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_RepeatedError),
            wait=self._wait,
            stop=lambda state: failures.are_enough(_error_in(state)),
            sleep=tenacity.sleep_using_event(self._stopped),
            before_sleep=lambda state: self._before_another(_error_in(state), failures),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except _RepeatedError as error:
            if error.kind is _Kind.EMPTY and failures.has_reached_limit(error):
                raise NoChoiceError(f"server: {failures.told(error)}") from None
            raise GaveUpError(
                f"server: {failures.told(error)}{error.advice}; run the same command again when the server is well, it "
                "goes on from the answers so far",
                error.kind is _Kind.DOUBTFUL,
            ) from None  # what lies below may quote the request

    def _post_once(self, path: str, body: Body) -> dict[str, Any]:
        if self._stopped.is_set():
            raise _StoppedError
        assert self._http is not None
        try:
            reply = self._http.send("POST", f"{self._url}/{path}", body)
        except LateError as error:
            raise _RepeatedError(self._clean(str(error)), kind=_Kind.DOUBTFUL, advice=_LONGER) from None
        except PassingError as error:
            raise _RepeatedError(self._clean(str(error))) from None
        except LastingError as error:
            raise QabiasError(f"server: {self._clean(str(error))}") from None
        status, content = reply.status, read_json(reply.content)
        if passes(status):
            wait = seconds_to_wait(reply.headers.get("retry-after"))
            if wait > LONGEST_RETRY_AFTER:
                raise QabiasError(
                    f"server: {self._describe(reply)}; it wants no request for {wait:.0f} seconds: run the same "
                    "command again after that, it goes on from the answers so far"
                )
            kind = _Kind.DOUBTFUL if status in (500, 501) else _Kind.PASSING
            raise _RepeatedError(self._describe(reply), wait, kind=kind)
        if status in REDIRECTS:
            raise QabiasError(f"server: {self._redirect(reply)}")
        if status >= 300:
            where = f"; the key comes from the environment variable {KEY_VARIABLES[0]}" if status in (401, 403) else ""
            raise RefusedError(f"server: {self._describe(reply)}{where}", status, failure(content).code)
        if isinstance(content, dict) and is_failure(content):
            code = failure(content).code
            if len(code) == 3 and code.isascii() and code.isdecimal() and passes(int(code)):
                raise _RepeatedError(self._describe(reply))
            raise RefusedError(f"server: {self._describe(reply)}", status, code)
        if not isinstance(content, dict) or not isinstance(content.get("choices"), list):
            begin = self._clean(reply.content[:_SHOWN].decode("utf-8", "replace")) if reply.content else "nothing"
            raise _RepeatedError(
                f"the answer is not a JSON object with choices, but {begin[:60]!r}; is the url that of an "
                "OpenAI-compatible API?",
                kind=_Kind.DOUBTFUL,
            )
        if not content["choices"]:
            raise _RepeatedError("the answer has an empty list of choices", kind=_Kind.EMPTY)
        return content

    def _describe(self, reply: Reply) -> str:
        """Status and message of an answer that is none."""
        content = read_json(reply.content)
        message = reply.content.decode("utf-8", "replace") if content is None else failure(content).message
        return f"status {reply.status}: {self._clean(message)}"

    def _redirect(self, reply: Reply) -> str:
        """Where an answer leads; a redirect is not followed, because the key and the questions would go along."""
        there = reply.headers.get("location", "")
        to = f"to {self._clean(without_secrets(there))}" if there else "and does not say where to"
        return (
            f"status {reply.status}: it redirects {to}, and redirects are not followed, because the key would go "
            "along; if that is the right server, give its address by --option url"
        )

    def _clean(self, message: str) -> str:
        return cleaned(message, self._key)

    def _before_another(self, error: _RepeatedError, failures: _Failures) -> None:
        self._progress.sent_again()
        if self._has_warned.acquire(blocking=False):
            _log.warning("server: %s; such requests are sent up to %d times", error, failures.limit(error))

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Seconds until the next attempt."""
        most = self._patience.longest_wait
        drawn: float = tenacity.wait_random_exponential(multiplier=self._patience.first_wait, max=most)(state)
        return max(drawn, _error_in(state).wait)


def _error_in(state: tenacity.RetryCallState) -> _RepeatedError:
    """Why an attempt is to be repeated."""
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, _RepeatedError)
    return error


def passes(status: int) -> bool:
    """Whether a failure of that status may be over at the next attempt."""
    return status in (408, 425, 429) or status >= 500


class Failure(NamedTuple):
    """What an answer says of a failure."""

    message: str
    code: str


def failure(content: Any) -> Failure:
    """What the body of an answer, as JSON, says of a failure."""
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return Failure(str(error), "")
    return Failure(str(error.get("message", error)), str(error.get("code") or error.get("type") or ""))


def is_failure(answer: Mapping[str, Any]) -> bool:
    """Whether an answer of status 200 is none: some gateways wrap the failure of the server behind them like this."""
    return bool(answer.get("error")) and "choices" not in answer


def read_json(content: bytes) -> Any:
    """The body of an answer as JSON; None where it is none, or too deep or long to be one."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _read_key() -> tuple[str, str]:
    """The variable that holds a key, and the key; both "" where none does."""
    for name in KEY_VARIABLES:
        key = os.environ.get(name, "").strip()
        if key:
            if not (key.isascii() and key.isprintable() and " " not in key):
                raise QabiasError(f"server: the key in {name} has characters that no key has; set it again")
            return name, key
    return "", ""


def seconds_to_wait(value: str | None) -> float:
    """Seconds that the header `Retry-After` asks for, a number or a date; 0 where it asks for nothing readable."""
    if value is None:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            then = email.utils.parsedate_to_datetime(value)
        except ValueError:
            return 0.0
        now = datetime.datetime.now(datetime.timezone.utc)
        seconds = (then.replace(tzinfo=then.tzinfo or datetime.timezone.utc) - now).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0
