"""Planned looks: the error that each may spend, and the level of its interval (NumPy only).

The error is spent as by O'Brien and Fleming, with the function of Lan and DeMets (1983). A look's level follows from
the recursion of Armitage, McPherson and Rowe (1969) for a Brownian motion that is watched at the looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

CORRELATION = 0.25
"""Assumed correlation of the sets of a template, which sets how much information a look has."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_HALVINGS = 40
_NORMAL = NormalDist()


class Size(NamedTuple):
    """What a look has: its number of sets, and its effective number of templates (Kish 1965)."""

    sets: int
    templates: float

    @property
    def variance(self) -> float:
        """The variance of a mean over the sets, relative to one set: r / templates + (1 - r) / sets."""
        return CORRELATION / self.templates + (1.0 - CORRELATION) / self.sets


def information(sizes: Sequence[Size]) -> list[float]:
    """Share of the final information at each look."""
    return [sizes[-1].variance / size.variance for size in sizes]


def spent(time: float, error: float) -> float:
    """The error spent until a share of the information: 4 - 4 Phi(z / sqrt(time)), with Phi(z) = 1 - error / 4.

    Each of the two sides spends half as a one-sided test of O'Brien and Fleming does.
    """
    return 2.0 * math.erfc(-_NORMAL.inv_cdf(error / 4.0) / math.sqrt(2.0 * time))


class _Survivors:
    """The statistics that have exceeded no limit yet: their density, of Brownian motion at the last look."""

    def __init__(self) -> None:
        self._positions, self._mass, self._time = np.zeros(1), np.ones(1), 0.0

    def crossing_probability(self, limit: float, time: float) -> float:
        """Probability to exceed a limit in magnitude at a time, for the first time."""
        edge, scale = limit * math.sqrt(time), math.sqrt(2.0 * (time - self._time))
        outside = [math.erfc((edge - x) / scale) + math.erfc((edge + x) / scale) for x in self._positions]
        return float(self._mass @ np.array(outside)) / 2.0

    def advance(self, limit: float, time: float) -> None:
        """Continue with those within a limit at a time."""
        edge, step = limit * math.sqrt(time), math.sqrt(time - self._time)
        to = _NODES * edge
        kernel = np.exp(-(((to[:, None] - self._positions) / step) ** 2) / 2.0) / (step * math.sqrt(2.0 * math.pi))
        self._positions, self._mass, self._time = to, _WEIGHTS * edge * (kernel @ self._mass), time


def crossing(limits: Sequence[float], times: Sequence[float]) -> list[float]:
    """Probability that a standard normal statistic first exceeds its limit in magnitude, at each look.

    Args:
        limits: One limit per look, above 0.
        times: Increasing; statistics of two looks have the correlation sqrt(earlier / later).
    """
    survivors, result = _Survivors(), []
    for limit, time in zip(limits, times, strict=True):
        result.append(survivors.crossing_probability(limit, time))
        survivors.advance(limit, time)
    return result


def boundaries(spends: Sequence[float], times: Sequence[float]) -> list[float]:
    """The limits whose first crossings have these probabilities, one per look."""
    survivors, limits = _Survivors(), []
    for spend, time in zip(spends, times, strict=True):
        low, high = 0.0, 9.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if survivors.crossing_probability(middle, time) > spend else (low, middle)
        limits.append(high)
        survivors.advance(high, time)
    return limits


def limits_of(sizes: Sequence[Size], error: float) -> list[float]:
    """The limit of each look's statistic; with the probability 1 - error none is exceeded.

    Statistics of two looks are taken to be as loosely tied as their numbers of questions. Templates tie them more
    closely, which only makes the intervals wider than needed.
    """
    totals = [spent(time, error) for time in information(sizes)]
    spends = np.diff(totals, prepend=0.0).tolist()
    return boundaries(spends, [size.sets / sizes[-1].sets for size in sizes])
