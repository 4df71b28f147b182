"""Many runs in one order: how sure every rank is, and which neighbours are not told apart.

All runs answered the same examples, so the same clusters (templates, premises) are reweighted for all of them at once,
by the weights of the Bayesian bootstrap (Rubin 1981, "The Bayesian bootstrap", Annals of Statistics 9): uniform over
all weights that sum to one. Under each draw of weights every run has a score and a rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qabias.benchmarks.pairs import ClusterScores, Codes, Floats, Pair

FEWEST_CLUSTERS = 7
"""With fewer clusters a rank has no interval: reweighting so few texts says too little of others."""
N_DRAWS = 4000
"""Draws of weights; a probability has a standard error of 0.008 at most."""

_DIGITS = 12  # scores of sums that were added in another order differ by rounding, and are ties


class Joint(NamedTuple):
    """The answers of several runs to the same examples."""

    n_clusters: int
    runs: Sequence[ClusterScores]
    pair: Callable[[int, int], Pair]


class Place(NamedTuple):
    """The rank of a run."""

    rank: int
    low: int | None
    high: int | None
    first: float | None


def joint(pairs: Sequence[Pair]) -> Joint | None:
    """All runs of the pairs of the first run with every other one."""
    first, *others = pairs
    if any(pair.n_clusters != first.n_clusters for pair in others):
        return None
    drawn = weights(first.n_clusters, 3)
    scores = first.first(drawn)
    for pair in others:
        again = pair.first(drawn)
        if not all(np.allclose(scores[name], again[name], rtol=0, atol=1e-9, equal_nan=True) for name in scores):
            return None
    counted = [first.counted[0], *(pair.counted[1] for pair in pairs)]

    def pair_of(one: int, other: int) -> Pair:
        return first.again(counted[one], counted[other])

    return Joint(first.n_clusters, [first.first, *(pair.second for pair in pairs)], pair_of)


def places(distances: Floats, drawn: Floats | None) -> list[Place]:
    """The ranks of runs."""
    ranks = _ranks(distances[None, :])[0]
    if drawn is None:
        return [Place(int(rank), None, None, None) for rank in ranks]
    found = _ranks(drawn)
    low, high = np.quantile(found, [0.025, 0.975], axis=0, method="inverted_cdf")
    is_first = found == 1
    first = (is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0)
    return [
        Place(int(rank), int(min(rank, lowest)), int(max(rank, highest)), float(share))
        for rank, lowest, highest, share in zip(ranks, low, high, first, strict=True)
    ]


def weights(n_clusters: int, n_draws: int = N_DRAWS, seed: int = 0) -> Floats:
    """Random weights of clusters, with a mean of 1 in every draw."""
    return n_clusters * np.random.default_rng(seed).dirichlet(np.ones(n_clusters), size=n_draws)


def distances(scores: Mapping[str, Floats], best: Mapping[str, float]) -> dict[str, Floats]:
    """How far scores are from their best values."""
    return {name: np.abs(scores[name] - value) for name, value in best.items()}


def _ranks(values: Floats) -> Codes:
    """Ranks within every row, shape (R, n), from 1 for the smallest; equal values share the lower number."""
    rounded = np.round(values, _DIGITS)
    ordered = np.sort(rounded, axis=1)
    return 1 + np.stack([np.searchsorted(*both) for both in zip(ordered, rounded, strict=True)])
