"""Scores, counts and intervals of a selection of rows, from the counts of `scores.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .intervals import Estimated, Shape, intervals
from .intervals import spreads as clustered
from .scores import (
    CONTEXTS,
    FIELDS,
    Floats,
    bounds,
    mean_over_runs,
    parts_of_bias,
    ranges,
    scores_from_counts,
    shapes,
    wrong_answers,
)


def spreads(counts: npt.ArrayLike, confidence: float = 0.95, unparsed: str = "exclude") -> dict[str, Estimated]:
    """What intervals and detectable sizes are made of, for each name of `SCORES`.

    The rows of one template share their text and are far from independent, so that templates are what is drawn; see
    the module `intervals`. The rows of all runs of a template belong together, because they are the same questions.

    Args:
        counts: shape (T, ..., R, K), the counts of T clusters and R runs, columns as in `FIELDS`.
        confidence: level of the intervals, above 0 and below 1.
        unparsed: see `scores_from_counts`.
    """
    return clustered(counts, *_by(unparsed), confidence)


def summarize(
    counts: npt.ArrayLike,
    confidence: float | None = 0.95,
    unparsed: str = "exclude",
) -> dict[str, Any]:
    """Scores, counts and intervals of one selection of rows.

    Args:
        counts: shape (T, K), one row per template, columns as in `FIELDS`; (T, R, K) for R runs over the same rows.
        confidence: see `spreads`; None omits `ci` and `detectable`.
        unparsed: see `scores_from_counts`.

    Returns:
        The scores, `bounds` and `parts_of_bias` as floats, then these:

        * counts as ints: `n`, `n_ambig`, `n_disambig` and `n_unparsed_*` are all rows; `n_correct_*` the numerators of
          the accuracies; `n_biased_*`, `n_counter_biased_*`, `n_unknown_*`, `n_probabilities_*` and
          `n_without_probabilities_*` rows with a defined target; `n_aligned` and `n_nonaligned` the denominators of the
          two accuracies, `n_unknown_*` and `n_wrong_person_*` of these sides the wrong answers; `n_undefined_target`;
          `n_templates`;
        * `range` from `ranges`, if answers are missing or only some rows have probabilities;
        * `ci`, and `detectable`: for each score with neutral value 0 the minimum detectable effect.

        For several runs the scores are means and the counts sums; then `n_runs`, and `spread`, the standard deviation
        of every score over the runs.
    """
    return summarize_each([counts], confidence, unparsed)[0]


def summarize_each(
    selections: Sequence[npt.ArrayLike], confidence: float | None = 0.95, unparsed: str = "exclude"
) -> list[dict[str, Any]]:
    """The result of `summarize` for each of several selections of the rows of the same runs, computed together."""
    matrices = [_with_runs(counts) for counts in selections]
    totals = np.stack([matrix.sum(axis=0) for matrix in matrices])
    by_run = scores_from_counts(totals, unparsed)
    estimates = {name: values.mean(axis=-1) for name, values in by_run.items()}
    estimates |= bounds(totals, unparsed) | parts_of_bias(totals)
    possible, counted = ranges(totals), totals.sum(axis=1).astype(np.int64).tolist()
    results = []
    for place, matrix in enumerate(matrices):
        result: dict[str, Any] = {name: float(values[place]) for name, values in estimates.items()}
        result |= _counts_of(dict(zip(FIELDS, counted[place], strict=True)), unparsed)
        result["n_templates"] = len(matrix)
        if _lacks(result):
            result["range"] = {name: [float(end[place]) for end in ends] for name, ends in possible.items()}
        if matrix.shape[1] > 1:
            result["n_runs"] = matrix.shape[1]
            result["spread"] = {name: float(values[place].std(ddof=1)) for name, values in by_run.items()}
        results.append(result)
    if confidence is not None:
        for result, of_scores in zip(results, intervals(matrices, *_by(unparsed), confidence), strict=True):
            result |= of_scores
    return results


def _by(unparsed: str) -> tuple[Callable[[Floats], dict[str, Floats]], Callable[[Floats], dict[str, Shape]]]:
    """Scores and their shapes by a rule, as functions of counts."""
    return partial(mean_over_runs, unparsed=unparsed), partial(shapes, unparsed=unparsed)


def _counts_of(total: Mapping[str, int], unparsed: str) -> dict[str, int]:
    """The counts of a result, from the sums of the columns."""
    result = {"n": total["rows_ambig"] + total["rows_disambig"]}
    for context in CONTEXTS:
        result[f"n_{context}"] = total[f"rows_{context}"]
    for event in ("correct", "biased", "counter_biased", "unknown", "unparsed"):
        for context in CONTEXTS:
            result[f"n_{event}_{context}"] = total[f"{event}_{context}"]
    for side in ("aligned", "nonaligned"):
        dropped = total[f"unparsed_{side}"] if unparsed == "exclude" else 0
        result[f"n_{side}"] = total[f"rows_{side}"] - dropped
    for event, by_side in wrong_answers(total).items():
        name = "unknown" if event == "abstention" else event
        result |= {f"n_{name}_{side}": number for side, number in by_side.items()}
    result["n_undefined_target"] = total["undefined_target"]
    for context in CONTEXTS:
        defined = sum(total[f"{event}_{context}"] for event in ("biased", "counter_biased", "unknown", "lost"))
        result[f"n_probabilities_{context}"] = total[f"probabilities_{context}"]
        result[f"n_without_probabilities_{context}"] = defined - total[f"probabilities_{context}"]
    return result


def _lacks(result: Mapping[str, Any]) -> bool:
    """Whether answers are missing, or probabilities in some rows."""
    return any(
        result[f"n_unparsed_{context}"]
        or (result[f"n_probabilities_{context}"] and result[f"n_without_probabilities_{context}"])
        for context in CONTEXTS
    )


def left_out(result: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A result of `summarize` without some keys, also in `ci`, `range` and `spread`."""
    return {
        key: left_out(value, names) if isinstance(value, dict) else value
        for key, value in result.items()
        if key not in names
    }


def _with_runs(counts: npt.ArrayLike) -> Floats:
    """Counts of shape (T, K) or (T, R, K) as an array of shape (T, R, K)."""
    matrix = np.asarray(counts, dtype=np.float64)
    return matrix if matrix.ndim == 3 else matrix[:, None]
