"""Locks of the operating system on files: what a process holds is free again when the process ends, however it ends."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_SECONDS_BETWEEN_LOOKS = 0.2

if sys.platform == "win32":
    import msvcrt

    def try_lock(handle: int) -> bool:
        """Lock an open file; False where another process has it."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def try_lock(handle: int) -> bool:
        """Lock an open file; False where another process, or another place of this one, has it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), found)


@contextmanager
def hold(path: Path, tell: Callable[[], object]) -> Iterator[None]:
    """Hold a lock by the name of a file, which is there only meanwhile; waits while somebody else holds it."""
    has_told = False
    while (handle := _lock(path)) is None:
        if not has_told:
            tell()
            has_told = True
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        if sys.platform == "win32":  # which removes no open file
            os.close(handle)
            _remove_unheld(path)
        else:
            path.unlink(missing_ok=True)
            os.close(handle)


def _lock(path: Path) -> int | None:
    """The open and locked file; None where somebody else has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        is_mine = try_lock(handle)
    except OSError:  # no locks here
        return handle
    # Whoever held it until now has removed the file: another one of that name is the lock.
    if is_mine and is_at(handle, path):
        return handle
    os.close(handle)
    return None


def _remove_unheld(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        return  # the next one holds it
