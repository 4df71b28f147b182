"""Whether two runs differ: paired differences, intervals, permutation tests, and a correction for many of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from qabias.benchmarks.pairs import Floats, Pair
from qabias.share.metrics.shared.intervals import ADDED, POWER, Spread, of_difference

APART = 0.05  # adjusted p-value below which two runs or forms differ
N_PERMUTATIONS = 10_000
# With so few clusters every exchange is tried; 2 ** 13 is less than the number of random ones.
MOST_EXACT = 13
# Scores of sums that were added in another order differ by rounding, and are ties.
_ROUNDING = 1e-12


UNEVEN = 1.0  # standard deviation over clusters of a true difference, relative to it, as in an exponential distribution
RARE_CORRELATION = 0.12

_STEPS = 40


class Difference(NamedTuple):
    """A score of the second run minus the first run's."""

    value: float | None
    low: float | None
    high: float | None
    p: float | None
    detectable: float | None = None


UNDEFINED = Difference(None, None, None, None)


def differences(
    pair: Pair, bounds: Mapping[str, float], seed: int = 0, confidence: float = 0.95
) -> dict[str, Difference]:
    """Compare two runs by some of their scores."""
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
            results[name] = UNDEFINED
            continue
        ends, spread = of_difference(value, replicates[name], sizes, bound, confidence)
        low, high = (None if np.isnan(end) else float(end) for end in ends)
        p = p_value(value, exchanged[name], n <= MOST_EXACT)
        results[name] = Difference(value, low, high, p, detectable_difference(spread))
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


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p-values (Holm 1979)."""
    adjusted: list[float | None] = [None] * len(p_values)
    ordered = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    largest = 0.0
    for rank, (p, place) in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * p))
        adjusted[place] = largest
    return adjusted


def detectable_difference(spread: Spread, power: float = POWER) -> float | None:
    """The smallest true difference whose interval would exclude 0."""
    moves = spread.moves
    rows, quantile, error = (float(part) for part in (spread.rows, spread.quantile, spread.error))
    if moves is None or np.isnan(rows):
        return None
    added = rows + 2.0 * ADDED
    square = (float(moves.moved) * rows + 2.0 * ADDED) / added
    scale = float(moves.scale)
    even = scale * quantile * np.sqrt(square / (added + quantile**2)) * added / rows
    normal = NormalDist().inv_cdf(power)

    def size(variation: float) -> float:
        """The detectable difference for a true difference with this squared relative deviation over clusters."""
        uneven = variation / float(spread.clusters)
        if quantile**2 * uneven >= 1.0:
            return np.inf
        end = even / np.sqrt(1.0 - quantile**2 * uneven)
        rest = 1.0 - normal**2 * uneven
        return float((end + np.sqrt(end**2 - rest * (end**2 - normal**2 * error**2))) / rest)

    most = float(moves.most)
    low, high = 0.0, most
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        share = min(1.0, max(scale * float(moves.moved), middle))
        variation = max(UNEVEN**2, RARE_CORRELATION * (1.0 - share) / share)
        low, high = (low, middle) if size(variation) <= middle else (middle, high)
    return high if high < most else None
