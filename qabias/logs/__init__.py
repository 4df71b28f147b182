"""Logs that other evaluation tools write, sample by sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabias.answers.outcomes import FAILED, whole
from qabias.errors import QabiasError

NOT_AS_WRITTEN = (
    *(ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError),
    re.error,
)
"""Errors that Python and pyarrow raise for values of an unexpected type."""


@dataclass(frozen=True)
class Sample:
    """One question to a model and its answers. Their texts are complete, see `whole`."""

    where: str
    asked: Mapping[str, Any]
    answer: Any = None
    text: str | None = None
    loglikelihoods: tuple[float, ...] = ()
    finish: str = ""
    error: str = ""
    run: int = 1
    thinking: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("text", "thinking", "error", "answer"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, whole(value))
        if self.finish in FAILED and not self.error:
            object.__setattr__(self, "error", f"the model's server failed (finish reason {self.finish!r})")
            object.__setattr__(self, "text", None)


@dataclass(frozen=True)
class Log:
    """One evaluation of one model by another tool."""

    path: Path
    tool: str
    version: str
    task: str
    model: str
    settings: Mapping[str, Any]
    samples: Callable[[], Iterator[Sample]]
    figures: Mapping[str, float] = field(default_factory=dict)
    n_expected: int | None = None
    notes: tuple[str, ...] = ()
    beside: tuple[Path, ...] = ()

    def owns(self, path: Path) -> bool:
        """Whether a file is read as part of the log."""
        return path in self.beside or self.path in path.parents

    @property
    def called(self) -> str:
        """Name in messages, e.g. "age.eval (inspect_ai 0.3.285, task inspect_evals/bbq)"."""
        return f"{self.path} ({' '.join(filter(None, (self.tool, self.version)))}, task {self.task})"


@contextmanager
def as_written(where: object, tool: str) -> Iterator[None]:
    """Raise `QabiasError` with the place of values that the tool does not write."""
    try:
        yield
    except QabiasError:
        raise
    except NOT_AS_WRITTEN as error:
        raise QabiasError(f"{where} is not as {tool} writes it: {error!r}.", "Use the original log.") from error


__all__ = ["Log", "Sample"]
