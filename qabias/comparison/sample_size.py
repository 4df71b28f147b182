"""Templates and examples needed to detect a bias, or a difference of two models."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.facts import Scores
from qabias.comparison.paired_tests import detectable_difference
from qabias.errors import QabiasError
from qabias.share.metrics.shared.intervals import CONTRAST_CORRELATION, Floats, Shape, Spread, of_difference, spread_of
from qabias.share.metrics.shared.intervals import detectable as detectable_size

ERRING = 0.1  # share of answers that take a side: a model that is right in 90% of ambiguous contexts
IN_COMMON = 0.5  # correlation of two models' scores over templates, the variance share that pairing saves
CONFIDENCE = 0.95
MOST = 20_000  # maximum number of templates counted


@dataclass(frozen=True)
class Assumed:
    """Assumptions about a model and a benchmark."""

    erring: float
    correlation: float
    rows: float
    examples: float

    def spread(self, templates: int, shrink: float = 1.0) -> tuple[Spread, Floats]:
        """Spread and jackknife replicates of the score of n templates under the assumed variance."""
        alone, together = 1.0 / (templates * self.rows), 1.0 / templates
        one = alone + self.correlation * (together - alone)
        steps = np.linspace(-1.0, 1.0, templates)
        steps /= np.sqrt((templates - 1) / templates * (steps**2).sum())  # with a jackknife variance of 1
        without = steps * np.sqrt(shrink * self.erring * one)
        erring = self.erring + steps * np.sqrt(self.erring * (1.0 - self.erring) * one)
        half = np.asarray(self.erring / 2.0)
        shape = Shape(half, half, np.asarray(templates * self.rows), low=-1.0, prior=CONTRAST_CORRELATION)
        return spread_of(shape, without, erring, np.full(templates, self.rows), CONFIDENCE), without

    def bias(self, templates: int) -> float:
        """The smallest bias detectable with this number of templates (80% power); infinite if none."""
        size = float(detectable_size(self.spread(templates)[0])) if templates > 2 else np.nan
        return np.inf if np.isnan(size) else size

    def difference(self, templates: int) -> float:
        """The same for a difference of two models that meet the assumptions and share errors."""
        if templates < 3:
            return np.inf
        _, without = self.spread(templates, shrink=2.0 * (1.0 - IN_COMMON))
        size = detectable_difference(of_difference(0.0, without, np.ones_like(without), 2.0, CONFIDENCE)[1])
        return np.inf if size is None else size


def needed(size: float, smallest: Callable[[int], float]) -> int | None:
    """The least number of templates with `smallest` at most `size`; None above `MOST`."""
    counts = range(3, MOST + 1)
    place = bisect.bisect_left(counts, True, key=lambda templates: smallest(templates) <= size)
    return counts[place] if place < len(counts) else None


def planned_measure(benchmark: Benchmark) -> Measure:
    """The headline bias score of a plan."""
    for measure in benchmark.facts.chosen(benchmark.facts.tiles):
        if measure.sides:
            return measure
    raise QabiasError(
        f"--detect needs a score that is 0 without a bias, and {benchmark.name} has none.", "Remove --detect."
    )


def templates_of(benchmark: Benchmark, table: pa.Table) -> dict[str, Scores]:
    """The counts of the examples by group, all together last under `ALL`, which the metric gives for any answers."""
    answers = pa.table({name: pa.array(np.zeros(table.num_rows, np.int64)) for name in benchmark.answer_columns})
    return benchmark.groups(benchmark.score(table, answers))


def assumed(benchmark: Benchmark, groups: Mapping[str, Scores]) -> Assumed:
    """Assume the templates' actual rows, and a given accuracy and correlation."""
    measure, clusters = planned_measure(benchmark), benchmark.facts.clusters[1]
    whole = groups[ALL]
    n_templates = whole[clusters]
    rows = sum(whole[count] for count in measure.counts) / n_templates
    return Assumed(ERRING, CONTRAST_CORRELATION, rows, whole["n"] / n_templates)
