"""The smallest difference between two runs that their comparison would have found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from qabias.benchmarks.facts import Measure
from qabias.benchmarks.findings import ERROR, listed, widened_size
from qabias.share.metrics.shared.intervals import ADDED, POWER, Spread
from qabias.tables.formatting import show

UNEVEN = 1.0
"""Standard deviation over clusters of a true difference, as a multiple of it: that of an exponential distribution."""

RARE_CORRELATION = 0.12
"""Correlation of rare differences within a cluster."""

_STEPS = 40


def detectable_difference(spread: Spread, power: float = POWER) -> float | None:
    """How large a true difference would have had to be for its interval to leave out 0."""
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
        """What is detectable where the true difference has this squared relative deviation over the clusters."""
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


def unseen(measure: Measure, sizes: Mapping[str, float | None], clusters: Mapping[str, int], n_tests: int) -> str:
    """What could have been missed where no difference is shown, as a clause."""
    known = {}
    for group, size in sizes.items():
        n = clusters[group]
        if size is not None and n_tests * 2.0 ** (1 - n) < ERROR:
            wide = widened_size(size, n - 1, n_tests)
            if wide < measure.farthest:
                known[group] = wide
    if not known:
        return "even the largest could have been missed"
    largest = max(known.values())
    text = (
        show(largest, "number") if measure.kind == "number" else f"{math.ceil(1000 * largest - 1e-9) / 10:.1f} points"
    )
    rest = [group for group in sizes if group not in known]
    about_rest = f", in {listed(rest)} even the largest" if rest else ""
    return f"differences below {text} could have been missed{about_rest}"
