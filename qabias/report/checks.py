"""Refusing what no metric can have computed, before a page shows it.

A page shows numbers as they are given; so a damaged file must be found before, and be named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qabias.runs.scored import damaged
from qabias.tables.model import FIGURES, KINDS, Analysis, Column, Estimate, Table

_RANGES = {
    "share": (0, 1),
    "signed": (-1, 1),
    "number": (-math.inf, math.inf),
    "p": (0, 1),
    "count": (0, math.inf),
}


def check_analysis(file: Path, analysis: Analysis) -> None:
    """Refuse an analysis with tables that cannot be shown."""
    names = [table.name for table in analysis.tables]
    for table in analysis.tables:
        if names.count(table.name) > 1:
            raise damaged(file, f"table {table.name!r} comes twice")
        _check_table(file, table)
    if not all(isinstance(row, dict) for row in analysis.examples):
        raise damaged(file, "an example is no object")
    _check_texts(file, "analysis", how_chosen=analysis.how_chosen, **dict(_numbered("note", analysis.notes)))


def check_scores(
    file: Path, where: str, scores: Mapping[str, Any], kinds: Mapping[str, str], counts: Sequence[str]
) -> None:
    """Refuse scores that a metric cannot have given."""
    if not isinstance(scores, dict):
        raise damaged(file, f"{where} is missing or no object")
    intervals, groups = (_object(file, where, scores, name) for name in ("ci", "by"))
    for name in groups:
        _object(file, f"{where}.by", groups, name)
    for key in (*kinds, *counts):
        if key not in scores:
            raise damaged(file, f"{where} lacks {key!r}")
    for key in counts:
        _check_value(file, f"{where}.{key}", scores[key], "count")
    for key, kind in kinds.items():
        interval = intervals.get(key, [None, None])
        if not isinstance(interval, list) or len(interval) != 2:
            raise damaged(file, f"{where}.ci.{key} is {interval!r}, not a pair")
        for value in (scores[key], *interval):
            _check_value(file, f"{where}.{key}", value, kind)


def _object(file: Path, where: str, content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of the scores that may be missing, but must be an object."""
    part = content.get(name, {})
    if not isinstance(part, dict):
        raise damaged(file, f"{where}.{name} is no object")
    return part


def _check_table(file: Path, table: Table) -> None:
    where = f"table {table.name!r}"
    _check_texts(file, where, **{name: getattr(table, name) for name in ("name", "title", "source", "note", "section")})
    columns = [column.name for column in table.columns]
    for column in table.columns:
        _check_texts(file, where, name=column.name, title=column.title)
        if column.kind not in KINDS:
            raise damaged(file, f"{where}, column {column.name!r}: there is no kind {column.kind!r}")
    figure = table.figure
    if figure is not None:
        if figure.kind not in FIGURES:
            raise damaged(file, f"{where}: there is no figure {figure.kind!r}")
        drawn = (figure.labels, *figure.values, *([figure.across] if figure.kind == "heatmap" else []))
        missing = [name for name in drawn if name not in columns]
        if missing or not figure.values:
            raise damaged(file, f"{where}: its figure needs the columns {', '.join(map(str, missing)) or 'of values'}")
    for number, row in enumerate(table.rows):
        for value, column in zip(row, table.columns, strict=True):
            _check_cell(file, f"{where}, row {number}, {column.name}", value, column)


def _check_cell(file: Path, where: str, value: Any, column: Column) -> None:
    if column.kind == "text":
        if value is not None:
            _check_texts(file, where, value=value)
        return
    for number in value if isinstance(value, Estimate) else [value]:
        if number is not None or column.kind != "count":
            _check_value(file, where, number, column.kind)


def _check_value(file: Path, where: str, value: Any, kind: str) -> None:
    lowest, highest = _RANGES[kind]
    if kind == "count":
        if type(value) is not int or value < lowest:
            raise damaged(file, f"{where} is {value!r}, not a count")
        return
    # Sums of floats may pass the end of their range by a rounding error.
    fits = type(value) in (int, float) and math.isfinite(value) and lowest - 1e-9 <= value <= highest + 1e-9
    if value is not None and not fits:
        bounds = "" if kind == "number" else f" from {lowest} to {highest}"
        raise damaged(file, f"{where} holds {value!r}, not null or a number{bounds}")


def _check_texts(file: Path, where: str, **texts: Any) -> None:
    for name, text in texts.items():
        if not isinstance(text, str):
            raise damaged(file, f"{where}: {name} is {text!r}, not a text")


def _numbered(name: str, values: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"{name} {number}", value) for number, value in enumerate(values)]
