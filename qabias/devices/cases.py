"""What is measured of what, in the order of importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qabias.devices import shapes as of
from qabias.devices import subjects as ways
from qabias.devices.outcome import MEASURES
from qabias.devices.shapes import Shape
from qabias.devices.subjects import Way
from qabias.models.loading import DTYPES

SIZES = ("tiny", "small", "all")
CORRECT = MEASURES[:2]
"""The measures that say whether figures are right, not how fast they come."""

FIRST = 2
"""Models that are asked all before tiny ones are asked in other precisions."""


@dataclass(frozen=True, eq=False)
class Case:
    """A scorer with a shape in a precision."""

    way: Way
    shape: Shape
    dtype: str
    measures: Sequence[str]

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.way.name}, {self.shape.name}, {self.dtype}"


def cases(sizes: str, usual: str) -> list[Case]:
    """All cases, the most important first."""
    tiny = _tiny()
    if sizes == SIZES[0]:
        return _in(usual, tiny, MEASURES) + _others(usual, tiny)
    chosen = _small() if sizes == SIZES[1] else _published()
    asked, others = _in(usual, chosen, MEASURES), _others(usual, tiny) + _others(usual, chosen)
    return _in(usual, tiny, CORRECT) + asked[:FIRST] + others[: 2 * len(tiny)] + asked[FIRST:] + others[2 * len(tiny) :]


def _tiny() -> list[tuple[Way, Shape]]:
    return [
        (ways.CAUSAL, of.TINY_CAUSAL),
        (ways.CAUSAL_WRITTEN, of.TINY_CAUSAL),
        (ways.SEQ2SEQ, of.TINY_T5),
        (ways.SEQ2SEQ_WRITTEN, of.TINY_T5),
        (ways.SPANS, of.TINY_ENCODERS["bert"]),
        (ways.MASKS, of.TINY_ENCODERS["roberta"]),
        (ways.CHOICES, of.TINY_ENCODERS["deberta"]),
        (ways.PAIRS, of.TINY_ENCODERS["roberta"]),
    ]


def _small() -> list[tuple[Way, Shape]]:
    return [
        (ways.CAUSAL, of.SMALL_CAUSAL),
        (ways.CAUSAL_WRITTEN, of.SMALL_CAUSAL),
        (ways.SEQ2SEQ, of.SMALL_T5),
        (ways.SEQ2SEQ_WRITTEN, of.SMALL_T5),
        *((way, of.SMALL_ENCODER) for way in ways.HEADS),
    ]


def _published() -> list[tuple[Way, Shape]]:
    large = of.LARGE_ENCODERS
    first = [
        (ways.CAUSAL, of.SMALL_CAUSAL),
        (ways.CAUSAL, of.MIDDLE_CAUSAL),
        (ways.CAUSAL_WRITTEN, of.SMALL_CAUSAL),
        (ways.SPANS, large["bert"]),
        (ways.CHOICES, large["deberta"]),
        (ways.PAIRS, large["roberta"]),
        (ways.MASKS, large["roberta"]),
        (ways.SEQ2SEQ, of.LARGE_T5),
        (ways.CAUSAL, of.LARGE_CAUSAL),
        (ways.CAUSAL_WRITTEN, of.MIDDLE_CAUSAL),
        (ways.SEQ2SEQ_WRITTEN, of.LARGE_T5),
    ]
    rest = [(way, shape) for shape in large.values() for way in ways.HEADS if (way, shape) not in first]
    return first + rest + [pair for pair in _small() if pair not in first]


def _in(dtype: str, pairs: Sequence[tuple[Way, Shape]], measures: Sequence[str]) -> list[Case]:
    return [Case(way, shape, shape.only or dtype, measures) for way, shape in pairs]


def _others(usual: str, pairs: Sequence[tuple[Way, Shape]]) -> list[Case]:
    """The same in the other precisions, where it is asked only whether figures are right."""
    others = [dtype for dtype in DTYPES if dtype != usual]
    return [Case(way, shape, dtype, CORRECT) for dtype in others for way, shape in pairs if not shape.only]
