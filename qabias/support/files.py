"""Atomic file writing, and strict JSON."""

import errno
import hashlib
import json
import math
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

if sys.platform != "win32":  # which cannot remove open files, so temporary ones need no locks
    import fcntl

    def _try_lock(handle: int) -> bool:
        """Lock an open file; False if it is locked already."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


MOST_BYTES, MOST_LOG_BYTES = 2**28, 2**32  # of a file that is read at once, and of one whose lines are
_UNFINISHED = ".unfinished"


def write_atomically(path: Path, write: Callable[[Path], object], *, lasting: bool = False) -> None:
    """Let `write` fill a temporary file next to `path`, and move it there when it is complete."""
    with _unfinished(path) as temporary:
        write(temporary)
        if lasting:
            sync(temporary)
        temporary.replace(path)
    if lasting:
        sync_folder(path.parent)


def write_new(path: Path, text: str) -> bool:
    """Write a new UTF-8 text atomically; False if the file exists."""
    content = text.encode("utf-8")
    with _unfinished(path) as temporary:
        temporary.write_bytes(content)
        sync(temporary)
        try:
            _link(temporary, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # no hard links here; any other error repeats below
        with path.open("xb") as file:
            try:
                file.write(temporary.read_bytes())
            except OSError:
                path.unlink()
                raise


def write_text(path: Path, text: str) -> None:
    r"""Write a UTF-8 text atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8", errors="backslashreplace"))


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of killed writers of `path`; a living writer keeps its own."""
    begins = f".{path.name}."
    try:
        with os.scandir(path.parent) as entries:
            leftovers = [entry.path for entry in entries if entry.name.startswith(begins)]
    except FileNotFoundError:
        return
    for name in leftovers:
        if name.endswith(_UNFINISHED):
            _remove_if_left(Path(name))


def _remove_if_left(leftover: Path) -> None:
    """Remove a temporary file unless its writer lives, or may live."""
    with suppress(OSError):
        if sys.platform == "win32":  # which removes no open file
            leftover.unlink(missing_ok=True)
            return
        handle = os.open(leftover, os.O_RDWR)
        try:
            if _try_lock(handle):
                leftover.unlink(missing_ok=True)
        finally:
            os.close(handle)


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """A locked temporary file next to `path`, removed at the end if it still exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    handle, temporary = _make(path)
    try:
        yield temporary
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _make(path: Path) -> tuple[int | None, Path]:
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        # The umask decides who may read it.
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if sys.platform == "win32":  # which neither shares a locked file nor renames an open one
            os.close(handle)
            return None, temporary
        try:
            is_mine = _try_lock(handle)
        except OSError:  # no locks here, so it is never removed
            return handle, temporary
        # In the moment before the lock it looked like a leftover.
        with suppress(FileNotFoundError):
            if is_mine and os.path.samestat(os.fstat(handle), temporary.stat()):
                return handle, temporary
        os.close(handle)


def sync(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the system supports it."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no such thing for folders
            os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON atomically; NaN and infinities become null."""
    write_text(path, json_text(content))


def json_text(content: Any) -> str:
    """Strict JSON as files hold it; NaN and infinities become null."""
    return strict_text(strict(content))


def strict_text(content: Any) -> str:
    """The same of a value that is strict already; raises `ValueError` for another."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def require_regular_file(path: Path, most: float = math.inf) -> Path:
    """Return a path, unless it is a pipe or a device, whose content may never end, or has more bytes than `most`."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "is a pipe or a device, not a file", str(path))
    if path.is_file() and path.stat().st_size > most:
        raise OSError(errno.EFBIG, f"is larger than {most / 2**20:,.0f} MB", str(path))
    return path


def read_json(path: Path) -> Any:
    """Read strict JSON."""
    try:
        return json.loads(
            require_regular_file(path, MOST_BYTES).read_text(encoding="utf-8"), parse_constant=_refuse_constant
        )
    except (RecursionError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error  # the error of a decoder holds the whole content


def strict(content: Any) -> Any:
    """A value as `read_json` returns it after `write_json`: NaN is None, tuples are lists, keys are texts."""
    if content is None or type(content) in (str, int, bool):  # most
        return content
    if isinstance(content, dict):
        return {str(key): strict(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [strict(value) for value in content]
    if hasattr(content, "dtype"):  # a NumPy number; NumPy itself takes too long to import for those who write none
        content = content.item()
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not strict JSON, an undefined score is null")


def cache_folder() -> Path:
    """`QABIAS_CACHE`, else `qabias` in the user's cache folder; it may not exist."""
    chosen = os.environ.get("QABIAS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "qabias"
