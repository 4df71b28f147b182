"""Two intervals of a score: over questions like these, and for these questions only (NIST AI 800-3)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark
from qabias.benchmarks.base import RUN, meaningful
from qabias.benchmarks.findings import t_quantile
from qabias.runs.question import Question
from qabias.tables.model import Column, Estimate, Table, estimate

N_GROUPS = 10
"""Random groups of question sets; the spread without each gives the variance."""

_NOTE = (
    "Questions like these: CI over all possible templates. These questions: CI for the score of all questions of this "
    "benchmark. A full run asks all of them, so the second has width 0."
)


def estimands(question: Question, answers: pa.Table, scores: Mapping[str, Any], question_only: bool) -> Table | None:
    """Both intervals of the headline scores; None for prompt sets, and without scores of all examples together.

    The templates are fixed for the second. Its variance is a random-groups jackknife with groups balanced within
    templates, times the share of questions that were not asked (Cochran 1977, Wolter 2007). With one set per template
    it includes the variance between templates, and is too wide.

    Args:
        question: The question of a run, with the examples of its scores.
        answers: The answers, parallel to the examples.
        scores: The scores.
        question_only: Whether the model saw no context.
    """
    benchmark, whole = question.benchmark, question.benchmark.groups(scores).get(ALL)
    if whole is None or RUN in question.table.column_names:
        return None
    tiles = benchmark.facts.tiles
    measures = [one for one in meaningful(benchmark, question_only, tiles) if one.name in whole]
    unasked = 1.0 - question.table.num_rows / question.examples.n_whole
    without = _without_each(benchmark, question.table, answers) if unasked > 0.0 else []
    factor = t_quantile(0.975, N_GROUPS - 1) * math.sqrt(unasked * (N_GROUPS - 1) / N_GROUPS)
    rows = []
    for measure in measures:
        value, low, high = estimate(whole, measure.name)
        values = np.array([value if value is None else one.get(measure.name, np.nan) for one in without], dtype=float)
        half = factor * float(np.sqrt(((values - values.mean()) ** 2).sum())) if len(values) else 0.0
        here = None if value is None or math.isnan(half) else Estimate(value, value - half, value + half)
        rows.append((measure.title, Estimate(value, low, high), here))
    headings = (
        ("score", "Score", "text"),
        ("like", "Questions like these", "signed"),
        ("these", "These questions", "signed"),
    )
    columns = tuple(Column(*heading) for heading in headings)
    return Table("estimands", "Two intervals", "NIST AI 800-3", _NOTE, columns, tuple(rows))


def _without_each(benchmark: Benchmark, table: pa.Table, answers: pa.Table) -> list[Mapping[str, Any]]:
    """The scores of all examples without each random group of sets."""
    unit_of, stratum_of = benchmark.units(table)
    units, first, places = np.unique(unit_of, return_index=True, return_inverse=True)
    order = np.lexsort((np.random.default_rng(0).random(len(units)), stratum_of[first]))
    group = np.empty(len(units), dtype=np.int64)
    group[order] = np.arange(len(units)) % N_GROUPS
    kept = [pa.array(group[places] != number) for number in range(N_GROUPS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the run has warned of all examples
        return [benchmark.groups(benchmark.score(table.filter(rows), answers.filter(rows)))[ALL] for rows in kept]
