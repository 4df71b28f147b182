"""Means of paired differences at equal covariates: least squares, robust intervals and an exchange test.

The unit is the stereotype. Its difference between two forms may come from what else differs between them, such as
length; the differences of that are covariates, and the mean difference where all of them are 0 is the intercept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qabias.benchmarks.findings import t_quantile
from qabias.benchmarks.pairs import Codes, Floats
from qabias.comparison.paired_tests import MOST_EXACT, UNDEFINED, Difference, exchanges, p_value

# A weight that is rounding.
_NO_WEIGHT = 1e-12
# A value whose own weight in its fitted value is nearly 1 leaves no residual to judge by.
_WHOLE_LEVERAGE = 1 - 1e-9


def adjusted_means(values: Floats, covariates: Floats, groups: Codes, n_groups: int, seed: int = 0) -> list[Difference]:
    """The mean difference of every group where all covariates are 0."""
    design = np.concatenate([np.eye(n_groups)[groups], covariates], axis=1)
    inverse = np.linalg.pinv(design)
    leverages = np.einsum("sk,ks->s", design, inverse)
    residuals = values - design @ (inverse @ values)
    exact = len(values) <= MOST_EXACT
    signs = 2 * exchanges(len(values), np.random.default_rng(seed)) - 1
    found = []
    for group in range(n_groups):
        degrees = int(np.count_nonzero(groups == group)) - 1 - covariates.shape[1]
        weights = inverse[group]
        own = np.abs(weights) > _NO_WEIGHT
        if degrees < 1 or (leverages[own] > _WHOLE_LEVERAGE).any():
            found.append(UNDEFINED)
            continue
        value = float(weights @ values)
        error = float(np.sqrt(np.sum((weights[own] * residuals[own] / (1 - leverages[own])) ** 2)))
        half = t_quantile(0.975, degrees) * error
        others = np.delete(design, group, axis=1)
        left = values - others @ (np.linalg.pinv(others) @ values)
        p = p_value(value, signs @ (weights * left), exact)
        low, high = (value - half, value + half) if half > 0 else (None, None)
        found.append(Difference(value, low, high, p))
    return found


def groups_of(names: Sequence[str]) -> tuple[Codes, list[str]]:
    """Names as numbers from 0 by first occurrence, int64 of shape (n,), and what they stand for."""
    known = list(dict.fromkeys(names))
    numbers = {name: number for number, name in enumerate(known)}
    return np.array([numbers[name] for name in names], dtype=np.int64), known
