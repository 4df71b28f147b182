"""Two intervals of a score: over questions like these, and for these questions only (NIST AI 800-3)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from qabias.benchmarks import ALL
from qabias.benchmarks.base import RUN
from qabias.benchmarks.headline import meaningful
from qabias.runs.opened import Run
from qabias.runs.sampling import blocks
from qabias.scores.judge import t_quantile
from qabias.scores.score import Score, estimate, missing_share
from qabias.tables.model import Column, Table

N_SPLITS = 16
"""Random splits of the sample into halves; the differences of the halves give the variance."""

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


def estimands(run: Run) -> Table | None:
    """Both intervals of the headline scores; None for prompt sets, and without scores of all examples together.

    The templates are fixed for the second, and the examples are a systematic sample of their questions. Each split
    divides every two neighboring blocks of the sample between two halves (McCarthy 1969, Wolter 2007). The variance is
    the mean square of half the halves' difference, times the share of questions that were not asked (Cochran 1977). It
    cannot exceed that share of the variance over templates, which replaces it if all halves agree.

    """
    question = run.question
    facts, whole = run.benchmark.facts, run.benchmark.groups(run.scores).get(ALL)
    is_finite = " about questions" in run.arguments.until  # its verdicts have this interval, and its order no neighbors
    if whole is None or is_finite or RUN in question.table.column_names:
        return None
    measures = [one for one in meaningful(run.benchmark, run.is_question_only, facts.tiles) if one.name in whole]
    unasked = 1.0 - question.table.num_rows / question.examples.n_whole
    one, other = _halves(run) if unasked > 0.0 else ({}, {})
    factor = t_quantile(0.5 + run.confidence / 2.0, N_SPLITS) * math.sqrt(unasked)
    rows = []
    for measure in measures:
        like, name = estimate(whole, measure.name), measure.name
        moves = (one[name] - other[name]) / 2.0 if unasked > 0.0 else np.zeros(N_SPLITS)
        half = factor * math.sqrt((moves**2).mean())
        rows.append((measure.title, like, _these(like, half, math.sqrt(unasked)), missing_share(whole, measure)))
    return Table("estimands", "Two intervals", "NIST AI 800-3", _NOTE, _COLUMNS, tuple(rows))


def _these(like: Score, half: float, most: float) -> Score:
    """The score with an interval of a half width, at most a share of the interval over templates."""
    value, low, high, *_ = like
    if value is None or (most > 0.0 and (low is None or high is None)):
        return Score(value)
    widest = (most * (value - low), most * (high - value)) if low is not None and high is not None else (0.0, 0.0)
    below, above = ((min(half, end) if half > 0.0 else end) for end in widest)
    return Score(value, value - below, value + above)


def _halves(run: Run) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
    """The scores of the first and the second half of every split, shape (N_SPLITS,)."""
    benchmark, table, rules = run.benchmark, run.question.table, run.arguments.rules
    block, rng = blocks(benchmark, table, run.arguments.seed), np.random.default_rng(0)
    counts = benchmark.count(table, run.answers, block, rules)
    place = np.arange(len(counts))
    flipped = np.stack([rng.random(len(block)) < 0.5 for _ in range(N_SPLITS)])[:, place // 2]
    first = np.where((place % 2 == 0) ^ flipped, 1.0, 0.0)
    one, other = (
        benchmark.scores_from_counts(np.tensordot(half, counts, axes=1), rules) for half in (first, 1 - first)
    )
    return one, other
