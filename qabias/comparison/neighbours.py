"""Whether neighbours in a ranking are told apart: exchange tests of how far two runs are from the best value."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from qabias.benchmarks.pairs import Floats, Pair
from qabias.comparison.paired_tests import MOST_EXACT, N_PERMUTATIONS, exchanges, p_value
from qabias.comparison.ranking import Joint, distances

_BY_TEST = 40
"""Exchanges for each test: the smallest p-value times the number of tests is then 0.025."""

_N_FIRST, _SMALL = 2_000, 0.02
"""With so many tests that they need more exchanges than others: the first ones, and up to which p-value more follow."""

_OTHER_SEED = 1


class Neighbours:
    """Exchange tests of pairs of ranked runs; each pair is tested once."""

    def __init__(self, together: Joint, best: Mapping[str, float], n_tests: int) -> None:
        self._together = together
        self._best = best
        self._is_exact = together.n_clusters <= MOST_EXACT
        self._n_more = 0 if self._is_exact or _BY_TEST * n_tests <= N_PERMUTATIONS else _BY_TEST * n_tests
        n_first = _N_FIRST if self._n_more else N_PERMUTATIONS
        self._first = exchanges(together.n_clusters, np.random.default_rng(0), n_first)
        self._known: dict[tuple[int, int], Mapping[str, float | None]] = {}

    def p_values(self, one: int, other: int) -> Mapping[str, float | None]:
        """By score the two-sided p-value of two runs by their numbers; None where a score is undefined."""
        key = min(one, other), max(one, other)
        if key not in self._known:
            self._known[key] = self._tested(self._together.pair(*key))
        return self._known[key]

    def _tested(self, pair: Pair) -> dict[str, float | None]:
        observed = {name: float(of[0]) for name, of in self._gaps(pair, np.ones((1, pair.n_clusters))).items()}
        tested = [name for name, value in observed.items() if not np.isnan(value)]

        def of(kept: Floats) -> dict[str, float]:
            gaps = self._gaps(pair, kept)
            return {name: p_value(observed[name], gaps[name], self._is_exact) for name in tested}

        found: dict[str, float] = of(self._first)
        if self._n_more and min(found.values(), default=1.0) <= _SMALL:
            finer = of(self._more)
            found = {name: finer[name] if p <= _SMALL else p for name, p in found.items()}
        return {name: found.get(name) for name in observed}

    @functools.cached_property
    def _more(self) -> Floats:
        return exchanges(self._together.n_clusters, np.random.default_rng(_OTHER_SEED), self._n_more)

    def _gaps(self, pair: Pair, kept: Floats) -> dict[str, Floats]:
        """By score the distance of the second run from the best value minus that of the first, of shape (R,)."""
        first, second = (distances(of, self._best) for of in pair.exchanged(kept))
        return {name: second[name] - first[name] for name in self._best}
