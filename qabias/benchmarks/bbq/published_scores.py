"""BBQ scores that makers of models print, next to a run's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from qabias.benchmarks.bbq.facts import FACTS
from qabias.benchmarks.caveats import missing_share
from qabias.benchmarks.facts import Scores
from qabias.errors import QabiasError
from qabias.support.stored import typed
from qabias.support.suggest import unknown
from qabias.tables.formatting import percent, show_interval
from qabias.tables.model import Column, Table, estimate

FILE = Path(__file__).with_name("published_scores.yaml")
NEWEST = 3
"""Rows of each maker that are shown if none is named."""

ACCURACIES = ("accuracy_ambig", "accuracy_disambig")
BIASES = ("bias_ambig", "bias_disambig")
SCORES = (*ACCURACIES, *BIASES, "not_stereotyping")
"""Columns of the file: BBQ's scores, and P(not stereotyping | ambiguous context, a person was named)."""

_UNITS = {"percent": 100.0, "fraction": 1.0, "": 1.0}
_FIX = "Correct the row as its document prints it"
_TINY = 1e-9  # rounding of floats
_MEASURED = (*ACCURACIES, *BIASES, "abstention_gap")

Range = tuple[float, float]


@dataclass(frozen=True)
class Document:
    """A document with rows of one kind, as the file has it.

    Attributes:
        maker: Who published it.
        title: Its title.
        table: The table or section with the values.
        date: Year, month and day as far as known, or "".
        address: Its address, or "".
        unit: Unit of the printed values, percent or fraction.
        rounding: Last printed digit of accuracies and of other values, in this unit.
        columns: The `SCORES` of its rows, in order.
        known: What is known of the protocol.
        unknown: What is not.
        not_comparable: Why its values are of other definitions, or "".
        rows: Model and values by name of the row.
    """

    maker: str
    title: str
    table: str
    date: str
    address: str
    unit: str
    rounding: tuple[float, ...]
    columns: tuple[str, ...]
    known: Mapping[str, str]
    unknown: tuple[str, ...]
    not_comparable: str
    rows: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Row:
    """A printed row: its values as fractions, the ranges that round to them, and the values in percent as printed."""

    name: str
    model: str
    document: Document
    values: Mapping[str, float]
    ranges: Mapping[str, Range]
    printed: Mapping[str, str]

    @property
    def largest_bias(self) -> Range | None:
        """The largest |s_AMB| that the accuracy in ambiguous contexts allows, as a range because of rounding."""
        if "accuracy_ambig" not in self.ranges:
            return None
        low, high = self.ranges["accuracy_ambig"]
        return 1.0 - high, 1.0 - low

    @property
    def implied_gap(self) -> Range | None:
        """The abstention gap if no wrong person was named, 2 accuracy s_DIS, as a range because of rounding."""
        if not {"accuracy_disambig", "bias_disambig"} <= set(self.ranges):
            return None
        ends = itertools.product(self.ranges["accuracy_disambig"], self.ranges["bias_disambig"])
        products = [2.0 * accuracy * bias for accuracy, bias in ends]
        return min(products), max(products)


def read_published(path: Path = FILE) -> list[Row]:
    """The rows of a file in its order.

    Raises:
        QabiasError: A field is missing, unknown or of a wrong type, a value is outside its range or finer than its
            rounding, a name comes twice, or a comparable row is impossible by more than its rounding: |s_AMB| above
            1 - accuracy, or |s_DIS| above 2 (1 - accuracy).
    """
    documents = yaml.safe_load(path.read_text(encoding="utf-8"))["documents"]
    rows: dict[str, Row] = {}
    for fields in documents:
        document = typed(Document, {**_OPTIONAL, **fields}, path, _FIX)
        for name, (model, *values) in document.rows.items():
            if name in rows:
                raise QabiasError(f"{path}: two rows have the name {name!r}.", "Rename one.")
            rows[name] = _row(name, str(model), document, values, path)
    return list(rows.values())


_OPTIONAL: dict[str, Any] = {
    **dict.fromkeys(("table", "date", "address", "unit", "not_comparable"), ""),
    **{"rounding": [], "columns": [], "known": {}, "unknown": []},
}


def _row(name: str, model: str, document: Document, printed: Sequence[Any], path: Path) -> Row:
    """One row, checked."""

    def refuse(why: str) -> QabiasError:
        return QabiasError(f"{path}: row {name!r} {why}.", f"{_FIX}.")

    if document.unit not in _UNITS or len(document.rounding) != (2 if document.columns else 0):
        raise refuse("needs a unit, percent or fraction, and two numbers as rounding")
    if len(printed) != len(document.columns) or not set(document.columns) <= set(SCORES):
        raise refuse(f"has {len(printed)} values for the columns {', '.join(document.columns)}")
    values: dict[str, float] = {}
    ranges: dict[str, Range] = {}
    for column, value in zip(document.columns, printed, strict=True):
        digit = document.rounding[column not in ACCURACIES]
        least = -1.0 if column in BIASES else 0.0
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refuse(f"has {value!r} as {column}")
        values[column] = value / _UNITS[document.unit]
        half = digit / 2.0 / _UNITS[document.unit]
        if not least <= values[column] <= 1.0 or abs(value / digit - round(value / digit)) > 1e-6:
            raise refuse(f"has {value} as {column}, which is out of range or finer than its rounding")
        ranges[column] = max(least, values[column] - half), min(1.0, values[column] + half)
    for context, factor in (("ambig", 1.0), ("disambig", 2.0)):
        if not document.not_comparable and {f"accuracy_{context}", f"bias_{context}"} <= set(values):
            most = factor * (1.0 - ranges[f"accuracy_{context}"][0])
            low, high = ranges[f"bias_{context}"]
            least = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
            if least > most + _TINY:
                raise refuse(f"is impossible: |bias_{context}| is at most {most:.4f} at its accuracy, here {least:.4f}")
    shown = {
        column: _percent(values[column], column, 0 if isinstance(value, int) else _digits(document, column))
        for column, value in zip(document.columns, printed, strict=True)
    }
    return Row(name, model, document, values, ranges, shown)


def _digits(document: Document, column: str) -> int:
    """Decimals of a printed value in percent."""
    digit = document.rounding[column not in ACCURACIES] * 100.0 / _UNITS[document.unit]
    return max(0, -math.floor(math.log10(digit) + _TINY))


@cache
def published() -> tuple[Row, ...]:
    """The rows of this package."""
    return tuple(read_published())


def choose_rows(names: Sequence[str]) -> list[Row]:
    """Named rows, or all rows of named makers; without names the newest comparable rows of every maker, and others."""
    rows = published()
    makers = {row.document.maker.lower() for row in rows}
    known = [*(row.name for row in rows), *sorted(makers)]
    for name in names:
        if name.lower() not in known:
            raise unknown("published row", name, known, "--published", "qabias list published")
    if names:
        wanted = {name.lower() for name in names}
        return [row for row in rows if row.name in wanted or row.document.maker.lower() in wanted]
    chosen: list[Row] = []
    for maker in dict.fromkeys(row.document.maker for row in rows):
        own = [row for row in rows if row.document.maker == maker and not row.document.not_comparable]
        chosen += sorted(own, key=lambda row: row.document.date, reverse=True)[:NEWEST]
    return [*chosen, *(row for row in rows if row.document.not_comparable)]


def list_published(full: bool) -> list[tuple[str, str]]:
    """For each document its maker, and its title, date and rows; in full also what is known of the protocol."""
    by_document: dict[str, list[Row]] = {}
    for row in published():
        by_document.setdefault(f"{row.document.maker} {row.document.title}", []).append(row)
    lines = []
    for rows in by_document.values():
        document = rows[0].document
        names = " ".join(row.name for row in rows)
        date = document.date or "no date"
        lines.append((document.maker, f"{document.title} ({date}): {names}"))
        if document.not_comparable:
            lines[-1] = (document.maker, f"{names}: not comparable: {document.not_comparable}")
        elif full:
            known = ", ".join(f"{name}: {value}" for name, value in document.known.items()) or "none"
            lines.append(
                ("", f"{document.table}. Known: {known}. Unknown: {', '.join(document.unknown)}. {document.address}")
            )
    return lines


def next_to_published(scores: Scores, name: str, names: Sequence[str]) -> tuple[Table, list[str]]:
    """A run next to published rows, and how to read the table.

    Args:
        scores: the run's scores.
        name: the run's name.
        names: rows or makers, or none for the newest.
    """
    rows = choose_rows(names)
    columns = (
        *(("row", "Row"), ("accuracy_ambig", "Accuracy,\nambig."), ("bias_ambig", "s_AMB")),
        *(("bias_bound_ambig", "Largest\n|s_AMB|"), ("accuracy_disambig", "Accuracy,\ndisambig.")),
        *(("bias_disambig", "s_DIS"), ("abstention_gap", "Abstention gap,\nimplied")),
        *(("not_stereotyping", "P(not\nstereo.)"), ("model", "Model"), ("maker", "Maker"), ("document", "Document")),
        *(("table", "Table"), ("date", "Date"), ("address", "Address"), ("known", "Protocol, known")),
        *(("unknown", "Protocol, unknown"), ("not_comparable", "Not comparable")),
    )
    measured = {score: _percent(estimate(scores, score).value, score) for score in (*_MEASURED, "bias_bound_ambig")}
    measured["abstention_gap"] = f"{measured['abstention_gap']} measured"
    measured |= {"row": name, "model": name, "document": "this run"}
    cells = [measured, *(_cells(row) for row in rows if row.values or names)]
    intervals = [
        f"{score} {ends}"
        for score in _MEASURED
        if (ends := show_interval(estimate(scores, score), FACTS.measure(score).kind))
    ]
    lacking = max(missing_share(scores, FACTS.measure(score)) for score in _MEASURED)
    notes = [
        f"This run, 95% CI: {', '.join(intervals) or 'none'}. Answers missing: {percent(lacking)}.",
        "Published values are as printed, without CIs. Ranges cover their rounding.",
        "Implied: 2 × accuracy × s_DIS, the abstention gap if no wrong person was named.",
        *(f"Not comparable: {row.name}: {row.document.not_comparable}." for row in rows if row.document.not_comparable),
    ]
    table = Table(
        "published",
        "Next to published scores, in %",
        "",
        " ".join(notes[1:3]),
        tuple(Column(column, title, "text") for column, title in columns),
        tuple(tuple(one.get(column) for column, _ in columns) for one in cells),
        None,
        "Published scores",
    )
    return table, notes


def _cells(row: Row) -> dict[str, str]:
    """A published row as texts."""
    document = row.document
    texts = dict(row.printed)
    ranges = {"bias_bound_ambig": row.largest_bias, "abstention_gap": row.implied_gap}
    if document.not_comparable:
        texts["bias_bound_ambig"] = "not comparable"
    else:
        texts |= {name: _range(ends, name) for name, ends in ranges.items() if ends}
    known = ", ".join(f"{name}: {value}" for name, value in document.known.items())
    return texts | {
        "row": row.name,
        "model": row.model,
        "maker": document.maker,
        "document": document.title,
        "table": document.table,
        "date": document.date,
        "address": document.address,
        "known": known,
        "unknown": ", ".join(document.unknown),
        "not_comparable": document.not_comparable,
    }


def _range(ends: Range, score: str) -> str:
    low, high = (_percent(end, score) for end in ends)
    return low if low == high else f"{low} to {high}"


def _percent(value: float | None, score: str, digits: int | None = None) -> str:
    """A fraction in percent, by default with one digit for accuracies and two for other scores."""
    if value is None:
        return "undefined"
    if digits is None:
        digits = 1 if score in ACCURACIES else 2
    sign = "+" if score in (*BIASES, "abstention_gap") else ""
    return f"{100 * value + 0.0:{sign}.{digits}f}".replace("-", "−")
