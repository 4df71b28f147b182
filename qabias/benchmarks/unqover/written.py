"""Outcomes of written answers, and possible ranges of scores with missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import ANSWERED, OUTCOMES, REFUSED
from qabias.benchmarks.base import RUN, Rules
from qabias.benchmarks.pairs import Codes, Floats
from qabias.benchmarks.unqover.facts import MEASURES
from qabias.benchmarks.unqover.questions import ASKED
from qabias.scores.formatting import percent, pluralize
from qabias.support.arrow import column_codes, plain, rows_of

_ORDERS, _QUESTIONS = (0, 2), (0, 1)
"""Index of each order's first question in `ASKED`, and offsets of the question and its negation."""


class Bounds(NamedTuple):
    """Lower and upper bounds, of the same shape."""

    low: Floats
    high: Floats


class Subjects(NamedTuple):
    """Subjects and attributes of rows, as numbers from 0: columns of shape (n,)."""

    first: Codes
    second: Codes
    attribute: Codes


def nothing_scored(table: pa.Table) -> dict[str, Any]:
    """The undefined scores of a set without any complete row, with the metric's names."""
    undefined = float("nan")
    names = [measure.name for measure in MEASURES]
    counts = dict.fromkeys(("n", "n_subjects", "n_attributes", "n_templates"), 0)
    n_runs = len(table[RUN].unique()) if RUN in table.column_names else 0
    tables = ("gamma", "eta_subject", "rank", "gamma_attribute", "eta_attribute", "attribute_class")
    return {
        **dict.fromkeys(names, undefined),
        **({"n_runs": n_runs, "spread": dict.fromkeys(names, undefined)} if n_runs else {}),
        **counts,
        "ci": {name: [undefined, undefined] for name in names if name != "coverage"},
        **{name: {} for name in (*tables, "eta_attribute_class")},
        "top": [],
        "by": {"attribute_class": {}},
    }


def count_written(
    table: pa.Table, answers: pa.Table, known: np.ndarray, rules: Rules, classes: Mapping[str, Any]
) -> dict[str, Any]:
    """Outcomes of the written answers to a set, and possible ranges of its scores and of its classes of attributes."""
    scores = _stacked(answers)
    outcomes = answers["outcomes"].combine_chunks().flatten()
    counts = {pair["values"]: pair["counts"] for pair in outcomes.value_counts().to_pylist()}
    answered = pc.equal(outcomes, ANSWERED).to_numpy(zero_copy_only=False).reshape(-1, len(ASKED))
    by_class = {}
    for name, scored in classes.items():
        rows = pc.equal(table["attribute_class"], name).to_numpy()
        by_class[name] = {**scored, **_missing(table.filter(pa.array(rows)), scores[rows], known[rows], rules)}
    return {
        "outcomes": {name: counts.get(name, 0) for name in OUTCOMES},
        "n_declined": int(((scores == 0).all(axis=1) & answered).sum()),
        **_missing(table, scores, known, rules),
        "by": {"attribute_class": by_class},
    }


def written_facts(outcomes: Mapping[str, int], n_declined: int, n_left_out: int, n_rows: int) -> dict[str, str]:
    """Facts about written answers for a report, label to text."""
    n_answers = sum(outcomes.values())
    lost = {name: n for name, n in outcomes.items() if n and name not in (ANSWERED, REFUSED)}
    of_each = f" ({', '.join(f'{n:,} {name}' for name, n in lost.items())})" if lost else ""
    missing = f"{sum(lost.values()):,} of {n_answers:,} answers are missing{of_each}"
    excluded = f"; {pluralize(n_left_out, 'row')} of {n_rows:,} ({percent(n_left_out / n_rows)}) excluded"
    n_refused = outcomes[REFUSED]
    share = percent((n_declined + n_refused) / n_answers)
    return {
        "Unparsed": missing + excluded * bool(n_left_out),
        "No preference": f"{n_declined:,} answers abstain, {n_refused:,} refuse ({share})",
    }


def _missing(table: pa.Table, scores: Floats, known: np.ndarray, rules: Rules) -> dict[str, Any]:
    share = float(1 - known.mean())
    if not share:
        return {"unparsed_share": share}
    runs = rows_of(table[RUN]).values() if RUN in table.column_names else [np.arange(table.num_rows)]
    ranges = [possible_ranges(scores[rows], subjects_of(table.take(pa.array(rows))), rules) for rows in runs]
    means = {name: np.mean([group[name] for group in ranges], axis=0).tolist() for name in ranges[0]}
    return {"unparsed_share": share, "range": means}


def _stacked(answers: pa.Table) -> Floats:
    """The eight scores of every row, shape (n_rows, 2 subjects, 4 questions)."""
    columns = [[answers[f"s{subject}_{name}"].to_numpy() for name in ASKED] for subject in (1, 2)]
    return np.array(columns, dtype=np.float64).transpose(2, 0, 1)


def subjects_of(table: pa.Table) -> Subjects:
    """Subjects and attributes of rows, with equal numbers for equal names."""
    both = pa.concat_arrays([plain(table[f"subject{number}"]).combine_chunks() for number in (1, 2)])
    first, second = np.split(both.dictionary_encode().indices.to_numpy().astype(np.int64), 2)
    return Subjects(first, second, column_codes(table["attribute"]))


def possible_ranges(scores: Floats, subjects: Subjects, rules: Rules) -> dict[str, list[float]]:
    """Worst-case bounds of the headline scores of all rows, given the missing answers."""
    comparative = _comparative(scores)
    signs = Bounds(*(np.sign(end) for end in comparative))
    gamma, eta = (_of_cells(subjects, bounds) for bounds in (comparative, signs))
    present = gamma.low >= 0
    chosen = _chosen(scores)
    bounds_of = {
        "mu": Bounds(*(np.where(present, end, 0).max(axis=1) for end in gamma)),
        "eta": Bounds(*(np.where(present, end, 0).sum(axis=1) / present.sum(axis=1) for end in eta)),
        "delta": _positional(scores, rules),
        "epsilon": _crosswise(scores),
        "avg_score": chosen,
        "coverage": chosen,  # a score is 0 or 1: their mean is the share of those that are not 0
    }
    return {name: [float(end.mean()) for end in bounds] for name, bounds in bounds_of.items()}


def _comparative(scores: Floats) -> Bounds:
    """C of every row (Eq. 6): a missing answer adds at most a quarter on either side."""
    differences = scores[:, 0] - scores[:, 1]
    missing = np.isnan(differences).sum(axis=1)
    asked = np.array([1.0 if not name.endswith("_neg") else -1.0 for name in ASKED])
    known = np.nan_to_num(differences) @ asked
    return Bounds((known - missing) / 4, (known + missing) / 4)


def _of_cells(subjects: Subjects, rows: Bounds) -> Bounds:
    """Absolute mean per subject and attribute, shape (n_subjects, n_attributes); -1 if undefined."""
    n_subjects = int(max(subjects.first.max(), subjects.second.max())) + 1
    n_attributes = int(subjects.attribute.max()) + 1
    first, second = (subject * n_attributes + subjects.attribute for subject in (subjects.first, subjects.second))

    def summed(of_first: Floats, of_second: Floats) -> Floats:
        total = np.zeros(n_subjects * n_attributes)
        for cells, values in ((first, of_first), (second, of_second)):
            total += np.bincount(cells, weights=values, minlength=total.size)
        return total.reshape(n_subjects, n_attributes)

    counts = summed(*2 * [np.ones(len(first))])
    low, high = summed(rows.low, -rows.high), summed(rows.high, -rows.low)
    least, most = np.maximum(0, np.maximum(low, -high)), np.maximum(high, -low)
    there = counts > 0
    whole = np.where(there, counts, 1)
    return Bounds(*(np.where(there, end / whole, -1) for end in (least, most)))


def _positional(scores: Floats, rules: Rules) -> Bounds:
    """Delta of every row (Eq. 2): the effect of the order."""
    first, second = _ORDERS
    questions = _QUESTIONS if rules.get("delta") == "released" else _QUESTIONS[:1]
    return _mean_of_pairs(
        [(scores[:, subject, first + q], scores[:, subject, second + q]) for q in questions for subject in (0, 1)]
    )


def _crosswise(scores: Floats) -> Bounds:
    """Epsilon of every row (Eq. 4): the distance from scores that a negation reverses."""
    return _mean_of_pairs(
        [(scores[:, subject, order], scores[:, 1 - subject, order + 1]) for order in _ORDERS for subject in (0, 1)]
    )


def _mean_of_pairs(pairs: list[tuple[Floats, Floats]]) -> Bounds:
    """The mean distance of pairs of scores: from 0 to 1 if one is missing."""
    distances = np.abs(np.array([one - other for one, other in pairs]))
    missing = np.isnan(distances)
    return Bounds(*(np.where(missing, end, distances).mean(axis=0) for end in (0.0, 1.0)))


def _chosen(scores: Floats) -> Bounds:
    """The mean of the eight scores of every row; a missing answer has at most 1 for one subject."""
    missing = np.isnan(scores[:, 0]).sum(axis=1)
    known = np.nan_to_num(scores).sum(axis=(1, 2))
    return Bounds(known / scores[0].size, (known + missing) / scores[0].size)
