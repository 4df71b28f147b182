"""Columns of what a run would have found, beside its bias scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qabias.benchmarks.facts import Measure, Scores, found_from
from qabias.tables.model import Column, Table, Value

FOUND_FROM = "found_from_"
"""What the name of a column of detectable sizes begins with; the name of the column of its scores follows."""

READ_FOUND_FROM = (
    "A true bias of the size beside a score would have been found, by an interval that leaves out 0, in four of five "
    "benchmarks like this one; smaller ones may be there unseen."
)


def with_detectable(table: Table, groups: Sequence[Scores], measures: Sequence[Measure]) -> Table:
    """The table with a column of the smallest size that would have been found behind every score that has one.

    Args:
        table: Groups by scores; a column of scores has the name of its measure.
        groups: The scores of every row.
        measures: The scores that may have such a size.
    """
    by_name = {measure.name: measure for measure in measures}
    sizes: Mapping[str, list[str]] = {
        column.name: [found_from(of, by_name[column.name]) for of in groups]
        for column in table.columns
        if column.name in by_name
    }
    columns: list[Column] = []
    rows: list[list[Value]] = [[] for _ in table.rows]
    for place, column in enumerate(table.columns):
        texts = sizes.get(column.name, [])
        columns += [column, *([Column(f"{FOUND_FROM}{column.name}", "Found from", "text")] if any(texts) else [])]
        for number, (row, old) in enumerate(zip(rows, table.rows, strict=True)):
            row += [old[place], *([texts[number] or None] if any(texts) else [])]
    if len(columns) == len(table.columns):
        return table
    note = f"{table.note} {READ_FOUND_FROM}"
    return replace(table, note=note, columns=tuple(columns), rows=tuple(map(tuple, rows)))
