"""The downloader against a real HTTP server that misbehaves in every way we know."""

import gzip
import http.server
import json
import logging
import os
import re
import socket
import threading
import time
import urllib.parse
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from qabias.building import sources
from qabias.errors import QabiasError

REPOSITORY = "someone/data"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENT = "name,word\nZoë,café\n".encode() * 500
# A page is longer than the file that is pinned.
PAGE = b"<p>Please wait</p>" * 2_000


class Handler(http.server.BaseHTTPRequestHandler):
    """Behaves as the name of the asked file says."""

    requests: Counter[str]

    def do_GET(self):
        prefix = f"/{REPOSITORY}/{COMMIT}/"
        assert self.path.startswith(prefix)
        assert " " not in self.path
        name = urllib.parse.unquote(self.path.removeprefix(prefix))
        self.requests[name] += 1
        what, once, _ = name.removesuffix(".csv").partition("_once")
        if what not in BEHAVIOR or (once and self.requests[name] > 1):
            self.send(CONTENT)
        else:
            BEHAVIOR[what](self)

    def send_packed(self):
        # Packed without packing, so that it is longer than the file, as random bytes would be.
        is_packed = "gzip" in self.headers.get("Accept-Encoding", "gzip")
        self.send(gzip.compress(CONTENT, 0) if is_packed else CONTENT, is_packed=is_packed)

    def send_without_end(self):
        with suppress(OSError):  # until the client has had enough
            self.send(b"x" * 1_000_000, announced=None)
            for _ in range(300):
                self.wfile.write(b"x" * 1_000_000)

    def trickle(self):
        self.send(b"", announced=len(CONTENT))
        with suppress(OSError):
            for _ in range(200):
                self.wfile.write(b"x")
                time.sleep(0.05)

    def send(self, body, announced=-1, status=200, is_packed=False, location=None):
        self.send_response(status)
        if location is not None:
            self.send_header("Location", location)
        if is_packed:
            self.send_header("Content-Encoding", "gzip")
        if announced is not None:
            self.send_header("Content-Length", str(len(body) if announced < 0 else announced))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


BEHAVIOR = {
    "missing": lambda handler: handler.send_error(404),
    "busy": lambda handler: handler.send(PAGE, status=503),
    "too_many": lambda handler: handler.send(PAGE, status=429),
    "truncated": lambda handler: handler.send(CONTENT[:100], announced=len(CONTENT)),
    "dies": lambda handler: handler.wfile.write(b"HTTP/1.0 2"),  # closed before the status line is complete
    "cut": lambda handler: handler.send(CONTENT[:100], announced=None),
    "redirected": lambda handler: handler.send(PAGE, status=302, location=handler.path),
    "redirected_for_ever": lambda handler: handler.send(b"", status=302, location=handler.path),
    "redirected_nowhere": lambda handler: handler.send(b"", status=302, location="http://[bad/x"),
    "redirected_file": lambda handler: handler.send(b"", status=302, location="file:///etc/hostname"),
    "altered": lambda handler: handler.send(CONTENT.replace(b"word", b"w0rd")),
    "sign_in": lambda handler: handler.send(PAGE),
    "announced": lambda handler: handler.send(CONTENT, announced=10**13),
    "endless": Handler.send_without_end,
    "packed": Handler.send_packed,
    "trickles": Handler.trickle,
}
PASSING = tuple(f"{what}_once.csv" for what in ("truncated", "dies", "busy", "too_many", "cut"))
NAMES = ("templates/plain file - Age.csv", "unsized.csv", "redirected_once.csv", *PASSING)
NAMES += tuple(f"{what}.csv" for what in BEHAVIOR)


@pytest.fixture
def pins(monkeypatch):
    blob = sources.git_blob_sha1(CONTENT)
    pinned = {name: {"git_blob_sha1": blob, "bytes": len(CONTENT)} for name in NAMES}
    pinned["unsized.csv"]["bytes"] = None
    repository = {"commit": COMMIT, "licence": "MIT", "files": pinned}
    monkeypatch.setattr(sources, "pins", lambda: {REPOSITORY: repository})


@pytest.fixture
def cache(monkeypatch, tmp_path, pins):
    for name in ("QABIAS_UPSTREAM", "QABIAS_OFFLINE", "HF_HUB_OFFLINE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "cache"
    monkeypatch.setenv("QABIAS_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The seconds between tries, which no test really waits."""
    waited = []
    monkeypatch.setattr(sources, "sleep", waited.append)
    return waited


@pytest.fixture
def server(monkeypatch, cache):
    """Return the counts of requests by file."""
    handler = type("CountingHandler", (Handler,), {"requests": Counter()})
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    # A proxy of the surroundings must not stand between the test and its own server.
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("QABIAS_UPSTREAM_URL", f"http://127.0.0.1:{httpd.server_port}/")
    yield handler.requests
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def cached_path(cache: Path, name: str) -> Path:
    return cache / REPOSITORY / COMMIT / name


def test_git_blob_sha1_of_known_contents():
    # Known to every git user: the empty blob, and `echo hello | git hash-object --stdin`.
    assert sources.git_blob_sha1(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert sources.git_blob_sha1(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_every_shipped_pin_is_well_formed():
    pins = json.loads((Path(sources.__file__).parent / "pinned_files.json").read_text(encoding="utf-8"))
    assert len(pins) == 8
    for repository, pinned in pins.items():
        assert re.fullmatch("[0-9a-f]{40}", sources.commit(repository))
        assert sources.licence(repository) in {"Apache-2.0", "CC-BY-4.0", "CC-BY-NC-SA-4.0", "MIT", "NONE"}
        assert sources.files(repository) == sorted(pinned["files"])
        for path, pin in pinned["files"].items():
            assert re.fullmatch("[0-9a-f]{40}", pin["git_blob_sha1"]), path
            assert pin["bytes"] is None or pin["bytes"] > 0, path
            assert not path.startswith("/"), path
            assert ".." not in path.split("/"), path


@pytest.mark.parametrize(
    ("repository", "path", "token"),
    [
        ("someone/date", "a.csv", "someone/data"),
        (REPOSITORY, "missing.cvs", "'missing.csv'"),
        (REPOSITORY, "§§§", "§§§"),
    ],
)
def test_an_unknown_name_is_refused_with_close_ones(pins, repository, path, token):
    with pytest.raises(QabiasError, match=token):
        sources.fetch(repository, path)


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "templates/../missing.csv", ""])
def test_only_pinned_paths_reach_the_disk(cache, path):
    with pytest.raises(QabiasError, match="no pinned file"):
        sources.fetch(REPOSITORY, path)


@pytest.mark.parametrize("name", ["templates/plain file - Age.csv", "unsized.csv"])
def test_a_file_is_downloaded_once_and_then_read_from_the_cache(server, cache, name):
    path = sources.fetch(REPOSITORY, name)
    assert path == cached_path(cache, name)
    assert path.read_bytes() == CONTENT
    assert sources.fetch(REPOSITORY, name) == path
    assert server[name] == 1
    assert stored(cache) == [path]


def test_default_cache_follows_xdg_and_home(server, monkeypatch, tmp_path):
    monkeypatch.delenv("QABIAS_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    in_home = sources.fetch(REPOSITORY, "unsized.csv")
    assert in_home == cached_path(tmp_path / "home" / ".cache" / "qabias", "unsized.csv")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert sources.fetch(REPOSITORY, "unsized.csv") == cached_path(tmp_path / "xdg" / "qabias", "unsized.csv")


@pytest.mark.parametrize("name", PASSING)
def test_a_passing_failure_is_tried_again(server, cache, caplog, name):
    assert sources.fetch(REPOSITORY, name).read_bytes() == CONTENT
    assert server[name] == 2
    assert "Retrying" in caplog.text
    assert stored(cache) == [cached_path(cache, name)]


@pytest.mark.parametrize(
    ("name", "tries", "message"),
    [
        ("truncated.csv", 3, "100 bytes"),
        ("busy.csv", 3, "503"),
        ("sign_in.csv", 1, "36000"),
        ("missing.csv", 1, "404"),
        ("altered.csv", 1, "expected git blob"),
        pytest.param("endless.csv", 1, "64,000", marks=pytest.mark.slow),
        ("announced.csv", 3, "10000000000000"),
        pytest.param("trickles.csv", 3, "0.5 seconds", marks=pytest.mark.slow),
        ("redirected_nowhere.csv", 1, "QABIAS_UPSTREAM_URL"),
        ("redirected_file.csv", 1, "QABIAS_UPSTREAM_URL"),
        ("redirected_for_ever.csv", 6, "5 times"),
        ("cut.csv", 3, "100 bytes"),
    ],
)
def test_a_lasting_failure_leaves_nothing_behind(server, cache, monkeypatch, name, tries, message):
    if name == "trickles.csv":
        monkeypatch.setattr(sources, "TOTAL_SECONDS", 0.5)
    with pytest.raises(QabiasError, match=message):
        sources.fetch(REPOSITORY, name)
    assert server[name] == tries
    assert stored(cache) == []


def test_a_redirect_is_followed(server, cache):
    assert sources.fetch(REPOSITORY, "redirected_once.csv").read_bytes() == CONTENT
    assert server["redirected_once.csv"] == 2


def test_a_file_is_not_asked_for_packed(server, cache):
    assert sources.fetch(REPOSITORY, "packed.csv").read_bytes() == CONTENT
    assert server["packed.csv"] == 1


def test_a_file_of_unknown_size_has_a_bound_that_every_pinned_one_fits(server, cache, monkeypatch, upstream):
    for repository in sources.pins():
        for path in sources.files(repository):
            if sources.pins()[repository]["files"][path]["bytes"] is None and (upstream / repository / path).is_file():
                assert (upstream / repository / path).stat().st_size < sources.MOST_BYTES
    monkeypatch.setattr(sources, "MOST_BYTES", 1000)
    with pytest.raises(QabiasError, match="1,000"):
        sources.fetch(REPOSITORY, "unsized.csv")


@pytest.mark.parametrize("name", ["missing.csv", "busy.csv", "altered.csv", "endless.csv"])
def test_secrets_in_the_address_are_not_printed(server, cache, monkeypatch, caplog, name):
    address = os.environ["QABIAS_UPSTREAM_URL"].replace("http://", "http://user:hunter2@")
    monkeypatch.setenv("QABIAS_UPSTREAM_URL", address)
    with pytest.raises(QabiasError, match=f"{name}") as error:
        sources.fetch(REPOSITORY, name)
    assert "hunter2" not in str(error.value) + caplog.text
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    "address",
    [
        *("user:hunter2@host", "http://user:hunter2@[bad", "ftp://host/x?token=hunter2"),
        *("ftp://127.0.0.1", "file:///somewhere", "127.0.0.1", "http://127.0.0.1:port"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_secrets(cache, monkeypatch, address):
    monkeypatch.setenv("QABIAS_UPSTREAM_URL", address)
    with pytest.raises(QabiasError, match="QABIAS_UPSTREAM_URL") as error:
        sources.fetch(REPOSITORY, "unsized.csv")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_a_device_in_the_mirror_is_refused(cache, tmp_path, make):
    (tmp_path / REPOSITORY).mkdir(parents=True)
    make(tmp_path / REPOSITORY / "unsized.csv")
    with pytest.raises(QabiasError, match=r"unsized\.csv"), sources.using_mirror(tmp_path):
        sources.fetch(REPOSITORY, "unsized.csv")


def test_waits_grow_between_the_tries(server, cache, waits):
    with pytest.raises(QabiasError):
        sources.fetch(REPOSITORY, "busy.csv")
    assert waits == [1.0, 4.0]


def test_no_network_names_both_remedies(cache, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("QABIAS_UPSTREAM_URL", f"http://127.0.0.1:{port}")
    with pytest.raises(QabiasError, match="QABIAS_UPSTREAM"):
        sources.fetch(REPOSITORY, "unsized.csv")
    assert stored(cache) == []


def test_a_silent_server_times_out(cache, monkeypatch):
    monkeypatch.setattr(sources, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("QABIAS_UPSTREAM_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(QabiasError, match="timed out"):
            sources.fetch(REPOSITORY, "unsized.csv")


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "QABIAS_OFFLINE"])
def test_offline_forbids_downloads_but_not_the_cache(server, cache, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(QabiasError, match=variable):
        sources.fetch(REPOSITORY, "unsized.csv")
    assert not server
    monkeypatch.setenv(variable, "0")
    path = sources.fetch(REPOSITORY, "unsized.csv")
    monkeypatch.setenv(variable, "1")
    assert sources.fetch(REPOSITORY, "unsized.csv") == path


def test_a_damaged_cached_file_is_fetched_anew_with_a_warning(server, cache, caplog):
    path = sources.fetch(REPOSITORY, "unsized.csv")
    path.write_bytes(CONTENT[:-1])
    with caplog.at_level(logging.WARNING):
        assert sources.fetch(REPOSITORY, "unsized.csv") == path
    assert path.read_bytes() == CONTENT
    assert "is damaged (expected git blob" in caplog.text
    assert server["unsized.csv"] == 2


@pytest.mark.parametrize("is_damaged", [False, True])
def test_fetches_at_once_leave_one_whole_file(server, cache, is_damaged):
    path = cached_path(cache, "unsized.csv")
    if is_damaged:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"damaged")
    with ThreadPoolExecutor(8) as pool:
        contents = list(pool.map(lambda _: sources.fetch(REPOSITORY, "unsized.csv").read_bytes(), range(16)))
    assert contents == [CONTENT] * 16
    assert stored(cache) == [path]


def test_a_full_disk_is_reported_and_leaves_nothing(server, cache):
    resource = pytest.importorskip("resource", reason="no limits on file sizes here")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(QabiasError, match="QABIAS_CACHE"):
            sources.fetch(REPOSITORY, "unsized.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert stored(cache) == []


def test_a_cache_that_is_a_file_is_reported(server, cache):
    cache.write_text("in the way", encoding="utf-8")
    with pytest.raises(QabiasError, match="sources: cannot"):
        sources.fetch(REPOSITORY, "unsized.csv")


@pytest.mark.parametrize("by_argument", [True, False])
def test_a_mirror_is_read_in_place(server, cache, monkeypatch, tmp_path, by_argument):
    file = tmp_path / "mirror" / REPOSITORY / "missing.csv"
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    # The argument comes before the environment.
    monkeypatch.setenv("QABIAS_UPSTREAM", str(tmp_path / ("elsewhere" if by_argument else "mirror")))
    argument = tmp_path / "mirror" if by_argument else None
    with sources.using_mirror(argument):
        assert sources.fetch(REPOSITORY, "missing.csv") == file
    assert not server
    assert not cache.exists()


def test_a_file_that_the_mirror_lacks_or_has_altered_is_never_downloaded(server, cache, tmp_path):
    with pytest.raises(QabiasError, match="not in the mirror"), sources.using_mirror(tmp_path):
        sources.fetch(REPOSITORY, "unsized.csv")
    file = tmp_path / REPOSITORY / "unsized.csv"
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT.replace(b"\n", b"\r\n"))
    with pytest.raises(QabiasError, match="expected git blob"), sources.using_mirror(tmp_path):
        sources.fetch(REPOSITORY, "unsized.csv")
    assert not server


def test_the_mirror_next_to_the_checkout_holds_what_is_pinned(upstream):
    n_files = 0
    for repository in sources.pins():
        for path in sources.files(repository):
            if (upstream / repository / path).is_file():
                size = sources.pins()[repository]["files"][path]["bytes"]
                assert size in {None, sources.fetch(repository, path).stat().st_size}
                n_files += 1
    assert n_files > 0
