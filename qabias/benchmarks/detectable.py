"""Columns of what a run would have found, beside its bias scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qabias.benchmarks.facts import Measure, Scores, found_from
from qabias.tables.model import Column, Table

FOUND_FROM = "found_from_"
"""What the name of a column of detectable sizes begins with; the name of the column of its scores follows."""

READ_FOUND_FROM = (
    "A true bias of the size beside a score would have been found, by an interval that leaves out 0, in four of five "
    "benchmarks like this one; smaller ones may be there unseen. None: even the largest could have been missed."
)


def with_detectable(table: Table, groups: Sequence[Scores], measures: Sequence[Measure]) -> Table:
    """Add a column with the minimum detectable effect of every score."""
    by_name = {measure.name: measure for measure in measures}
    sizes = {
        column: [found_from(of, by_name[column.name]) or None for of in groups]
        for column in table.columns
        if column.name in by_name
    }
    shown = {column: texts for column, texts in sizes.items() if any(texts)}
    if not shown:
        return table
    columns = [Column(f"{FOUND_FROM}{column.name}", f"Found from, {column.title}", "text") for column in shown]
    rows = tuple((*row, *texts) for row, *texts in zip(table.rows, *shown.values(), strict=True))
    return replace(table, note=f"{table.note} {READ_FOUND_FROM}", columns=(*table.columns, *columns), rows=rows)
