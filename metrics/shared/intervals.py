"""95% intervals of scores whose examples come in clusters, for few clusters and rare errors; NumPy only.

What is random: which clusters (templates, premises) were written. A score is read as a *share* of rows (accuracies) or
as a *contrast*: the share of rows that raise it minus the share that lower it (bias scores, differences). The steps,
with the sources that `docs/intervals.md` lists:

1. Clusters of unequal size count as fewer: C* = (sum n)^2 / sum n^2 (Kish 1965).
2. The variance V comes from leaving out one cluster at a time (jackknife; Tukey 1958, Efron and Stein 1981).
3. In units of the largest variance of a row, u + d - (u - d)^2, it is the design effect in rows; its inverse is the
   effective number of rows (Korn and Graubard 1998).
4. A few clusters or errors do not determine V. The prior is the variance of rows with a typical correlation within a
   cluster (Franco et al. 2019).
5. Only clusters with errors measure how errors cluster. The degrees of freedom of V are the effective number of
   clusters with errors less 1 (at most C* - 1), and no more than the effective number of errors.
6. The moderated variance is the mean of prior and V, weighted by degrees of freedom (Smyth 2004).
7. A share gets the interval of Wilson (1927), a contrast that of Bonett and Price (2012), both with the effective rows
   and a quantile of Student's t. No interval has width 0.

The three constants below are fitted: see `docs/intervals.md`, which also has the coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

SHARE_CORRELATION = 0.25
"""Prior correlation of the rows of a cluster, for a share."""

CONTRAST_CORRELATION = 0.10
"""The same for a contrast; half of it for a contrast of two kinds of rows, because what both share cancels."""

PRIOR_FREEDOM = 3.0
"""Degrees of freedom of the prior."""

POWER = 0.8
"""Probability with which an effect of the size `detectable` is detected."""

STEPS = 20
"""Halvings in the search for that size: its error is below 1e-6 of the range."""

MANY_ROWS = 1e9
"""Rows of a statistic of clusters: so many that their own variance does not count."""

Floats = npt.NDArray[np.float64]
Interval = tuple[Floats, Floats]


class Shape(NamedTuple):
    """How a score is made of rows: score = constant + scale (up - down).

    Attributes:
        up: Share of the rows that raise the score, in [0, 1]; for values in [0, 1] their mean.
        down: Share of the rows that lower it; 0 for a share.
        rows: Number of rows.
        scale: Factor from the shares to the score; the constant follows from the score. 2 or more for a contrast of
            two kinds of rows.
        low: Least value of the score.
        high: Largest value of the score.
        share: Whether the score is a share; otherwise it is a contrast.
    """

    up: Floats
    down: float | Floats
    rows: Floats
    scale: float | Floats = 1.0
    low: float | Floats = 0.0
    high: float | Floats = 1.0
    share: bool | npt.NDArray[np.bool_] = False


class Spread(NamedTuple):
    """How far a score may be from the truth; arrays of one shape. `limits` takes the first two.

    Attributes:
        rows: Effective number of rows, above 0.
        quantile: Quantile of Student's t.
        design: Design effect in rows that the clusters show.
        moved: Share of the rows that move the score, up + down.
        moved_design: Moderated design effect of `moved`.
        total: Number of rows.
        clusters: Effective number of clusters.
        prior: Correlation of the prior.
        uneven: Relative variance over clusters of a true difference; NaN for a score of rows.
    """

    rows: Floats
    quantile: Floats
    design: Floats
    moved: Floats
    moved_design: Floats
    total: Floats
    clusters: Floats
    prior: Floats
    uneven: Floats


Estimated = tuple[Floats, Shape, Spread]
"""A score, how it is made of rows, and how far it may be from the truth."""


def spreads(
    counts: ArrayLike,
    score: Callable[[Floats], Mapping[str, Floats]],
    shape: Callable[[Floats], Mapping[str, Shape]],
    confidence: float = 0.95,
) -> dict[str, Estimated]:
    """Steps 1 to 6 for all scores that have a shape.

    Args:
        counts: shape (C, ...), counts in each of C clusters; scores are functions of their sums over clusters.
        score: from summed counts, with any further leading axis, to scores.
        shape: the same to the shapes of the scores.
        confidence: level of the intervals, above 0 and below 1.

    Returns:
        What `ends` takes. The spread is NaN where fewer than 2 clusters have rows, or where the score is undefined,
        also without one of the clusters.
    """
    names, [(values, whole, spread)] = _estimated([counts], score, shape, confidence)
    return {name: (values[..., k], _at(whole, (..., k)), _at(spread, (..., k))) for k, name in enumerate(names)}


def intervals(
    selections: Sequence[ArrayLike],
    score: Callable[[Floats], Mapping[str, Floats]],
    shape: Callable[[Floats], Mapping[str, Shape]],
    confidence: float = 0.95,
) -> list[dict[str, dict[str, Any]]]:
    """For each of several selections of rows `ci`, and `detectable` of the scores that are contrasts.

    Args:
        selections: the counts of each, of shape (C, ...) with its own C.
        score: see `spreads`; its results have the shape of the leading axis.
        shape: the same.
        confidence: see `spreads`.
    """
    names, parts = _estimated(selections, score, shape, confidence)
    values, wholes, spreads_of = zip(*parts, strict=True)
    value, whole = np.stack(values), Shape(*map(np.stack, zip(*wholes, strict=True)))
    spread = Spread(*map(np.stack, zip(*spreads_of, strict=True)))
    pairs = np.stack(limits(value, whole, spread), axis=-1).tolist()
    contrasts = np.flatnonzero(~np.asarray(whole.share)[0])
    sizes = detectable(_at(whole, (..., contrasts)), _at(spread, (..., contrasts)), confidence).tolist()
    chosen = [names[k] for k in contrasts]
    return [
        {"ci": dict(zip(names, pair, strict=True)), "detectable": dict(zip(chosen, size, strict=True))}
        for pair, size in zip(pairs, sizes, strict=True)
    ]


def _estimated(
    selections: Sequence[ArrayLike],
    score: Callable[[Floats], Mapping[str, Floats]],
    shape: Callable[[Floats], Mapping[str, Shape]],
    confidence: float,
) -> tuple[list[str], list[Estimated]]:
    """Names of scores, and for every selection their values, shapes and spreads with the names as the last axis."""
    matrices = [np.asarray(counts, dtype=np.float64) for counts in selections]
    totals = [matrix.sum(axis=0, keepdims=True) for matrix in matrices]
    both = [*zip(totals, matrices, strict=True)]
    values = score(np.concatenate([part for total, matrix in both for part in (total, total - matrix)]))
    shapes = shape(np.concatenate([part for pair in both for part in pair]))
    scores = _last([values[name] for name in shapes])
    parts = Shape(*(np.broadcast_to(_last(field), scores.shape) for field in zip(*shapes.values(), strict=True)))
    results, start = [], 0
    for matrix in matrices:
        clusters = slice(start + 1, start + 1 + len(matrix))
        whole, (up, down, rows, *_) = _at(parts, start), _at(parts, clusters)
        moved = rows * (np.nan_to_num(up) + np.nan_to_num(down))
        if len(matrix) > 1:
            spread = spread_of(whole, scores[clusters], moved, rows, confidence)
        else:  # no spread, and many breakdowns have such groups
            spread = Spread(*(np.full(scores[start].shape, np.nan) for _ in Spread._fields))
        results.append((scores[start], whole, spread))
        start = clusters.stop
    return list(shapes), results


def ends(results: Mapping[str, Estimated]) -> dict[str, Interval]:
    """The lower and the upper ends of the interval of each score."""
    return {name: limits(*parts) for name, parts in results.items()}


def spread_of(shape: Shape, replicates: ArrayLike, moved: ArrayLike, rows: ArrayLike, level: float = 0.95) -> Spread:
    """Steps 1 to 6: how many independent rows a score is worth.

    Args:
        shape: how the score is made of rows, arrays of shape (...).
        replicates: shape (C, ...), the score without each of the clusters.
        moved: shape (C, ...), numbers of rows of the clusters that raise or lower the score.
        rows: shape (C, ...), numbers of rows of the clusters.
        level: level of the interval.

    Returns:
        NaN where fewer than 2 clusters have rows, or where a replicate is undefined.
    """
    values, moves, weights = (np.asarray(each, dtype=np.float64) for each in (replicates, moved, rows))
    here, total, clusters = weights > 0, weights.sum(axis=0), kish(weights)
    n = here.sum(axis=0)

    def variance(left: Floats) -> Floats:
        mean = np.where(here, left, 0.0).sum(axis=0) / n
        return np.asarray((n - 1) / n * np.where(here, (left - mean) ** 2, 0.0).sum(axis=0))

    with np.errstate(invalid="ignore", divide="ignore"):
        # The errors are the rarer rows. At a half both kinds are, and fewer clusters count.
        most = (shape.share & above for above in (shape.up > 0.5, shape.up >= 0.5))
        bearing = np.minimum(*(kish(np.where(each, np.maximum(weights - moves, 0.0), moves)) for each in most))
        typical = CONTRAST_CORRELATION / np.where(shape.share, 1.0, np.clip(shape.scale, 1.0, 2.0))
        # A statistic of clusters, of which no row is known, varies less than a share of rows.
        prior = np.where(shape.share & (total < MANY_ROWS / 2), SHARE_CORRELATION, typical)
        within, sizes = variance(values) / shape.scale**2, (total, clusters, bearing)
        rows_worth, quantile, design = moderated(within, shape.up, shape.down, (prior, typical), sizes, level)
        erring, without = shape.up + shape.down, (moves.sum(axis=0) - moves) / (total - weights)
        known, *_ = moderated(variance(without), erring, 0.0, (SHARE_CORRELATION, CONTRAST_CORRELATION), sizes, level)
        uneven = np.where(total < MANY_ROWS / 2, np.nan, 1.0 / np.clip(bearing, 1.0, clusters) - 1.0 / clusters)
    usable = (n >= 2) & ~np.isnan(values).any(axis=0)
    parts = rows_worth, quantile, design, erring, 1.0 / known, total, clusters, prior, uneven
    return Spread(*(np.where(usable, part, np.nan) for part in parts))


def moderated(
    variance: ArrayLike, up: Floats, down: float | Floats, priors: Sequence[Any], sizes: Sequence[Floats], level: float
) -> tuple[Floats, Floats, Floats]:
    """Steps 3 to 6, for arrays of one shape.

    Args:
        variance: variance of up - down.
        up: share of the rows that raise the score.
        down: share of the rows that lower it.
        priors: correlation of the prior, and the correlation by which errors count as fewer.
        sizes: number of rows, effective numbers of clusters and of clusters with errors.
        level: level of the interval.

    Returns:
        The effective number of rows, the quantile of Student's t, and the design effect (the prior without errors).
    """
    total, clusters, bearing = sizes
    largest = np.maximum(up + down - (up - down) ** 2, 0.0)
    taken, known = (1.0 / total + rho * (1.0 / clusters - 1.0 / total) for rho in priors)
    events = np.maximum(np.minimum(up + down, 1.0 - np.abs(up - down)), 0.0) / known
    freedom = np.clip(np.minimum(bearing, clusters) - 1.0, 0.0, events)
    design = np.divide(variance, largest, out=np.asarray(taken + 0.0 * largest), where=largest > 0)
    weight = PRIOR_FREEDOM + freedom
    return weight / (PRIOR_FREEDOM * taken + freedom * design), student(weight, level), design


def kish(weights: Floats) -> Floats:
    """The effective number of clusters of unequal weights; 0 if all are 0."""
    squares = (weights**2).sum(axis=0)
    return np.divide(weights.sum(axis=0) ** 2, squares, out=np.zeros_like(squares), where=squares > 0)


def limits(score: ArrayLike, shape: Shape, spread: Spread) -> Interval:
    """Step 7: the ends of an interval, which always holds the score itself.

    Args:
        score: shape (...), the score.
        shape: how it is made of rows.
        spread: its spread.
    """
    value, n, q = np.asarray(score, dtype=np.float64), spread.rows, spread.quantile
    added = np.where(shape.share, q**2 / 2.0, 1.0)  # rows of either kind
    up, down = ((side * n + added) / (n + 2.0 * added) for side in (shape.up, shape.down))
    wilson = (np.maximum(shape.up * (1.0 - shape.up), 0.0) * n + q**2 / 4.0) / (n + q**2) ** 2
    variance = np.where(shape.share, wilson, np.maximum(up + down - (up - down) ** 2, 0.0) / (n + 2.0))
    center = value + shape.scale * np.where(shape.share, up - shape.up, up - down - shape.up + shape.down)
    half = shape.scale * q * np.sqrt(variance)
    low, high = (np.clip(center + side * half, shape.low, shape.high) for side in (-1.0, 1.0))
    return np.minimum(low, value), np.maximum(high, value)


def detectable(shape: Shape, spread: Spread, confidence: float = 0.95, power: float = POWER) -> Floats:
    """The minimum detectable effect of a contrast: the smallest true size whose interval excludes 0 with this power.

    The interval itself is inverted numerically. A true size d of up - down comes from m = max(up + down, d) rows, and
    has the variance

        (m - d^2 / m) r + d^2 w,   w = (1 - m) / m k

    with the design effects r of the contrast and k of m: what leans to one side varies as what moves at all. For a
    difference of two scores it is (up + down) r + d^2 w: a true difference varies over clusters as much as what was
    found, w. The size that is exceeded with the probability `power` goes through steps 3 to 7, with 1 / (1 / C* + w)
    clusters with errors.

    Args:
        shape: shape of a contrast whose neutral value is 0.
        spread: its spread.
        confidence: level of the interval.
        power: probability of detection, above 0 and below 1.

    Returns:
        In the scale of the score, above 0. NaN where the spread is NaN, and where not even the largest value of the
        score would be detected. `docs/intervals.md` has the power, measured by `lab/simulations/power.py`.
    """
    low, high = np.zeros_like(spread.rows), np.ones_like(spread.rows)
    normal, paired = NormalDist().inv_cdf(power), ~np.isnan(spread.uneven)

    def at(size: Floats) -> tuple[Floats, Floats, Floats]:
        moved = np.maximum(spread.moved, np.maximum(size, 0.5 / spread.total))
        uneven = np.where(paired, spread.uneven, (1.0 - moved) / moved * spread.moved_design)
        rest = np.where(paired, spread.moved, np.maximum(moved - size**2 / moved, 0.0))
        return moved, uneven, rest * spread.design + size**2 * uneven

    for _ in range(STEPS):
        size = (low + high) / 2.0
        seen = np.maximum(size - normal * np.sqrt(at(size)[2]), 0.0)
        moved, uneven, variance = at(seen)
        sides = (moved + seen) / 2.0, (moved - seen) / 2.0
        sizes = spread.total, spread.clusters, 1.0 / (1.0 / spread.clusters + uneven)
        n, q, _ = moderated(variance, *sides, (spread.prior,) * 2, sizes, confidence)
        end, _ = limits(seen, Shape(*sides, n, low=-1.0), spread._replace(rows=n, quantile=q))
        low, high = np.where(end > 0, low, size), np.where(end > 0, size, high)
    return np.where(shape.scale * high < shape.high, shape.scale * high, np.nan)


def of_clusters(
    value: ArrayLike,
    replicates: ArrayLike,
    sizes: ArrayLike | None = None,
    bound: float = 1.0,
    confidence: float = 0.95,
) -> tuple[Shape, Spread]:
    """Steps 1 to 6 for a score that is known only as a whole and without each cluster.

    What a cluster adds is how far the score falls without it. A difference of two scores is a contrast of the clusters
    that favor the second score and those that favor the first. A statistic in [0, 1], such as a mean of largest values,
    is a share. Its interval is for its mean over drawings of C clusters, because noise makes a largest value larger.

    Args:
        value: shape (...), the second score minus the first, or the statistic.
        replicates: shape (C, ...), the same without each of the clusters.
        sizes: shape (C, ...), numbers of rows of the clusters, or in proportion to them. None: a statistic.
        bound: largest size of the difference.
        confidence: level of the interval.

    Returns:
        What `limits` and `detectable` take. The spread is NaN where a replicate is undefined, and with fewer than 2
        clusters (3 for a statistic).
    """
    score, without = np.asarray(value, dtype=np.float64), np.asarray(replicates, dtype=np.float64)
    weights = np.broadcast_to(1.0 if sizes is None else np.asarray(sizes, dtype=np.float64), without.shape)
    weights = weights / weights.sum(axis=0)
    added, rows = (score - (1.0 - weights) * without) / bound, np.asarray(MANY_ROWS)
    if sizes is None:
        shape, without = Shape(score, 0.0, rows, share=True), without if len(without) > 2 else without + np.nan
    else:
        added = added / np.maximum(np.abs(added).sum(axis=0), 1.0)
        up, down = (np.maximum(sign * added, 0.0).sum(axis=0) for sign in (1.0, -1.0))
        shape = Shape(up, down, rows, bound, -bound, bound)
    return shape, spread_of(shape, without, rows * np.abs(added), rows * weights, confidence)


def student(freedom: ArrayLike, confidence: float) -> Floats:
    """The quantile of Student's t that cuts off half of 1 - confidence.

    Args:
        freedom: degrees of freedom, any shape, at least 2.
        confidence: above 0 and below 1.

    Returns:
        For 95% within 1% of the true quantile at 2 degrees of freedom, 0.2% at 3, and closer with more.

    Source: Abramowitz and Stegun 1964, 26.7.5.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return np.asarray(sum(term / np.asarray(freedom, dtype=np.float64) ** power for power, term in enumerate(terms)))


def _at(fields: Any, place: Any) -> Any:
    """A shape or a spread at some places of its arrays."""
    return type(fields)(*(field[place] for field in fields))


def _last(arrays: Sequence[ArrayLike]) -> npt.NDArray[Any]:
    """Arrays on a new last axis; in memory it is the first, so that sums add in the order of a single array."""
    return np.moveaxis(np.stack(np.broadcast_arrays(*arrays)), 0, -1)
