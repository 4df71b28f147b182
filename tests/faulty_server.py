"""A server of faults: every way in which a server is known to misbehave, by name.

`FAULTS` names them, each with the outcome that a run must show:

- `AGAIN`: the attempt is wasted, the request is sent again, and the run ends as if nothing had been;
- `ANSWER`: it is an answer, however odd: the run ends and has no answer, or an unread one, for that prompt;
- `ENDS`: the run ends with one line that says what is wrong; what was answered before is kept.
"""

import gzip
import json
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import pytest

from .loopback_server import Handler, Server, digest

AGAIN, ANSWER, ENDS = "again", "answer", "ends"

SLOW_SECONDS = 30
"""How long a server that trickles goes on."""

BOMB_BYTES = 50_000_000
ENDLESS_BYTES = 400_000_000
"""Where an endless body ends, so that a test that fails does end."""


class Fault(NamedTuple):
    """A way to misbehave.

    Attributes:
        outcome: `AGAIN`, `ANSWER` or `ENDS`.
        send: Sends it, given the handler of the request and the right answer.
    """

    outcome: str
    send: Callable[["FaultyHandler", dict], None]


class FaultyHandler(Handler):
    """Answers as the fault says."""

    def _spoil(self, fault):
        self.close_connection = True
        with suppress(OSError):  # a client that has gone is no news
            FAULTS[fault].send(self, {"choices": [{"message": {"role": "assistant", "content": "A"}}]})

    def raw(self, content: bytes):
        """Send bytes as they are."""
        self.wfile.write(content)
        self.wfile.flush()

    def whole(self, status, answer, **headers):
        """Send a status, a body and further headers, whose names have _ for -."""
        self._send(status, answer, {name.replace("_", "-"): value for name, value in headers.items()})

    def body(self, content: bytes, *headers: str):
        """Send status 200 with a body and headers as they are."""
        self.raw("\r\n".join(("HTTP/1.1 200 OK", *headers, "", "")).encode("latin-1") + content)

    def key(self) -> str:
        """The key that the client sent."""
        return (self.headers.get("Authorization") or "Bearer none").removeprefix("Bearer ")

    def reset(self):
        """End the connection at once, so that the client sees a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class FaultyServer(Server):
    """Spoils the first attempts at every prompt by a fault, or those of which a function gives one."""

    handler = FaultyHandler

    def __init__(self, fault, attempts=1, **options):
        by_name = fault if callable(fault) else lambda text, attempt: fault if attempt < attempts else None
        super().__init__(fault=by_name, **options)


def _status(status, answer=None, **headers):
    message = {"error": {"message": "busy"}} if answer is None else answer
    return lambda handler, right: handler.whole(status, message, **headers)


def _error(message, status=400, **fields):
    return _status(status, {"error": {"message": message, **fields}})


def _said(message, **choice):
    return _status(200, {"choices": [{"message": message, **choice}]})


def _content(text):
    return _said({"role": "assistant", "content": text})


def _gzipped(content):
    return lambda handler, right: handler.body(
        content(right), "Content-Encoding: gzip", f"Content-Length: {len(content(right))}"
    )


def _json(right):
    return json.dumps(right).encode()


def _endless(handler, right):
    handler.body(b'{"choices": "', "Content-Type: application/json", "Connection: close")
    for _ in range(ENDLESS_BYTES // 1_000_000):
        handler.raw(b"x" * 1_000_000)


def _endless_chunks(handler, right):
    handler.body(b"", "Transfer-Encoding: chunked")
    for _ in range(ENDLESS_BYTES // 1_000_000):
        handler.raw(b"F4240\r\n" + b" " * 1_000_000 + b"\r\n")


def _labelled(encoding):
    """A right answer that says it is packed, and is not."""
    return lambda handler, right: handler.body(
        _json(right), f"Content-Encoding:{encoding}", f"Content-Length: {len(_json(right))}"
    )


def _trickle(handler, content: bytes):
    for number in range(int(SLOW_SECONDS / 0.05)):
        handler.raw(content[number % len(content) :][:1])
        time.sleep(0.05)


def _slow_body(handler, right):
    handler.body(b"", "Content-Length: 100000")
    _trickle(handler, b" ")


def _slow_headers(handler, right):
    handler.raw(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _trickle(handler, b"x")


def _reply(content: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)


_SURPLUS = _reply(b'{"choices": [{"message": {"content": "of another"}}]}')


def _surplus(after: bytes, *, late: float = 0.0, chunked: bool = False):
    """The right answer and more bytes, on a connection that stays open."""

    def send(handler, right):
        handler.close_connection = False
        content = _json(right)
        chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
        answer = chunks if chunked else _reply(content)
        handler.raw(answer if late else answer + after)
        if late:
            time.sleep(late)
            handler.raw(after)

    return send


def _with_key(make):
    """An error whose message holds the key in some form."""
    return lambda handler, right: handler.whole(
        400, {"error": {"message": f"no such key: {make(handler.key())} (see your account)"}}
    )


def _key_raw(make):
    """A body that is no JSON and holds the key in some form."""
    return lambda handler, right: handler.whole(403, make(handler.key()))


def _key_in_answer(handler, right):
    handler.whole(200, {"choices": [{"message": {"content": f"The key is {handler.key()}."}}]})


def _key_in_location(handler, right):
    handler.whole(302, "", Location=f"http://user:{handler.key()}@127.0.0.1:9/v1?key={handler.key()}#{handler.key()}")


def _late(handler, right):
    """Nothing for longer than a test's client waits."""
    time.sleep(6)


def _elsewhere(status):
    return lambda handler, right: handler.whole(status, "", Location="http://127.0.0.1:9/elsewhere?token=hunter2")


FAULTS = {
    # Statuses
    "429": Fault(AGAIN, _status(429)),
    "429-retry-after": Fault(AGAIN, _status(429, Retry_After="0.1")),
    "500": Fault(AGAIN, _status(500)),
    "502-html": Fault(AGAIN, _status(502, "<html><h1>Bad Gateway</h1></html>")),
    "503": Fault(AGAIN, _status(503)),
    "error-code-502": Fault(AGAIN, _error("behind", 200, code=502)),
    "error-beside-choices": Fault(
        AGAIN, lambda handler, right: handler.whole(200, right | {"error": {"message": "cut"}})
    ),
    "finish-error": Fault(AGAIN, _said({"content": "A"}, finish_reason="error")),
    # Connections
    "no-reply": Fault(AGAIN, lambda handler, right: None),
    "reset": Fault(AGAIN, lambda handler, right: handler.reset()),
    "cut-within": Fault(AGAIN, lambda handler, right: handler.body(b'{"choices": [', "Content-Length: 1000")),
    "bad-status-line": Fault(AGAIN, lambda handler, right: handler.raw(b"HTTP/1.1 two hundred\r\n\r\n")),
    "6-seconds-away": Fault(AGAIN, _late),
    "slow-loris-body": Fault(AGAIN, _slow_body),
    "slow-loris-headers": Fault(AGAIN, _slow_headers),
    # Bodies that are none
    "200-wrong-json": Fault(AGAIN, _status(200, '{"choices": [')),
    "200-html": Fault(AGAIN, _status(200, "<html>Please sign in</html>")),
    "200-deep-json": Fault(AGAIN, _status(200, "[" * 200_000)),
    "content-empty-choices": Fault(AGAIN, _status(200, {"choices": []})),  # every time, it is an unread answer
    "unknown-encoding": Fault(
        AGAIN, lambda handler, right: handler.body(b"x", "Content-Encoding: secret", "Content-Length: 1")
    ),
    # Bodies without bounds
    "endless-body": Fault(ENDS, _endless),
    "endless-chunks": Fault(ENDS, _endless_chunks),
    "gzip-bomb": Fault(AGAIN, _gzipped(lambda right: _BOMB)),
    "length-of-10-TB": Fault(AGAIN, lambda handler, right: handler.body(b"x", f"Content-Length: {10**13}")),
    # Answers
    "content-surrogate": Fault(ANSWER, _status(200, r'{"choices": [{"message": {"content": "A \ud83d"}}]}')),
    "content-null": Fault(ANSWER, _content(None)),
    "content-tool-calls": Fault(ANSWER, _said({"content": None, "tool_calls": [{"id": "1"}]}, finish_reason="tool")),
    "content-reasoning": Fault(
        ANSWER, _said({"content": "", "reasoning_content": "It may be"}, finish_reason="length")
    ),
    "content-5-MB": Fault(ANSWER, lambda handler, right: _content("A " + "x" * 5_000_000)(handler, right)),
    "content-nul": Fault(ANSWER, _content("A \0 \x1b[2J \x07 \u202e")),
    "content-filter": Fault(ANSWER, _error("filtered", code="content_filter")),
    "content-finish-object": Fault(ANSWER, _said({"content": "A"}, finish_reason={"a": ["\ud83d"]})),
    "content-key": Fault(ANSWER, _key_in_answer),
    "surplus-reply": Fault(ANSWER, _surplus(_SURPLUS)),
    "surplus-reply-late": Fault(ANSWER, _surplus(_SURPLUS, late=0.05)),
    "surplus-reply-in-half": Fault(ANSWER, _surplus(_SURPLUS[:50])),
    "surplus-reply-chunked": Fault(ANSWER, _surplus(_SURPLUS, chunked=True)),
    "surplus-reply-early": Fault(ANSWER, _surplus(b"HTTP/1.1 103 Early Hints\r\n\r\n" + _SURPLUS)),
    "surplus-body": Fault(ANSWER, _surplus(b" " * 100)),
    "encoding-utf-8": Fault(ANSWER, _labelled(" utf-8")),
    # Refusals
    "400": Fault(ENDS, _error("too long", code="length")),
    "400-too-long": Fault(ENDS, _error("longer than the context", code="context_length_exceeded")),  # all prompts
    "429-quota": Fault(ENDS, _error("used up", 429, code="insufficient_quota")),
    "401": Fault(ENDS, _error("wrong key", status=401)),
    "answer-int": Fault(ENDS, _content(5)),
    "error-wrong-types": Fault(ENDS, _status(400, {"error": {"message": {"a": [1]}, "code": ["x"], "type": None}})),
    "400-deep-json": Fault(ENDS, _status(400, "[" * 200_000)),
    "redirect-307": Fault(ENDS, _elsewhere(307)),
    "redirect-nowhere": Fault(ENDS, _status(307, "")),
    "redirect-key": Fault(ENDS, _key_in_location),
    "ansi-message": Fault(ENDS, _error("\x1b]0;owned\x07\x1b[31mred\x00 \u202egnirts\u2066\x9b1m\x7f")),
    "message-surrogate": Fault(ENDS, _status(400, r'{"error": {"message": "half \ud83d"}}')),
    # The key, come back
    "400-key": Fault(ENDS, _with_key(str)),
    "400-key-split": Fault(ENDS, _with_key(lambda key: f"{key[:9]}\n{key[9:]}")),
    "400-key-json": Fault(ENDS, _key_raw(lambda key: '{"detail": "' + "".join(f"\\u{ord(x):04x}" for x in key) + '"}')),
    "400-key-twice-json": Fault(ENDS, _with_key(lambda key: json.dumps(json.dumps({"key": key})))),
    "400-key-at-the-cut": Fault(ENDS, _with_key(lambda key: "x" * 270 + key)),
}
"""Every fault by its name."""

_BOMB = gzip.compress(b" " * BOMB_BYTES)


def names(outcome):
    """The faults with an outcome."""
    return [name for name, fault in FAULTS.items() if fault.outcome == outcome]


@pytest.fixture
def serve_faults(serve):
    """Starts servers; takes the arguments of `FaultyServer`."""
    return partial(serve, make=FaultyServer)


SOME = ("500", "503", "429", "429-retry-after", "no-reply", "cut-within", "error-beside-choices", "finish-error")


def faulty(text, attempt):
    """A third of first attempts fail, and a third of those that follow them."""
    draw = digest(f"{text}/{attempt}")
    return None if draw % 3 or attempt > 3 else SOME[draw // 3 % len(SOME)]
