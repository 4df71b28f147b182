"""Reading dataset rows in the shapes that users have them in, column by column, with errors that name the row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import datasets
import numpy as np

from .answers import LABELS, label_code, to_integer

TEXT_COLUMNS = {
    "bbnli": ("subtopic", "kind", "stance", "pair_id"),
    "bbq_nli": (
        *("category", "template_id", "set_id", "name_order", "context_length"),
        *("context_condition", "context_stance", "question_polarity", "statement_about"),
    ),
    "bbq": ("template_id", "set_id", "question_polarity", "context_condition"),
}
"""For each form the columns of strings that are read."""

INDEX_COLUMNS = {
    "bbnli": ("premise_id", "label"),
    "bbq_nli": ("label",),
    "bbq": ("label", "biased_loc", "unknown_loc"),
}
"""For each form the columns of numbers that are read."""

_COLUMNS = {name for table in (TEXT_COLUMNS, INDEX_COLUMNS) for names in table.values() for name in names} | {"sample"}


class Factor:
    """A column of strings as integers: `levels[codes[i]]` is the value of row i."""

    def __init__(self, codes: np.ndarray, levels: tuple[str, ...]) -> None:
        self.codes = codes
        self.levels = levels

    @classmethod
    def of(cls, values: Sequence[str], levels: Sequence[str] | None = None) -> Factor:
        """Codes of `values` in the given levels, or in the sorted values themselves."""
        ordered = tuple(sorted(set(values)) if levels is None else levels)
        code = {value: number for number, value in enumerate(ordered)}
        return cls(np.fromiter((code[value] for value in values), dtype=np.int64, count=len(values)), ordered)


class References:
    """Dataset rows in any of the three accepted shapes, read column by column and only where asked."""

    def __init__(self, n: int, names: set[str], read: Callable[[str], list[Any]]) -> None:
        self.n = n
        self.names = names
        self._read = read

    def column(self, name: str) -> list[Any]:
        """The values of one column, one a row; a ValueError if a row has none."""
        return self._read(name)

    @classmethod
    def joined(cls, parts: Sequence[References]) -> References:
        """The rows of several batches one after another."""
        return cls(
            sum(part.n for part in parts),
            {name for part in parts for name in part.names},
            lambda name: [value for part in parts for value in part.column(name)],
        )

    @classmethod
    def of(cls, references: Any) -> References:
        """Wraps what the user passed; nothing is read yet but lists are copied, for the user may reuse them."""
        if isinstance(references, References):
            return references
        if isinstance(references, (datasets.DatasetDict, datasets.IterableDatasetDict)):
            raise ValueError(
                f"bbnli: references hold the splits {list(references)}; pass one of them, e.g. "
                "references=dataset['test']"
            )
        if isinstance(references, datasets.Dataset):
            always = [name for name in references.column_names if name in _COLUMNS]
            known = _dataset_columns(references, always)  # in one go: a shuffled dataset is slow to read
            return cls(
                references.num_rows,
                set(references.column_names),
                lambda name: known[name] if name in known else _dataset_columns(references, [name])[name],
            )
        if hasattr(references, "keys"):
            columns = {str(name): to_list(references[name], f"references column {name!r}") for name in references}
            lengths = {name: len(values) for name, values in columns.items()}
            if len(set(lengths.values())) > 1:
                raise ValueError(f"bbnli: references: the columns differ in length ({lengths}); pass one value a row")
            return cls(max(lengths.values(), default=0), set(columns), lambda name: _mapped_column(columns, name))
        rows = list(to_list(references, "references"))
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ValueError(f"bbnli: references row {number}: {row!r} is not a dict of columns; pass dataset rows")
        return cls(len(rows), {name for row in rows for name in row}, lambda name: _row_column(rows, name))


def _no_column(name: str, row: int | None = None) -> ValueError:
    where = "" if row is None else f" row {row}"
    return ValueError(f"bbnli: references{where}: column {name!r} is missing; pass the rows of the dataset as they are")


def _dataset_columns(dataset: datasets.Dataset, names: Sequence[str]) -> dict[str, list[Any]]:
    """The named columns as lists, class labels as their names; no other column is read."""
    for name in names:
        if name not in dataset.column_names:
            raise _no_column(name)
    table = dataset.select_columns(list(names)).with_format("arrow")[:]
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in names}
    for name in names:
        feature = dataset.features[name]
        # The labels of BBQ are places, whatever their names are; those of inference are told by name, not by number.
        if isinstance(feature, datasets.ClassLabel) and (name != "label" or set(feature.names) == set(LABELS)):
            columns[name] = [value if value is None else feature.int2str(value) for value in columns[name]]
    return columns


def _mapped_column(columns: Mapping[str, list[Any]], name: str) -> list[Any]:
    if name not in columns:
        raise _no_column(name)
    return columns[name]


def _row_column(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    try:
        return list(map(operator.itemgetter(name), rows))
    except KeyError:
        raise _no_column(name, next(number for number, row in enumerate(rows) if name not in row)) from None


def to_list(values: Any, what: str) -> list[Any]:
    """The items of a list, tuple, array, tensor, series or dataset column as a new list of Python values."""
    for method in ("tolist", "to_pylist"):
        if hasattr(values, method):
            items = getattr(values, method)()
            break
    else:
        items = values[:] if isinstance(values, Sequence) else values
    if isinstance(items, (str, bytes, Mapping)) or not hasattr(items, "__iter__"):
        raise ValueError(f"bbnli: {what} are a {type(values).__name__}; pass a list with one value a row")
    return list(items)


def text_column(rows: References, name: str, levels: Sequence[str] | None = None) -> Factor:
    """A column of strings, each one of `levels` if these are given; a ValueError names the first row that is not."""
    values = rows.column(name)
    try:
        if levels is None and set(map(type, values)) != {str}:
            raise TypeError
        return Factor.of(values, levels)
    except (KeyError, TypeError):
        rule = f"one of {tuple(levels)}" if levels else "a string"
        number, value = next(
            (number, value)
            for number, value in enumerate(values)
            if not isinstance(value, str) or (levels is not None and value not in levels)
        )
        raise ValueError(f"bbnli: references row {number}: {name} {value!r} is not {rule}") from None


def index_column(rows: References, name: str, low: int, high: int) -> np.ndarray:
    """A column of integers from `low` to `high`, int64 of shape (n,); a ValueError names the first row that is not."""
    return _integers(rows.column(name), to_integer, name, low, high, f"an integer from {low} to {high}")


def label_column(rows: References) -> np.ndarray:
    """The right labels as numbers, int64 of shape (n,), from numbers or names; a ValueError names a bad row."""
    return _integers(rows.column("label"), label_code, "label", 0, 2, f"one of 0, 1 and 2 or of {LABELS}")


def _integers(
    values: Sequence[Any], read: Callable[[Any], int | None], name: str, low: int, high: int, rule: str
) -> np.ndarray:
    plain = set(map(type, values)) == {int}
    integers = values if plain else [read(value) for value in values]
    for number, integer in enumerate(integers):
        if integer is None or not low <= integer <= high:
            raise ValueError(f"bbnli: references row {number}: {name} {values[number]!r} is not {rule}")
    return np.array(integers, dtype=np.int64)


def value_column(rows: References, name: str) -> list[Any]:
    """A column of single values of any kind; a ValueError names the first row that has a list, dict or array."""
    values = rows.column(name)
    for number, value in enumerate(values):
        if isinstance(value, (list, dict, np.ndarray)):
            raise ValueError(f"bbnli: references row {number}: {name} {value!r} is not a single value")
    return values
