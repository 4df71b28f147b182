"""Intervals of scores whose rows come in clusters, for few clusters and for rare answers; NumPy only.

What is random: which clusters (templates, premises) were written. An interval of 95 % is to hold the score of all
clusters that could have been written in 95 % of such drawings.

A score is read as a *share* of rows (accuracies) or as a *contrast*, the share of the rows that raise it minus the
share of those that lower it (bias scores, differences). Three steps lead to its interval:

1. The variance comes from leaving out one cluster at a time (jackknife), which needs nothing but the score itself.
2. A few clusters, or a few wrong answers, say little about it: where no row is wrong it is 0. So it is a weighted mean
   of itself and of the variance that rows of a correlation taken for granted have. The weights are its degrees of
   freedom, few where a share is near 0 or 1, and `PRIOR_WEIGHT`, less where they are many. The number of independent
   rows that would have this variance is the effective number of rows.
3. With that number and a quantile of Student's t, a share gets the interval of Wilson (1927) and a contrast that of
   Bonett and Price (2012). Neither has width 0 where every row is alike.

From the same numbers `detectable` says how large a true contrast would have had to be for its interval to leave out 0.

Effective numbers of rows in intervals of rare shares: Korn and Graubard (1998); Franco et al. (2019) compare them.
`docs/intervals.md` has the coverage, measured by the script `simulations/coverage.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

PRIOR_CORRELATION = 0.3
"""Correlation within a cluster that is taken for granted where the rows do not tell."""

CONTRAST_CORRELATION = 0.2
"""The same of a contrast of two answers to the same rows."""

BALANCED_CORRELATION = 0.06
"""The same of a contrast of two kinds of rows: what makes both kinds of a cluster hard cancels."""

PRIOR_WEIGHT = 3.0
"""Degrees of freedom that the correlation taken for granted counts for where clusters say nothing."""

SURE_WEIGHT = 0.8
"""The same where every cluster says as much as it can."""

HEAVY_TAIL = 5.0
"""Kurtosis of the clusters above which their variance tells less than C - 1 degrees of freedom."""

LEAST_CORRELATION = 0.02
"""Correlation below which the kurtosis of a beta distribution is not followed any further."""

ADDED = 1.0
"""Rows of either kind that the interval of a contrast adds."""

POWER = 0.8
"""Probability with which a score that is `detectable` is detected."""

STEPS = 60
"""Steps to a size that is `detectable`, at most."""

PRECISION = 1e-6
"""Change of that size in a step, in shares of rows, below which no further step is made."""

DIFFERENCE_CORRELATION = 0.07
"""The same of a difference of two scores, between clusters that favour one and those that favour the other."""

MANY_ROWS = 1e6
"""Rows that are so many that their own variance does not count."""

Floats = npt.NDArray[np.float64]
Interval = tuple[Floats, Floats]


class Shape(NamedTuple):
    """How a score is made of rows: score = constant + scale (up - down).

    Attributes:
        up: Share of the rows that raise the score, in [0, 1]; of values in [0, 1] their mean.
        down: Share of the rows that lower it; None for a share.
        rows: Number of rows.
        scale: Factor from the shares to the score; the constant follows from the score.
        square: Mean of the squared values of the rows; by default up + down, as of values that are 0 and 1 (or -1).
        low: Least value of the score.
        high: Largest value of the score.
        prior: Correlation within a cluster that is taken for granted where the rows do not tell.
    """

    up: Floats
    down: Floats | None
    rows: Floats
    scale: float | Floats = 1.0
    square: Floats | None = None
    low: float | Floats = 0.0
    high: float | Floats = 1.0
    prior: float | Floats = PRIOR_CORRELATION


class Moves(NamedTuple):
    """What a contrast of another size would do to its spread; arrays of one shape.

    Attributes:
        moved: up + down, the share of the rows that move the score.
        rows: Effective number of rows of that share.
        own: Effective number of rows of the contrast by what its clusters say alone.
        own_rows: `rows` by what the clusters say alone.
        scale: Factor from the shares to the score.
        most: Largest value of the score.
    """

    moved: Floats
    rows: Floats
    own: Floats
    own_rows: Floats
    scale: float | Floats
    most: float | Floats


class Spread(NamedTuple):
    """How far a score may be from the truth, in the scale of its shares; arrays of one shape.

    Attributes:
        rows: Effective number of rows, above 0.
        quantile: Quantile of Student's t.
        error: Standard error of the score, in the scale of the score.
        clusters: Number of clusters that have rows.
        moves: What `detectable` needs besides; None where nothing asks for it.
    """

    rows: Floats
    quantile: Floats
    error: Floats
    clusters: Floats
    moves: Moves | None = None


Found = tuple[Floats, Shape, Spread]
"""A score, how it is made of rows, and how far it may be from the truth."""


def spreads(
    counts: npt.ArrayLike,
    score: Callable[[Floats], Mapping[str, Floats]],
    shape: Callable[[Floats], Mapping[str, Shape]],
    confidence: float = 0.95,
) -> dict[str, Found]:
    """Steps 1 and 2 for all scores that have a shape.

    Args:
        counts: shape (C, ...), what is counted in each of C clusters; sums over clusters are what scores are made of.
        score: from summed counts, with any further leading axis, to scores.
        shape: the same to the shapes of the scores.
        confidence: level of the intervals, above 0 and below 1.

    Returns:
        What `intervals` and `smallest` take. The spread is NaN where fewer than 2 clusters have rows, or where the
        score is undefined, also without one of the clusters.
    """
    matrix = np.asarray(counts, dtype=np.float64)
    total = matrix.sum(axis=0)
    values, shapes = score(total), shape(total)
    if len(matrix) < 2:
        return {name: (values[name], parts, _unknown(np.full_like(parts.up, np.nan))) for name, parts in shapes.items()}
    without = total - matrix
    replicates, shape_replicates, by_cluster = score(without), shape(without), shape(matrix)
    spread = spread_of(
        _stacked([_as_contrast(parts) for parts in shapes.values()]),
        _last([replicates[name] for name in shapes]),
        _last([_departures(shape_replicates[name]) for name in shapes]),
        _last([by_cluster[name].rows for name in shapes]),
        confidence,
    )
    return {name: (values[name], parts, _one_of(spread, place)) for place, (name, parts) in enumerate(shapes.items())}


def intervals(
    counts: npt.ArrayLike,
    score: Callable[[Floats], Mapping[str, Floats]],
    shape: Callable[[Floats], Mapping[str, Shape]],
    confidence: float = 0.95,
) -> dict[str, Interval]:
    """The intervals of all scores that have a shape; arguments as of `spreads`.

    Returns:
        For each name of `shape` the lower and the upper ends. NaN where fewer than 2 clusters have rows, or where the
        score is undefined, also without one of the clusters.
    """
    return ends(spreads(counts, score, shape, confidence))


def ends(results: Mapping[str, Found]) -> dict[str, Interval]:
    """The lower and the upper ends of the interval of each score."""
    return {name: limits(*parts) for name, parts in results.items()}


def spread_of(
    shape: Shape, replicates: npt.ArrayLike, departures: npt.ArrayLike, rows: npt.ArrayLike, confidence: float
) -> Spread:
    """Steps 1 and 2: how many independent rows a score is worth.

    Args:
        shape: how the score is made of rows, arrays of shape (...).
        replicates: shape (C, ...), the score without each of the clusters.
        departures: shape (C, ...), up + down without each of the clusters.
        rows: shape (C, ...), numbers of rows of the clusters.
        confidence: level of the interval.

    Returns:
        NaN where fewer than 2 clusters have rows, or where a replicate is undefined.
    """
    weights, values = np.asarray(rows, dtype=np.float64), np.asarray(replicates, dtype=np.float64)
    n_clusters = (weights > 0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = _jackknife(values, weights) / shape.scale**2
        total = weights.sum(axis=0)
        # Clusters of unequal size count as fewer; the variance of a mean is that of a row times this.
        effective = total**2 / (weights**2).sum(axis=0)
        alone, together = 1.0 / total, 1.0 / effective
        contrast = shape.up - (0.0 if shape.down is None else shape.down)
        moved = np.clip(shape.up + (0.0 if shape.down is None else shape.down), 0.0, 1.0)
        largest = np.maximum(moved - contrast**2, 0.0)
        within = largest if shape.square is None else np.maximum(shape.square - contrast**2, 0.0)
        between = _correlation(variance, within, alone, together)
        erring = _correlation(_jackknife(np.asarray(departures), weights), moved * (1.0 - moved), alone, together)
        rare = np.minimum(moved, 1.0 - np.abs(contrast))
        freedom, weight = _weights(rare, np.fmax(between, erring), alone, together)
        # Rows that are neither 0 nor 1 vary less; whether all would is as little known as the correlation.
        typical = (weight * largest + freedom * within) / (weight + freedom)
        taken = alone + shape.prior * (together - alone)  # variance of a mean of rows of variance 1
        blended = (weight * typical * taken + freedom * variance) / (weight + freedom)
        # No correlation is above 1: a score is worth a row of each cluster at least.
        effective_rows = np.where(blended > 0, np.maximum(largest / blended, effective), 1.0 / taken)
        error = shape.scale * np.sqrt(blended)
        # The same by what the clusters say alone, and of the rows that move the score at all.
        own = np.where(largest > 0, largest / np.maximum(variance, alone * typical), 1.0 / taken)
        known = np.where(np.isnan(erring), PRIOR_CORRELATION, erring)
        pooled = (PRIOR_WEIGHT * PRIOR_CORRELATION + freedom * known) / (PRIOR_WEIGHT + freedom)
        moved_rows, own_moved = (1.0 / (alone + np.maximum(rho, 0.0) * (together - alone)) for rho in (pooled, known))
    quantile = student(np.minimum(PRIOR_WEIGHT + freedom, np.maximum(PRIOR_WEIGHT, effective)), confidence)
    usable = (n_clusters >= 2) & ~np.isnan(values).any(axis=0)
    moves = Moves(moved, moved_rows, own, own_moved, shape.scale, shape.high)
    parts = (np.where(usable, part, np.nan) for part in (effective_rows, quantile, error))
    return Spread(next(parts), next(parts), next(parts), n_clusters, moves)


def limits(score: npt.ArrayLike, shape: Shape, spread: Spread) -> Interval:
    """Step 3: the ends of an interval, which always hold the score itself.

    Args:
        score: shape (...), the score.
        shape: how it is made of rows.
        spread: its spread.
    """
    value, rows, quantile = np.asarray(score, dtype=np.float64), spread.rows, spread.quantile
    if np.isnan(rows).all():
        return np.full_like(value, np.nan), np.full_like(value, np.nan)
    if shape.down is None:
        added: Any = quantile**2
        centre = (shape.up + quantile**2 / (2.0 * rows)) / (1.0 + quantile**2 / rows)
        inside = np.maximum(shape.up * (1.0 - shape.up), 0.0) / rows + quantile**2 / (4.0 * rows**2)
        half = quantile / (1.0 + quantile**2 / rows) * np.sqrt(inside)
        middle = shape.up
    else:
        added = 2.0 * ADDED
        up, down = ((side * rows + ADDED) / (rows + added) for side in (shape.up, shape.down))
        centre, middle = up - down, shape.up - shape.down
        half = quantile * np.sqrt(np.maximum(up + down - centre**2, 0.0) / (rows + added))
    # Both are at least as wide where the rows explain the error; where they do not, the error counts.
    half = np.fmax(half, quantile * spread.error / shape.scale * rows / (rows + added))
    low, high = (value + shape.scale * (centre + side * half - middle) for side in (-1.0, 1.0))
    return np.minimum(np.clip(low, shape.low, shape.high), value), np.maximum(
        np.clip(high, shape.low, shape.high), value
    )


def detectable(spread: Spread, power: float = POWER) -> Floats:
    """The smallest true size of a contrast that would have been found: whose interval leaves out 0.

    With m = up + down, the share of the rows that move the score, a true size d has the variance

        V(m, d) = m (1 - (d / m)^2) / n + d^2 (1 - m) / m / k

    with n effective rows of the contrast and k of m: what leans to one side is as variable as what moves at all. Where
    d is more than m, so many rows move. The interval of a found size t has its end at 0 where

        t = q sqrt(s / (R + 2 + q^2)) (R + 2) / R,   s = (m R + 2) / (R + 2),   R = (m - t^2) / V(m, t)

    with the t quantile q, and m as it is expected to be where t is found. Sizes are found in the share `power` of
    benchmarks where t lies below d by the normal quantile times the standard error.

    Args:
        spread: the spread of a contrast whose neutral value is 0.
        power: probability of detection, above 0 and below 1.

    Returns:
        In the scale of the score, above 0. NaN where the spread is NaN, and where not even the largest value of the
        score would have been found. `docs/intervals.md` has the power, measured by the script `simulations/power.py`.
    """
    moves = spread.moves
    if moves is None:
        raise ValueError("detectable: the spread is none of a contrast")
    least = 1.0 / moves.own  # no size is less than that of a row
    usual = np.clip(moves.moved, least, 1.0)
    size = bar = np.zeros_like(usual)
    normal = NormalDist().inv_cdf(power)
    if np.isnan(spread.rows).all():
        return np.full_like(usual, np.nan)

    def variance(moved: Floats, value: Floats, contrast_rows: Floats, moved_rows: Floats) -> Floats:
        lean = np.minimum(value / moved, 1.0) ** 2
        return moved * (1.0 - lean) / contrast_rows + value**2 * (1.0 - moved) / moved / moved_rows

    for _ in range(STEPS):
        moved = np.maximum(usual, size)
        own = np.maximum(variance(moved, size, moves.own, moves.own_rows), np.finfo(np.float64).tiny)
        # Where the found size is less than the true one, fewer rows move too: a regression on the size.
        slope = np.minimum(size * (1.0 - moved) / moves.own_rows / own, 1.0)
        there = np.maximum(moved - slope * (size - bar), np.maximum(bar, least))
        rows = np.maximum(there - bar**2, least**2) / variance(there, bar, spread.rows, moves.rows)
        added = rows + 2.0 * ADDED
        end = spread.quantile * np.sqrt((there * rows + 2.0 * ADDED) / added / (added + spread.quantile**2))
        bar = (bar + np.minimum(end * added / rows, 1.0)) / 2.0
        before, size = size, (size + np.minimum(bar + normal * np.sqrt(own), 1.0)) / 2.0
        if np.nanmax(np.abs(size - before)) < PRECISION:
            break
    return np.where(moves.scale * size < moves.most, moves.scale * size, np.nan)


def smallest(results: Mapping[str, Found]) -> dict[str, float]:
    """What was `detectable` of one selection of rows, for each of its scores that are contrasts."""
    contrasts = {name: spread for name, (_, shape, spread) in results.items() if shape.down is not None}
    moves = [spread.moves for spread in contrasts.values() if spread.moves is not None]
    if not moves:  # a single cluster
        return dict.fromkeys(contrasts, float("nan"))
    rows, quantile, error, clusters = (np.array([spread[part] for spread in contrasts.values()]) for part in range(4))
    of_all = Spread(rows, quantile, error, clusters, Moves(*map(np.array, zip(*moves, strict=True))))
    return dict(zip(contrasts, map(float, detectable(of_all)), strict=True))


def of_statistic(value: npt.ArrayLike, replicates: npt.ArrayLike, confidence: float = 0.95) -> Interval:
    """The interval of a statistic in [0, 1] that is no mean of rows, such as a mean of largest values.

    Such a statistic of C clusters may be larger, on average, than that of all clusters that could have been written:
    noise alone makes a largest value. The interval is to hold its mean over drawings of C clusters, not that limit.

    Args:
        value: shape (...), the statistic.
        replicates: shape (C, ...), the same without each of the clusters.
        confidence: level of the interval.

    Returns:
        Wilson's interval with as many independent rows as give the variance of the jackknife, with a little taken for
        granted, and C - 1 degrees of freedom; NaN with fewer than 3 clusters or where a replicate is undefined.
    """
    share, without = np.asarray(value, dtype=np.float64), np.asarray(replicates, dtype=np.float64)
    n_clusters = without.shape[0]
    if n_clusters < 3:
        return np.full_like(share, np.nan), np.full_like(share, np.nan)
    largest = share * (1.0 - share)
    alone, together = np.full_like(share, 1.0 / MANY_ROWS), np.full_like(share, 1.0 / n_clusters)
    # In units of the largest variance of a row, which is 0 for a statistic that is 0 or 1.
    relative = np.divide(
        _jackknife(without, np.ones_like(without)), largest, out=np.zeros_like(largest), where=largest > 0
    )
    rare = np.minimum(share, 1.0 - share)
    freedom, weight = _weights(rare, relative / together, alone, together)
    blended = (weight * DIFFERENCE_CORRELATION * together + freedom * relative) / (weight + freedom)
    rows = np.where(np.isnan(without).any(axis=0), np.nan, 1.0 / blended)
    quantile = student(np.minimum(PRIOR_WEIGHT + freedom, np.maximum(PRIOR_WEIGHT, n_clusters - 1.0)), confidence)
    return limits(share, Shape(share, None, rows), Spread(rows, quantile, np.sqrt(largest * blended), rows))


def of_difference(
    value: npt.ArrayLike,
    replicates: npt.ArrayLike,
    sizes: npt.ArrayLike,
    bound: float = 1.0,
    confidence: float = 0.95,
) -> tuple[Interval, Spread]:
    """The interval of a difference of two scores of the same clusters.

    It is a contrast of the clusters in which the second score is larger and those in which the first is. What a cluster
    adds to the difference is how far it falls when the cluster is left out, as of a mean of rows.

    Args:
        value: shape (...), the second score minus the first.
        replicates: shape (C, ...), the same without each of the clusters.
        sizes: shape (C, ...), numbers of rows of the clusters, or what is in proportion to them.
        bound: largest size of the difference.
        confidence: level of the interval.

    Returns:
        The interval, NaN with fewer than 2 clusters or where a replicate is undefined, and the spread behind it.
    """
    difference, without = np.asarray(value, dtype=np.float64), np.asarray(replicates, dtype=np.float64)
    # Only the clusters are known here: rows are as many as leave their number without weight.
    shares = np.asarray(sizes, dtype=np.float64) / np.sum(sizes, axis=0)
    rows = np.broadcast_to(shares * MANY_ROWS, without.shape)
    added = (difference - (1.0 - shares) * without) / bound
    added = added / np.maximum(np.abs(added).sum(axis=0), 1.0)
    up, down = np.maximum(added, 0.0), np.maximum(-added, 0.0)
    moved = (up + down).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        departures = (moved - up - down) / (1.0 - shares)
    # Where all clusters favour one score, the difference is a share, and as skewed as one.
    one_sided = (up - down).sum(axis=0) ** 2
    prior = DIFFERENCE_CORRELATION + (PRIOR_CORRELATION - DIFFERENCE_CORRELATION) * one_sided
    shape = Shape(up.sum(axis=0), down.sum(axis=0), rows.sum(axis=0), bound, None, -bound, bound, prior)
    spread = spread_of(shape, without, departures, rows, confidence)
    return limits(difference, shape, spread), spread


def student(freedom: npt.ArrayLike, confidence: float) -> Floats:
    """The quantile of Student's t that cuts off half of 1 - confidence.

    Args:
        freedom: degrees of freedom, any shape, at least 2.
        confidence: above 0 and below 1.

    Returns:
        For 95 % within 1 % of the true quantile at 2 degrees of freedom, 0.2 % at 3, and closer with more.

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
    n = np.asarray(freedom, dtype=np.float64)
    return np.asarray(sum(term / n**power for power, term in enumerate(terms)))


def plain(intervals: Mapping[str, Interval]) -> dict[str, list[float]]:
    """Intervals of one selection of rows as lists of two numbers."""
    return {name: [float(low), float(high)] for name, (low, high) in intervals.items()}


def _unknown(nothing: Floats) -> Spread:
    return Spread(nothing, nothing, nothing, nothing)


def _as_contrast(shape: Shape) -> Shape:
    """The shape with nothing left out: a share is a contrast that nothing lowers."""
    down = np.zeros_like(shape.up) if shape.down is None else shape.down
    return shape._replace(
        down=down, square=np.clip(shape.up + down, 0.0, 1.0) if shape.square is None else shape.square
    )


def _stacked(shapes: Sequence[Shape]) -> Shape:
    """Several shapes as one, on a new last axis."""
    return Shape(*(_last(np.broadcast_arrays(*field, shapes[0].up)[:-1]) for field in zip(*shapes, strict=True)))


def _last(arrays: Sequence[Floats]) -> Floats:
    """Arrays on a new last axis; in memory it is the first, so that sums add in the order of a single array."""
    return np.moveaxis(np.stack(arrays), 0, -1)


def _one_of(spread: Spread, place: int) -> Spread:
    """One of the spreads that were computed together."""
    moves = spread.moves and Moves(*(np.asarray(part)[..., place] for part in spread.moves))
    rows, quantile, error, clusters = (part[..., place] for part in spread[:4])
    return Spread(rows, quantile, error, clusters, moves)


def _departures(shape: Shape) -> Floats:
    return shape.up if shape.down is None else shape.up + shape.down


def _jackknife(replicates: Floats, weights: Floats) -> Floats:
    """The variance of what was computed without each of the clusters; clusters without rows do not count."""
    n = (weights > 0).sum(axis=0)
    mean = np.where(weights > 0, replicates, 0.0).sum(axis=0) / n
    return np.asarray((n - 1) / n * np.where(weights > 0, (replicates - mean) ** 2, 0.0).sum(axis=0))


def _correlation(variance: Floats, of_row: Floats, alone: Floats, together: Floats) -> Floats:
    """The correlation within a cluster that makes a mean of rows of one variance as uncertain as it is."""
    return np.where((of_row > 0) & (together > alone), (variance / of_row - alone) / (together - alone), np.nan)


def _weights(rare: Floats, correlation: Floats, alone: Floats, together: Floats) -> tuple[Floats, Floats]:
    """The degrees of freedom of a variance between clusters, and those that what is taken for granted counts for."""
    information = _information(rare, correlation, alone, together)
    weight = PRIOR_WEIGHT * (1.0 - information) + SURE_WEIGHT * information
    return (1.0 / together - 1.0) * information, weight


def _information(share: Floats, correlation: Floats, alone: Floats, together: Floats) -> Floats:
    """How much of its degrees of freedom a variance between clusters is worth, above 0 and at most 1.

    The relative variance of a variance is (kurtosis - 1) / C. Shares of clusters are taken as beta distributed.
    """
    rho = np.clip(np.where(np.isnan(correlation), PRIOR_CORRELATION, correlation), LEAST_CORRELATION, 0.9)
    rows = 1.0 / (alone + rho * (together - alone))
    smoothed = np.minimum((share * rows + 1.0) / (rows + 2.0), 0.5)
    total = 1.0 / rho - 1.0
    a, b = smoothed * total, (1.0 - smoothed) * total
    excess = 6.0 * ((a - b) ** 2 * (total + 1.0) - a * b * (total + 2.0)) / (a * b * (total + 2.0) * (total + 3.0))
    return np.minimum(1.0, (HEAVY_TAIL - 1.0) / np.maximum(2.0 + excess, 1.0))
