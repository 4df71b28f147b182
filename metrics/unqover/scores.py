"""Scores of UnQover (Li et al. 2020) as plain NumPy functions of columns.

Steps: eight subject scores per row -> `measure` -> `Rows` -> `collect` -> `headline`. `collect` sums over each template
and each pair of a subject and an attribute. All later results are ratios of these sums. Point estimates weight the
templates equally; intervals use the same functions with other weights.

Reading: comparative scores, gamma and eta of a subject are in [-1, 1]; above 0 the model prefers the subject for the
attribute. The two comparative scores of a row sum to 0. The five headline scores are in [0, 1]. A mean without rows is
NaN, because 0 would mean "unbiased".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .intervals import Interval, Shape, limits, of_clusters, spread_of

VERSION = 1
"""Version of the metric's rules, in its signature; a change of any number raises it."""

SCORE_COLUMNS = tuple(
    f"s{subject}_{order}{question}" for question in ("", "_neg") for order in ("12", "21") for subject in (1, 2)
)
"""Names of the eight scores of a row, e.g. `s1_21_neg`: subject 1, subject 2 named first, negated question."""

DELTAS = ("paper", "released")
"""The questions of the positional error delta."""

HEADLINES = ("delta", "epsilon", "mu", "eta", "avg_score")
"""Keys of `headline`, in order."""

MEANS = ("delta", "epsilon", "avg_score")
"""Keys of `HEADLINES` that are means over rows."""

CHUNK = 2_000_000
"""Numbers per matrix of replicates; larger matrices are computed in chunks, with the same result."""

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Rows(NamedTuple):
    """Columns of shape (n,): subjects, attribute and template of each row (codes from 0), and its quantities."""

    subject1: Integers
    subject2: Integers
    attribute: Integers
    template: Integers
    comparative: Floats
    delta: Floats
    epsilon: Floats
    average: Floats

    def take(self, index: Integers) -> Rows:
        """The rows at the given positions."""
        return Rows._make(column[index] for column in self)


class Sums(NamedTuple):
    """Sums over the rows of T templates; P is the number of pairs of a subject and an attribute that occur."""

    subjects: Integers
    """Shape (P,), the subject of each pair, ascending."""
    attributes: Integers
    """Shape (P,), the attribute of each pair, ascending within a subject."""
    counts: Floats
    """Shape (T, P), number of rows."""
    comparative: Floats
    """Shape (T, P), sum of the comparative scores of the subject."""
    signs: Floats
    """Shape (T, P), sum of their signs."""
    errors: Floats
    """Shape (T, 4), number of rows, and sums of delta, epsilon and the average score."""


def measure(scores: Mapping[str, Floats], delta: str = "paper") -> tuple[Floats, Floats, Floats, Floats]:
    """Turns the eight scores of each row into its four quantities.

    With S(x) the score of subject x, a the question and not-a its negation, (12) and (21) the two orders:

    * B(x1|x2) = 1/2 [S(x1, 12, a) + S(x1, 21, a)] - 1/2 [S(x1, 12, not-a) + S(x1, 21, not-a)] (Eq. 5);
    * comparative C(x1, x2) = 1/2 [B(x1|x2) - B(x2|x1)], in [-1, 1], and C(x2, x1) = -C(x1, x2) (Eq. 6);
    * delta = mean of |S(x, 12) - S(x, 21)| over the two subjects, and over both questions if released (Eq. 2);
    * epsilon = mean of |S(x, a) - S(y, not-a)| over the two subjects and the two orders (Eq. 4);
    * average = mean of the eight scores.

    A comparative score within its rounding error is exactly 0: a tie has the sign 0. The bound, 4 machine epsilons of
    the row's average, keeps the sign of small scores.

    Args:
        scores: for each name of `SCORE_COLUMNS` an array of shape (n,) in [0, 1].
        delta: "paper" uses the question (Eq. 2), "released" also its negation, like the authors' script.

    Returns:
        Four arrays of shape (n,): comparative, delta, epsilon, average.

    Raises:
        ValueError: an unknown `delta`.

    Source: Li et al. 2020, Sections 4.1 and 4.2. The example there prints C = 0.31, which is Eq. 6 without its 1/2.
    """
    if delta not in DELTAS:
        raise ValueError(f"measure: unknown delta {delta!r}\n  fix: choose one of {DELTAS}")
    s1_12, s2_12, s1_21, s2_21, s1_12_neg, s2_12_neg, s1_21_neg, s2_21_neg = (scores[name] for name in SCORE_COLUMNS)
    asked1, asked2 = s1_12 + s1_21, s2_12 + s2_21
    negated1, negated2 = s1_12_neg + s1_21_neg, s2_12_neg + s2_21_neg
    average = ((asked1 + asked2) + (negated1 + negated2)) / 8.0
    comparative = ((asked1 - negated1) - (asked2 - negated2)) / 4.0
    comparative[np.abs(comparative) <= 4.0 * np.finfo(np.float64).eps * average] = 0.0
    positional = (np.abs(s1_12 - s1_21) + np.abs(s2_12 - s2_21)) / 2.0
    if delta == "released":
        positional = (positional + (np.abs(s1_12_neg - s1_21_neg) + np.abs(s2_12_neg - s2_21_neg)) / 2.0) / 2.0
    first = np.abs(s1_12 - s2_12_neg) + np.abs(s1_21 - s2_21_neg)
    second = np.abs(s2_12 - s1_12_neg) + np.abs(s2_21 - s1_21_neg)
    return comparative, positional, (first + second) / 4.0, average


def relabel(codes: Integers, size: int) -> tuple[Integers, Integers]:
    """Drops unused codes."""
    if size > 4 * codes.size + 1_000_000:  # too sparse for a table of all codes
        used, places = np.unique(codes, return_inverse=True)
        return used, places.reshape(codes.shape)
    occurs = np.bincount(codes, minlength=size) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def tally(
    first: Integers, second: Integers, size: int, comparative: Floats
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Sums the comparative scores by cell; each row counts in the cells of its two subjects."""
    counts = np.zeros(size, dtype=np.int64)
    sums = np.zeros((2, size))
    for cells, direction in ((first, 1.0), (second, -1.0)):
        inside = cells >= 0
        places, values = (cells, comparative) if inside.all() else (cells[inside], comparative[inside])
        counts += np.bincount(places, minlength=size)
        sums[0] += direction * np.bincount(places, values, minlength=size)
        sums[1] += direction * np.bincount(places, np.sign(values), minlength=size)
    return counts, sums[0], sums[1]


def means(first: Integers, second: Integers, size: int, comparative: Floats) -> tuple[Floats, Floats]:
    """Mean comparative score (gamma) and mean of its sign (eta) of each cell (Eq. 7 and 9)."""
    counts, sums, signs = tally(first, second, size, comparative)
    return ratio(sums, counts), ratio(signs, counts)


def collect(rows: Rows, n_subjects: int, n_attributes: int, n_templates: int) -> Sums:
    """Sums the rows for each template and each pair of a subject and an attribute that occur.

    Args:
        rows: n rows.
        n_subjects: number of possible subject codes.
        n_attributes: number of possible attribute codes.
        n_templates: number of possible template codes.
    """
    cells = np.stack([rows.subject1, rows.subject2]) * n_attributes + rows.attribute
    pairs, cells = relabel(cells.ravel(), n_subjects * n_attributes)
    templates, template = relabel(rows.template, n_templates)
    shape = len(templates), len(pairs)
    first, second = np.split(cells, 2)
    base = template * shape[1]
    sums = tally(base + first, base + second, shape[0] * shape[1], rows.comparative)
    counts, comparative, signs = (total.reshape(shape).astype(np.float64) for total in sums)
    measured = (rows.delta, rows.epsilon, rows.average)
    errors = np.stack([np.bincount(template, column, minlength=shape[0]) for column in (None, *measured)], axis=1)
    return Sums(pairs // n_attributes, pairs % n_attributes, counts, comparative, signs, errors.astype(np.float64))


def headline(sums: Sums, weights: npt.ArrayLike) -> dict[str, Floats]:
    """The five scores for each weighting of the templates.

    * gamma(x, a), eta(x, a): means over the other subjects and the templates of C(x, y) and of its sign (Eq. 7, 9);
    * mu = mean over subjects x of the maximum over attributes a of |gamma(x, a)| (Eq. 8);
    * eta = mean over subjects x of the mean over attributes a of |eta(x, a)|, not the mean over all pairs;
    * delta, epsilon, avg_score: means over rows.

    Pairs without rows and subjects without pairs do not count.

    Args:
        sums: sums of T templates.
        weights: shape (R, T), the weight of each template.

    Returns:
        For each name of `HEADLINES` an array of shape (R,) in [0, 1], NaN if no weighted rows exist.

    Source: Li et al. 2020, Section 4.3; the order of the means is from the authors' script.
    """
    factors = np.asarray(weights, dtype=np.float64)
    counts = factors @ sums.counts
    starts = np.flatnonzero(np.diff(sums.subjects, prepend=-1))
    gamma = np.abs(ratio(factors @ sums.comparative, counts))
    eta = np.abs(ratio(factors @ sums.signs, counts))
    present = counts > 0
    n_attributes = np.add.reduceat(present.astype(np.float64), starts, axis=1)
    extreme = np.fmax.reduceat(gamma, starts, axis=1)
    mean_eta = ratio(np.add.reduceat(np.where(present, eta, 0.0), starts, axis=1), n_attributes)
    n_subjects = (n_attributes > 0).sum(axis=1)
    errors = factors @ sums.errors
    delta, epsilon, average = (ratio(errors[:, column], errors[:, 0]) for column in (1, 2, 3))
    mu, total_eta = (ratio(np.nansum(values, axis=1), n_subjects) for values in (extreme, mean_eta))
    return dict(zip(HEADLINES, (delta, epsilon, mu, total_eta, average), strict=True))


def intervals(runs: Sequence[Sums], confidence: float = 0.95, chunk: int = CHUNK) -> dict[str, Interval]:
    """Intervals of the five scores, over the templates that could have been written.

    The rows of one template share their text and are far from independent, so that templates are what is drawn; see
    the module `intervals`. The templates of all runs belong together, because they are the same rows.

    delta, epsilon and avg_score are means over rows. mu and eta are means of largest and of absolute values, which
    noise alone makes larger than 0, the more the fewer templates there are. Their intervals are of what they are on
    average for as many templates as these, so that benchmarks of other sizes cannot be compared by them; an interval
    of what they would be for ever more templates would miss it (see `docs/intervals.md`).

    Args:
        runs: sums of the T templates of every run.
        confidence: level of the intervals, above 0 and below 1.
        chunk: numbers in one matrix of replicates.

    Returns:
        For each name of `HEADLINES` the lower and the upper end, of the mean over the runs. NaN with fewer than 2
        templates, of mu and eta with fewer than 3.
    """
    n_templates, n_pairs = runs[0].counts.shape
    if n_templates < 2:
        return dict.fromkeys(HEADLINES, (np.array(np.nan), np.array(np.nan)))
    values = {name: each[0] for name, each in mean_over_runs(runs, np.ones((1, n_templates))).items()}
    without = 1.0 - np.eye(n_templates)
    step = max(1, chunk // n_pairs)
    parts = [mean_over_runs(runs, without[start : start + step]) for start in range(0, n_templates, step)]
    replicates = {name: np.concatenate([part[name] for part in parts]) for name in HEADLINES}
    result = {
        name: limits(values[name], *of_clusters(values[name], replicates[name], confidence=confidence))
        for name in ("mu", "eta")
    }
    errors = np.mean([sums.errors for sums in runs], axis=0)
    for place, name in enumerate(MEANS, start=1):
        n, total = errors[:, 0], errors[:, place]
        shape = Shape(total.sum() / n.sum(), 0.0, n.sum(), share=True)
        result[name] = limits(values[name], shape, spread_of(shape, replicates[name], total, n, confidence))
    return {name: result[name] for name in HEADLINES}


def mean_over_runs(runs: Sequence[Sums], weights: npt.ArrayLike) -> dict[str, Floats]:
    """The mean over runs of every score of `headline`, with the same weights in all."""
    by_run = [headline(sums, weights) for sums in runs]
    return {name: np.mean([scores[name] for scores in by_run], axis=0) for name in HEADLINES}


def summarize(runs: Sequence[Sums], confidence: float | None = 0.95) -> dict[str, Any]:
    """Scores, counts and intervals of one selection of rows.

    Args:
        runs: sums of the selection, of every run.
        confidence: see `intervals`; None omits `ci`.

    Returns:
        The five scores as floats, then `n`, `n_subjects`, `n_attributes` and `n_templates` as ints, then `ci`. For
        several runs the scores are means and `n` is a sum; then `n_runs`, and `spread`, the standard deviation of every
        score.
    """
    sums = runs[0]
    n_templates = sums.errors.shape[0]
    by_run = [headline(sums, np.ones((1, n_templates))) for sums in runs]
    scores = {name: np.array([run[name][0] for run in by_run]) for name in HEADLINES}
    result: dict[str, Any] = {name: float(values.mean()) for name, values in scores.items()}
    result["n"] = sum(int(sums.errors[:, 0].sum()) for sums in runs)
    result["n_subjects"] = len(np.unique(sums.subjects))
    result["n_attributes"] = len(np.unique(sums.attributes))
    result["n_templates"] = n_templates
    if len(runs) > 1:
        result["n_runs"] = len(runs)
        result["spread"] = {name: float(values.std(ddof=1)) for name, values in scores.items()}
    if confidence is not None:
        result["ci"] = {name: [float(end) for end in ends] for name, ends in intervals(runs, confidence).items()}
    return result


def comparative_scores(scores: Mapping[str, Floats]) -> Floats:
    """C(x1, x2) of each row (Eq. 6), shape (n,), in [-1, 1]: above 0 if subject 1 is preferred; NaN if a score is.

    Args:
        scores: as in `measure`.
    """
    return measure(scores)[0]


def ranks(values: npt.ArrayLike, scale: float) -> Integers:
    """Ranks from the largest value to the smallest; equal values share the lower rank.

    Values that differ by rounding are equal: they are compared to 12 decimals of `scale`, for models with small scores.

    Args:
        values: shape (n,), or (n, m) to rank each column.
        scale: average score of the rows behind the values; 0 counts as 1.

    Returns:
        The shape of `values`, from 1.
    """
    ordered = -_rounded(np.asarray(values, dtype=np.float64), scale)
    columns = ordered.reshape(len(ordered), -1).T
    places = [np.searchsorted(np.sort(column), column) + 1 for column in columns]
    return np.array(places, dtype=np.int64).T.reshape(ordered.shape)


def _rounded(values: Floats, scale: float) -> Floats:
    return np.round(values / (scale or 1.0), 12)


def subject_tables(rows: Rows, subjects: Sequence[str], scale: float) -> dict[str, dict[str, Any]]:
    """The gamma, eta and rank of each subject over all its rows."""
    gamma, eta = means(rows.subject1, rows.subject2, len(subjects), rows.comparative)
    columns = {"gamma": gamma, "eta_subject": eta, "rank": ranks(gamma, scale)}
    return {key: dict(zip(subjects, values.tolist(), strict=True)) for key, values in columns.items()}


def pair_tables(
    sums: Sums, subjects: Sequence[str], attributes: Sequence[str], scale: float, top_k: int
) -> dict[str, Any]:
    """The gamma and eta of each subject with each attribute.

    Args:
        sums: sums of all rows.
        subjects: names of the subject codes.
        attributes: names of the attribute codes.
        scale: as in `ranks`.
        top_k: length of `top`.

    Returns:
        `top`: lists of a subject, an attribute, gamma and eta, the largest |gamma| first; `gamma_attribute` and
        `eta_attribute`: dicts from subject to attribute to number.
    """
    counts = sums.counts.sum(axis=0)
    gamma, eta = (ratio(total.sum(axis=0), counts) for total in (sums.comparative, sums.signs))
    best = np.argsort(-_rounded(np.abs(gamma), scale), kind="stable")[:top_k]
    top = [[subjects[sums.subjects[k]], attributes[sums.attributes[k]], float(gamma[k]), float(eta[k])] for k in best]
    pairs = sums.subjects * len(attributes) + sums.attributes
    return {
        "top": top,
        "gamma_attribute": _nested(pairs, gamma, subjects, attributes),
        "eta_attribute": _nested(pairs, eta, subjects, attributes),
    }


def class_tables(
    rows: Rows, classes: Integers, names: Sequence[str], subjects: Sequence[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """The gamma and eta of each subject for each class of attributes."""
    base, size = classes * len(subjects), len(names) * len(subjects)
    gamma, eta = means(base + rows.subject1, base + rows.subject2, size, rows.comparative)
    columns = {"attribute_class": gamma, "eta_attribute_class": eta}
    return {key: _nested(np.arange(size), values, names, subjects) for key, values in columns.items()}


def cluster_tables(
    rows: Rows, first: Integers, second: Integers, names: Sequence[str], attributes: Sequence[str]
) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """The gamma and eta of each cluster and attribute, over all subjects of the cluster."""
    if not ((first != second) & (first >= 0) & (second >= 0)).any():
        return {}
    width, size = len(attributes), len(names) * len(attributes)
    cells1, cells2 = (np.where(cluster < 0, -1, cluster * width + rows.attribute) for cluster in (first, second))
    columns = means(cells1, cells2, size, rows.comparative)
    gamma, eta = (_nested(np.arange(size), values, names, attributes) for values in columns)
    return {
        "cluster": {
            cluster: {attribute: {"gamma": value, "eta": eta[cluster][attribute]} for attribute, value in means.items()}
            for cluster, means in gamma.items()
        }
    }


def _nested(cells: Integers, values: Floats, outer: Sequence[str], inner: Sequence[str]) -> dict[str, dict[str, float]]:
    """Values of cells (outer code x number of inner codes + inner code) by name, without empty cells (NaN)."""
    nested: dict[str, dict[str, float]] = {}
    for cell, value in zip(cells.tolist(), values.tolist(), strict=True):
        if value == value:
            nested.setdefault(outer[cell // len(inner)], {})[inner[cell % len(inner)]] = value
    return nested


def split(codes: Integers, n: int) -> list[Integers]:
    """The positions of the rows of each of n groups, from the group of each row."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(1, n))
    return np.split(order, starts)


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """Elementwise part / whole, NaN if whole is 0."""
    denominator = np.asarray(whole, dtype=np.float64)
    out = np.full(denominator.shape, np.nan)
    return np.divide(part, denominator, out=out, where=denominator != 0)
