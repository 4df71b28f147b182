"""Runs ranked by each score, with exchange tests of their distances from the best value, and ranges of ranks."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.breakdowns import with_reading
from qabias.benchmarks.headline import failure
from qabias.benchmarks.pairs import ClusterScores, Floats, Pair
from qabias.comparison.paired import (
    APART,
    CONFIDENCE,
    MOST_EXACT,
    N_PERMUTATIONS,
    adjusted_p,
    exchanges,
    p_value,
)
from qabias.scores.facts import Facts, Scores
from qabias.scores.judge import holm
from qabias.scores.score import imbalance, read_score, with_possible
from qabias.tables.model import Column, Table, Value

FEWEST_RUNS = 3
NO_RANKING = "No ranking of {group}: the runs were not scored on the same examples."
RANKING = "Ranking of the runs"
DETECTED, NOT_DETECTED, NOT_RANKED = "detected", "not detected", "not ranked: "
"""Values of the column `next`; the reason follows the last."""

MOST_PAIRED = 12
"""Most runs whose pairs are all tested; of more, only neighbors."""

_NOTE = (
    "{best} is best. Adjusted p (Holm, {pairs}) tests a run against the next one: from {apart} on, their order is open."
    "{ranks}"
)
_READ_RANKS = " Possible ranks: after all runs that are detectably better, before all that are worse."
_BY_TEST = 40  # exchanges per test: the smallest p-value times the number of tests is then 0.025
_N_FIRST, _SMALL = 2_000, 0.02  # for many tests: the first exchanges, and the p-value below which more follow
_OTHER_SEED = 1
_DIGITS = 12  # scores of sums that were added in another order differ by rounding, and are ties


class Joint(NamedTuple):
    """Several runs' answers to the same examples."""

    n_clusters: int
    runs: Sequence[ClusterScores]
    pair: Callable[[int, int], Pair]


def joint(pairs: Sequence[Pair]) -> Joint | None:
    """Join the pairs of the first run with every other; None if their examples differ."""
    first, *others = pairs
    if any(pair.n_clusters != first.n_clusters for pair in others):
        return None
    weights = np.random.default_rng(0).exponential(size=(3, first.n_clusters))
    scores = first.first(weights)
    for pair in others:
        again = pair.first(weights)
        if not all(np.allclose(scores[name], again[name], rtol=0, atol=1e-9, equal_nan=True) for name in scores):
            return None
    counted = [first.counted[0], *(pair.counted[1] for pair in pairs)]

    def pair_of(one: int, other: int) -> Pair:
        return first.again(counted[one], counted[other])

    return Joint(first.n_clusters, [first.first, *(pair.second for pair in pairs)], pair_of)


class NeighborTests:
    """Exchange tests of pairs of ranked runs, each tested once."""

    def __init__(
        self, together: Joint, best: Mapping[str, float], n_tests: int, confidence: float = CONFIDENCE
    ) -> None:
        self._confidence = confidence
        self._together = together
        self._best = best
        self._is_exact = together.n_clusters <= MOST_EXACT
        self._n_more = 0 if self._is_exact or _BY_TEST * n_tests <= N_PERMUTATIONS else _BY_TEST * n_tests
        n_first = _N_FIRST if self._n_more else N_PERMUTATIONS
        self._first = exchanges(together.n_clusters, np.random.default_rng(0), n_first)
        self._known: dict[tuple[int, int], Mapping[str, float | None]] = {}

    def p_values(self, one: int, other: int) -> Mapping[str, float | None]:
        """Two-sided p-value by score of two runs by number; None for an undefined score."""
        key = min(one, other), max(one, other)
        if key not in self._known:
            self._known[key] = self._tested(self._together.pair(*key))
        return self._known[key]

    def _tested(self, pair: Pair) -> dict[str, float | None]:
        observed = {name: float(gaps[0]) for name, gaps in self._gaps(pair, np.ones((1, pair.n_clusters))).items()}
        tested = [name for name, value in observed.items() if not np.isnan(value)]

        def p_values(kept: Floats) -> dict[str, float]:
            gaps = self._gaps(pair, kept)
            return {name: p_value(observed[name], gaps[name], self._is_exact) for name in tested}

        result = p_values(self._first)
        if self._n_more and min(result.values(), default=1.0) <= _SMALL:
            finer = p_values(self._more)
            result = {name: finer[name] if p <= _SMALL else p for name, p in result.items()}
        return {name: adjusted_p(result[name], self._confidence) if name in result else None for name in observed}

    @functools.cached_property
    def _more(self) -> Floats:
        return exchanges(self._together.n_clusters, np.random.default_rng(_OTHER_SEED), self._n_more)

    def _gaps(self, pair: Pair, kept: Floats) -> dict[str, Floats]:
        """By score, the second run's distance from the best value minus the first run's, shape (R,)."""
        first, second = (distances(scores, self._best) for scores in pair.exchanged(kept))
        return {name: second[name] - first[name] for name in self._best}


def distances(scores: Mapping[str, Floats], best: Mapping[str, float]) -> dict[str, Floats]:
    """Return the distances of scores from their best values."""
    return {name: np.abs(scores[name] - value) for name, value in best.items()}


def ranks(values: Sequence[float]) -> list[int]:
    """Ranks from 1 for the smallest value; ties share the lower number."""
    rounded = np.round(values, _DIGITS)
    return (1 + np.searchsorted(np.sort(rounded), rounded)).tolist()


def rank_ranges(order: Sequence[int], detected: Sequence[tuple[int, int]]) -> dict[int, str]:
    """The ranks that remain possible for every run, such as "1 to 4 of 8".

    Args:
        order: Runs, the best first.
        detected: Pairs of runs, the better first, whose difference is detected.
    """
    n, result = len(order), {}
    for run in order:
        first = 1 + sum(other == run for _, other in detected)
        last = n - sum(other == run for other, _ in detected)
        result[run] = f"{first} of {n}" if first == last else f"{first} to {last} of {n}"
    return result


def rankings(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Sequence[Scores],
    with_first: Sequence[Mapping[str, Pair]],
    confidence: float = CONFIDENCE,
) -> tuple[list[Table], list[str]]:
    """A table per score with a best value, for all examples or else every group."""
    best = {measure.name: measure.best for measure in measures if measure.best is not None}
    if len(names) < FEWEST_RUNS or not best or not with_first:
        return [], []
    groups = [group for group in benchmark.groups(scores[0]) if all(group in pairs for pairs in with_first)]
    tables: dict[str, list[Table]] = {name: [] for name in best}
    notes = []
    for group in [ALL] if ALL in groups else groups:
        together = joint([pairs[group] for pairs in with_first])
        if together is None:
            notes.append(NO_RANKING.format(group=group))
            continue
        of_runs = [benchmark.groups(run)[group] for run in scores]
        once = np.ones((1, together.n_clusters))
        exact = [distances(run(once), best) for run in together.runs]
        n_runs = len(together.runs)
        n_tests = n_runs * (n_runs - 1) // 2 if n_runs <= MOST_PAIRED else n_runs - 1
        tests = NeighborTests(together, best, n_tests, confidence)
        for measure in measures:
            if measure.name in best:
                distance = [float(run[measure.name][0]) for run in exact]
                table = _table(benchmark.facts, measure, names, of_runs, distance, tests, group)
                by_name = dict(zip(names, scores, strict=True))
                tables[measure.name].append(_with_failures(benchmark.facts, table, by_name))
    return list(itertools.chain.from_iterable(tables.values())), notes


def _table(
    facts: Facts,
    measure: Measure,
    names: Sequence[str],
    of_runs: Sequence[Scores],
    distance: Sequence[float],
    tests: NeighborTests,
    group: str,
) -> Table:
    name = measure.name
    left_out = {
        run: text for run, of_run in enumerate(of_runs) if (text := _why_not(facts, of_run, measure, distance[run]))
    }
    ranked = [run for run in range(len(names)) if run not in left_out]
    rank = dict(zip(ranked, ranks([distance[run] for run in ranked]), strict=True))
    order = sorted(ranked, key=lambda run: rank[run])
    are_all = len(names) <= MOST_PAIRED
    pairs = list(itertools.combinations(order, 2) if are_all else itertools.pairwise(order))
    adjusted = dict(zip(pairs, holm([tests.p_values(one, other)[name] for one, other in pairs]), strict=True))
    ranges = rank_ranges(order, [pair for pair, p in adjusted.items() if p is not None and p < APART])
    rows: list[tuple[Value, ...]] = []
    for run, following in zip(order, [*order[1:], None], strict=False):
        p = None if following is None else adjusted[run, following]
        verdict = None if p is None else DETECTED if p < APART else NOT_DETECTED
        shown = (names[run], with_possible(of_runs[run], measure), rank[run], p, verdict)
        rows.append((*shown, *([ranges[run]] if are_all else [])))
    for run, text in left_out.items():
        why_not = (names[run], with_possible(of_runs[run], measure), None, None, f"{NOT_RANKED}{text}")
        rows.append((*why_not, *([None] if are_all else [])))
    best = "The highest" if measure.kind == "share" and measure.best == 1 else f"Nearest to {measure.best:g}"
    table = Table(
        f"ranking_{name}" if group == ALL else f"ranking_{name}_{group}",
        f"Ranking: {measure.title}" if group == ALL else f"Ranking: {measure.title}, {group}",
        "",
        _NOTE.format(
            best=best, apart=APART, pairs="all pairs" if are_all else "neighbors", ranks=_READ_RANKS if are_all else ""
        ),
        (
            Column("run", "Run", "text"),
            Column(name, measure.title, measure.kind),
            Column("rank", "Rank", "count"),
            Column("p_adjusted_next", "Adjusted p, this and the next", "p"),
            Column("next", "Difference to the next", "text"),
            *([Column("ranks", "Possible ranks", "text")] if are_all else []),
        ),
        tuple(rows),
        None,
        RANKING,
    )
    return with_reading(table)


def _with_failures(facts: Facts, table: Table, scores: Mapping[str, Scores]) -> Table:
    """The table with a column for runs that fail the task, if any."""
    failures = [failure(facts, scores[str(row[0])], "this model") for row in table.rows]
    if not any(failures):
        return table
    rows = tuple((*row[:4], text or None, *row[4:]) for row, text in zip(table.rows, failures, strict=True))
    columns = (*table.columns[:4], Column("task", "Fails the task", "text"), *table.columns[4:])
    return replace(table, columns=columns, rows=rows)


def _why_not(facts: Facts, scores: Scores, measure: Measure, distance: float) -> str:
    score = read_score(facts, scores, measure)
    if score.possible is None and np.isnan(distance):
        return "undefined"
    return score.not_reported if score.possible is not None or imbalance(scores, measure) is not None else ""
