"""HTTP to an OpenAI-compatible server: concurrent requests with retries; every answer is stored."""

import functools
import json
import logging
import math
import os
import random
import re
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from qabias.answers.outcomes import TOO_LONG, failure, is_failure
from qabias.answers.services import as_chat, usage_of
from qabias.errors import QabiasError, arg
from qabias.scorers.journal import TEMPLATE
from qabias.scorers.server.apis import APIS, CHAT_API, Api, Body
from qabias.scorers.server.asking import ConcurrentAsker, NoChoiceError, RefusedError, StoppedError, count, may_pass
from qabias.scorers.server.options import KEY_VARIABLE, MAX_CONNECTIONS, TIMEOUT, TOTAL_TIMEOUTS, check_url
from qabias.scorers.server.pacing import Pace
from qabias.scorers.server.templates import lacking_template
from qabias.support.address import without_secrets
from qabias.support.http import REDIRECTS, Bounds, HttpClient, LastingError, LateError, PassingError, Reply
from qabias.support.progress import remark

LONGEST_RETRY_AFTER = 600.0  # A server that asks for a longer rest has a quota by the hour or day: the user decides

MOST_BYTES = 16_000_000  # maximum bytes of a server's answer

FIRST_ATTEMPTS = 3  # attempts of a first request whose failure may be permanent

EMPTY_ATTEMPTS = 3  # attempts of a prompt whose answers have no choice


def _doubt() -> str:
    option = arg("option")
    return f"; use a longer {option} timeout=SECONDS if it is slow, or another {option} mode=MODE if it lacks this one"


_LONG_WAIT = 60.0  # seconds that the terminal announces, even after another failure


def check_request() -> str:
    """The fix of a request that every prompt would fail."""
    return f"Check {arg('base_url')}, {arg('model')}, {arg('ask')} and {arg('option')} body.NAME."


_SHOWN = 20_000  # bytes of an invalid body that a message may use

_log = logging.getLogger(__name__)
T = TypeVar("T")


_STEP = 0.5  # seconds between looks at a rate limit

_KEY_HEADERS = {"authorization", "api-key", "x-api-key"}  # one of these replaces the header of the key


@functools.cache  # an audit asks one server in several runs
def _warn_of_key(variable: str, host: str) -> None:
    _log.warning("server: %s is sent to %s; to send another key, set %s", variable, host, KEY_VARIABLE)


class Patience(NamedTuple):
    """How often and how long a request is repeated."""

    first_wait: float = 0.5
    longest_wait: float = 60.0
    attempts: int = 10


PATIENCE = Patience()


class GaveUpError(QabiasError):
    """Every attempt failed."""

    def __init__(self, problem: str, is_doubtful: bool) -> None:
        super().__init__(problem, "To resume, rerun the command when the server is available.")
        self.is_doubtful = is_doubtful


# Kinds of failures that may be over at the next attempt: whatever is asked, or perhaps not of a server that cannot be
# asked in this way; and an answer without a choice.
_PASSING, _DOUBTFUL, _EMPTY = "passing", "doubtful", "empty"


class RepeatedError(Exception):
    """A failure that may be temporary."""

    def __init__(self, message: str, wait: float = 0.0, *, kind: str = _PASSING) -> None:
        super().__init__(message)
        self.wait = wait
        self.kind = kind


class Client(ConcurrentAsker):
    """Queries a server."""

    def __init__(
        self,
        url: str,
        *,
        concurrency: int = MAX_CONNECTIONS,
        timeout: float = TIMEOUT,
        total_timeout: float | None = None,
        journal: Path | None = None,
        patience: Patience | None = None,
        api: Api = APIS[CHAT_API],
        own_headers: Mapping[str, str] | None = None,
    ) -> None:
        own = {name: _secret(name, variable) for name, variable in (own_headers or {}).items()}
        has_key = not _KEY_HEADERS.isdisjoint(map(str.lower, own))
        variable, key = ("", "") if has_key else _read_key(api.variable)
        # Of several words the first is one such as Bearer. A text of up to three characters hides nothing.
        values = (word for value in own.values() for word in value.split()[1:] or [value] if len(word) > 3)
        super().__init__(concurrency, journal, [key, *sorted(values, key=len, reverse=True)])
        self._headers = {**api.headers(key), **own}
        self._has_key = bool(key) or has_key
        self._url, self._api, self._pace = check_url(url), api, Pace()
        host = urllib.parse.urlsplit(url).hostname or "another server"
        if variable == api.variable and host != api.host:
            _warn_of_key(variable, host)
        self._timeout = timeout
        self._bounds = Bounds(MOST_BYTES, total_timeout or TOTAL_TIMEOUTS * timeout)
        self._patience = patience or PATIENCE
        self._has_warned = {is_long: threading.Lock() for is_long in (False, True)}
        self._http: HttpClient | None = None

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            client = HttpClient(
                self._bounds, timeout=self._timeout, connections=self._concurrency, headers=self._headers
            )
        except LastingError as error:
            raise QabiasError(f"server: {error}.", f"Check {arg('base_url')} and the network.") from None
        with client as self._http:
            yield

    def lacking_template(self, model: str) -> str:
        """Why the server's model has no chat template, found once a run; "" if it has one or none is known."""
        if not self.has_answered:
            with self._connected():
                why = lacking_template(self.peek, model)
            self.notes = {TEMPLATE: why} if why else {}
        return self.notes.get(TEMPLATE) or self._journal.get(TEMPLATE) or ""

    def peek(self, method: str, path: str, body: Body | None = None) -> Any:
        """The JSON of a reply, whatever its status; None without one. Nothing is repeated."""
        assert self._http is not None
        with suppress(PassingError, LastingError, ValueError, RecursionError):
            return json.loads(
                self._http.send(method, urllib.parse.urljoin(f"{self._url.partition('?')[0]}/", path), body).content
            )

    def post(self, path: str, body: Body, doubtful: int | None = None) -> dict[str, Any]:
        """Send a request, and repeat it after temporary failures."""
        return self._repeated(lambda again: self._post_once(path, body, again=again), doubtful)

    def _repeated(self, attempt: Callable[[bool], T], doubtful: int | None = None) -> T:
        """The result of an attempt, which is repeated after temporary failures and takes whether it is."""
        most = self._patience.attempts
        doubtful = doubtful or (most if self.has_answered else FIRST_ATTEMPTS)
        limits = {_PASSING: most, _DOUBTFUL: min(most, doubtful), _EMPTY: min(most, EMPTY_ATTEMPTS)}
        counts: Counter[str] = Counter()
        while True:
            try:
                return attempt(counts.total() > 0)
            except RepeatedError as error:
                counts[error.kind] += 1
                n, n_all, limit = counts[error.kind], counts.total(), limits[error.kind]
                if n >= limit or n_all >= most:
                    in_all = "a row" if n == n_all else f"{n_all} attempts"
                    message = f"server: {error}, {n} time{'s' * (n > 1)} in {in_all}"
                    if error.kind is _EMPTY and n >= limit:
                        raise NoChoiceError(message) from None
                    is_doubtful = error.kind is _DOUBTFUL
                    # The cause may quote the request.
                    raise GaveUpError(f"{message}{_doubt() * is_doubtful}.", is_doubtful) from None
                highest = min(self._patience.longest_wait, self._patience.first_wait * 2 ** (n_all - 1))
                wait = max(random.uniform(0, highest), error.wait)
                if self._has_warned[wait >= _LONG_WAIT].acquire(blocking=False):
                    pause = f", the next time in {wait:.0f} seconds" if wait >= 1 else ""
                    _log.warning("server: %s; such requests are sent up to %d times%s", error, limit, pause)
                count(retries=1)
                self._rest(wait)

    def _rest(self, seconds: float) -> None:
        """Wait before another attempt, unless another request fails for good."""
        self._stopped.wait(seconds)

    def _paced(self, path: str, body: Body, *, again: bool) -> tuple[Reply, Any]:
        """Send a request when the rate limits allow, and return the reply, and its content if it is JSON."""
        assert self._http is not None
        while not self._stopped.is_set() and (seconds := self._pace.begin(again=again)):
            remark(f"waiting {math.ceil(seconds)} s for the rate limit")
            self._rest(min(seconds, _STEP))
        if self._stopped.is_set():
            raise StoppedError
        reply, content = None, None  # no content if it is no JSON, too deep or too long
        is_chat = path == APIS[CHAT_API].path
        try:
            url = self._api.url(self._url, self._api.path if is_chat else path)
            reply = self._http.send("POST", url, self._api.request(body) if is_chat else body)
            with suppress(ValueError, RecursionError):
                content = json.loads(reply.content)
        finally:
            used = usage_of(content) if isinstance(content, dict) else {}
            tokens = used.get("prompt_tokens", 0) + used.get("generated_tokens", 0)
            self._pace.end(reply.headers if reply else {}, tokens)
        return reply, as_chat(content) if isinstance(content, dict) else content

    def _post_once(self, path: str, body: Body, *, again: bool) -> dict[str, Any]:
        with self._named_failures():
            reply, content = self._paced(path, body, again=again)
        if reply.status >= 300 or (isinstance(content, dict) and is_failure(content)):
            raise self._failed(reply, content)
        if not isinstance(content, dict) or not isinstance(content.get("choices"), list):
            begin = self._clean(reply.content[:_SHOWN].decode("utf-8", "replace")) if reply.content else "nothing"
            raise RepeatedError(
                f"the answer is not a JSON object with choices, but {begin[:60]!r}; check that the url is "
                f"an OpenAI-compatible API, or give {arg('option')} api=NAME",
                kind=_DOUBTFUL,
            )
        if not content["choices"]:
            raise RepeatedError("the answer has an empty list of choices", kind=_EMPTY)
        return self._of_one_model(content)

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        try:
            yield
        except LateError as error:
            raise RepeatedError(self._clean(str(error)), kind=_DOUBTFUL) from None
        except PassingError as error:
            raise RepeatedError(self._clean(str(error))) from None
        except LastingError as error:
            raise QabiasError(
                f"server: {self._clean(str(error))}.", f"Check {arg('base_url')} and the network."
            ) from None

    def _failed(self, reply: Reply, content: Any) -> Exception:
        """The error of a reply that is a failure, to be repeated or with its cause and the fix."""
        failed = failure(reply.content.decode("utf-8", "replace") if content is None else content, reply.status)
        status, said = failed.status, f"status {reply.status}: {self._clean(failed.message)}"
        has_text = status == 200 and "choices" in content and not failed.finish
        cause, fix = "", check_request()
        if failed.ends_quota:
            cause, fix = "the quota of the key is used up, ", "Raise the quota at the service, then rerun the command."
        elif may_pass(status) or has_text:
            wait = seconds_to_wait(reply.headers.get("retry-after-ms")) / 1000
            wait = wait or seconds_to_wait(reply.headers.get("retry-after"))
            if wait > LONGEST_RETRY_AFTER:
                return QabiasError(f"server: {said}.", f"Rerun the command in {wait:.0f} seconds.")
            self._pace.pause(wait)
            return RepeatedError(said, wait, kind=_DOUBTFUL if status in (500, 501) else _PASSING)
        elif status in REDIRECTS:
            there = self._clean(without_secrets(reply.headers.get("location", "")) or "nowhere")
            cause = f"it redirects to {there}, which is not followed, to protect the key, "
            fix = f"If you trust that server, use its address as {arg('base_url')}."
        elif status in (401, 403):
            cause = f"the key was {'refused' if self._has_key else 'missing'}, "
            fix = f"Set the key in the environment variable {KEY_VARIABLE}."
        elif status in (404, 405) and self._api is APIS[CHAT_API] and not re.search(r"/v\d|\?", self._url):
            cause, fix = "the address lacks /v1, ", f"Add /v1 to the end of {arg('base_url')}."
        elif status in (404, 405):
            cause = "the address or the model does not exist, "
        elif status in (400, 422) and _REJECTED.search(said) and (field := _FIELD.search(said)):
            fix = f"Add {arg('option')} {_FIELD_FIXES[field[0]]}."
        elif failed.finish == TOO_LONG:
            fix = f"Raise the context length of the server, or use another {arg('ask')} with shorter prompts."
        return RefusedError(f"server: {cause}{said}", failed, fix)


# What today's models reject, and the option that they take instead.
_FIELD_FIXES = {"temperature": "body.temperature=null", "max_tokens": "body.max_completion_tokens=4096"}
_REJECTED, _FIELD = re.compile("unsupported|deprecated|not support", re.IGNORECASE), re.compile("|".join(_FIELD_FIXES))


def _read_key(variable: str) -> tuple[str, str]:
    """Return the variable with a key, and the key; both "" if no variable has one."""
    for name in (KEY_VARIABLE, variable):
        key = os.environ.get(name, "").strip()
        if key:
            if not (key.isascii() and key.isprintable() and " " not in key):
                raise QabiasError(f"server: the key in {name} has characters that a key cannot have.", "Set it again.")
            return name, key
    return "", ""


def _secret(name: str, variable: str) -> str:
    """The value of a header from its environment variable, which a mistake may have given the value for a name."""
    value = os.environ.get(variable, "").strip()
    if not (value and value.isascii() and value.isprintable()):
        raise QabiasError(f"server: the variable of the header {name} has no ASCII text.", "Set the variable.")
    return value


def seconds_to_wait(value: str | None) -> float:
    """Return the seconds of the header `Retry-After`; 0 if it has none."""
    try:
        seconds = float(value or 0)
    except ValueError:  # a date, as some proxies give it
        return 0.0
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0
