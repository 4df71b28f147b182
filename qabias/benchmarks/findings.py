"""Intervals that are adjusted for the number of comparisons."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from qabias.benchmarks.caveats import estimate
from qabias.benchmarks.facts import Facts, Scores
from qabias.share.metrics.shared.intervals import POWER


@functools.lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t for a probability of at least 0.5."""
    within = 2 * share - 1
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < within else (low, middle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _within(angle: float, freedom: int) -> float:
    """P(|t| < sqrt(freedom) tan(angle)), a finite sum (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for place in range(2 + is_odd, freedom, 2):
        term *= (place - 1) / place * math.cos(angle) ** 2
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total


ERROR = 0.05
"""Familywise error rate: probability that a group without bias is named."""


class Finding(NamedTuple):
    """A reported score of a group, with its adjusted interval and MDE."""

    group: str
    low: float
    high: float
    detectable: float | None


def adjusted_finding(facts: Facts, group: str, scores: Scores, name: str, n_comparisons: int) -> Finding:
    """A score of a group with its Bonferroni-adjusted interval and MDE."""
    freedom = max(1, scores[facts.clusters[1]] - 1)
    usual, wide = t_quantile(1 - ERROR / 2, freedom), t_quantile(1 - ERROR / 2 / n_comparisons, freedom)
    detectable = scores.get("detectable", {}).get(name)
    if name in scores.get("detectable", {}) and (detectable is None or math.isnan(detectable)):
        detectable = math.inf
    elif detectable is not None:
        detectable = adjusted_size(float(detectable), freedom, n_comparisons)
    value, low, high = estimate(scores, name)
    assert value is not None
    assert low is not None
    assert high is not None
    factor = wide / usual
    return Finding(group, value - factor * (value - low), value + factor * (high - value), detectable)


def adjusted_size(size: float, freedom: int, n_comparisons: int) -> float:
    """The minimum detectable effect, Bonferroni-adjusted for several comparisons."""
    usual, wide = t_quantile(1 - ERROR / 2, freedom), t_quantile(1 - ERROR / 2 / n_comparisons, freedom)
    power = t_quantile(POWER, freedom)
    return size * (wide + power) / (usual + power)


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
