"""Answers that others have collected, as a benchmark reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class GivenAnswers:
    """The answers of one model, asked in one way.

    Attributes:
        model: Name of the model.
        format: Name of the prompt format in which it was asked; "" where it is not known.
        norm: How its texts are read.
        source: Source of the texts that were asked; "" where it is not known.
        answers: The key columns of the benchmark and its answer columns; a text in place of a number is read.
    """

    model: str
    format: str
    norm: str
    source: str
    answers: pa.Table

    @property
    def name(self) -> str:
        """What tells it apart from the others of a file."""
        return "-".join(filter(None, (self.model, self.format)))
