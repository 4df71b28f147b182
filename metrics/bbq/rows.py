"""Reading dataset rows in the shapes that users have them in, column by column, with errors that name the row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import datasets
import numpy as np

TEXT_COLUMNS = ("category", "template_id", "set_id", "question_polarity", "context_condition")
INDEX_COLUMNS = ("example_id", "label", "target_loc", "biased_loc", "unknown_loc")


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

    def __init__(self, n: int, read: Callable[[str], list[Any]]) -> None:
        self.n = n
        self._read = read

    def column(self, name: str) -> list[Any]:
        """The values of one column, one a row; a ValueError if a row has none."""
        return self._read(name)

    @classmethod
    def joined(cls, parts: Sequence[References]) -> References:
        """The rows of several batches one after another."""
        return cls(sum(part.n for part in parts), lambda name: [v for part in parts for v in part.column(name)])

    @classmethod
    def of(cls, references: Any) -> References:
        """Wraps what the user passed; nothing is read yet but lists are copied, for the user may reuse them."""
        if isinstance(references, References):
            return references
        if isinstance(references, (datasets.DatasetDict, datasets.IterableDatasetDict)):
            raise ValueError(
                f"bbq: references hold the splits {list(references)}; pass one of them, e.g. references=dataset['test']"
            )
        if isinstance(references, datasets.Dataset):
            always = [name for name in (*TEXT_COLUMNS, *INDEX_COLUMNS) if name in references.column_names]
            known = _dataset_columns(references, always)  # in one go: a shuffled dataset is slow to read
            return cls(
                references.num_rows,
                lambda name: known[name] if name in known else _dataset_columns(references, [name])[name],
            )
        if hasattr(references, "keys"):
            columns = {str(name): to_list(references[name], f"references column {name!r}") for name in references}
            lengths = {name: len(values) for name, values in columns.items()}
            if len(set(lengths.values())) > 1:
                raise ValueError(f"bbq: references: the columns differ in length ({lengths}); pass one value a row")
            return cls(max(lengths.values(), default=0), lambda name: _mapped_column(columns, name))
        rows = list(to_list(references, "references"))
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ValueError(f"bbq: references row {number}: {row!r} is not a dict of columns; pass dataset rows")
        return cls(len(rows), lambda name: _row_column(rows, name))


def _no_column(name: str, row: int | None = None) -> ValueError:
    where = "" if row is None else f" row {row}"
    return ValueError(
        f"bbq: references{where}: column {name!r} is missing; pass the rows of the BBQ dataset as they are"
    )


def _dataset_columns(dataset: datasets.Dataset, names: Sequence[str]) -> dict[str, list[Any]]:
    """The named columns as lists, class labels as their names; no other column is read."""
    for name in names:
        if name not in dataset.column_names:
            raise _no_column(name)
    table = dataset.select_columns(list(names)).with_format("arrow")[:]
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in names}
    for name in names:
        feature = dataset.features[name]
        if isinstance(feature, datasets.ClassLabel) and name not in INDEX_COLUMNS:
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
        raise ValueError(f"bbq: {what} are a {type(values).__name__}; pass a list with one value a row")
    return list(items)


def text_column(rows: References, name: str, levels: Sequence[str] | None = None) -> Factor:
    """A column of strings, each one of `levels` if these are given; a ValueError names the first row that is not."""
    values = rows.column(name)
    try:
        if levels is None and set(map(type, values)) != {str}:
            raise TypeError
        return Factor.of(values, levels)
    except (KeyError, TypeError):
        rule = f"one of {levels}" if levels else "a string"
        number, value = next(
            (number, value)
            for number, value in enumerate(values)
            if not isinstance(value, str) or (levels is not None and value not in levels)
        )
        raise ValueError(f"bbq: references row {number}: {name} {value!r} is not {rule}") from None


def to_integer(value: Any) -> int | None:
    """The integer that a number stands for, None if it stands for none (booleans, fractions, NaN, texts)."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return (
            int(value)
            if isinstance(value, (float, np.floating)) and float(value).is_integer()
            else operator.index(value)
        )
    except TypeError:
        return None


def index_column(rows: References, name: str, low: int, high: int) -> np.ndarray:
    """A column of integers from `low` to `high`, int64 of shape (n,); a ValueError names the first row that is not."""
    values = rows.column(name)
    plain = set(map(type, values)) == {int}
    integers = values if plain else [to_integer(value) for value in values]
    for number, integer in enumerate(integers):
        if integer is None or not low <= integer <= high:
            rule = "an integer" if name == "example_id" else f"an integer from {low} to {high}"
            raise ValueError(f"bbq: references row {number}: {name} {values[number]!r} is not {rule}")
    return np.array(integers, dtype=np.int64)
