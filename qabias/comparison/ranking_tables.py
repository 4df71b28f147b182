"""The tables of a ranking: score, rank with its interval, probability of coming first, and the test of neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.caveats import (
    imbalance,
    imbalance_note,
    missing_share,
    possible_range,
    shown_estimate,
    with_ranges,
)
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.pairs import Floats, Pair
from qabias.comparison.many import MOST_BESIDE
from qabias.comparison.neighbours import Neighbours
from qabias.comparison.paired_tests import APART, holm
from qabias.comparison.ranking import FEWEST_CLUSTERS, Joint, distances, joint, places, weights
from qabias.tables.formatting import percent
from qabias.tables.model import Column, Estimate, Figure, Table, Value

FEWEST_RUNS = 3
TOLD_APART, NOT_TOLD_APART, NOT_RANKED = "told apart", "not told apart", "not ranked: "
"""What the column `next` says; the reason follows the last."""

RANKING = "Ranking of the runs"
"""Section of the rankings."""

_NOTE = (
    "{best} is best. Rank and probability of coming first on other {clusters} of the same kind; with fewer than "
    "{fewest} {clusters} there is no probability, and no interval. The p-value is of a paired test of a run and the "
    "next one, adjusted for all neighbours: where it is {apart} or more, their order is not shown."
)


def rankings(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Sequence[Scores],
    with_first: Sequence[Mapping[str, Pair]],
) -> tuple[list[Table], list[str]]:
    """A table for each score with a best value: of all examples together, or of every group where there is no such."""
    best = {measure.name: measure.best for measure in measures if measure.best is not None}
    if len(names) < FEWEST_RUNS or not best or not with_first:
        return [], []
    groups = [group for group in benchmark.groups(scores[0]) if all(group in of for of in with_first)]
    found: list[tuple[str, Table]] = []
    notes = []
    for group in [ALL] if ALL in groups else groups:
        together = joint([of[group] for of in with_first])
        if together is None:
            notes.append(f"No ranking of {group}: the runs were not scored on the same examples.")
            continue
        of_runs = [benchmark.groups(of)[group] for of in scores]
        ranking = _Ranking(together, best)
        found += [
            (measure.name, _table(benchmark, measure, names, of_runs, ranking, group))
            for measure in measures
            if measure.name in best
        ]
    order = list(best)
    return [table for _, table in sorted(found, key=lambda entry: order.index(entry[0]))], notes


class _Ranking:
    """The distances of all runs from the best values, as they are and under random weights of the clusters."""

    def __init__(self, together: Joint, best: Mapping[str, float]) -> None:
        once = np.ones((1, together.n_clusters))
        drawn = weights(together.n_clusters)
        self.exact = [distances(run(once), best) for run in together.runs]
        self.drawn = [distances(run(drawn), best) for run in together.runs]
        self.is_drawn = together.n_clusters >= FEWEST_CLUSTERS
        self.neighbours = Neighbours(together, best, len(together.runs) - 1)

    def of(self, name: str, runs: Sequence[int]) -> tuple[Floats, Floats | None]:
        """The distances of some runs, shape (n,), and those under R draws, shape (R, n)."""
        exact = np.array([self.exact[run][name][0] for run in runs])
        if not self.is_drawn:
            return exact, None
        return exact, np.stack([self.drawn[run][name] for run in runs], axis=1)


def _table(
    benchmark: Benchmark,
    measure: Measure,
    names: Sequence[str],
    of_runs: Sequence[Scores],
    ranking: _Ranking,
    group: str,
) -> Table:
    name = measure.name
    left_out = {run: text for run, of in enumerate(of_runs) if (text := _why_not(of, measure, ranking, run))}
    ranked = [run for run in range(len(names)) if run not in left_out]
    rows: list[tuple[Value, ...]] = []
    order: list[int] = []
    if ranked:
        found = dict(zip(ranked, places(*ranking.of(name, ranked)), strict=True))
        order = sorted(ranked, key=lambda run: found[run].rank)
        tests = [ranking.neighbours.p_values(one, other)[name] for one, other in itertools.pairwise(order)]
        adjusted: list[float | None] = [*holm(tests), None]
        for run, p in zip(order, adjusted, strict=True):
            place = found[run]
            verdict = None if p is None else TOLD_APART if p < APART else NOT_TOLD_APART
            score = shown_estimate(of_runs[run], measure)
            rows.append((names[run], score, Estimate(place.rank, place.low, place.high), place.first, p, verdict))
    for run, text in left_out.items():
        rows.append((names[run], shown_estimate(of_runs[run], measure), None, None, None, f"{NOT_RANKED}{text}"))
    best = "The highest" if measure.kind == "share" and measure.best == 1 else f"Nearest to {measure.best:g}"
    note = _NOTE.format(best=best, clusters=benchmark.facts.clusters[0], fewest=FEWEST_CLUSTERS, apart=APART)
    table = Table(
        f"ranking_{name}" if group == ALL else f"ranking_{name}_{group}",
        f"Ranking: {measure.title}" if group == ALL else f"Ranking: {measure.title}, {group}",
        "",
        note,
        (
            Column("run", "Run", "text"),
            Column(name, measure.title, measure.kind),
            Column("rank", "Rank", "count"),
            Column("first", "Probability of coming first", "share"),
            Column("p_adjusted_next", "Adjusted p, this and the next", "p"),
            Column("next", "This and the next", "text"),
        ),
        tuple(rows),
        Figure("ranks", "run", ("rank",)) if ranked and len(names) <= MOST_BESIDE else None,
        RANKING,
    )
    return with_ranges(table, [of_runs[run] for run in [*order, *left_out]], [measure])


def _why_not(scores: Scores, measure: Measure, ranking: _Ranking, run: int) -> str:
    """Why a run has no rank; "" where it has."""
    if possible_range(scores, measure) is not None:
        return f"{percent(missing_share(scores, measure))} of the answers are missing"
    if np.isnan(ranking.exact[run][measure.name][0]):
        return "undefined"
    share = imbalance(scores, measure)
    return "" if share is None else imbalance_note([share], measure)
