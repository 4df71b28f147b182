"""Columns of each form."""

from __future__ import annotations

from .answers import LABELS, label_code
from .inputs import Source, Table
from .values import Integers

TEXT_COLUMNS = {
    "bbnli": ("subtopic", "kind", "stance", "pair_id"),
    "bbq_nli": (
        *("category", "template_id", "set_id", "name_order", "context_length"),
        *("context_condition", "context_stance", "question_polarity", "statement_about"),
    ),
    "bbq": ("template_id", "set_id", "question_polarity", "context_condition"),
}
"""Columns of strings that are read, by form."""

INDEX_COLUMNS = {
    "bbnli": ("premise_id", "label"),
    "bbq_nli": ("label",),
    "bbq": ("label", "biased_loc", "unknown_loc"),
}
"""Columns of numbers that are read, by form."""

REFERENCES = Source(
    "bbnli",
    "references",
    "the unchanged rows of the dataset",
    # BBQ's labels are positions, whatever their names; inference labels count by name, not by number.
    lambda column, names: column != "label" or set(names) == set(LABELS),
)


def label_column(rows: Table) -> Integers:
    """The right labels as numbers of shape (n,), from numbers or names; a ValueError names a bad row."""
    return rows.integers("label", 0, 2, label_code, f"one of 0, 1 and 2 or of {LABELS}")
