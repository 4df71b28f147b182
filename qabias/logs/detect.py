"""Detects by its content which tool wrote a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from qabias.errors import QabiasError
from qabias.logs import Log, inspect_eval, lm_eval_samples, openai_batch
from qabias.support.files import require_regular_file

Reader = Callable[[Path], "Log | None"]
"""Reads a file of one tool; None for other files. Raises `QabiasError` if the file is unreadable."""

_HEAD = 1 << 16
_RUN_FILE = "run.json"
_NOT_READ = {
    "HELM": ("adapter_spec", "request_states", "in request_states[].result.completions[].text"),
    "promptfoo": ("evalId", "results", "in results.results[].response.output"),
    "Every Eval Ever": ("schema_version", "evaluation_id", "in the tool that it names"),
    "Gemini": ("candidates", "response", "in response.candidates[].content.parts[].text"),
}
"""Two keys of a file of each tool, and where its answers are."""


def readers() -> tuple[Reader, ...]:
    """Readers of all tools, in the order of trying them."""
    return (inspect_eval.read, openai_batch.read, lm_eval_samples.read)


def read_log(path: Path, *more: Reader) -> Log | None:
    """Read the log in a file; None if no known tool wrote it."""
    return next(filter(None, (read(require_regular_file(path)) for read in (*readers(), *more))), None)


def refuse_others(path: Path) -> None:
    """Refuse a file of a tool that qabias knows and does not read."""
    with path.open("rb") as file:
        head = file.read(_HEAD).lstrip().decode("utf-8", "replace")
    for tool, (first, second, place) in _NOT_READ.items():
        if head[:1] in ("{", "[") and f'"{first}"' in head and f'"{second}"' in head:
            fix = f"Score a table of key columns and answers. The answers are {place}."
            raise QabiasError(f"{path}: a file of {tool}, which qabias does not read.", fix)


@dataclass
class FoundLogs:
    """The files below a folder: logs, unreadable ones, runs, and others."""

    logs: list[Log] = field(default_factory=list)
    unreadable: list[QabiasError] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)


def find_logs(folder: Path) -> FoundLogs:
    """Sort all files below a folder; a run is not searched. Without any log this is a `QabiasError`."""
    content, others = FoundLogs(), []
    seen: set[Path] = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_raise):
        here = Path(place)
        folders[:] = sorted(name for name in folders if (here / name).resolve() not in seen)
        seen.update((here / name).resolve() for name in folders)
        if _RUN_FILE in names:
            folders.clear()
            content.runs.append(here)
            continue
        for path in (here / name for name in sorted(names)):
            is_device = path.exists() and not path.is_file()
            try:
                log = None if is_device else read_log(path)
                (content.logs.append(log) if log else others.append(path))
            except QabiasError as error:
                content.unreadable.append(error)
            except OSError as error:
                why = f"{path}: cannot be read: {error.strerror or error}."
                content.unreadable.append(QabiasError(why, "Make it readable."))
    content.others = [path for path in others if not any(log.owns(path) for log in content.logs)]
    if not content.logs and not content.unreadable:
        raise QabiasError(
            f"{folder}: holds no run (no {_RUN_FILE}), and none of its {len(content.others):,} files is a log of "
            "another tool.",
            "Name a folder that `qabias run` wrote, or one with logs.",
        )
    return content


def _raise(error: OSError) -> None:
    raise error
