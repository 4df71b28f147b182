"""Benchmarks drawn from worlds with known true scores.

A world sets the mean shares of a model's answers over all possible templates, and how much a template varies. Templates
are drawn from it, then answers from the templates. All draws have the shape (templates, repetitions, ...), as the
metrics' interval functions expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROWS = 100
"""Rows of a template, on average."""

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
        kind: "beta" for a continuum of templates, "two-point" for easy and hard ones.
        sizes: "equal", or "unequal" for numbers of rows that differ by a factor of 10 and more.
        persons: Share of the wrong person among wrong answers in disambiguated contexts; the others are UNKNOWN.
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

    def rows(self, rng: np.random.Generator, repetitions: int, mean: int = ROWS) -> Integers:
        """Numbers of rows, shape (templates, repetitions)."""
        shape = self.templates, repetitions
        if self.sizes == "equal":
            return np.full(shape, mean)
        sizes = mean * np.exp(rng.normal(-0.5, 1.0, shape))  # of mean 1 before the factor
        return np.maximum(FEWEST_ROWS, np.round(sizes)).astype(np.int64)

    def shares(self, rng: np.random.Generator, mean: float, shape: Sequence[int]) -> Floats:
        """Template shares with this mean and the world's correlation."""
        if self.kind == "beta":
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
