"""What a run shows, as tables, from which the report, the comparison, the terminal and the exports are all made.

A benchmark computes `Table`s from examples and answers; each table names the figure or table of the paper that it
answers to, and may say how it is drawn. A run keeps them in `analysis.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from qabias.errors import QabiasError
from qabias.support.files import strict
from qabias.support.stored import Stored, read_stored, write_sealed_json
from qabias.support.suggest import did_you_mean

ALL = "All"
"""Name of the group of all examples, where they have common scores."""

KINDS = ("text", "count", "share", "signed", "number", "p")
FIGURES = ("intervals", "bars", "shares", "heatmap", "ranks", "lines")


class Estimate(NamedTuple):
    """A score with its interval.

    Attributes:
        value: The score; None where it is undefined.
        low: Lower end of the 95 % interval; None without one.
        high: Upper end.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


Value = str | int | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Name in exports, e.g. "bias_ambig".
        title: What people read above it.
        kind: `text`, `count`, `share` (a fraction in [0, 1], shown in percent), `signed` (a fraction in [-1, 1], shown
            in percent with its sign), `number` (shown as it is, three digits) or `p` (a p-value: three digits, but
            never as 0).
    """

    name: str
    title: str
    kind: str


@dataclass(frozen=True)
class Figure:
    """How a table is drawn.

    Attributes:
        kind: `intervals` (a dot with its interval per row and series), `bars` (one bar per row and series), `shares`
            (bars of parts that sum to one), `heatmap` (rows by columns, colour by value), `ranks` (mean and spread of a
            subject's rank per row) or `lines` (a line per row over the value columns).
        labels: Column that names the rows.
        values: Columns that are drawn, one series each; in a heat map one panel each.
        across: Column that names the columns of a heat map.
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
        source: Figure or table of the paper, e.g. "Figure 3 of Parrish et al. (2022)"; "" where the paper has none.
        note: How to read it, and what it cannot tell; a few plain sentences.
        columns: The columns.
        rows: Values in the order of the columns. None is undefined and never shown as 0.
        figure: How it is drawn, if it is.
        section: Heading under which it stands in the report.
    """

    name: str
    title: str
    source: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    figure: Figure | None = None
    section: str = ""


@dataclass(frozen=True)
class Analysis:
    """All tables of a run, and a selection of its items.

    Attributes:
        tables: The tables in the order of the report.
        examples: Items with their texts, options, probabilities and answer, as rows of plain values, most biased first;
            the report adds the prompt (`qabias.report.prompts`).
        how_chosen: How those items were chosen, in a few sentences; "" without items.
        notes: What to know before any number is read; each stands by itself above the tables.
    """

    tables: tuple[Table, ...]
    examples: tuple[Mapping[str, Any], ...] = ()
    how_chosen: str = ""
    notes: tuple[str, ...] = field(default=())


def write_analysis(analysis: Analysis, path: Path) -> Analysis:
    """Write an analysis as strict JSON, whole or not at all; returns what `read_analysis` would read of it.

    Raises:
        OSError: If the file cannot be written.
    """
    content = _content(analysis)
    write_sealed_json(path, content)
    return _analysis(Stored(content, path, _score_again(path)))


def as_read(analysis: Analysis) -> Analysis:
    """What `read_analysis` would read of an analysis if it were written."""
    return _analysis(Stored(_content(analysis), Path("analysis.json"), ""))


def _content(analysis: Analysis) -> Any:
    return strict(
        {
            "tables": [_as_json(table) for table in analysis.tables],
            "examples": list(analysis.examples),
            "how_chosen": analysis.how_chosen,
            "notes": list(analysis.notes),
        }
    )


def read_analysis(path: Path) -> Analysis:
    """Read what `write_analysis` wrote.

    Raises:
        QabiasError: If the file is missing or damaged.
    """
    return _analysis(_stored(path))


def read_notes(path: Path) -> tuple[str, ...]:
    """The notes of an analysis, without its tables.

    Raises:
        QabiasError: If the file is missing or damaged.
    """
    return _stored(path)["notes"].texts()


def _stored(path: Path) -> Stored:
    try:
        return read_stored(path, _score_again(path))
    except FileNotFoundError as error:
        raise QabiasError(f"{path}: no such file; {_score_again(path)}") from error


def _score_again(path: Path) -> str:
    return f"score the run again with `qabias score {path.parent}`"


def _analysis(content: Stored) -> Analysis:
    return Analysis(
        tuple(map(_table, content["tables"].items())),
        tuple(example.object() for example in content["examples"].items()),
        content["how_chosen"].text(),
        content["notes"].texts(),
    )


def _as_json(table: Table) -> dict[str, Any]:
    figure = table.figure and {**table.figure.__dict__}
    return {
        **{name: getattr(table, name) for name in ("name", "title", "source", "note", "section")},
        "columns": [column.__dict__ for column in table.columns],
        "rows": [[_value_as_json(value) for value in row] for row in table.rows],
        "figure": figure,
    }


def _value_as_json(value: Value) -> Any:
    return {"value": value.value, "low": value.low, "high": value.high} if isinstance(value, Estimate) else value


def _table(content: Stored) -> Table:
    columns = tuple(map(_column, content["columns"].items()))
    figure = content["figure"]
    return Table(
        name=content["name"].text(),
        title=content["title"].text(),
        source=content["source"].text(),
        note=content["note"].text(),
        columns=columns,
        rows=tuple(_row(row, columns) for row in content["rows"].items()),
        figure=None if figure.value is None else _figure(figure, columns),
        section=content["section"].text(),
    )


def _column(content: Stored) -> Column:
    return Column(content["name"].text(), content["title"].text(), content["kind"].one_of(KINDS))


def _figure(content: Stored, columns: Sequence[Column]) -> Figure:
    names = [column.name for column in columns]
    return Figure(
        content["kind"].one_of(FIGURES),
        content["labels"].one_of(names),
        tuple(value.one_of(names) for value in content["values"].items()),
        content["across"].one_of(["", *names]),
    )


def _row(content: Stored, columns: Sequence[Column]) -> tuple[Value, ...]:
    cells = content.items()
    if len(cells) != len(columns):
        content.refuse(f"a list of {len(columns)} values")
    return tuple(_cell(cell, column.kind) for cell, column in zip(cells, columns, strict=True))


def _cell(content: Stored, kind: str) -> Value:
    if isinstance(content.value, dict):
        if kind == "text":
            content.refuse("a text")
        return Estimate(*(content[name].number_or_none() for name in Estimate._fields))
    if kind == "text" and content.value is not None:
        return content.text()
    return content.number_or_none()


def estimate(scores: Mapping[str, Any], name: str) -> Estimate:
    """A score of a metric's result with its interval; NaN becomes None."""
    low, high = scores.get("ci", {}).get(name, (None, None))
    return Estimate(*(None if value is None or value != value else float(value) for value in (scores[name], low, high)))


def values(scores: Mapping[str, Any], columns: Sequence[Column]) -> list[Value]:
    """The scores, with their intervals, and the counts of a metric's result that the columns name."""
    return [int(scores[column.name]) if column.kind == "count" else estimate(scores, column.name) for column in columns]


def find(tables: Sequence[Table], name: str) -> Table:
    """The table of that name.

    Raises:
        QabiasError: If there is none.
    """
    by_name = {table.name: table for table in tables}
    if name not in by_name:
        raise QabiasError(f"no table {name!r}{did_you_mean(name, by_name)}; there is {', '.join(by_name)}")
    return by_name[name]
