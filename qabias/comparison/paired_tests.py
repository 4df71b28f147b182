"""Whether two runs differ: paired differences, intervals, permutation tests, and a correction for many of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qabias.benchmarks.pairs import Floats, Pair
from qabias.scores.score import Score
from qabias.share.metrics.shared.intervals import detectable, limits, of_clusters

APART = 0.05  # adjusted p-value below which two runs or forms differ
CONFIDENCE = 0.95
N_PERMUTATIONS = 10_000
# With so few clusters every exchange is tried; 2 ** 13 is less than the number of random ones.
MOST_EXACT = 13
# Scores of sums that were added in another order differ by rounding, and are ties.
_ROUNDING = 1e-12


def differences(
    pair: Pair, bounds: Mapping[str, float], seed: int = 0, confidence: float = CONFIDENCE
) -> dict[str, Score]:
    """Differences of the scores of two runs, the second minus the first, with p-values and detectable effects.

    Args:
        pair: The runs.
        bounds: Largest size of the difference by score.
        seed: Seed of the random exchanges.
        confidence: Level of the intervals, above 0.95 for runs that stopped early (see `adjusted_p`).
    """
    names, n = list(bounds), pair.n_clusters
    once = np.ones((1, n))
    values = _subtract(pair.second(once), pair.first(once), names)
    without = 1.0 - np.eye(n)
    replicates = _subtract(pair.second(without), pair.first(without), names)
    sizes = np.ones(n) if pair.sizes is None or not pair.sizes.any() else pair.sizes
    first, second = pair.exchanged(exchanges(n, np.random.default_rng(seed)))
    exchanged = _subtract(second, first, names)
    results = {}
    for name, bound in bounds.items():
        value = float(values[name][0])
        if np.isnan(value):
            results[name] = Score(None)
            continue
        shape, spread = of_clusters(value, replicates[name], sizes, bound, confidence)
        parts = *limits(value, shape, spread), detectable(shape, spread, confidence)
        low, high, size = (None if np.isnan(part) else float(part) for part in parts)
        p = adjusted_p(p_value(value, exchanged[name], n <= MOST_EXACT), confidence)
        results[name] = Score(value, low, high, p, size)
    return results


def _subtract(second: Mapping[str, Floats], first: Mapping[str, Floats], names: Sequence[str]) -> dict[str, Floats]:
    return {name: second[name] - first[name] for name in names}


def exchanges(n_clusters: int, rng: np.random.Generator, n_random: int = N_PERMUTATIONS) -> Floats:
    """Which clusters keep their run: 0 or 1, shape (R, C); all 2 ** C ways if few, else random ones."""
    if n_clusters <= MOST_EXACT:
        numbers = np.arange(2**n_clusters)[:, None]
        return (numbers >> np.arange(n_clusters) & 1).astype(np.float64)
    return rng.integers(0, 2, size=(n_random, n_clusters)).astype(np.float64)


def p_value(observed: float, exchanged: Floats, exact: bool) -> float:
    """Two-sided p-value of an exchange test."""
    defined = np.abs(exchanged[~np.isnan(exchanged)])
    as_far = int(np.count_nonzero(defined >= abs(observed) - _ROUNDING))
    return as_far / defined.size if exact else (1 + as_far) / (1 + defined.size)


def adjusted_p(p: float, confidence: float) -> float:
    """A p-value that is below 0.05 where the plain one is below 1 - confidence, as at a look of a run that stops."""
    return p if confidence == CONFIDENCE else min(1.0, p * APART / (1.0 - confidence))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p-values (Holm 1979)."""
    adjusted: list[float | None] = [None] * len(p_values)
    ordered = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    largest = 0.0
    for rank, (p, place) in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * p))
        adjusted[place] = largest
    return adjusted
