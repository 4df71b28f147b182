"""A run's tables, the source of report, comparison, terminal and exports.

A benchmark computes `Table`s from examples and answers. Each names the paper's figure or table that it corresponds to,
and how it is drawn. A run stores them in `analysis.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

from qabias.errors import QabiasError, arg
from qabias.scores.formatting import show, show_interval
from qabias.scores.score import Score, ends_in_words, known_mde, read_ends
from qabias.support.files import strict
from qabias.support.stored import parse, read_fields, read_stored, write_stored
from qabias.support.suggest import unknown

KINDS = ("text", "count", "share", "signed", "number", "p")
FIGURES = ("intervals", "bars", "shares", "heatmap", "ranks", "lines")


RANGE, SIZE = "range_", "mde_"
"""Prefixes of the columns that `flat` adds; the name of the score's column follows."""

Value = str | int | float | Score | None


class Level(Score):
    """The value of one run beside the interval of their mean; files hold a number."""

    __slots__ = ()


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Name in exports, e.g. "bias_ambig".
        title: Heading.
        kind: `text`, `count`, `share` (a fraction in [0, 1], in percent), `signed` (a fraction in [-1, 1], in percent
            with sign), `number` (three digits) or `p` (a p-value: three digits, never 0).
    """

    name: str
    title: str
    kind: str


@dataclass(frozen=True)
class Figure:
    """How a table is drawn.

    Attributes:
        kind: `intervals` (a dot with its interval per row and series), `bars` (one bar per row and series), `shares`
            (bars of parts that sum to one), `heatmap` (rows by columns, color by value), `ranks` (mean and spread of a
            subject's rank per row) or `lines` (a line per row over the value columns).
        labels: Column of row names.
        values: Drawn columns, a series each; in a heat map a panel each.
        across: Column of a heat map's column names.
    """

    kind: str
    labels: str
    values: tuple[str, ...]
    across: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its meaning.

    Attributes:
        name: Stable name, e.g. "bias_by_category"; unique within an analysis.
        title: Heading.
        source: Figure or table of the paper, e.g. "Figure 3 of Parrish et al. (2022)"; "" without one.
        note: How to read it, and its limits, in a few sentences.
        columns: The columns.
        rows: Values in column order. None is undefined, never shown as 0. A score has its possible range and minimum
            detectable effect.
        figure: How it is drawn, if at all.
        section: Its heading in the report.
    """

    name: str
    title: str
    source: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    figure: Figure | None = None
    section: str = ""

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if any(len(row) != len(names) for row in self.rows):
            raise ValueError(f"table {self.name}: a row has not {len(names)} values")
        if self.figure is not None and not {self.figure.labels, *self.figure.values} <= {*names}:
            raise ValueError(f"table {self.name}: its figure needs other columns than {', '.join(names)}")


@dataclass(frozen=True)
class Analysis:
    """All tables of a run, and selected examples.

    Attributes:
        tables: The tables in report order.
        examples: Examples with texts, options, probabilities and answer, as plain values, most biased first. The report
            adds the prompt (`qabias.report.content`).
        how_chosen: How the examples were chosen; "" without examples.
        notes: Warnings above the tables, each complete.
    """

    tables: tuple[Table, ...]
    examples: tuple[Mapping[str, Any], ...] = ()
    how_chosen: str = ""
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        if len(set(names)) < len(names):
            raise ValueError(f"a table comes twice: {', '.join(names)}")


def write_analysis(analysis: Analysis, path: Path) -> None:
    """Write an analysis as strict JSON, atomically."""
    write_stored(path, content_of(analysis))


def as_read(analysis: Analysis) -> Analysis:
    """An analysis as `read_analysis` returns it after `write_analysis`."""
    return _with_scores(parse(Analysis, strict(content_of(analysis))))


def read_analysis(path: Path) -> Analysis:
    """Read an analysis of `write_analysis`."""
    return _with_scores(read_stored(path, Analysis, _remedy(path)))


def read_notes(path: Path) -> tuple[str, ...]:
    """The notes of an analysis, without its tables."""
    return parse(tuple[str, ...], read_fields(path, _remedy(path))["notes"])


def _remedy(path: Path) -> str:
    """How to make an analysis again; refuses a missing one."""
    remedy = f"Score the run again with `qabias score {quote(str(path.parent))}`"
    if not path.exists():
        raise QabiasError(f"{path}: no such file.", f"{remedy}.")
    return remedy


def content_of(analysis: Analysis) -> dict[str, Any]:
    """The fields of an analysis as its file holds them."""
    return {**analysis.__dict__, "tables": [_table_content(table) for table in analysis.tables]}


def _table_content(table: Table) -> dict[str, Any]:
    table = flat(table)
    return {
        **table.__dict__,
        "columns": [column.__dict__ for column in table.columns],
        "rows": [[_stored(value) for value in row] for row in table.rows],
        "figure": table.figure and table.figure.__dict__,
    }


def _stored(value: Value) -> Any:
    """A cell as files hold it: a score with its interval."""
    return {name: getattr(value, name) for name in Score.stored()} if isinstance(value, Score) else value


def flat(table: Table, *, ranges: bool = True) -> Table:
    """A table for files, pages and data frames: each possible range in a column after its score, MDEs in the last."""
    columns, sizes = [], []
    for place, column in enumerate(table.columns):
        values: list[Value] = [row[place] for row in table.rows]
        scores = [value if isinstance(value, Score) else Score(None) for value in values]
        texts = [ends_in_words(one.possible, column.kind) if one.possible and ranges else None for one in scores]
        mdes = [known_mde(one.mde, column.kind) for one in scores]
        columns.append((column, [_plain(value) if ranges else value for value in values]))
        if any(texts):
            columns.append((Column(f"{RANGE}{column.name}", f"Possible, {column.title}", "text"), [*texts]))
        if any(mdes):
            kind = "share" if column.kind == "signed" else column.kind  # a size has no sign
            sizes.append((Column(f"{SIZE}{column.name}", f"MDE, {column.title}", kind), [*mdes]))
    rows = zip(*(values for _, values in (*columns, *sizes)), strict=True)
    return replace(table, columns=tuple(column for column, _ in (*columns, *sizes)), rows=tuple(rows))


def _plain(value: Value) -> Value:
    return value.value if isinstance(value, Level) else value.shown if isinstance(value, Score) else value


def _with_scores(analysis: Analysis) -> Analysis:
    """The inverse of `flat` for all tables, with ranges as rounded as in files."""
    return replace(analysis, tables=tuple(map(_gathered, analysis.tables)))


def _gathered(table: Table) -> Table:
    names = [column.name for column in table.columns]
    added = {f"{prefix}{name}" for name in names for prefix in (RANGE, SIZE)} & {*names}

    def cell(row: Mapping[str, Any], name: str) -> Value:
        possible, mde = row.get(f"{RANGE}{name}"), row.get(f"{SIZE}{name}")
        value: Value = row[name]
        if possible is None and mde is None:
            return value
        score = value if isinstance(value, Score) else Level(row[name])
        return score._replace(possible=read_ends(possible) if possible else None, mde=mde)

    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return replace(
        table,
        columns=tuple(column for column in table.columns if column.name not in added),
        rows=tuple(tuple(cell(row, name) for name in names if name not in added) for row in rows),
    )


def cells(table: Table, row: Sequence[Value]) -> list[str]:
    """The values of a row as text, with their intervals."""
    return [cell(value, column) for value, column in zip(row, table.columns, strict=True)]


def cell(value: Value, column: Column) -> str:
    """A value as text, with its interval, or its possible range in round brackets."""
    if isinstance(value, Score) and value.possible is not None:
        return f"{show(value, column.kind)} ({ends_in_words(value.possible, column.kind)})"
    return f"{show(value, column.kind)} {show_interval(value, column.kind)}".strip()


def find(tables: Sequence[Table], name: str) -> Table:
    """The table of that name."""
    by_name = {table.name: table for table in tables}
    if name not in by_name:
        raise unknown("table", name, by_name, arg("table"))
    return by_name[name]
