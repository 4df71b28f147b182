"""All of this metric that the qabias engine uses; it can be imported without `evaluate`, which takes seconds.

The engine compares two models row by row, which no result of the metric holds. It takes the names below and no others,
so that everything else here may change.
"""

from typing import Any

from .computing import Computing
from .forms import Items
from .forms import read as _read
from .inputs import Table, runs_of
from .rows import INDEX_COLUMNS, REFERENCES, TEXT_COLUMNS
from .scores import VERSION, count, scores

__all__ = ["COLUMNS", "VERSION", "Computing", "count", "read", "scores"]

COLUMNS = {form: (*TEXT_COLUMNS[form], *INDEX_COLUMNS[form]) for form in TEXT_COLUMNS}
"""For each form the columns that are read."""


def read(rows: Any, form: str) -> Items:
    """Reads and checks rows of a form.

    Args:
        rows: an Arrow table, or any other shape of `references` that `compute` takes.
        form: one of the keys of `COLUMNS`.

    Returns:
        Columns of shape (n,), the arguments of `count`.

    Raises:
        ValueError: a column, a row or a set is not what it should be.
    """
    table = Table.of(REFERENCES, rows)
    return _read(table, form, runs_of(table, None))
