"""Bad downloads, mirrors, caches and addresses: nothing wrong is kept or used, and no secret is printed."""

import contextlib
import gzip
import logging
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from qabias import cli
from qabias.building import sources

from .helpers import TimeLimit, chosen, command

REPOSITORY = "someone/data"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "templates/Zoë - Age.csv"
CONTENT = "name,word\nZoë,café\n".encode() * 500
SECRET = "s3cr3tw0rd"
MEMORY = 512 * 2**20
"""Bytes beside those that the test has already, for a file of a few kilobytes."""


def _http(body=CONTENT, status="200 OK", *headers, length=True):
    """An answer of HTTP with its length, another one (an int), or none (None)."""
    lines = [f"HTTP/1.1 {status}", "Connection: close", *headers]
    if length is not None:
        lines.append(f"Content-Length: {len(body) if length is True else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


CHUNKED = _http(b"", "200 OK", "Transfer-Encoding: chunked", length=None)
LINGER = struct.pack("ii", 1, 0)
GOOD = {
    "whole": _http(),
    "in one chunk": CHUNKED + b"%x\r\n" % len(CONTENT) + CONTENT + b"\r\n0\r\n\r\n",
}
"""Answers from which the file is had."""
BAD = {
    # Packed bodies are asked for by nobody, and unpacking them has no bound.
    "gzip": _http(gzip.compress(CONTENT), "200 OK", "Content-Encoding: gzip"),
    "longer than announced": _http(CONTENT + b"x" * 100, length=len(CONTENT) - 1),
    "empty": _http(b""),
    "gzip unsaid": _http(gzip.compress(CONTENT)),
    "said to be gzip": _http(CONTENT[:-1], "200 OK", "Content-Encoding: gzip"),
    **{status: _http(CONTENT[:99], f"{status} Status") for status in ("206", "401", "999")},
    "304": _http(b"", "304 Not Modified", length=None),
    "late": _http(b"", "429 Too Many", "Retry-After: 99999"),
    "status of words": b"HTTP/1.1 abc OK\r\n\r\n",
    "garbage": bytes(range(256)) * 20,
    "long status line": b"HTTP/1.1 200 " + b"x" * 100_000 + b"\r\n\r\n",
    "length of words": _http(CONTENT[:-1], length="many"),
    "endless digits of a length": _http(CONTENT[:-1], length="9" * 5_000),
    "bad chunk": CHUNKED + b"zz\r\n" + CONTENT,
    "huge chunk": CHUNKED + b"f" * 15 + b"\r\n" + CONTENT,
    "chunks without an end": CHUNKED + b"%x\r\n" % (2 * len(CONTENT)) + CONTENT,
    "endless chunks": CHUNKED + (b"10000\r\n" + b"x" * 65_536 + b"\r\n") * 1000,
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"X-More: x\r\n" * 1_000_000,
    "reset in the body": (_http(CONTENT[:99], length=len(CONTENT)), LINGER),
    "slow head": (b"HTTP/1.1 200 OK\r\n", *[b"X: x\r\n"] * 50),
    "redirect to nothing": _http(b"", "302 Found"),
    "redirect to itself": _http(b"", "302 Found", "Location: /someone"),
}
"""Answers from which the file is never had; of several pieces one is sent every now and then."""


@contextlib.contextmanager
def serving(answer):
    """A server on this machine that always answers with the same bytes; gives its address."""
    pieces = answer if isinstance(answer, tuple) else (answer,)

    def one(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(20)
            connection.recv(65_536)
            for piece in pieces:
                if piece is LINGER:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
                else:
                    connection.sendall(piece)
                    time.sleep(0.1 if len(pieces) > 1 else 0)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=20) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of its own, one pinned file, and no waiting between tries."""
    for name in ("QABIAS_UPSTREAM", "QABIAS_OFFLINE", "HF_HUB_OFFLINE", "XDG_CACHE_HOME", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    pin = {"git_blob_sha1": sources.git_blob_sha1(CONTENT), "bytes": len(CONTENT)}
    repository = {"commit": COMMIT, "licence": "MIT", "files": {NAME: pin}}
    monkeypatch.setattr(sources, "pins", lambda: {REPOSITORY: repository})
    monkeypatch.setattr(sources, "sleep", lambda seconds: None)
    folder = tmp_path / "cache"
    monkeypatch.setenv("QABIAS_CACHE", str(folder))
    return folder


@pytest.fixture
def fetched(caplog, monkeypatch):
    """Fetches the file; gives None where the command line tells in one line, without a secret, why there is none."""

    def fetch(address=None, path=NAME, mirror=None) -> Path | None:
        if address is not None:
            monkeypatch.setenv("QABIAS_UPSTREAM_URL", address)
        paths: list[Path] = []
        monkeypatch.setattr(
            cli, "app", lambda **_: paths.append(sources.using_mirror(mirror)(sources.fetch)(REPOSITORY, path))
        )
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
        try:
            with caplog.at_level(logging.DEBUG), TimeLimit(90):
                ended = command("build")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        assert ended.is_clean, ended
        assert SECRET not in ended.err + caplog.text
        return paths[0] if paths else None

    return fetch


@pytest.mark.parametrize("name", [*GOOD, *chosen([*BAD], 12)])
def test_the_file_or_nothing_is_had_from_an_odd_answer(cache, fetched, monkeypatch, name):
    monkeypatch.setattr(sources, "TOTAL_SECONDS", 1.5 if name == "slow head" else 15)
    with serving({**GOOD, **BAD}[name]) as address:
        assert (fetched(address) is not None) == (name in GOOD)
    assert [path.read_bytes() for path in cache.rglob("*") if path.is_file()] == [CONTENT] * (name in GOOD)


ADDRESSES = ("http://", f"http://{'x' * 64}.example", "http://ä.invalid", "http://127.0.0.1/\x1b]0;title\x07")
ADDRESSES += ("http://127.0.0.1/\udcff", f"http://{SECRET}@127.0.0.1:1", f"http://127.0.0.1:1/?token={SECRET}")


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_had_from_a_bad_address(cache, fetched, address):
    assert fetched(address) is None
    assert not cache.exists()


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "302 Found"])
def test_a_password_in_the_address_is_not_printed_whatever_the_server_answers(fetched, status):
    with serving(_http(b"no", status, f"Location: http://user:{SECRET}@127.0.0.1:1/")) as address:
        assert fetched(address.replace("http://", f"http://user:{SECRET}@")) is None


PLACES: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to zeros": lambda path: path.symlink_to("/dev/zero"),
    "a ring": lambda path: path.symlink_to(path.name),
    "a link to another file": lambda path: path.symlink_to("/etc/passwd"),
    "a damaged file": lambda path: path.write_bytes(CONTENT[:-1]),
    "a large file": lambda path: path.open("wb").truncate(2**40),
}


@pytest.mark.parametrize("name", chosen([*PLACES], 3))
def test_nothing_but_the_published_file_is_had_from_a_mirror_or_a_cache(cache, fetched, tmp_path, name):
    mirrored, cached = tmp_path / "mirror" / REPOSITORY / NAME, cache / REPOSITORY / COMMIT / NAME
    mirrored.parent.mkdir(parents=True)
    PLACES[name](mirrored)
    assert fetched(mirror=tmp_path / "mirror") is None
    assert not cache.exists()
    cached.parent.mkdir(parents=True)
    PLACES[name](cached)
    target = Path("/etc/passwd").read_bytes()
    with serving(GOOD["whole"]) as address:
        path = fetched(address)
    assert path is None or path.read_bytes() == CONTENT
    assert Path("/etc/passwd").read_bytes() == target


@pytest.mark.parametrize("path", [f"templates/../{NAME}", "a\0b", "x" * 5000, "\x1b[31m"])
def test_no_other_file_of_a_repository_is_asked_for(cache, fetched, path):
    assert fetched(path=path) is None
    assert not cache.exists()
