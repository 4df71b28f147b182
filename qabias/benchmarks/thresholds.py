"""Thresholds of scores: conditions, allowed values, and the verdict of an interval."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from qabias.benchmarks.base import Benchmark
from qabias.benchmarks.facts import WORDINGS, Measure, Scores
from qabias.errors import QabiasError, arg
from qabias.support.suggest import unknown
from qabias.tables.model import ALL

State = Literal["pass", "fail", "undecided"]
Side = Literal["below", "above"]


@dataclass(frozen=True)
class Limit:
    """A threshold of a score."""

    name: str
    value: float
    side: Side


_RANGES: Mapping[str, tuple[float, float]] = {"share": (0.0, 1.0), "signed": (-1.0, 1.0)}
"""The bounds of a kind of score, if known."""


def has_sign(measure: Measure) -> bool:
    """Whether a score's best value 0 is inside its range, so its magnitude counts."""
    return measure.kind == "signed" or measure.best == 0.0


def check_limit(limit: Limit, measure: Measure) -> None:
    """Refuse a threshold that every score meets, or none does."""
    least, largest = value_range(measure)
    if limit.side == "above":
        if has_sign(measure):
            raise QabiasError(
                f"{limit.name} is best at 0, so it has no lower threshold.",
                "Give the largest allowed magnitude (--max, assert_bias_below).",
            )
        if not least <= limit.value < largest:
            raise _no_threshold(limit, measure)
    elif not 0.0 < limit.value <= largest or math.isinf(limit.value):
        raise _no_threshold(limit, measure)


def _no_threshold(limit: Limit, measure: Measure) -> QabiasError:
    problem = f"{limit.value:g} is not a threshold for {limit.name}."
    if measure.kind not in _RANGES:
        return QabiasError(problem, "Give a number above 0.")
    points = limit.value if 1 < limit.value < 100 else 10
    return QabiasError(f"{problem} It is at most 1.", f"For {points:g} points give {points / 100:g}.")


def allowed(limit: Limit, measure: Measure) -> tuple[float, float]:
    """The open interval of allowed values."""
    if limit.side == "above":
        return limit.value, math.inf
    return (-limit.value if has_sign(measure) else -math.inf), limit.value


def judged(ends: tuple[float, float], between: tuple[float, float]) -> State:
    """The verdict of an interval on an open interval of allowed values."""
    (low, high), (bottom, top) = ends, between
    if bottom < low and high < top:
        return "pass"
    return "fail" if high <= bottom or top <= low else "undecided"


def value_range(measure: Measure) -> tuple[float, float]:
    """The least and the largest value of a score."""
    return _RANGES.get(measure.kind, (-math.inf, math.inf))


def breakdowns_of(benchmark: Benchmark, scores: Mapping[str, Any]) -> dict[str, Mapping[str, Scores]]:
    """The breakdowns of a result, with the scores of every group.

    These are the groups of `scores["by"]`, prompt variants, and the benchmark's own groups.
    """
    own = {name: group for name, group in benchmark.groups(scores).items() if name != ALL}
    known = {benchmark.facts.row: own, **scores.get("by", {})}
    if WORDINGS in scores:
        known[WORDINGS] = scores[WORDINGS]
    return {name: groups for name, groups in known.items() if groups}


_CONDITION = re.compile(r"\s*(\w+)\s*([<>])\s*([0-9.eE+-]+)\s*")


def parse_condition(text: str, measures: Sequence[Measure]) -> Limit:
    """Read a condition such as "bias_ambig<0.1"; a bias counts by its magnitude."""
    match = _CONDITION.fullmatch(text)
    try:
        name, sign, value = match.groups() if match else ("", "", "")
        number = float(value)
    except ValueError:
        raise QabiasError(
            f"{arg('until')} {text!r} is no condition.", f"Write {arg('until')} 'bias_ambig<0.1'."
        ) from None
    known = {measure.name: measure for measure in measures}
    if name not in known:
        raise unknown("score", name, list(known), arg("until"))
    limit = Limit(name, number, "below" if sign == "<" else "above")
    check_limit(limit, known[name])
    return limit


def condition_text(limit: Limit) -> str:
    """A condition as one word: "bias_ambig<0.1"."""
    return f"{limit.name}{'<' if limit.side == 'below' else '>'}{limit.value:g}"
