"""Templates and examples needed to detect a bias, or a difference of two models."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.scoring import any_answers
from qabias.errors import QabiasError, arg
from qabias.scores.facts import Scores
from qabias.share.metrics.shared.intervals import Floats, Shape, detectable, of_clusters, spread_of

ERRING = 0.1  # share of answers that take a side: a model that is right in 90% of ambiguous contexts
CORRELATION = 0.2  # correlation of the answers to one template
IN_COMMON = 0.5  # correlation of two models' scores over templates, the variance share that pairing saves
CONFIDENCE = 0.95
MOST = 20_000  # maximum number of templates counted


@dataclass(frozen=True)
class Assumed:
    """Assumptions about a model and a benchmark, whose n templates weigh as n * `evenness` equally large ones."""

    erring: float
    correlation: float
    rows: float
    examples: float
    evenness: float = 1.0

    def bias(self, templates: int) -> float:
        """The smallest bias that so many templates show with 80% power; infinite if none."""
        n, templates = np.asarray(templates * self.rows), self._effective(templates)
        alone, together, rows = 1.0 / float(n), 1.0 / templates, float(n) / templates
        design = alone + self.correlation * (together - alone)
        half = np.asarray(self.erring / 2.0)
        without = self.erring * design * (1.0 - self.erring)
        shape = Shape(half, half, n, low=-1.0)
        replicates, moved = (_replicates(templates, variance) for variance in (self.erring * design, without))
        counts = (self.erring - (templates - 1) * moved) * rows
        spread = spread_of(shape, replicates, counts, np.full(templates, rows), CONFIDENCE)
        return _finite(detectable(shape, spread, CONFIDENCE))

    def difference(self, templates: int) -> float:
        """The same for a difference of the scores of two models that are as assumed and partly err together."""
        alone, templates = 1.0 / (templates * self.rows), self._effective(templates)
        together = 1.0 / templates
        variance = 2.0 * (1.0 - IN_COMMON) * self.erring * (alone + self.correlation * (together - alone))
        without = _replicates(templates, variance)
        return _finite(detectable(*of_clusters(0.0, without, np.ones_like(without), 2.0, CONFIDENCE), CONFIDENCE))

    def _effective(self, templates: int) -> int:
        return max(1, round(templates * self.evenness))


def _replicates(templates: int, variance: float) -> Floats:
    """Values around 0 whose jackknife variance is as given."""
    if templates < 2:  # one template has no variance
        return np.full(templates, np.nan)
    steps = np.linspace(-1.0, 1.0, templates)
    return np.asarray(steps * np.sqrt(variance / ((templates - 1) / templates * (steps**2).sum())))


def _finite(size: Floats) -> float:
    return np.inf if np.isnan(size) else float(size)


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
        f"{arg('detect')} needs a score that is 0 without a bias, and {benchmark.name} has none.",
        f"Remove {arg('detect')}.",
    )


def templates_of(benchmark: Benchmark, table: pa.Table) -> dict[str, Scores]:
    """The counts of the examples by group, all together last under `ALL`, which the metric gives for any answers."""
    return benchmark.groups(benchmark.score(table, any_answers(benchmark.answer_columns, table.num_rows)))


def assumed(benchmark: Benchmark, groups: Mapping[str, Scores], table: pa.Table) -> Assumed:
    """Assume the actual number of rows of each template, and a given accuracy and correlation."""
    measure, clusters = planned_measure(benchmark), benchmark.facts.clusters[1]
    whole = groups[ALL]
    n_templates = whole[clusters]
    rows = sum(whole[count] for count in measure.counts) / n_templates
    answers = any_answers(benchmark.answer_columns, table.num_rows)
    sizes = benchmark.pair_up(table, answers, answers)[ALL].sizes
    evenness = 1.0 if sizes is None else float(sizes.sum() ** 2 / (sizes**2).sum()) / len(sizes)
    return Assumed(ERRING, CORRELATION, rows, whole["n"] / n_templates, evenness)
