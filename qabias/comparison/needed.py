"""How many templates and examples a benchmark needs to show a bias of some size, or a difference of two models."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.caveats import detectable, missing_share, possible_range, reasons
from qabias.benchmarks.facts import Scores
from qabias.comparison.detectable import detectable_difference
from qabias.errors import QabiasError
from qabias.share.metrics.shared.intervals import CONTRAST_CORRELATION, Floats, Shape, Spread, of_difference, spread_of
from qabias.share.metrics.shared.intervals import detectable as detectable_size
from qabias.tables.formatting import percent
from qabias.tables.model import estimate

ERRING = 0.1
"""Share of the answers that take a side, where no run says: a model that is right in 90 % of ambiguous contexts."""

IN_COMMON = 0.5
"""Correlation of two models' scores over templates: pairing saves that share of the variance of their difference."""

CONFIDENCE = 0.95
MOST = 20_000
"""Templates beyond which none are counted."""

_STEPS = 40


@dataclass(frozen=True)
class Assumed:
    """What is assumed of a model and a benchmark."""

    erring: float
    correlation: float
    rows: float
    examples: float
    origin: str
    remarks: tuple[str, ...] = ()

    def spread(self, templates: int, shrink: float = 1.0) -> tuple[Spread, Floats]:
        """What the intervals make of templates that vary exactly as assumed, and the score without each of them."""
        alone, together = 1.0 / (templates * self.rows), 1.0 / templates
        one = alone + self.correlation * (together - alone)
        steps = np.linspace(-1.0, 1.0, templates)
        steps /= np.sqrt((templates - 1) / templates * (steps**2).sum())  # of which the jackknife's variance is 1
        without = steps * np.sqrt(shrink * self.erring * one)
        erring = self.erring + steps * np.sqrt(self.erring * (1.0 - self.erring) * one)
        half = np.asarray(self.erring / 2.0)
        shape = Shape(half, half, np.asarray(templates * self.rows), low=-1.0, prior=CONTRAST_CORRELATION)
        return spread_of(shape, without, erring, np.full(templates, self.rows), CONFIDENCE), without

    def bias(self, templates: int) -> float:
        """The smallest bias that so many templates show with 80 % power; infinite where none."""
        size = float(detectable_size(self.spread(templates)[0])) if templates > 2 else np.nan
        return np.inf if np.isnan(size) else size

    def difference(self, templates: int) -> float:
        """The same of a difference of the scores of two models that are as assumed and partly err together."""
        if templates < 3:
            return np.inf
        _, without = self.spread(templates, shrink=2.0 * (1.0 - IN_COMMON))
        size = detectable_difference(of_difference(0.0, without, np.ones_like(without), 2.0, CONFIDENCE)[1])
        return np.inf if size is None else size


def needed(size: float, smallest: Callable[[int], float]) -> int | None:
    """The least number of templates with which `smallest` is at most `size`; None where it is more than `MOST`."""
    counts = range(3, MOST + 1)
    place = bisect.bisect_left(counts, True, key=lambda templates: smallest(templates) <= size)
    return counts[place] if place < len(counts) else None


def planned_measure(benchmark: Benchmark) -> Measure:
    """The headline bias score that is planned for."""
    for measure in benchmark.facts.chosen(benchmark.facts.tiles):
        if measure.sides:
            return measure
    raise QabiasError(f"--detect is for scores that are 0 without a bias, and {benchmark.name} has none")


def templates_of(benchmark: Benchmark, table: pa.Table) -> dict[str, Scores]:
    """The counts of the examples by group, all together last under `ALL`, as the metric gives them for any answers."""
    answers = pa.table({name: pa.array(np.zeros(table.num_rows, np.int64)) for name in benchmark.answer_columns})
    return benchmark.groups(benchmark.score(table, answers))


def assumed(benchmark: Benchmark, groups: Mapping[str, Scores], run: Mapping[str, Any] | None = None) -> Assumed:
    """What a plan assumes: rows of the templates as they are, accuracy and correlation of a run, or stated ones."""
    measure, clusters = planned_measure(benchmark), benchmark.facts.clusters[1]
    whole = groups[ALL]
    n_templates = whole[clusters]
    rows = sum(whole[count] for count in measure.counts) / n_templates
    stated = Assumed(ERRING, CONTRAST_CORRELATION, rows, whole["n"] / n_templates, "no run is given (--like)")
    if run is None:
        return stated
    of = benchmark.groups(run)[ALL]
    size = detectable(of, measure)
    if size is None or np.isnan(size):
        why = _why_no_size(benchmark, of, measure)
        raise QabiasError(f"--like: the run does not say how large a {measure.name} it would have found: {why}")
    asked, sided = sum(of[count] for count in measure.counts), sum(of[side] for side in measure.sides)
    remarks = []
    if not sided:
        remarks.append(
            f"In the run none of {asked:,} answers takes a side. One is assumed to, because how answers vary cannot be "
            "seen where none does."
        )
    erring = max(sided, 1) / asked
    there = replace(stated, erring=erring, rows=asked / of[clusters])
    low, high = 0.0, 1.0
    for _ in range(_STEPS):  # the correlation with which as many templates would have said the same
        middle = (low + high) / 2.0
        low, high = (middle, high) if replace(there, correlation=middle).bias(of[clusters]) < size else (low, middle)
    if low == 0.0:
        remarks.append("Answers vary less in the run than uncorrelated ones would; a correlation of 0 is assumed.")
    elif high == 1.0:
        remarks.append(
            "Answers vary more in the run than equal ones of a template would; a correlation of 1 is assumed."
        )
    origin = "the run that is given"
    return replace(stated, erring=erring, correlation=low, origin=origin, remarks=tuple(remarks))


def _why_no_size(benchmark: Benchmark, scores: Scores, measure: Measure) -> str:
    """Why a run does not say from what size on it would have found a score, and what to do."""
    if possible_range(scores, measure) is not None:
        missing = percent(missing_share(scores, measure))
        return f"{missing} of its answers are missing; give a run with fewer, or leave --like out"
    why = reasons(benchmark.facts, scores)
    name = measure.name
    if estimate(scores, name).low is None:
        reason = why.get(f"/{name}") or why.get(f"/ci/{name}") or "it was scored without intervals"
    else:
        reason = why.get(f"/detectable/{name}") or "it was scored without it"
    return f"{reason}; give a run of more {benchmark.facts.clusters[0]}, or leave --like out"
