"""The authors' published files, from pinned commits and verified before use."""

import functools
import hashlib
import importlib.resources
import json
import logging
import os
import urllib.parse
from contextlib import AbstractContextManager
from contextvars import ContextVar
from http import HTTPStatus
from pathlib import Path
from time import sleep
from typing import TypedDict

from qabias.errors import QabiasError, arg, setting
from qabias.support.address import is_address, without_secrets
from qabias.support.files import cache_folder, require_regular_file, write_atomically
from qabias.support.suggest import did_you_mean, unknown
from qabias.support.version import __version__

DEFAULT_URL = "https://raw.githubusercontent.com"
TIMEOUT_SECONDS = 30.0  # seconds without data after which a download fails
TOTAL_SECONDS = 600.0  # most seconds of one download attempt
MOST_BYTES = 64_000_000  # most bytes read of a file with unknown size
PAGE_BYTES = 64_000  # most bytes read of an error page; the hash checks the content of files
WAITS = 1.0, 4.0  # seconds before a request is repeated after a temporary failure
REDIRECTS = 5
COMMIT_DIGITS = 7

logger = logging.getLogger(__name__)


class PinnedFile(TypedDict):
    """Identity of one published file; `bytes` is None if the size is unknown."""

    git_blob_sha1: str
    bytes: int | None


class PinnedRepository(TypedDict):
    """One repository at one commit, and its files by path."""

    commit: str
    licence: str
    files: dict[str, PinnedFile]


class _TransientError(Exception):
    """A temporary failure of the connection or the server."""


_mirror: ContextVar[Path | None] = ContextVar("mirror", default=None)


def using_mirror(folder: str | Path | None) -> AbstractContextManager[None]:
    """Read published files from a local mirror within a call; None: as before."""
    return setting(_mirror, Path(folder).expanduser() if folder else _mirror.get())


def mirror_folder() -> Path | None:
    """The local mirror of the published files: of this call, else the environment's; None: they are downloaded."""
    named = os.environ.get("QABIAS_UPSTREAM")
    return _mirror.get() or (Path(named).expanduser() if named else None)


def fetch(repository: str, path: str) -> Path:
    """Return a local copy of a published file, with verified content."""
    pin = _pinned_file(repository, path)
    folder = mirror_folder()
    if folder:
        return _read_mirror(folder, repository, path, pin)

    cached = cache_folder() / repository / commit(repository) / path
    content = _read(cached)
    if content is not None:
        fault = _fault(content, pin)
        if fault is None:
            return cached
        logger.warning("%s is damaged (%s). Downloading it again.", cached, fault)
    # Replaced, not deleted first: another process may have just stored the good file.
    _store(cached, _download(repository, path, pin))
    return cached


def git_blob_sha1(content: bytes) -> str:
    """Return git's id of `content`: SHA-1 of `blob <size>`, a zero byte and the content."""
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def commit(repository: str) -> str:
    """Return the pinned commit of a repository, 40 hexadecimal digits."""
    return _pinned_repository(repository)["commit"]


def version(repository: str) -> str:
    """Return the first digits of the pinned commit of a repository, for signatures."""
    return commit(repository)[:COMMIT_DIGITS]


def licence(repository: str) -> str:
    """Return the license of a repository as an SPDX identifier."""
    return _pinned_repository(repository)["licence"]


def files(repository: str, prefix: str = "") -> list[str]:
    """Return the sorted paths of a repository's pinned files that begin with `prefix`."""
    return sorted(path for path in _pinned_repository(repository)["files"] if path.startswith(prefix))


@functools.cache
def pins() -> dict[str, PinnedRepository]:
    """Return the pinned repositories by name."""
    file = importlib.resources.files("qabias.building").joinpath("pinned_files.json")
    return json.loads(file.read_text(encoding="utf-8"))


def _pinned_repository(repository: str) -> PinnedRepository:
    if repository not in pins():
        raise unknown("repository", repository, sorted(pins()))
    return pins()[repository]


def _pinned_file(repository: str, path: str) -> PinnedFile:
    pinned = _pinned_repository(repository)["files"]
    if path not in pinned:
        problem = f"sources: {repository} has no pinned file {path[:200]!r}"
        raise QabiasError(problem + did_you_mean(path, pinned, most=3, cutoff=0.5), "use a path from sources.files()")
    return pinned[path]


def _read_mirror(mirror: Path, repository: str, path: str, pin: PinnedFile) -> Path:
    file = mirror / repository / path
    content = _read(file)
    if content is None:
        raise QabiasError(
            f"sources: {file} is not in the mirror",
            f"add it there, or remove {arg('mirror')} and QABIAS_UPSTREAM to download it",
        )
    fault = _fault(content, pin)
    if fault is not None:
        raise QabiasError(
            f"sources: {file} is not the published file ({fault})",
            f"replace it with the file of commit {commit(repository)}",
        )
    return file


def _read(file: Path) -> bytes | None:
    """Return the content, or None for a missing file."""
    try:
        return require_regular_file(file).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise QabiasError(f"sources: cannot read {file}: {error}", "make it readable, or delete it") from error


def _fault(content: bytes, pin: PinnedFile) -> str | None:
    """Return the difference between the content and the published file, or None."""
    actual = git_blob_sha1(content)
    if actual == pin["git_blob_sha1"]:
        return None
    size = "size unknown" if pin["bytes"] is None else f"{pin['bytes']} bytes"
    return f"expected git blob {pin['git_blob_sha1']}, {size}; found {actual}, {len(content)} bytes"


def _download(repository: str, path: str, pin: PinnedFile) -> bytes:
    """Return the verified content of a file from the network."""
    _check_online(repository, path)
    base = (os.environ.get("QABIAS_UPSTREAM_URL") or DEFAULT_URL).rstrip("/")
    if not is_address(base):
        problem = f"sources: QABIAS_UPSTREAM_URL is {without_secrets(base)[:200]!r}"
        raise QabiasError(problem, "give a valid address that begins with http:// or https://")
    url = f"{base}/{repository}/{commit(repository)}/{urllib.parse.quote(path)}"
    try:
        return _get_in_time(url, pin)
    except _TransientError as error:
        raise QabiasError(
            f"sources: cannot download {without_secrets(url)} after {len(WAITS) + 1} tries: {error}",
            "check the network, or set QABIAS_UPSTREAM to a local mirror",
        ) from None  # the cause may contain the whole address


def _check_online(repository: str, path: str) -> None:
    for variable in ("QABIAS_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(variable, "").upper() in {"1", "ON", "YES", "TRUE"}:
            raise QabiasError(
                f"sources: {path!r} of {repository} is not in the cache, and {variable} forbids downloads",
                f"unset {variable}, or set QABIAS_UPSTREAM to a local mirror",
            )


def _get_in_time(url: str, pin: PinnedFile) -> bytes:
    for seconds in WAITS:
        try:
            return _get_verified(url, pin)
        except _TransientError as error:
            logger.warning("%s: %s. Retrying in %g s.", without_secrets(url), error, seconds)
            sleep(seconds)
    return _get_verified(url, pin)


def _get_verified(url: str, pin: PinnedFile) -> bytes:
    content = _get(url, pin)
    fault = _fault(content, pin)
    if fault is None:
        return content
    if pin["bytes"] is not None and len(content) < pin["bytes"]:
        raise _TransientError(f"the answer is incomplete: it is not the published file ({fault})")
    raise QabiasError(
        f"sources: {without_secrets(url)} did not send the published file ({fault}), perhaps because of a proxy or a "
        "sign-in page. No file was stored",
        "try another network, or set QABIAS_UPSTREAM to a local mirror",
    )


def _get(url: str, pin: PinnedFile) -> bytes:
    """Return the whole body of one request, with redirects followed."""
    # Imported here, because downloads are rare.
    from qabias.support.http import REDIRECTS as REDIRECTED
    from qabias.support.http import Bounds, HttpClient, LastingError, LateError, PassingError

    most_bytes = MOST_BYTES if pin["bytes"] is None else max(pin["bytes"], PAGE_BYTES)
    bounds = Bounds(most_bytes, TOTAL_SECONDS)
    headers = {"User-Agent": f"qabias/{__version__}"}
    there = url
    try:
        with HttpClient(bounds, timeout=TIMEOUT_SECONDS, headers=headers) as client:
            for _ in range(REDIRECTS + 1):
                reply = client.send("GET", there)
                if reply.status not in REDIRECTED:
                    return _content(reply.status, reply.content, url)
                there = _redirected(there, reply.headers.get("location", ""), url)
    except LateError as error:
        raise _TransientError(f"timed out: {error}") from None
    except PassingError as error:
        raise _TransientError(str(error)) from None
    except LastingError as error:
        raise _refused(url, f"fails: {error}") from None
    raise _refused(url, f"redirects more than {REDIRECTS} times")


def _content(status: int, content: bytes, url: str) -> bytes:
    """Return the body of a successful answer."""
    if status == 200:
        return content
    answer = f"{status} {next((known.phrase for known in HTTPStatus if known == status), '')}"
    if status >= 500 or status == 429:
        raise _TransientError(f"the server answered {answer}")
    raise _refused(url, f"answered {answer}")


def _redirected(there: str, location: str, url: str) -> str:
    """Return the target of a redirect."""
    try:
        target = urllib.parse.urljoin(there, location)
    except ValueError:
        target = ""
    if not location or not is_address(target):
        raise _refused(url, "redirects to an invalid address")
    return target


def _refused(url: str, why: str) -> QabiasError:
    problem = f"sources: {without_secrets(url)} {why}"
    return QabiasError(problem, "correct QABIAS_UPSTREAM_URL, or set QABIAS_UPSTREAM to a local mirror")


def _store(file: Path, content: bytes) -> None:
    try:
        write_atomically(file, lambda temporary: temporary.write_bytes(content))
    except OSError as error:
        raise QabiasError(
            f"sources: cannot write {file}: {error}", "free some space, or set QABIAS_CACHE to another folder"
        ) from error
