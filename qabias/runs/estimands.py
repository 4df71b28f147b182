"""Two intervals of a score: over questions like these, and for these questions only (NIST AI 800-3)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL
from qabias.benchmarks.base import RUN, Rules
from qabias.benchmarks.caveats import estimate, missing_share
from qabias.benchmarks.findings import t_quantile
from qabias.benchmarks.headline import meaningful
from qabias.runs.question import Question
from qabias.runs.scored import ScoredRun
from qabias.tables.model import Column, Estimate, Table

N_GROUPS = 10
"""Random groups of question sets; the spread without each gives the variance."""

_NOTE = (
    "Questions like these: CI over all possible templates. These questions: CI for the score of all questions of this "
    "benchmark. A full run asks all of them, so the second has width 0."
)
_COLUMNS = (
    Column("score", "Score", "text"),
    Column("like", "Questions like these", "signed"),
    Column("these", "These questions", "signed"),
    Column("missing", "Answers missing", "share"),
)


def estimands(run: ScoredRun, question: Question, answers: pa.Table) -> Table | None:
    """Both intervals of the headline scores; None for prompt sets, and without scores of all examples together.

    The templates are fixed for the second. Its variance is a random-groups jackknife with groups balanced within
    templates, times the share of questions that were not asked (Cochran 1977, Wolter 2007). With one set per template
    it includes the variance between templates, and is too wide.

    Args:
        run: The run.
        question: Its question, with the examples of its scores.
        answers: The answers, parallel to the examples.
    """
    facts, whole = run.benchmark.facts, run.benchmark.groups(run.scores).get(ALL)
    if whole is None or RUN in question.table.column_names:
        return None
    measures = [one for one in meaningful(run.benchmark, run.is_question_only, facts.tiles) if one.name in whole]
    unasked = 1.0 - question.table.num_rows / question.examples.n_whole
    without = _without_each(question, answers, run.arguments.rules) if unasked > 0.0 else []
    factor = t_quantile(0.975, N_GROUPS - 1) * math.sqrt(unasked * (N_GROUPS - 1) / N_GROUPS)
    rows = []
    for measure in measures:
        like = estimate(whole, measure.name)
        values = np.array([one.get(measure.name, np.nan) for one in without], dtype=np.float64)
        half = factor * float(np.sqrt(((values - values.mean()) ** 2).sum())) if len(values) else 0.0
        these = Estimate(like.value)
        if like.value is not None and not math.isnan(half):
            these = Estimate(like.value, like.value - half, like.value + half)
        rows.append((measure.title, like, these, missing_share(whole, measure)))
    return Table("estimands", "Two intervals", "NIST AI 800-3", _NOTE, _COLUMNS, tuple(rows))


def _without_each(question: Question, answers: pa.Table, rules: Rules) -> list[Mapping[str, Any]]:
    """The scores of all examples without each random group of sets."""
    benchmark, table = question.benchmark, question.table
    unit_of, stratum_of = benchmark.units(table)
    units, first, places = np.unique(unit_of, return_index=True, return_inverse=True)
    order = np.lexsort((np.random.default_rng(0).random(len(units)), stratum_of[first]))
    group = np.empty(len(units), dtype=np.int64)
    group[order] = np.arange(len(units)) % N_GROUPS
    options: Mapping[str, Any] = {**rules, "confidence": None}  # no intervals
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the run has warned of all examples
        for number in range(N_GROUPS):
            kept = pa.array(group[places] != number)
            scores.append(benchmark.groups(benchmark.score(table.filter(kept), answers.filter(kept), options))[ALL])
    return scores
