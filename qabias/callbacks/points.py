"""What a measurement says in numbers that loggers take, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qabias.benchmarks import Benchmark
from qabias.benchmarks.base import meaningful, parts
from qabias.benchmarks.caveats import missing_share, possible_range
from qabias.benchmarks.facts import Measure
from qabias.errors import QabiasError
from qabias.support.suggest import unknown
from qabias.tables.model import estimate

MISSING = "missing"
"""Name of the largest share of the answers that one of the scores lacks."""


def chosen_measures(benchmark: Benchmark, names: Sequence[str], question_only: bool) -> tuple[Measure, ...]:
    """The scores that are logged."""
    known = [measure.name for measure in benchmark.facts.measures]
    for name in names:
        if name not in known:
            raise unknown(f"score of {benchmark.name}", name, known)
    found = meaningful(benchmark, question_only, names or benchmark.facts.tiles)
    without = [name for name in names if name not in {measure.name for measure in found}]
    if without:
        raise QabiasError(f"{', '.join(without)}: means nothing where the model sees no context; choose other scores")
    return found


def named_measures(
    benchmark: Benchmark, scores: Mapping[str, Any], measures: Sequence[Measure]
) -> dict[str, tuple[Measure, Mapping[str, Any]]]:
    """The scores that a measurement has, by the name that they have in a curve."""
    selections = parts(benchmark, scores)
    return {
        (f"{pointer.rpartition('/')[2]}_" if len(selections) > 1 else "") + measure.name: (measure, of)
        for pointer, of in selections.items()
        for measure in measures
        if measure.name in of
    }


def point_of(benchmark: Benchmark, scores: Mapping[str, Any], measures: Sequence[Measure]) -> dict[str, float]:
    """A measurement as numbers by name."""
    named = named_measures(benchmark, scores, measures)
    point = {}
    for name, (measure, of) in named.items():
        value, low, high = estimate(of, measure.name)
        possible = possible_range(of, measure)
        if possible is not None:
            low = high = None
            point[f"{name}_possible_low"], point[f"{name}_possible_high"] = possible
        point |= {name: _number(value), f"{name}_low": _number(low), f"{name}_high": _number(high)}
    point[MISSING] = max((missing_share(of, measure) for measure, of in named.values()), default=0.0)
    return point


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
