"""Detects by its content which tool wrote a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from qabias.errors import QabiasError
from qabias.logs import inspect_eval, lm_eval_samples, openai_batch
from qabias.logs.model import Log
from qabias.support.files import regular

Reader = Callable[[Path], "Log | None"]
"""Reads a file of one tool; None for other files. Raises `QabiasError` if the file is unreadable."""

_HEAD = 1 << 16
_NOT_READ = {
    "HELM": ("adapter_spec", "request_states", "in request_states[].result.completions[].text"),
    "promptfoo": ("evalId", "results", "in results.results[].response.output"),
    "Every Eval Ever": ("schema_version", "evaluation_id", "in the tool that it names"),
    "Gemini": ("candidates", "response", "in response.candidates[].content.parts[].text"),
    "Anthropic": ("custom_id", "result", "in result.message.content[].text"),
}
"""Two keys of a file of each tool, and where its answers are."""


def readers() -> tuple[Reader, ...]:
    """Readers of all tools, in the order of trying them."""
    return (inspect_eval.read, openai_batch.read, lm_eval_samples.read)


def read_log(path: Path, *more: Reader) -> Log | None:
    """Read the log in a file; None if no known tool wrote it."""
    return next(filter(None, (read(regular(path)) for read in (*readers(), *more))), None)


def refuse_others(path: Path) -> None:
    """Refuse a file of a tool that qabias knows and does not read."""
    with path.open("rb") as file:
        head = file.read(_HEAD).lstrip().decode("utf-8", "replace")
    for tool, (first, second, place) in _NOT_READ.items():
        if head[:1] in ("{", "[") and f'"{first}"' in head and f'"{second}"' in head:
            fix = f"Score a table of key columns and answers. The answers are {place}."
            raise QabiasError(f"{path}: a file of {tool}, which qabias does not read.", fix)


def logs_in(folder: Path, run_file: str) -> Iterator[tuple[Path, Log | QabiasError | None]]:
    """Yield every file below a folder with its log, its error, or None if it is not a log."""
    seen: set[Path] = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_raise):
        here = Path(place)
        folders[:] = sorted(name for name in folders if (here / name).resolve() not in seen)
        seen.update((here / name).resolve() for name in folders)
        if run_file in names:
            folders.clear()
            yield here, None
            continue
        for name in sorted(names):
            yield here / name, _log_or_error(here / name)


def _raise(error: OSError) -> None:
    raise error


def _log_or_error(path: Path) -> Log | QabiasError | None:
    if path.exists() and not path.is_file():
        return None  # a pipe or a device
    try:
        return read_log(path)
    except QabiasError as error:
        return error
    except OSError as error:
        return QabiasError(f"{path}: cannot be read: {error.strerror or error}.", "Make it readable.")
