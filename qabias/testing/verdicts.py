"""What an interval says of a limit: pass, fail, or neither.

The score must lie strictly inside of what is allowed. It passes where the whole interval does, fails where no point of
it does, and is undecided elsewhere. So an interval never passes and fails, and a wider limit never makes a pass a fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from qabias.benchmarks.facts import Measure
from qabias.errors import QabiasError

State = Literal["pass", "fail", "undecided"]
Side = Literal["below", "above"]


@dataclass(frozen=True)
class Limit:
    """A limit of a score."""

    name: str
    value: float
    side: Side


@dataclass(frozen=True)
class Verdict:
    """What a run says of a limit in one group of examples.

    Attributes:
        name: Name of the score.
        group: Name of the group.
        value: The score; None where it is undefined.
        low: Lower end of what it may truly be: of its interval, widened for the number of looks, and where answers are
            missing moved by what they could change. None where that is not known.
        high: Upper end.
        limit: The limit.
        side: On which side of it the score must lie.
        magnitude: Whether the score is taken by its magnitude, as one is that is best at 0.
        state: Whether it does, as far as can be said.
        kind: Kind of the score, see `qabias.tables.model.Column`.
        n: Number of examples that the score is of.
        looks: Number of intervals that were looked at together, for which they are widened.
        reason: Why nothing can be said; "" where the ends are known.
        possible: What the score could be with the answers that are missing; None where hardly any is.
        detectable: The smallest true size that would have been found to differ from 0 with a probability of about 80 %
            in spite of the widening; infinite where even the largest could have been missed, None where not known.
        needed: About how many examples, of as many more templates, would decide if the score stayed what it is; None
            where it is decided, or where no number of them would.
    """

    name: str
    group: str
    value: float | None
    low: float | None
    high: float | None
    limit: float
    side: Side
    magnitude: bool
    state: State
    kind: str
    n: int
    looks: int
    reason: str = ""
    possible: tuple[float, float] | None = None
    detectable: float | None = None
    needed: int | None = None


# The largest magnitude that a score of a kind can have; kinds that are not here have none that is known.
_LARGEST: Mapping[str, float] = {"share": 1.0, "signed": 1.0}
# The least value of a kind.
_LEAST: Mapping[str, float] = {"share": 0.0, "signed": -1.0}


def has_sign(measure: Measure) -> bool:
    """Whether a score is on both sides of its best value 0, so that being below a limit is about its magnitude."""
    return measure.kind == "signed" or measure.best == 0.0


def check_limit(limit: Limit, measure: Measure) -> None:
    """Refuse a limit that every score meets, or none."""
    largest = _LARGEST.get(measure.kind, math.inf)
    if limit.side == "above":
        if has_sign(measure):
            raise QabiasError(
                f"{limit.name} is best at 0, so that it has no least value; give the largest that is allowed, of "
                "either sign (--max, assert_bias_below)"
            )
        if not _LEAST.get(measure.kind, -math.inf) <= limit.value < largest:
            raise QabiasError(f"{limit.name} above {limit.value:g} is no limit: {_range_of(measure)}")
    elif not 0.0 < limit.value <= largest or math.isinf(limit.value):
        raise QabiasError(f"{limit.name} below {limit.value:g} is no limit: {_range_of(measure)}")


def _range_of(measure: Measure) -> str:
    """What the values of a score are, for a message."""
    if measure.kind == "share":
        return "it is a share from 0 to 1, so that 10 % is 0.1"
    if measure.kind == "signed":
        return "its magnitude is from 0 to 1, so that 10 points are 0.1"
    return "give a number above 0"


def allowed(limit: Limit, measure: Measure) -> tuple[float, float]:
    """The ends of what is allowed, which do not belong to it."""
    if limit.side == "above":
        return limit.value, math.inf
    return (-limit.value if has_sign(measure) else -math.inf), limit.value


def judged(ends: tuple[float, float], between: tuple[float, float]) -> State:
    """What an interval says."""
    (low, high), (bottom, top) = ends, between
    if bottom < low and high < top:
        return "pass"
    return "fail" if high <= bottom or top <= low else "undecided"


def within(ends: tuple[float, float], measure: Measure) -> tuple[float, float]:
    """An interval cut to the values that a score can have."""
    least, largest = _LEAST.get(measure.kind, -math.inf), _LARGEST.get(measure.kind, math.inf)
    low, high = ends
    return max(low, least), min(high, largest)


def examples_needed(
    n: int, inner: tuple[float, float], ends: tuple[float, float], between: tuple[float, float]
) -> int | None:
    """About how many examples would decide."""
    (low, high), (bottom, top) = ends, between
    below, above = inner[0] - low, high - inner[1]
    if bottom < inner[0] and inner[1] < top:
        times = max(below / (inner[0] - bottom), above / (top - inner[1]))
    elif inner[0] > top:
        times = below / (inner[0] - top)
    elif inner[1] < bottom:
        times = above / (bottom - inner[1])
    else:
        return None
    number = n * times**2
    if not number < _MOST:
        return None
    unit = 10 ** max(0, math.ceil(math.log10(max(number, 1.0))) - 2)
    return max(n + 1, unit * math.ceil(number / unit))


_MOST = 1e9
"""Examples beyond which none are named: the score is at the limit."""
