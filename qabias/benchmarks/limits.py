"""Columns of tables with what limits a score: its possible range, and its minimum detectable effect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from qabias.scores.facts import Measure, Scores
from qabias.scores.formatting import percent
from qabias.scores.score import Score, ends_in_words, estimate, limited, missing_share, possible_range
from qabias.tables.model import Column, Table, Value

RANGE = "range_"
"""Prefix of the columns of ranges; the name of the score follows."""

READ_RANGES = "A score that lacks over 2% of its answers has no CI but its possible range."


def values(scores: Scores, columns: Sequence[Column]) -> list[Value]:
    """The scores (with intervals) and counts of a metric's result that the columns name."""
    return [int(scores[column.name]) if column.kind == "count" else estimate(scores, column.name) for column in columns]


def range_column(column: Column, title: str) -> Column:
    """The column of the ranges of a score."""
    return Column(f"{RANGE}{column.name}", title, "text")


def with_ranges(table: Table, groups: Sequence[Scores | None], measures: Sequence[Measure]) -> Table:
    """Add the possible ranges of scores with many missing answers."""
    by_name = {measure.name: measure for measure in measures}
    named = [column.name for column in table.columns if column.name in by_name]
    return with_ranges_of_cells(
        table, {name: [None if group is None else (group, by_name[name]) for group in groups] for name in named}
    )


def with_ranges_of_cells(table: Table, cells: Mapping[str, Sequence[tuple[Scores, Measure] | None]]) -> Table:
    """Add a column after every score that has ranges, and the worst missing share to the note."""
    ranges = {name: [_range(*cell) if cell else "" for cell in column] for name, column in cells.items()}
    ranges = {name: texts for name, texts in ranges.items() if any(texts)}
    if not ranges:
        return table
    columns: list[Column] = []
    rows: list[list[Value]] = [[] for _ in table.rows]
    for place, column in enumerate(table.columns):
        texts = ranges.get(column.name, [""] * len(rows))
        columns.append(column)
        for row, old, text in zip(rows, table.rows, texts, strict=True):
            value = old[place]
            row.append(Score(value.value) if text and isinstance(value, Score) else value)
        if column.name in ranges:
            columns.append(range_column(column, f"Possible, {column.title}"))
            for row, text in zip(rows, texts, strict=True):
                row.append(text or None)
    note = " ".join(filter(None, (table.note, READ_RANGES, _worst(table, {name: cells[name] for name in ranges}))))
    return replace(table, note=note, columns=tuple(columns), rows=tuple(map(tuple, rows)))


def _range(scores: Scores, measure: Measure) -> str:
    ends = possible_range(scores, measure)
    return "" if ends is None else ends_in_words(ends, measure.kind)


def _worst(table: Table, cells: Mapping[str, Sequence[tuple[Scores, Measure] | None]]) -> str:
    """The row and score with the largest share of missing answers."""
    titles = {column.name: column.title for column in table.columns}
    share, title, row = max(
        (
            (missing_share(*cell), titles[name], str(row[0]))
            for name, column in cells.items()
            for cell, row in zip(column, table.rows, strict=True)
            if cell is not None and possible_range(*cell) is not None
        ),
        key=lambda worst: worst[0],
    )
    return f"At worst {percent(share)} lack one ({row}: {title})."


MDE_COLUMN = "mde_"
"""Prefix of the columns of minimum detectable effects; the name of the score follows."""

READ_MDE = "MDE: smallest bias that this run detects with 80% power."


def with_detectable(table: Table, groups: Sequence[Scores], measures: Sequence[Measure]) -> Table:
    """Add a column with the minimum detectable effect of every score."""
    by_name = {measure.name: measure for measure in measures}
    sizes = {
        column: [_finite(limited(group, by_name[column.name])) for group in groups]
        for column in table.columns
        if column.name in by_name
    }
    shown = {column: numbers for column, numbers in sizes.items() if any(numbers)}
    if not shown:
        return table
    kinds = {"signed": "share"}  # a size has no sign
    columns = [
        Column(f"{MDE_COLUMN}{column.name}", f"MDE, {column.title}", kinds.get(column.kind, column.kind))
        for column in shown
    ]
    rows = tuple((*row, *numbers) for row, *numbers in zip(table.rows, *shown.values(), strict=True))
    return replace(table, note=f"{table.note} {READ_MDE}", columns=(*table.columns, *columns), rows=rows)


def _finite(score: Score) -> float | None:
    return score.mde if score.mde is not None and math.isfinite(score.mde) else None
