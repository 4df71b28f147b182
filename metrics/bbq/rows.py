"""Rows of BBQ: the right answer, the biased answer, and the sets and templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .inputs import Factor, Source, Table, check_runs, crossed
from .scores import CONTEXTS, POLARITIES
from .values import shown

TEXT_COLUMNS = ("category", "template_id", "set_id", "question_polarity", "context_condition")
"""Columns of strings that are read."""

INDEX_COLUMNS = ("example_id", "label", "target_loc", "biased_loc", "unknown_loc")
"""Columns of numbers that are read. Their class labels are positions of answers, whatever their names."""

REFERENCES = Source(
    "bbq", "references", "the unchanged rows of the BBQ dataset", lambda column, names: column not in INDEX_COLUMNS
)

NAME_CATEGORIES = ("Gender_identity", "Race_ethnicity")
"""Categories that the paper splits into descriptions and proper names."""


class Items(NamedTuple):
    """Columns of shape (n,), with the meaning of the arguments of `scores.count`."""

    labels: np.ndarray
    target: np.ndarray
    biased: np.ndarray
    unknown: np.ndarray
    disambiguated: np.ndarray
    templates: Factor


def paper_category(category: str, label_type: Any) -> str:
    """The category, with " (names)" if a row of `NAME_CATEGORIES` uses proper names, as in the paper."""
    return f"{category} (names)" if category in NAME_CATEGORIES and label_type == "name" else category


def group(rows: Table, columns: Sequence[str]) -> Factor:
    """The rows' values in the named columns, joined by ","; "paper_category" calls `paper_category`."""
    known = ("paper_category",)
    return crossed([_paper_categories(rows) if name in known else rows.values(name, known) for name in columns])


def _paper_categories(rows: Table) -> Factor:
    return crossed([rows.values("category"), rows.values("label_type")], lambda values: paper_category(*values))


def read(rows: Table, allow_incomplete: bool, runs: Factor) -> Items:
    """Reads and checks the rows; a ValueError names the wrong row, column and value."""
    category, template, set_id = (rows.text(name) for name in ("category", "template_id", "set_id"))
    nonneg = rows.text("question_polarity", POLARITIES).codes == POLARITIES.index("nonneg")
    disambiguated = rows.text("context_condition", CONTEXTS).codes == CONTEXTS.index("disambig")
    example_id, label = rows.integers("example_id"), rows.integers("label", 0, 2)
    target, biased = rows.integers("target_loc", -1, 2), rows.integers("biased_loc", -1, 2)
    unknown = rows.integers("unknown_loc", 0, 2)
    items = Items(label, target, biased, unknown, disambiguated, template)
    _check_roles(rows, items, nonneg)
    _check_unique(rows, category, example_id, runs)
    check_runs(rows, runs, category.codes, np.unique(example_id, return_inverse=True)[1])
    if not allow_incomplete:
        _check_sets(rows, set_id, disambiguated, nonneg)
    return items


def _check_roles(rows: Table, items: Items, nonneg: np.ndarray) -> None:
    """Checks that the four index columns of each row agree."""
    label, target, biased, unknown, disambiguated, _ = items
    defined = biased >= 0
    for broken, name, rule in (
        (biased == unknown, "biased_loc", "equals unknown_loc, but the biased answer is a person"),
        (target == unknown, "target_loc", "equals unknown_loc, but the target is a person"),
        (
            defined != (target >= 0),
            "biased_loc",
            "disagrees with target_loc: both are -1 if the target is undefined",
        ),
        (
            defined & ~nonneg & (biased != target),
            "biased_loc",
            "differs from target_loc, but with question_polarity 'neg' the biased answer is the target",
        ),
        (
            defined & nonneg & (biased == target),
            "biased_loc",
            "equals target_loc, but with question_polarity 'nonneg' the biased answer is the other person",
        ),
        (
            ~disambiguated & (label != unknown),
            "label",
            "differs from unknown_loc, but with context_condition 'ambig' UNKNOWN is right",
        ),
        (
            disambiguated & (label == unknown),
            "label",
            "equals unknown_loc, but with context_condition 'disambig' a person is right",
        ),
    ):
        rows.refuse(broken, name, rule)


def _check_unique(rows: Table, category: Factor, example_id: np.ndarray, runs: Factor) -> None:
    columns = (runs.codes, example_id, category.codes)
    order = np.lexsort(columns)
    same = np.all([np.diff(column[order]) == 0 for column in columns], axis=0)
    if same.any():
        first, second = sorted(order[[int(np.argmax(same)), int(np.argmax(same)) + 1]].tolist())
        named = f"example_id {example_id[second]} of category {shown(category.levels[category.codes[second]])}"
        raise rows.source.error(f": {named} repeats row {first}", "pass every example once", second)


def _check_sets(rows: Table, set_id: Factor, disambiguated: np.ndarray, nonneg: np.ndarray) -> None:
    """Checks that a set has equally many rows of both polarities, in each context."""
    cell = set_id.codes * 2 + disambiguated
    n_cells = 2 * len(set_id.levels)
    n_nonneg = np.bincount(cell[nonneg], minlength=n_cells)
    n_neg = np.bincount(cell[~nonneg], minlength=n_cells)
    lopsided = (n_neg != n_nonneg)[cell]
    if lopsided.any():
        number = int(np.argmax(lopsided))
        at = cell[number]
        raise rows.source.error(
            f": set_id {shown(set_id.levels[set_id.codes[number]])} has {n_neg[at]} 'neg' and {n_nonneg[at]} 'nonneg' "
            f"rows with context_condition {CONTEXTS[int(disambiguated[number])]!r}",
            "pass whole sets, or allow_incomplete=True (half a set makes the bias scores lopsided)",
            number,
        )
