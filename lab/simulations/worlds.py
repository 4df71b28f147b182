"""Benchmarks drawn from worlds with known true scores.

A world sets the mean shares of a model's answers over all possible templates, and how much a template varies. Templates
are drawn from it, then answers from the templates. All draws have the shape (templates, repetitions, ...), as the
metrics' interval functions expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROWS = 100
"""Rows of a template, on average."""

MOST_LARGER = 3.0
"""How many times as many rows a template that is always wrong has as one that is always right ("harder")."""

FEWEST_ROWS = 4
"""Rows of the smallest template."""


@dataclass(frozen=True)
class World:
    """The truth over all templates.

    Attributes:
        templates: Number of templates of a benchmark.
        accuracy: Mean share of right answers.
        bias: Bias among the other answers, in [-1, 1].
        correlation: Correlation of the answers to one template, above 0 and below 1.
        kind: "beta" for templates of all kinds, "two-point" for two kinds of templates, easy and hard ones. "heavy" for
            heavy tails: a t distribution with 2 degrees of freedom on the logit. "two-sided" for "beta" with each side
            of a disambiguated template hard for itself. "extreme" for "beta" with one template in 15 nearly always
            answered by the stereotype.
        sizes: "equal", "unequal" for numbers of rows that differ by a factor of 10 and more, or "harder" for harder
            templates with more rows.
        persons: Share of the wrong person among the wrong answers where the context decides; the others are UNKNOWN.
        polarity: "both" in every template, or "one": a template asks the negative or the non-negative question only.
    """

    templates: int
    accuracy: float
    bias: float
    correlation: float
    kind: str = "beta"
    sizes: str = "equal"
    polarity: str = "both"
    persons: float = 0.6

    def rows(self, rng: np.random.Generator, right: Floats, mean: int = ROWS) -> Integers:
        """Numbers of rows of templates with these shares of right answers, of the same shape."""
        if self.sizes == "equal":
            return np.full(right.shape, mean)
        if self.sizes == "harder":
            sizes = mean * MOST_LARGER ** (self.accuracy - right)
        else:
            sizes = mean * np.exp(rng.normal(-0.5, 1.0, right.shape))  # of mean 1 before the factor
        return np.maximum(FEWEST_ROWS, np.round(sizes)).astype(np.int64)

    def shares(self, rng: np.random.Generator, mean: float, shape: Sequence[int]) -> Floats:
        """Shares of templates with this mean and the world's correlation."""
        if self.kind == "heavy":
            return heavy(rng, mean, self.correlation, shape)
        if self.kind != "two-point":
            total = 1.0 / self.correlation - 1.0
            return rng.beta(max(mean * total, 1e-9), max((1.0 - mean) * total, 1e-9), shape)
        return two_points(rng, mean, self.correlation, shape)


def two_points(rng: np.random.Generator, mean: float, correlation: float, shape: Sequence[int]) -> Floats:
    """Shares of templates of two equally frequent kinds.

    If the larger share would exceed 1 (or the smaller fall below 0), it is set to that bound. The kinds' frequencies
    then change, and mean and correlation stay the same.
    """
    variance = correlation * mean * (1.0 - mean)
    if mean < 0.5:
        return 1.0 - two_points(rng, 1.0 - mean, correlation, shape)
    far = np.sqrt(variance)
    if mean + far <= 1.0:
        return np.where(rng.random(shape) < 0.5, mean + far, mean - far)
    rare = (1.0 - mean) ** 2 / ((1.0 - mean) ** 2 + variance)
    return np.where(rng.random(shape) < rare, 1.0 - (1.0 - mean) / rare, 1.0)


def heavy(rng: np.random.Generator, mean: float, correlation: float, shape: Sequence[int]) -> Floats:
    """Shares of which the logit has a t distribution with 2 degrees of freedom."""
    location, scale = _logit(mean, correlation)
    return 1.0 / (1.0 + np.exp(-np.clip(location + scale * rng.standard_t(2.0, shape), -500.0, 500.0)))


@lru_cache
def _logit(mean: float, correlation: float) -> tuple[float, float]:
    """Location and scale of the logit that give shares this mean and correlation, found on 4,000 quantiles."""
    p = (np.arange(4000) + 0.5) / 4000
    quantiles = (2.0 * p - 1.0) / np.sqrt(2.0 * p * (1.0 - p))

    def shares(location: float, scale: float) -> Floats:
        return 1.0 / (1.0 + np.exp(-np.clip(location + scale * quantiles, -500.0, 500.0)))

    def located(scale: float) -> float:
        low, high = -500.0, 500.0
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (low, middle) if shares(middle, scale).mean() > mean else (middle, high)
        return low

    least, most = 0.0, 100.0
    for _ in range(40):
        scale = (least + most) / 2.0
        if shares(located(scale), scale).var() > correlation * mean * (1.0 - mean):
            most = scale
        else:
            least = scale
    return located(least), least
