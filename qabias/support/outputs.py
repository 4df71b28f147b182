"""Output paths of commands: never inputs or a run, and other files only on request."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from os.path import realpath
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError, arg, setting
from qabias.support.files import read_json, require_regular_file, strict

RUN_MARK = "run.json"  # the file that marks a run folder; files next to it and in its `predictions` are never replaced
TEMPORARY = "qabias-"

ANSWERS_FOLDER = "predictions"
IsOwnFile = Callable[[Path], bool]  # whether a file comes from the same command and inputs


_overwrite = ContextVar("overwrite", default=False)


may_overwrite = _overwrite.get
"""Whether files of others may be replaced."""


def overwriting(is_allowed: bool) -> AbstractContextManager[None]:
    """Whether files of others may be replaced within a call."""
    return setting(_overwrite, is_allowed)


def none_is_own(path: Path) -> bool:
    """For a command without files of its own."""
    return False


def check_file(
    path: Path, is_own: IsOwnFile = none_is_own, *, inputs: Iterable[Path] = (), argument: str = "output"
) -> None:
    """Refuse to write a file if it would replace another."""
    flag = arg(argument)
    if path.is_dir():
        raise QabiasError(f"{flag} {path}: is a folder.", "Name a file in it.")
    _check_above(path, flag)
    if path.exists() and not path.is_file():  # reading it may never end
        raise QabiasError(f"{flag} {path}: is a device or a pipe.", "Name a file.")
    if any(is_same(path, read) for read in inputs):
        raise QabiasError(f"{flag} {path}: is read by this command and would be lost.", f"Choose another {flag}.")
    run = _run_of(path)
    if run is not None and Path(realpath(path)).parent != run:
        raise QabiasError(f"{flag} {path}: is among the answers of the run {run}.", f"Choose another {flag}.")
    if not path.exists() or is_own(path):
        return
    if run is not None:
        raise QabiasError(f"{flag} {path}: belongs to the run {run} and would be lost.", f"Choose another {flag}.")
    if not may_overwrite():
        raise QabiasError(
            f"{flag} {path}: exists, and differs from what this command writes.",
            f"Choose another {flag}, or replace it by {arg('overwrite')}.",
        )


def check_folder(path: Path, inputs: Iterable[Path] = (), argument: str = "output") -> None:
    """Refuse a folder that is a file or below one, that is an input or in one, or that holds a run."""
    flag = arg(argument)
    if path.exists() and not path.is_dir():
        raise QabiasError(f"{flag} {path}: is a file.", "Name a folder.")
    _check_above(path, flag)
    for folder in inputs:
        if folder.is_dir() and Path(realpath(path)).is_relative_to(realpath(folder)):
            raise QabiasError(
                f"{flag} {path}: is read by this command, or in {folder}, which is.", f"Choose another {flag}."
            )
    run = _run_of(path / RUN_MARK)
    if run is not None:
        raise QabiasError(f"{flag} {path}: holds a run, whose files would be lost.", f"Choose another {flag}.")


def check_new_folder(path: Path, is_own: IsOwnFile = none_is_own, *, inputs: Iterable[Path] = ()) -> None:
    """Refuse a folder that is not empty unless the same command wrote it; hidden files do not count."""
    check_folder(path, inputs)
    flag = arg("output")
    is_empty = not path.exists() or all(entry.name[:1] == "." for entry in path.iterdir())
    if not (is_empty or may_overwrite() or is_own(path)):
        raise QabiasError(
            f"{flag} {path}: holds other files, which this command did not write.",
            f"Choose another {flag}, or replace files of the same names by {arg('overwrite')}.",
        )


def json_like(is_ours: Callable[[Mapping[str, Any]], bool]) -> IsOwnFile:
    """Own files: JSON objects that satisfy a test, which may look up missing names."""

    def is_own(path: Path) -> bool:
        try:
            content = read_json(path)
            return isinstance(content, dict) and is_ours(content)
        except (OSError, ValueError, LookupError, TypeError):
            return False

    return is_own


def json_with(*names: str, **expected: Any) -> IsOwnFile:
    """Own files: JSON objects with these names and values."""
    values = strict(expected)
    return json_like(lambda content: {*names, *values} <= {*content} and all(content[n] == values[n] for n in values))


def same_bytes(content: bytes) -> IsOwnFile:
    """Own files: exactly this content."""
    return lambda path: path.stat().st_size == len(content) and require_regular_file(path).read_bytes() == content


def _check_above(path: Path, flag: str) -> None:
    for above in path.absolute().parents:
        if above.exists():
            if not above.is_dir():
                raise QabiasError(f"{flag} {path}: {above} is a file, not a folder.", f"Choose another {flag}.")
            return


def is_same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, existing or not, through any links."""
    return path.samefile(other) if path.exists() and other.exists() else realpath(path) == realpath(other)


def _run_of(path: Path) -> Path | None:
    """The run folder that contains a file, directly or among its answers; else None."""
    folder = Path(realpath(path)).parent  # `resolve` raises at a ring of links
    for run in (folder, folder.parent) if folder.name == ANSWERS_FOLDER else (folder,):
        if (run / RUN_MARK).exists():
            return run
    return None
