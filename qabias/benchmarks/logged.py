"""What a benchmark finds in a log of another tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qabias.benchmarks.given import GivenAnswers

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class OtherFigure:
    """A score as the other tool printed it."""

    name: str
    value: float
    ours: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Logged:
    """The answers of a log, as a benchmark reads them."""

    given: GivenAnswers
    config: str
    seed: int = 0
    fixes: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    references: pa.Table | None = None
    figures: tuple[OtherFigure, ...] = ()
    notes: tuple[str, ...] = ()
    failed: str = "count as no answer"
