"""Bad downloads, mirrors, caches and addresses: nothing wrong is kept or used, and no secret is printed."""

import contextlib
import logging
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from qabias import cli
from qabias.building import sources

from .bad_server import BAD, CONTENT, GOOD, raw, response, serving
from .helpers import TimeLimit, chosen, command

REPOSITORY = "someone/data"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "templates/Zoë - Age.csv"
SECRET = "s3cr3tw0rd"
LONG, SHORT = 15.0, 1.5
"""Seconds that a read and a try may take, and those where the server is slow on purpose."""
SECONDS = 90
"""In which a download ends, with all its tries."""
SLOW = {"silent", "silent once", "slow body", "slow head"}
"""Answers that end by the short times."""
MEMORY = 512 * 2**20
"""Bytes beside those that the test has already, for a file of a few kilobytes."""


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of its own, one pinned file, and no waiting between tries."""
    for name in ("QABIAS_UPSTREAM", "QABIAS_OFFLINE", "HF_HUB_OFFLINE", "XDG_CACHE_HOME", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    pin = {"git_blob_sha1": sources.git_blob_sha1(CONTENT), "bytes": len(CONTENT)}
    repository = {"commit": COMMIT, "licence": "MIT", "files": {NAME: pin}}
    monkeypatch.setattr(sources, "pins", lambda: {REPOSITORY: repository})
    monkeypatch.setattr(sources.RETRIES, "sleep", lambda seconds: None)
    _set_times(monkeypatch, LONG)
    folder = tmp_path / "cache"
    monkeypatch.setenv("QABIAS_CACHE", str(folder))
    return folder


def _set_times(monkeypatch, seconds: float) -> None:
    """Let a read and a try take so many seconds."""
    for name in ("TIMEOUT_SECONDS", "TOTAL_SECONDS"):
        monkeypatch.setattr(sources, name, seconds)


@contextlib.contextmanager
def memory_limit():
    """An error, not the end of the machine, for who reads without a bound."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def fetched(caplog, monkeypatch, path=NAME, **arguments) -> Path | None:
    """The file, or None where the command line tells in one line, without a secret, why there is none."""
    paths: list[Path] = []
    monkeypatch.setattr(cli, "app", lambda **_: paths.append(sources.fetch(REPOSITORY, path, **arguments)))
    with caplog.at_level(logging.DEBUG), memory_limit(), TimeLimit(SECONDS):
        ended = command("build")
    assert ended.is_clean, ended
    assert SECRET not in ended.err + caplog.text
    return paths[0] if paths else None


def kept(cache: Path) -> list[bytes]:
    return [path.read_bytes() for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", chosen([*BAD], 12))
def test_nothing_is_had_from_a_bad_answer(cache, caplog, monkeypatch, name):
    _set_times(monkeypatch, SHORT if name in SLOW else LONG)
    with serving(BAD[name]) as address:
        monkeypatch.setenv("QABIAS_UPSTREAM_URL", address)
        assert fetched(caplog, monkeypatch) is None
    assert kept(cache) == []


@pytest.mark.parametrize("name", chosen([*GOOD], 3))
def test_the_file_is_had_from_an_answer_that_is_odd_but_right(cache, caplog, monkeypatch, name):
    _set_times(monkeypatch, SHORT if name in SLOW else LONG)
    with serving(GOOD[name]) as address:
        monkeypatch.setenv("QABIAS_UPSTREAM_URL", address)
        path = fetched(caplog, monkeypatch)
    assert path is not None
    assert kept(cache) == [CONTENT]


ADDRESSES = {
    "no host": "http://",
    "bad port": "http://127.0.0.1:port",
    "long label": f"http://{'x' * 64}.example",
    "letters": "http://ä.invalid",
    "escape": "http://127.0.0.1/\x1b]0;title\x07",
    "not UTF-8": "http://127.0.0.1/" + os.fsdecode(b"\xff"),
    "file": "file:///etc",
    "no scheme": "127.0.0.1",
    "closed port": "http://127.0.0.1:1",
    "user and password": f"http://user:{SECRET}@127.0.0.1:1",
    "token": f"http://{SECRET}@127.0.0.1:1",
    "query": f"http://127.0.0.1:1/?token={SECRET}",
}


@pytest.mark.parametrize("name", chosen([*ADDRESSES], 4))
def test_nothing_is_had_from_a_bad_address(cache, caplog, monkeypatch, name):
    monkeypatch.setenv("QABIAS_UPSTREAM_URL", ADDRESSES[name])
    assert fetched(caplog, monkeypatch) is None
    assert kept(cache) == []


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "503 Busy", "302 Found"])
def test_a_password_in_the_address_is_not_printed_whatever_the_server_answers(cache, caplog, monkeypatch, status):
    with serving(raw(response(b"no", status, Location=f"http://user:{SECRET}@127.0.0.1:1/"))) as address:
        monkeypatch.setenv("QABIAS_UPSTREAM_URL", address.replace("http://", f"http://user:{SECRET}@"))
        assert fetched(caplog, monkeypatch) is None
    assert kept(cache) == []


def _write(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


def _link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


PLACES: dict[str, Callable[[Path], None]] = {
    "a folder": Path.mkdir,
    "a pipe": lambda path: os.mkfifo(path),
    "a link to zeros": _link("/dev/zero"),
    "a link to random": _link("/dev/urandom"),
    "a link to nothing": _link("/nonexistent"),
    "a ring": lambda path: path.symlink_to(path.name),
    "a link to another file": _link("/etc/passwd"),
    "an empty file": _write(b""),
    "a damaged file": _write(CONTENT[:-1]),
    "a large file": lambda path: path.open("wb").truncate(2**40) and None,
}


@pytest.mark.parametrize("name", chosen([*PLACES], 3))
def test_nothing_but_the_published_file_is_had_from_a_mirror(cache, caplog, monkeypatch, tmp_path, name):
    file = tmp_path / "mirror" / REPOSITORY / NAME
    file.parent.mkdir(parents=True)
    PLACES[name](file)
    assert fetched(caplog, monkeypatch, upstream_dir=tmp_path / "mirror") is None
    assert not cache.exists()


@pytest.mark.parametrize("name", chosen([*PLACES], 3))
def test_what_lies_in_the_cache_is_never_used_as_it_is(cache, caplog, monkeypatch, name):
    file = cache / REPOSITORY / COMMIT / NAME
    file.parent.mkdir(parents=True)
    PLACES[name](file)
    target = Path("/etc/passwd").read_bytes()
    with serving(raw(response())) as address:
        monkeypatch.setenv("QABIAS_UPSTREAM_URL", address)
        path = fetched(caplog, monkeypatch)
    assert path is None or path.read_bytes() == CONTENT
    assert Path("/etc/passwd").read_bytes() == target


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", f"templates/../{NAME}", "", "a\0b", "x" * 5000, "\x1b[31m"]
)
def test_no_other_file_of_a_repository_is_asked_for(cache, caplog, monkeypatch, path):
    assert fetched(caplog, monkeypatch, path) is None
    assert not cache.exists()
