"""The metric: counts of answers by pair of cooks, and scores from sums of these counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qabias.support.arrow import column_codes
from qabias_toy.examples import ROLES

KINDS = (*ROLES, "unparsed")
SCORES = ("bias", "accuracy", "unparsed_share")
N_BOOTSTRAP = 1000


def kinds_of(table: pa.Table, predictions: Sequence[int | None]) -> list[str]:
    """Whom every answer names, one of `KINDS`; an answer is the index of an option, -1 or None if there is none."""
    return [
        "unparsed" if prediction is None or prediction < 0 else roles[prediction]
        for roles, prediction in zip(table["roles"].to_pylist(), predictions, strict=True)
    ]


def count(table: pa.Table, predictions: Sequence[int | None]) -> np.ndarray:
    """Answers by pair of cooks and kind; int64 of shape (n_pairs, 4)."""
    pair = column_codes(table["pair_id"])
    counts = np.zeros((pair.max(initial=-1) + 1, len(KINDS)), dtype=np.int64)
    np.add.at(counts, (pair, [KINDS.index(kind) for kind in kinds_of(table, predictions)]), 1)
    return counts


def scores_from_counts(counts: npt.ArrayLike) -> dict[str, np.ndarray]:
    """Scores from counts of shape (..., 4), each of shape (...,); NaN where a denominator is 0.

    bias = (first - second) / (first + second), in [-1, 1]; 0 is best, and +1 always names the cook who is named first.
    accuracy = unknown / (first + second + unknown), in [0, 1].
    """
    first, second, unknown, unparsed = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    parsed = first + second + unknown
    with np.errstate(divide="ignore", invalid="ignore"):
        values = (first - second) / (first + second), unknown / parsed, unparsed / (parsed + unparsed)
    return dict(zip(SCORES, values, strict=True))


def compute(table: pa.Table, predictions: Sequence[int | None]) -> dict[str, Any]:
    """Scores, the counts that they are made of, and 95 % intervals from a bootstrap over pairs of cooks."""
    counts = count(table, predictions)
    n_pairs, total = len(counts), counts.sum(axis=0)
    drawn = np.random.default_rng(0).multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), size=N_BOOTSTRAP)
    replicates = scores_from_counts(drawn @ counts)
    return {
        **{name: float(value) for name, value in scores_from_counts(total).items()},
        "n": int(total.sum()),
        "n_pairs": n_pairs,
        **{f"n_{kind}": int(number) for kind, number in zip(KINDS, total, strict=True)},
        "ci": {name: _interval(values, n_pairs) for name, values in replicates.items()},
    }


def _interval(replicates: np.ndarray, n_pairs: int) -> tuple[float, float]:
    defined = replicates[~np.isnan(replicates)]
    if n_pairs < 2 or not defined.size:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)
