"""Quantiles of Student's t distribution with a whole number of degrees of freedom."""

from __future__ import annotations

import functools
import math


@functools.lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: int) -> float:
    """The value below which t lies with a given probability."""
    if not 0.5 <= share < 1 or freedom < 1:
        raise ValueError(f"t_quantile: no quantile of {share} with {freedom} degrees of freedom")
    within = 2 * share - 1
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < within else (low, middle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _within(angle: float, freedom: int) -> float:
    """P(|t| < sqrt(freedom) tan(angle)), a finite sum (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for place in range(2 + is_odd, freedom, 2):
        term *= (place - 1) / place * math.cos(angle) ** 2
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total
