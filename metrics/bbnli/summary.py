"""What a selection of rows comes to: scores, shares, counts and intervals from the counts of `scores.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .scores import ANSWERS, PARTS, Floats, Integers, ranges, ratio, scores, tally

_OPEN, _PRO, _ANTI = range(len(PARTS))


def bootstrap(
    form: str,
    counts: npt.ArrayLike,
    n_bootstrap: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    denominator: str = "paper",
    unparsed: str = "wrong",
) -> dict[str, list[float]]:
    """Percentile intervals of all scores from a bootstrap that draws whole clusters.

    The rows of one premise (BBNLI) or template (BBQ) share their text and are far from independent, so C clusters are
    drawn with replacement out of C: a replicate is one multinomial weight for each. The rows of all runs of a cluster
    are drawn together, because they are the same questions.

    Args:
        form: one of `FORMS`.
        counts: shape (C, S, 3, K), as `count` gives them; of R runs over the same rows (C, R, S, 3, K).
        n_bootstrap: number of replicates, at least 1.
        seed: seed of `numpy.random.default_rng`.
        confidence: share of the replicates inside the interval, above 0 and below 1.
        denominator: see `bbnli_scores` and `bbq_scores`.
        unparsed: see `bbnli_scores`.

    Returns:
        For each score the pair [low, high], taken over the replicates in which the score is defined. Both are NaN if
        there are fewer than 2 clusters or the score itself is undefined.
    """
    matrix = _with_runs(counts).astype(np.float64)
    n_clusters = matrix.shape[0]
    estimates = mean_over_runs(form, matrix.sum(axis=0), denominator, unparsed)
    if n_clusters < 2:
        return {name: [float("nan"), float("nan")] for name in estimates}
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(n_clusters, np.full(n_clusters, 1.0 / n_clusters), size=n_bootstrap)
    sums = (weights @ matrix.reshape(n_clusters, -1)).reshape(n_bootstrap, *matrix.shape[1:])
    tail = (1.0 - confidence) / 2.0
    intervals = {}
    for name, values in mean_over_runs(form, sums, denominator, unparsed).items():
        defined = values[~np.isnan(values)]
        if np.isnan(estimates[name]) or defined.size == 0:
            intervals[name] = [float("nan"), float("nan")]
        else:
            low, high = np.quantile(defined, [tail, 1.0 - tail])
            intervals[name] = [float(low), float(high)]
    return intervals


def summarize(
    form: str,
    counts: npt.ArrayLike,
    n_bootstrap: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    denominator: str = "paper",
    unparsed: str = "wrong",
) -> dict[str, Any]:
    """Scores, shares, counts and intervals of one selection of rows.

    Args:
        form: one of `FORMS`.
        counts: shape (C, S, 3, K), as `count` gives them; of R runs over the same rows (C, R, S, 3, K).
        n_bootstrap: number of bootstrap replicates; 0 leaves the key `ci` out.
        seed: see `bootstrap`.
        confidence: see `bootstrap`.
        denominator: see `bbnli_scores` and `bbq_scores`.
        unparsed: see `bbnli_scores`.

    Returns:
        The scores as floats, then `label_share` (of the three answers and of unparsed ones, over all rows), the counts
        as ints (always all rows, whatever `unparsed` is), then, if there are unparsed answers, `range`: for each score
        of `RANGED` what it could be with them, as `ranges` gives it, then `ci`. Of several runs the scores are means
        and the shares and counts those of all answers; then `n_runs`, and `spread`, the standard deviation of every
        score over the runs.
    """
    by_run = _with_runs(counts)
    found = scores(form, by_run.sum(axis=0), denominator, unparsed)
    result: dict[str, Any] = {name: float(values.mean()) for name, values in found.items()}
    matrix = by_run.sum(axis=1)
    parts = matrix.sum(axis=(0, 1))
    answers = (*ANSWERS[form], "unparsed")
    shares = ratio(parts[:, : len(answers)].sum(axis=0), parts[:, : len(answers)].sum())
    result["label_share"] = dict(zip(answers, map(float, shares), strict=True))
    result |= _bbnli_counts(matrix) if form == "bbnli" else _bbq_counts(matrix)
    if result["n_unparsed"]:
        ends = ranges(form, by_run.sum(axis=0), denominator)
        result["range"] = {name: [float(low.mean()), float(high.mean())] for name, (low, high) in ends.items()}
    if by_run.shape[1] > 1:
        result["n_runs"] = by_run.shape[1]
        result["spread"] = {name: float(values.std(ddof=1)) for name, values in found.items()}
    if n_bootstrap > 0:
        result["ci"] = bootstrap(form, by_run, n_bootstrap, seed, confidence, denominator, unparsed)
    return result


def mean_over_runs(
    form: str, counts: npt.ArrayLike, denominator: str = "paper", unparsed: str = "wrong"
) -> dict[str, Floats]:
    """The mean over runs of every score, NaN where it is undefined in one of them.

    Args:
        form: one of `FORMS`.
        counts: shape (..., R, S, 3, K), counts of R runs summed over clusters.
        denominator: see `bbnli_scores` and `bbq_scores`.
        unparsed: see `bbnli_scores`.

    Returns:
        For each score an array of shape (...).
    """
    return {name: values.mean(axis=-1) for name, values in scores(form, counts, denominator, unparsed).items()}


def _with_runs(counts: npt.ArrayLike) -> Integers:
    """Counts of shape (C, S, 3, K) or (C, R, S, 3, K) as an array of shape (C, R, S, 3, K)."""
    matrix = np.asarray(counts)
    return matrix if matrix.ndim == 5 else matrix[:, None]


def _bbnli_counts(counts: Integers) -> dict[str, int]:
    sums = tally(counts.sum(axis=(0, 1)), "wrong")
    result = {
        "n": sums.n.sum(),
        "n_bias": sums.n[_OPEN],
        "n_test": sums.n[_PRO] + sums.n[_ANTI],
        "n_test_pro": sums.n[_PRO],
        "n_test_anti": sums.n[_ANTI],
        "n_aligned": sums.aligned[_OPEN],
        "n_opposed": sums.opposed[_OPEN],
        "n_neutral": sums.n[_OPEN] - sums.definite[_OPEN] - sums.unparsed[_OPEN],
        "n_unparsed_bias": sums.unparsed[_OPEN],
        "n_unparsed": sums.unparsed.sum(),
        "n_subtopics": (counts[:, :, _OPEN].sum(axis=(0, 2)) > 0).sum(),
        "n_premises": counts.shape[0],
    }
    return {name: int(number) for name, number in result.items()}


def _bbq_counts(counts: Integers) -> dict[str, int]:
    sums = tally(counts.sum(axis=(0, 1)), "wrong")
    both = slice(_PRO, None)
    result = {"n": sums.n.sum(), "n_ambig": sums.n[_OPEN], "n_disambig": sums.n[both].sum()}
    result |= {"n_pro": sums.n[_PRO], "n_anti": sums.n[_ANTI]}
    neutral = sums.n - sums.definite - sums.unparsed
    for context, parts in (("ambig", slice(_OPEN, _PRO)), ("disambig", both)):
        result[f"n_aligned_{context}"] = sums.aligned[parts].sum()
        result[f"n_opposed_{context}"] = sums.opposed[parts].sum()
        result[f"n_definite_{context}"] = sums.definite[parts].sum()
        result[f"n_neutral_{context}"] = neutral[parts].sum()
        result[f"n_unparsed_{context}"] = sums.unparsed[parts].sum()
    result["n_unparsed"] = sums.unparsed.sum()
    result["n_templates"] = counts.shape[0]
    return {name: int(number) for name, number in result.items()}
