"""Answers that others have collected, as a benchmark reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class GivenAnswers:
    """The answers of one model, asked in one way."""

    model: str
    format: str
    norm: str
    source: str
    answers: pa.Table

    @property
    def name(self) -> str:
        """What tells it apart from the others of a file."""
        return "-".join(filter(None, (self.model, self.format)))
