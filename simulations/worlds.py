"""Benchmarks drawn from worlds in which every true score is known.

A world says how often a model gives each answer, on average over all templates that could be written, and how far a
template may be from that. Templates are drawn from it, then answers from the templates. All draws have the shape
(templates, repetitions, ...), as the metrics' interval functions take them.
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
    """What is true of all templates.

    Attributes:
        templates: Number of templates of a benchmark.
        accuracy: Mean share of right answers.
        bias: Bias among the other answers, in [-1, 1].
        correlation: Correlation of the answers to one template, above 0 and below 1.
        kind: "beta" for templates of all kinds, "two-point" for two kinds of templates, easy and hard ones.
        sizes: "equal", or "unequal" for numbers of rows that differ by a factor of 10 and more.
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

    def rows(self, rng: np.random.Generator, repetitions: int, mean: int = ROWS) -> Integers:
        """Numbers of rows, shape (templates, repetitions)."""
        shape = self.templates, repetitions
        if self.sizes == "equal":
            return np.full(shape, mean)
        sizes = mean * np.exp(rng.normal(-0.5, 1.0, shape))  # of mean 1 before the factor
        return np.maximum(FEWEST_ROWS, np.round(sizes)).astype(np.int64)

    def shares(self, rng: np.random.Generator, mean: float, shape: Sequence[int]) -> Floats:
        """Shares of templates with this mean and the world's correlation."""
        if self.kind == "beta":
            total = 1.0 / self.correlation - 1.0
            return rng.beta(max(mean * total, 1e-9), max((1.0 - mean) * total, 1e-9), shape)
        return two_points(rng, mean, self.correlation, shape)


def two_points(rng: np.random.Generator, mean: float, correlation: float, shape: Sequence[int]) -> Floats:
    """Shares of templates of two kinds, as many of one as of the other.

    Where the larger share would be more than 1 (or the smaller less than 0) it is that, and fewer are of the other
    kind; mean and correlation stay as they are.
    """
    variance = correlation * mean * (1.0 - mean)
    if mean < 0.5:
        return 1.0 - two_points(rng, 1.0 - mean, correlation, shape)
    far = np.sqrt(variance)
    if mean + far <= 1.0:
        return np.where(rng.random(shape) < 0.5, mean + far, mean - far)
    rare = (1.0 - mean) ** 2 / ((1.0 - mean) ** 2 + variance)
    return np.where(rng.random(shape) < rare, 1.0 - (1.0 - mean) / rare, 1.0)
