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
    """A score as the other tool printed it.

    Attributes:
        name: What the tool calls it.
        value: Its value there.
        ours: The score here that it stands beside, with the group that it is of, as a path of keys in the metric's
            result: ("bias_ambig",) or ("by", "category", "Age", "bias_ambig"); () where nothing here corresponds.
        why: Why the two differ where they do, in a sentence; "" where they are the same quantity.
    """

    name: str
    value: float
    ours: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Logged:
    """The answers of a log, as a benchmark reads them.

    Attributes:
        given: The answers: key columns, answer columns, and of BBQ's form `outcome` and `outputs` where texts were
            written.
        config: The configuration that has all its examples.
        seed: Seed that drew the texts, where they are drawn.
        fixes: Whether the known defects of published texts were corrected.
        options: The benchmark's own options that tell which texts and orders were asked, where not the default.
        rules: How answers are counted, where not by the default.
        references: The examples as the log has them: key columns, and columns that must be as they are here.
        figures: The scores that the tool printed.
        notes: What to know before the scores are read, in sentences.
        failed: What becomes of samples that failed, as the end of a sentence about them.
    """

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
