"""Reading what a user passes to a metric.

Each metric's folder links to this file, because `evaluate` loads a folder without its neighbors. What differs between
metrics comes from a `Source` and a subclass of `Options`. Rows are read column by column, and only the columns that
are needed. Arrow encodes a column as codes, which avoids Python loops over rows.
"""

from __future__ import annotations

import datetime
import difflib
import numbers
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .values import Integers, array_of, encode, input_error, is_listing, is_long, items, shown, to_integer

if TYPE_CHECKING:
    import datasets

By = Sequence[str | Sequence[str]] | str | None

NONE = "None"
"""Name of a missing value in a breakdown."""

_INT64 = np.iinfo(np.int64)

_SINGLE = (str, numbers.Number, np.generic, datetime.date, datetime.time, datetime.timedelta)
"""Types of a breakdown's values."""


class Source(NamedTuple):
    """How messages name a table, and how its class labels are read."""

    metric: str
    """Name of the metric, the first word of every message."""
    what: str
    """"references" or "predictions"."""
    wanted: str
    """What to pass, e.g. "the unchanged rows of the BBQ dataset"."""
    by_name: Callable[[str, Sequence[str]], bool] = lambda column, names: True
    """Whether the class labels of a column are read as their names instead of their numbers."""

    def error(self, text: str, fix: str, row: int | None = None) -> ValueError:
        """A ValueError that names the table, the row if given, and the fix."""
        return input_error(f"{self.metric}: {self.what}{'' if row is None else f' row {row}'}{text}", fix)

    def missing(self, name: str, row: int | None = None) -> ValueError:
        """The error for a missing column or value."""
        return self.error(f": column {shown(name)} is missing", f"pass {self.wanted}", row)

    def listed(self, data: Any, wanted: str) -> list[Any]:
        """The items of an ordered collection with dimensions; other input, such as a set, is a ValueError."""
        if not is_listing(data) or hasattr(data, "columns"):
            raise self.error(f" are a {type(data).__name__}", f"pass {wanted}")
        return items(data)


class Factor(NamedTuple):
    """A column of strings as integers: `levels[codes[i]]` is the value of row i."""

    codes: Integers
    levels: tuple[str, ...]

    @classmethod
    def from_values(cls, codes: Integers, values: Sequence[str]) -> Factor:
        """Sorts the values, drops unused ones and merges equal ones."""
        occurs = np.bincount(codes, minlength=len(values)) > 0
        names = [values[code] for code in np.flatnonzero(occurs).tolist()]
        levels = tuple(sorted(set(names)))
        place = {name: number for number, name in enumerate(levels)}
        places = np.array([place[name] for name in names], dtype=np.int64)
        return cls(places[(np.cumsum(occurs) - 1)[codes]], levels)


class Table:
    """Rows in any of the accepted shapes."""

    def __init__(self, source: Source, n: int, names: Callable[[], Iterable[Any]], read: Callable[[str], Any]) -> None:
        self.source = source
        self.n = n
        self._find_names = names
        self._read = read
        self._columns: dict[str, Any] = {}

    @classmethod
    def wrap(cls, source: Source, data: Any, copy: bool = False) -> Table:
        """Wraps what the user passed.

        Args:
            source: names the table in messages.
            data: a `datasets.Dataset`, an Arrow table, a mapping from names to columns, or rows that are mappings.
            copy: copy now, because the user may change the data before it is read.

        Raises:
            ValueError: it is none of these, or its columns differ in length.
        """
        library = sys.modules.get("datasets")  # importing it takes a second; its objects exist only after that
        if library is not None and isinstance(data, (library.DatasetDict, library.IterableDatasetDict)):
            raise source.error(
                f" hold the splits {shown([*data])}", f"pass one split, e.g. {source.what}=dataset['test']"
            )
        if library is not None and isinstance(data, library.Dataset):
            return cls(
                source,
                data.num_rows,
                lambda: data.column_names,
                lambda name: _dataset_column(source, data, name),
            )
        if isinstance(data, pa.Table):
            data = dict(zip(data.column_names, data.columns, strict=True))
        if hasattr(data, "keys") and not (isinstance(data, type) or hasattr(data, "tolist")):
            return cls._of_columns(source, data, copy)
        rows = source.listed(data, "a list of dicts, a dict of columns or a datasets.Dataset")
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise source.error(f": {shown(row)} is not a dict of columns", f"pass {source.wanted}", number)

        def read(name: str) -> list[Any]:
            try:
                return list(map(operator.itemgetter(name), rows))
            except KeyError:
                number = next(number for number, row in enumerate(rows) if name not in row)
                raise source.missing(name, number) from None

        return cls(source, len(rows), lambda: set().union(*rows), read)

    @classmethod
    def _of_columns(cls, source: Source, data: Any, copy: bool) -> Table:
        columns = {}
        for name in data.keys():  # noqa: SIM118 - not only dicts have keys
            values = data[name]
            if not is_listing(values) or hasattr(values, "columns"):  # two columns of one name are a frame
                raise source.error(f" column {shown(name)} is a {type(values).__name__}", "pass one value per row")
            columns[str(name)] = list(items(values)) if copy or not hasattr(values, "__len__") else values
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise source.error(f": the columns differ in length ({shown(lengths)})", "pass one value per row")

        def read(name: str) -> Any:
            if name not in columns:
                raise source.missing(name)
            return columns[name]

        return cls(source, max(lengths.values(), default=0), lambda: columns, read)

    @classmethod
    def joined(cls, parts: Sequence[Table]) -> Table:
        """The rows of one or more batches, in order."""
        if len(parts) == 1:
            return parts[0]

        def read(name: str) -> list[Any]:
            values: list[Any] = []
            for part in parts:
                if part.n and not part.has(name):
                    raise part.source.missing(name, len(values))
                values += part.items(name) if part.n else []
            return values

        n = sum(part.n for part in parts)
        return cls(parts[0].source, n, lambda: set().union(*(part.names for part in parts)), read)

    @cached_property
    def names(self) -> frozenset[str]:
        """The columns that any row has."""
        return frozenset(name for name in self._find_names() if isinstance(name, str))

    def has(self, name: str) -> bool:
        """Whether any row has a column of that name."""
        return name in self.names

    def column(self, name: str) -> Any:
        """One column as it was passed; a ValueError names a missing column or value."""
        if name not in self._columns:
            self._columns[name] = self._read(name)
        return self._columns[name]

    def items(self, name: str) -> list[Any]:
        """One column as a list of Python values."""
        return items(self.column(name))

    def refuse(self, wrong: npt.NDArray[np.bool_], name: str, rule: str, fix: str = "") -> None:
        """A ValueError that names the first wrong row and its value in a column."""
        if wrong.any():
            number = int(np.argmax(wrong))
            problem = f": {name} {shown(self.items(name)[number])} {rule}"
            raise self.source.error(problem, fix or f"pass {self.source.wanted}", number)

    def text(
        self, name: str, levels: Sequence[str] | None = None, empty: str | None = None, integers: bool = False
    ) -> Factor:
        """A column of strings.

        Args:
            name: the column.
            levels: the only allowed values; the codes are then positions in it.
            empty: replaces None and the empty string; without it None is refused.
            integers: allow integers too.

        Raises:
            ValueError: another value; the message names its row.
        """
        codes, values = encode(self.column(name))
        allowed = [
            value in levels if levels is not None and isinstance(value, str) else _is_text(value, empty, integers)
            for value in values
        ]
        rule = f"one of {tuple(levels)}" if levels is not None else "a string"
        rule = "is neither a string nor an integer" if integers else f"is not {rule}"
        self.refuse(~np.array([*allowed, empty is not None])[codes], name, rule)  # code -1, None, is the last
        if levels is not None:
            return Factor(np.array([levels.index(value) for value in values], dtype=np.int64)[codes], tuple(levels))
        names = [_name(value, empty) for value in values]
        return Factor.from_values(np.where(codes < 0, len(names), codes), [*names, str(empty)])

    def integers(
        self,
        name: str,
        low: int = int(_INT64.min),
        high: int = int(_INT64.max),
        number_of: Callable[[Any], int | None] | None = None,
        rule: str = "",
    ) -> Integers:
        """A column of integers of shape (n,).

        Args:
            name: the column.
            low: the smallest allowed integer.
            high: the largest.
            number_of: the integer of a value, or None; by default only numbers are integers.
            rule: the allowed values, for the message.

        Raises:
            ValueError: another value; the message names its row.
        """
        values = self.column(name)
        bounded = (low, high) != (_INT64.min, _INT64.max)
        rule = f"is not {rule or 'an integer' + (f' from {low} to {high}' if bounded else '')}"
        array = array_of(values)
        mixed = isinstance(values, Sequence) and not {int}.issuperset(
            map(type, items(values))
        )  # True is not an integer
        if array.dtype.kind in "iu" and array.ndim == 1 and not mixed:
            self.refuse((array < low) | (array > high), name, rule)
            return array.astype(np.int64)
        codes, levels = encode(values)
        numbers = [*map(number_of or to_integer, levels), None]  # code -1, None, is the last
        fits = [number is not None and low <= number <= high for number in numbers]
        self.refuse(~np.array(fits)[codes], name, rule)
        return np.array([number if fit else 0 for number, fit in zip(numbers, fits, strict=True)], np.int64)[codes]

    def values(self, name: str, derived: Sequence[str] = ()) -> Factor:
        """A column of single values, as texts; a ValueError names a column that no row has, or a row with several.

        `derived` are other names that the caller reads, to offer them for an unknown one.
        """
        if not self.has(name):
            known = sorted({*self.names, *derived})
            near = difflib.get_close_matches(name[:200], known, 1)
            problem = f": column {shown(name)} is unknown" + "".join(f". Did you mean {shown(one)}?" for one in near)
            raise self.source.error(problem, f"name one of {len(known)} columns, e.g. {', '.join(near or known[:3])}")
        codes, levels = encode(self.column(name))
        unlike = [not isinstance(level, _SINGLE) or is_long(level) for level in levels]
        self.refuse(np.array([*unlike, False])[codes], name, "is not a single value", "pass a text or number per row")
        return Factor.from_values(np.where(codes < 0, len(levels), codes), [*map(_text, levels), NONE])


def _dataset_column(source: Source, dataset: datasets.Dataset, name: str) -> Any:
    """One column as an Arrow array, without reading the others."""
    import datasets

    if name not in dataset.column_names:
        raise source.missing(name)
    if hasattr(dataset, "_indices"):
        # Private, but the public way to a shuffled column is a Python loop: minutes for a million rows.
        column = dataset.data.table[name]
        if dataset._indices is not None:
            column = column.take(dataset._indices.column(0))
    else:
        column = dataset.select_columns([name]).with_format("arrow")[:][name]
    feature = dataset.features[name]
    if isinstance(feature, datasets.ClassLabel) and source.by_name(name, feature.names):
        known = pc.if_else(pc.greater_equal(column, 0), column, None)  # -1 is a missing label
        return pa.array(feature.names, pa.string()).take(known)
    return column


def _is_text(value: Any, empty: str | None, integers: bool) -> bool:
    if value is None:
        return empty is not None
    if isinstance(value, str):
        return True
    return integers and not is_long(value) and to_integer(value) is not None


def _text(value: Any) -> str:
    """A value as text; str() of an enumeration member would add its class."""
    return str.__str__(value) if isinstance(value, str) else str(value)


def _name(value: Any, empty: str | None) -> str:
    """The name of a value that `_is_text` accepts; equal numbers of different types share it."""
    if isinstance(value, str):
        return _text(value) or empty or ""
    return str(empty if value is None else to_integer(value))


def combined(*columns: Integers) -> Integers:
    """Codes of the combinations of several columns of codes, in the order of their values."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    return codes


def crossed(factors: Sequence[Factor], name_of: Callable[[Sequence[str]], str] = ",".join) -> Factor:
    """The combinations of the values of several columns, with a name for each."""
    if len(factors) == 1:
        return Factor.from_values(factors[0].codes, [name_of((level,)) for level in factors[0].levels])
    codes = combined(*(factor.codes for factor in factors))
    rows = np.unique(codes, return_index=True)[1].tolist()  # one of each combination
    return Factor.from_values(
        codes, [name_of([factor.levels[factor.codes[row]] for factor in factors]) for row in rows]
    )


def runs_of(rows: Table, mean_over: str | None) -> Factor:
    """The run of each row from the column `mean_over`; without it, one unnamed run."""
    return Factor(np.zeros(rows.n, dtype=np.int64), ("",)) if mean_over is None else rows.values(mean_over)


def check_runs(rows: Table, runs: Factor, *columns: Integers) -> None:
    """Checks that all runs have the same rows: otherwise a mean over runs mixes questions and answers."""
    n_runs = len(runs.levels)
    if n_runs == 1:
        return
    cells = combined(*columns)
    occurrences = np.bincount(cells * n_runs + runs.codes, minlength=(int(cells.max(initial=0)) + 1) * n_runs)
    table = occurrences.reshape(-1, n_runs)
    uneven = (table != table[:, :1]).any(axis=1)[cells]
    if uneven.any():
        number = int(np.argmax(uneven))
        counts = {name: int(count) for name, count in zip(runs.levels, table[cells[number]], strict=True)}
        raise rows.source.error(
            f": the runs do not have this row equally often ({shown(counts)})",
            "pass the same rows in every run",
            number,
        )


def breakdowns(metric: str, by: By) -> list[tuple[str, ...]]:
    """The entries of the option `by`, each as a tuple of column names."""
    if by is not None and not isinstance(by, str) and not is_listing(by):
        raise input_error(f"{metric}: by {shown(by)} is neither a column name nor a list", "pass e.g. ['template_id']")
    entries = [] if by is None else [by] if isinstance(by, str) else items(by)
    named = []
    for entry in entries:
        names = (entry,) if isinstance(entry, str) else tuple(entry) if isinstance(entry, Sequence) else ()
        if not names or not all(isinstance(name, str) for name in names):
            problem = f"{metric}: by entry {shown(entry)} is neither a column name nor a list of column names"
            raise input_error(problem, "pass e.g. ['template_id']")
        named.append(names)
    return named


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of all metrics; a subclass adds its own. A bad value is a ValueError."""

    METRIC: ClassVar[str]
    VERSION: ClassVar[int]
    """Version of the metric's rules."""
    CHOICES: ClassVar[Mapping[str, Sequence[str]]]
    """Allowed values of an option; None is allowed if it is the default."""
    NO_RULES: ClassVar[Sequence[str]] = ()
    """Options of the subclass that change no number."""

    by: By = None
    mean_over: str | None = None
    confidence: float | None = 0.95

    def __post_init__(self) -> None:
        for name, choices in self.CHOICES.items():
            value = getattr(self, name)
            allowed = (*choices, None) if getattr(type(self), name) is None else choices
            if not (value is None or isinstance(value, str)) or value not in allowed:
                raise self._error(name, "is not allowed", f"choose one of {tuple(choices)}")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                integer = to_integer(value)
                if integer is None or integer < 0:
                    raise self._error(field.name, "is not an integer of 0 or more", "pass e.g. 10")
                object.__setattr__(self, field.name, integer)
            if field.type == "bool" and not isinstance(value, (bool, np.bool_)):
                raise self._error(field.name, "is not a boolean", "pass True or False")
        number = 0.5 if self.confidence is None else self.confidence
        if not isinstance(number, numbers.Real) or not 0 < number < 1:
            raise self._error("confidence", "is not above 0 and below 1", "pass e.g. 0.95, or None for no intervals")
        if self.confidence is not None:
            object.__setattr__(self, "confidence", float(number))
        if self.by is not None:
            object.__setattr__(self, "by", breakdowns(self.METRIC, self.by))  # a generator can be read only once
        if self.mean_over is not None and not isinstance(self.mean_over, str):
            raise self._error("mean_over", "is not the name of a column", "pass a column of the references")
        if any(self.mean_over in names for names in self.breakdowns):
            raise self._error("mean_over", "is also in by", "name the column in only one of them")

    def _error(self, name: str, problem: str, fix: str) -> ValueError:
        return input_error(f"{self.METRIC}: {name} {shown(getattr(self, name))} {problem}", fix)

    @property
    def breakdowns(self) -> list[tuple[str, ...]]:
        """The entries of `by`, each as a tuple of column names."""
        return breakdowns(self.METRIC, self.by)

    @property
    def signature(self) -> str:
        """All settings that change a number, e.g. "bbq|unparsed:exclude|...|version:1"."""
        shared = {field.name for field in fields(Options)}
        rules = [field.name for field in fields(self) if field.name not in shared and field.name not in self.NO_RULES]
        parts = [f"{name}:{getattr(self, name)}" for name in rules]
        if self.mean_over is not None:
            parts.append(f"mean_over:{self.mean_over}")
        if self.confidence is not None:
            parts.append(f"confidence:{float(self.confidence)}")
        return "|".join([self.METRIC, *parts, f"version:{self.VERSION}"])


class Batches:
    """`add`, `add_batch` and `compute`, placed before `evaluate.Metric` among the bases.

    `evaluate` would write all batches to an Arrow file. Here they stay in memory, ignored columns need no type, and
    predictions of several types can be mixed.
    """

    REFERENCES: ClassVar[Source]
    OPTIONS: ClassVar[type[Options]]
    num_process: int = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.num_process > 1:
            problem = f"{self.REFERENCES.metric}: num_process {self.num_process} is not supported"
            raise input_error(problem, "gather the predictions and compute in one process")
        self._batches: list[tuple[Table, Table]] = []

    def _predictions(self, data: Any, copy: bool) -> Table:
        """The predictions as a table with one column, `prediction`."""
        del copy  # a list is always copied
        source = Source(self.REFERENCES.metric, "predictions", "a list with one value per row")
        return Table.wrap(source, {"prediction": source.listed(data, source.wanted)})

    def _compute(self, *, predictions: Table, references: Table, options: Any) -> dict[str, Any]:
        raise NotImplementedError

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Keeps a copy of a batch for a later `compute()`, with the arguments of `compute`."""
        self._batches.append(self._batch(predictions, references, copy=True))

    def add(self, *, prediction: Any = None, reference: Any = None) -> None:
        """Keeps one prediction and its dataset row for a later `compute()`."""
        self.add_batch(predictions=[prediction], references=[reference])

    def _scored(self, predictions: Any, references: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result for all added and passed rows.

        Added batches are dropped after success and kept after an error, to repeat the call with other options.
        """
        options = self.OPTIONS(**{field.name: arguments[field.name] for field in fields(self.OPTIONS)})
        batches = list(self._batches)
        if predictions is not None or references is not None or not batches:
            batches.append(self._batch(predictions, references, copy=False))
        outputs, rows = map(Table.joined, zip(*batches, strict=True))
        if rows.n == 0:
            problem = f"{options.METRIC}: predictions and references are empty"
            raise input_error(problem, "pass dataset rows and a prediction for each")
        result = self._compute(predictions=outputs, references=rows, options=options)
        self._batches = []
        return result

    def _batch(self, predictions: Any, references: Any, copy: bool) -> tuple[Table, Table]:
        metric = self.REFERENCES.metric
        for name, value in (("predictions", predictions), ("references", references)):
            if value is None:
                raise input_error(f"{metric}: {name} are missing", "pass predictions and references together")
        outputs = self._predictions(predictions, copy)
        rows = Table.wrap(self.REFERENCES, references, copy)
        if outputs.n != rows.n:
            problem = f"{metric}: {outputs.n} predictions but {rows.n} references"
            raise input_error(problem, "pass one prediction per row, in the same order")
        return outputs, rows
