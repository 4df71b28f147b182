"""BBQ scores that makers of models print, next to a run's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from qabias.benchmarks.bbq.facts import FACTS
from qabias.errors import QabiasError, arg
from qabias.scores.facts import Scores
from qabias.scores.formatting import percent, show_interval
from qabias.scores.score import estimate, missing_share
from qabias.support.stored import typed
from qabias.support.suggest import unknown
from qabias.tables.model import Column, Table

FILE = Path(__file__).with_name("published_scores.yaml")
NEWEST = 3
"""Rows of each maker that are shown if none is named."""

ACCURACIES = ("accuracy_ambig", "accuracy_disambig")
BIASES = ("bias_ambig", "bias_disambig")
PRINTED = (*ACCURACIES, *BIASES, "not_stereotyping")
"""Columns of the file: BBQ's scores, and P(not stereotyping | ambiguous context, a person was named)."""

_MEASURED = (*ACCURACIES, *BIASES, "abstention_gap")
_OPTIONAL: dict[str, Any] = {
    **dict.fromkeys(("table", "date", "address", "not_comparable"), ""),
    **{"rounding": [], "columns": [], "known": {}, "unknown": []},
}
_FIX = "Correct the row as its document prints it"
_TINY = 1e-6  # rounding of floats
_TITLES = {
    "row": "Row",
    "accuracy_ambig": "Accuracy,\nambig.",
    "bias_ambig": "s_AMB",
    "bias_bound_ambig": "Largest\n|s_AMB|",
    "accuracy_disambig": "Accuracy,\ndisambig.",
    "bias_disambig": "s_DIS",
    "abstention_gap": "Abstention\ngap",
    "not_stereotyping": "P(not\nstereo.)",
    "model": "Model",
    "maker": "Maker",
    "title": "Document",
    "table": "Table",
    "date": "Date",
    "address": "Address",
    "known": "Protocol, known",
    "unknown": "Protocol, unknown",
    "not_comparable": "Not comparable",
}

Range = tuple[float, float]


@dataclass(frozen=True)
class Document:
    """A document with rows of one kind, as the file has it.

    Attributes:
        table: The table or section with the values.
        date: Year, month and day as far as known, or "".
        rounding: Last printed digit of accuracies and of other values, in percent.
        columns: Which of `PRINTED` its rows have.
        known: What is known of the protocol; `unknown` names what is not.
        not_comparable: Why its values are of other definitions, or "".
        rows: Model and values in percent, by name of the row.
    """

    maker: str
    title: str
    table: str
    date: str
    address: str
    rounding: tuple[float, ...]
    columns: tuple[str, ...]
    known: Mapping[str, str]
    unknown: tuple[str, ...]
    not_comparable: str
    rows: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Row:
    """A printed row: its values in percent, and the ranges that round to them."""

    name: str
    model: str
    document: Document
    values: Mapping[str, float]
    ranges: Mapping[str, Range]

    @property
    def largest_bias(self) -> Range | None:
        """The largest |s_AMB| that the accuracy in ambiguous contexts allows, as a range because of rounding."""
        if "accuracy_ambig" not in self.ranges:
            return None
        low, high = self.ranges["accuracy_ambig"]
        return 100.0 - high, 100.0 - low

    @property
    def largest_gap(self) -> float | None:
        """The largest abstention gap if wrong persons do not lean against the bias, with the sign of s_DIS."""
        low, high = self.ranges.get("bias_disambig", (0.0, 0.0))
        if low <= 0.0 <= high or "accuracy_disambig" not in self.ranges:
            return None
        # If a share n of answers names a person, the gap is at most 2 n |s_DIS| and 2 (1 - n), where n >= accuracy.
        bias, wrong = max(-low, high) / 100.0, 100.0 - self.ranges["accuracy_disambig"][0]
        return math.copysign(min(200.0 * bias / (1.0 + bias), 2.0 * wrong), high)


def read_published(path: Path = FILE) -> list[Row]:
    """The rows of a file in its order.

    Raises:
        QabiasError: A field is missing, unknown or of a wrong type, a value is out of range or finer than its rounding,
            a name comes twice, or a comparable row is impossible by more than its rounding: |s_AMB| above 1 - accuracy,
            or |s_DIS| above 2 (1 - accuracy).
    """
    rows: dict[str, Row] = {}
    for fields in yaml.safe_load(path.read_text(encoding="utf-8"))["documents"]:
        document = typed(Document, {**_OPTIONAL, **fields}, path, _FIX)
        for name, (model, *values) in document.rows.items():
            try:
                if name in rows:
                    raise ValueError("has the name of another row")
                rows[name] = _row(name, str(model), document, values)
            except ValueError as fault:
                raise QabiasError(f"{path}: row {name!r} {fault}.", f"{_FIX}.") from fault
    return list(rows.values())


def _row(name: str, model: str, document: Document, printed: Sequence[Any]) -> Row:
    """A row of a document, or what is wrong with its values as a `ValueError`."""
    if not set(document.columns) <= set(PRINTED) or len(printed) != len(document.columns):
        raise ValueError(f"has {len(printed)} values for the columns {', '.join(document.columns) or 'none'}")
    if printed and len(document.rounding) != 2:
        raise ValueError("needs two numbers as rounding")
    values = dict(zip(document.columns, printed, strict=True))
    ranges: dict[str, Range] = {}
    for column, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"has {value!r} as {column}")
        least, digit = -100.0 if column in BIASES else 0.0, _digit(document, column)
        if not least <= value <= 100.0 or abs(value / digit - round(value / digit)) > _TINY:
            raise ValueError(f"has {value} as {column}, which is out of range or finer than its rounding")
        ranges[column] = max(least, value - digit / 2.0), min(100.0, value + digit / 2.0)
    for accuracy, bias, factor in zip(ACCURACIES, BIASES, (1.0, 2.0), strict=True):
        if {accuracy, bias} <= set(values) and not document.not_comparable:
            most, (low, high) = factor * (100.0 - ranges[accuracy][0]), ranges[bias]
            if max(low, -high) > most + _TINY:
                raise ValueError(f"is impossible: |{bias}| is at most {most:.2f} at its accuracy")
    return Row(name, model, document, values, ranges)


def _digit(document: Document, column: str) -> float:
    return document.rounding[column not in ACCURACIES]


@cache
def published() -> tuple[Row, ...]:
    """The rows of this package."""
    return tuple(read_published())


def choose_rows(names: Sequence[str]) -> list[Row]:
    """Named rows, or all rows of named makers; without names the newest comparable rows of every maker, and others."""
    rows = published()
    makers = list(dict.fromkeys(row.document.maker.lower() for row in rows))
    known = [*(row.name for row in rows), *makers]
    for name in names:
        if name.lower() not in known:
            raise unknown("published row", name, known, arg("published"), "qabias list published")
    if names:
        wanted = {name.lower() for name in names}
        return [row for row in rows if row.name in wanted or row.document.maker.lower() in wanted]
    chosen: list[Row] = []
    for maker in makers:
        own = [row for row in rows if row.document.maker.lower() == maker and not row.document.not_comparable]
        chosen += sorted(own, key=lambda row: row.document.date, reverse=True)[:NEWEST]
    return [*chosen, *(row for row in rows if row.document.not_comparable)]


def list_published() -> list[tuple[str, str]]:
    """For each document its maker, and its title, date and rows."""
    documents = {id(row.document): row.document for row in published()}.values()
    return [
        (one.maker, f"{one.title} ({one.date}): {' '.join(one.rows)}")
        if not one.not_comparable
        else (one.maker, f"{' '.join(one.rows)}: not comparable: {one.not_comparable}")
        for one in documents
    ]


def next_to_published(scores: Scores, name: str, names: Sequence[str]) -> tuple[Table, list[str]]:
    """A run next to published rows, and how to read the table.

    Args:
        scores: the run's scores.
        name: the run's name.
        names: rows or makers, or none for the newest.
    """
    rows = choose_rows(names)
    of_run = {score: estimate(scores, score) for score in (*_MEASURED, "bias_bound_ambig")}
    measured = {
        score: "undefined" if one.value is None else _text(100.0 * one.value, score) for score, one in of_run.items()
    }
    measured |= {"row": name, "model": name, "title": "this run"}
    measured["abstention_gap"] = f"{measured['abstention_gap']} measured"
    cells = [measured, *(_cells(row) for row in rows if row.values or names)]
    intervals = [
        f"{score} {ends}" for score in _MEASURED if (ends := show_interval(of_run[score], FACTS.measure(score).kind))
    ]
    lacking = max(missing_share(scores, FACTS.measure(score)) for score in _MEASURED)
    read = (
        "Published values are as printed, in percent, without CIs. Ranges cover their rounding.",
        "At most, at least: the abstention gap that the values allow if wrong persons do not lean against the bias.",
    )
    table = Table(
        "published",
        "Next to published scores, in %",
        "",
        " ".join(read),
        tuple(Column(column, title, "text") for column, title in _TITLES.items()),
        tuple(tuple(one.get(column) for column in _TITLES) for one in cells),
        None,
        "Published scores",
    )
    return table, [
        f"This run, 95% CI: {', '.join(intervals) or 'none'}. Answers missing: {percent(lacking)}.",
        *read,
        *(f"Not comparable: {row.name}: {row.document.not_comparable}." for row in rows if row.document.not_comparable),
    ]


def _cells(row: Row) -> dict[str, str]:
    """A published row as texts."""
    document = row.document
    texts = {score: _text(value, score, _digit(document, score)) for score, value in row.values.items()}
    if bound := row.largest_bias:
        texts["bias_bound_ambig"] = " to ".join(dict.fromkeys(_text(end, "bias_bound_ambig") for end in bound))
    if gap := row.largest_gap:
        texts["abstention_gap"] = f"at {'most' if gap > 0 else 'least'} {_text(gap, 'abstention_gap')}"
    if document.not_comparable:
        texts["bias_bound_ambig"] = "not comparable"
    texts |= {
        name: getattr(document, name) for name in ("maker", "title", "table", "date", "address", "not_comparable")
    }
    known = ", ".join(f"{name}: {value}" for name, value in document.known.items())
    return texts | {"row": row.name, "model": row.model, "known": known, "unknown": ", ".join(document.unknown)}


def _text(value: float, score: str, digit: float | None = None) -> str:
    """A value in percent: a whole number, with the digits printed, or with two (accuracies one)."""
    digits = (1 if score in ACCURACIES else 2) if digit is None else len(f"{digit:g}".partition(".")[2])
    text = f"{value:.{0 if isinstance(value, int) else digits}f}"
    is_signed = score in (*BIASES, "abstention_gap") and float(text) > 0
    return f"+{text}" if is_signed else text.replace("-", "−" if float(text) else "")
