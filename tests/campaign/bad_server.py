"""A server that answers each request with the bytes of a case, however wrong they are."""

import contextlib
import gzip
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

CONTENT = "name,word\nZoë,café\n".encode() * 500
"""The published file."""

MOST_SENT = 64 * 2**20
"""Bytes after which an endless body stops; whoever reads so many has no bound."""

Answer = Callable[[socket.socket, int], None]
"""What is done with a connection at the request of this number, from 1."""


def response(body: bytes = CONTENT, status: str = "200 OK", length: object = "right", **headers: str) -> bytes:
    """An answer of HTTP with its length, another one, or none."""
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    if length is not None:
        lines.append(f"Content-Length: {len(body) if length == 'right' else length}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def raw(*answers: bytes) -> Answer:
    """Send the first answer to the first request and so on, and the last one to all others."""
    return lambda connection, number: connection.sendall(answers[min(number, len(answers)) - 1])


def _reset(after: bytes) -> Answer:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(after)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return answer


def _endless(head: bytes, piece: bytes) -> Answer:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(head)
        for _ in range(MOST_SENT // len(piece)):
            connection.sendall(piece)

    return answer


def _slow(head: bytes, body: bytes) -> Answer:
    """A byte every now and then, each well within the time for one read."""

    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(head)
        for place in range(len(body)):
            connection.sendall(body[place : place + 1])
            time.sleep(0.1)

    return answer


def _silent(connection: socket.socket, number: int) -> None:
    time.sleep(2)


def chunked(body: bytes = CONTENT, size: bytes | None = None, end: bytes = b"0\r\n\r\n") -> bytes:
    head = response(b"", length=None, Transfer_Encoding="chunked")
    return head + (b"%x" % len(body) if size is None else size) + b"\r\n" + body + b"\r\n" + end


def redirect(to: str, status: str = "302 Found") -> bytes:
    return response(b"", status, Location=to)


HTML = b"<!DOCTYPE html><html><body>Sign in</body></html>"
ZIPPED = gzip.compress(CONTENT)

GOOD: dict[str, Answer] = {
    "as it should be": raw(response()),
    "without a length": raw(response(length=None)),
    "in one chunk": raw(chunked()),
    "gzip": raw(response(ZIPPED, Content_Encoding="gzip")),
    "more headers": raw(response(X_More="x" * 1000, Content_Type="text/html")),
    "busy once": raw(response(b"", "503 Busy"), response()),
    "too many once": raw(response(b"", "429 Too Many", Retry_After="1"), response()),
    "cut once": raw(response(CONTENT[:99], length=len(CONTENT)), response()),
    "silent once": lambda connection, number: _silent(connection, 1) if number == 1 else raw(response())(connection, 1),
    "reset once": lambda connection, number: (_reset(b"") if number == 1 else raw(response()))(connection, number),
}
"""Answers from which the file is had, at once or after another try."""

BAD: dict[str, Answer] = {
    "truncated": raw(response(CONTENT[:99], length=len(CONTENT))),
    "truncated without a length": raw(response(CONTENT[:99], length=None)),
    "altered": raw(response(CONTENT.replace(b"word", b"w0rd", 1))),
    "longer": raw(response(CONTENT + b"\n")),
    "longer than announced": raw(response(CONTENT + b"x" * 100, length=len(CONTENT) - 1)),
    "empty": raw(response(b"")),
    "BOM": raw(response(b"\xef\xbb\xbf" + CONTENT)),
    "zeros": raw(response(bytes(len(CONTENT)))),
    "HTML": raw(response(HTML, Content_Type="text/html")),
    "gzip unsaid": raw(response(ZIPPED)),
    "said to be gzip": raw(response(CONTENT[:-1], Content_Encoding="gzip")),
    "204": raw(response(b"", "204 No Content", None)),
    "206": raw(response(CONTENT[:99], "206 Partial Content")),
    "304": raw(response(b"", "304 Not Modified", None)),
    "400": raw(response(HTML, "400 Bad Request")),
    "401": raw(response(HTML, "401 Unauthorized", WWW_Authenticate="Basic")),
    "403": raw(response(HTML, "403 Forbidden")),
    "429": raw(response(b"", "429 Too Many Requests", Retry_After="99999")),
    "500": raw(response(b"", "500 Error")),
    "503": raw(response(b"", "503 Busy")),
    "999": raw(response(b"", "999 Odd")),
    "status of words": raw(b"HTTP/1.1 abc OK\r\n\r\n"),
    "half a status line": raw(b"HTTP/1.1 2"),
    "garbage": raw(bytes(range(256)) * 20),
    "another protocol": raw(b"SSH-2.0-OpenSSH_9.0\r\n"),
    "long status line": raw(b"HTTP/1.1 200 " + b"x" * 100_000 + b"\r\n\r\n"),
    "long header": raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"),
    "length of words": raw(response(CONTENT[:-1], length="many")),
    "huge length": raw(response(length=10**13)),
    "endless digits of a length": raw(response(CONTENT[:-1], length="9" * 5_000)),
    "bad chunk": raw(chunked(size=b"zz")),
    "huge chunk": raw(chunked(size=b"f" * 15)),
    "chunk cut": raw(chunked(size=b"%x" % (2 * len(CONTENT)), end=b"")),
    "chunks without an end": raw(chunked(CONTENT[:-1], end=b"")),
    "closed": lambda connection, number: None,
    "reset": _reset(b""),
    "reset in the body": _reset(response(CONTENT[:99], length=len(CONTENT))),
    "silent": _silent,
    "endless": _endless(response(b"", length=None), b"x" * 65_536),
    "endless chunks": _endless(
        response(b"", length=None, Transfer_Encoding="chunked"), b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    ),
    "endless headers": _endless(b"HTTP/1.1 200 OK\r\n", b"X-More: x\r\n" * 100),
    "slow body": _slow(response(b"", length=len(CONTENT)), CONTENT),
    "slow head": _slow(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n" * 1000),
    "redirect to a file": raw(redirect("file:///etc/passwd")),
    "redirect to nowhere": raw(redirect("http://127.0.0.1:1/x")),
    "redirect to no address": raw(redirect("http://[bad/x")),
    "redirect to itself": raw(redirect("/someone")),
    "redirect to nothing": raw(response(b"", "302 Found")),
    "redirect for ever": raw(redirect("/someone", "308 Permanent Redirect")),
}
"""Answers from which the file is never had."""


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server on this machine; gives its address."""
    with socket.create_server(("127.0.0.1", 0), backlog=20) as listener:
        stopped = threading.Event()

        def one(connection: socket.socket, number: int) -> None:
            with contextlib.suppress(OSError), connection:
                connection.settimeout(20)
                asked = b""
                while b"\r\n\r\n" not in asked and (more := connection.recv(65_536)):
                    asked += more
                answer(connection, number)

        def accept() -> None:
            number = 0
            while True:
                connection, _ = listener.accept()
                if stopped.is_set():
                    connection.close()
                    return
                number += 1
                threading.Thread(target=one, args=(connection, number), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield f"http://{address}"
        finally:
            stopped.set()
            socket.create_connection(listener.getsockname()).close()
            thread.join()
