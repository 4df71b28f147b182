"""Writing files whole or not at all, and JSON that every reader accepts."""

import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path` and put it in place when it is complete.

    A process that is killed meanwhile leaves `path` as it was.

    Raises:
        OSError: If the file cannot be written (disk full, no permission).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, whole or not at all.

    Raises:
        OSError: If the file cannot be written.
    """
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that a killed writer of `path` left; nobody else may be writing `path` meanwhile."""
    for leftover in path.parent.glob(f".{path.name}.*"):
        leftover.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON atomically; NaN and infinities become null."""
    write_text(path, json.dumps(strict(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read strict JSON.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it cannot be read.
        ValueError: If it is no JSON, not UTF-8, holds NaN or infinities, or is nested without end.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def strict(content: Any) -> Any:
    """What `read_json` would read of a value that `write_json` wrote: NaN is None, tuples are lists, keys are texts."""
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
