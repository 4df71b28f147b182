"""The smallest difference between two runs that their comparison would have found."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from qabias.support.intervals import ADDED, POWER, Spread

UNEVEN = 1.0
"""Standard deviation over clusters of a true difference, as a multiple of it: that of an exponential distribution."""


def detectable_difference(spread: Spread, power: float = POWER) -> float | None:
    """How large a true difference would have had to be for its interval to leave out 0.

    The interval of a difference t has an end at 0 where t is q sqrt(s / (R + 2 + q^2)) (R + 2) / R, with the t quantile
    q, the effective number R of rows, and s = (m R + 2) / (R + 2) of the share m of rows in which the runs differ. A
    true difference d is not the same in all of C clusters: it adds d^2 / C to both variances. With the standard error e
    and the quantile z of the normal distribution, d is the solution of d = t + z sqrt(e^2 + d^2 / C).

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
    even = quantile * np.sqrt(square / (added + quantile**2)) * added / rows
    uneven = UNEVEN**2 / float(spread.clusters)
    if quantile**2 * uneven >= 1.0:
        return None
    end = even / np.sqrt(1.0 - quantile**2 * uneven)
    normal = NormalDist().inv_cdf(power)
    rest = 1.0 - normal**2 * uneven
    found = (end + np.sqrt(end**2 - rest * (end**2 - normal**2 * error**2))) / rest
    return float(found) if found < moves.most else None
