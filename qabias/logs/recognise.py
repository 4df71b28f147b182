"""Which tool wrote a file, told by what it holds and not by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from qabias.errors import QabiasError
from qabias.logs import helm, inspect_eval, lighteval, lm_eval_samples, openai_batch
from qabias.logs.model import Log

Reader = Callable[[Path], "Log | None"]
"""Reads a file of one tool; None where the file is none of it. Raises QabiasError where it is one and unreadable."""


def readers() -> tuple[Reader, ...]:
    """The readers of all tools, in the order in which a file is shown to them."""
    return (inspect_eval.read, helm.read, openai_batch.read, lighteval.read, lm_eval_samples.read)


def read_log(path: Path) -> Log | None:
    """The log in a file; None where no tool known here wrote it.

    Args:
        path: A file.

    Raises:
        QabiasError: If a tool wrote it and it is damaged, or lacks what every log of the tool has.
    """
    for read in readers():
        found = read(path)
        if found is not None:
            return found
    return None


def logs_in(folder: Path) -> Iterator[tuple[Path, Log | QabiasError | None]]:
    """Every file of a folder and of the folders in it: its log, why it cannot be read, or None for no log.

    Args:
        folder: A folder that holds no run of qabias.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            yield path, read_log(path)
        except QabiasError as error:
            yield path, error
