"""The smallest difference between two runs that their comparison would have found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from qabias.benchmarks.facts import Measure
from qabias.benchmarks.findings import ERROR, listed, widened_size
from qabias.support.intervals import ADDED, POWER, Spread
from qabias.tables.formatting import show

UNEVEN = 1.0
"""Standard deviation over clusters of a true difference, as a multiple of it: that of an exponential distribution."""

RARE_CORRELATION = 0.12
"""Correlation of rare differences within a cluster."""

_STEPS = 40


def detectable_difference(spread: Spread, power: float = POWER) -> float | None:
    """How large a true difference would have had to be for its interval to leave out 0.

    In shares of its bound, the interval of a difference t has an end at 0 where t is

        q sqrt(s / (R + 2 + q^2)) (R + 2) / R,   s = (m R + 2) / (R + 2)

    with the t quantile q, the effective number R of rows, and the share m of rows in which the runs differ. A true
    difference d is not the same in all of C clusters: it adds v d^2 / C to both variances. v is `UNEVEN` squared, or
    what a correlation of `RARE_CORRELATION` gives rare differences, which a few clusters have: that times (1 - r) / r,
    r being d, or how large the differences of the clusters are on average, where that is more. With the standard error
    e and the quantile z of the normal distribution, d is the smallest size that is no less than
    t + z sqrt(e^2 + v d^2 / C).

    Args:
        spread: The spread of the difference, as `qabias.support.intervals.of_difference` gives it.
        power: Probability of detection, above 0 and below 1.

    Returns:
        In the scale of the score, above 0; None where there is no interval, or where so few clusters cannot show a
        difference of any size. The script `simulations/power.py` measures the power.
    """
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
    """What could have been missed where no difference is shown, as a clause.

    Adjusted p-values ask more than an interval does, so the sizes are widened for the number of tests. Where the
    clusters are so few that no exchange gives an adjusted p-value below 0.05, nothing could have been found.

    Args:
        measure: The score.
        sizes: For each group in which no difference is shown the smallest difference that its interval would have
            found, as `detectable_difference` gives it; at least one group.
        clusters: Number of clusters of each of them.
        n_tests: Number of p-values that were adjusted together.

    Returns:
        The size below which differences could have been missed, the largest of the groups; those in which even the
        largest difference could have been are named where others have a size.
    """
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
