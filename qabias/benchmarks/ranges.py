"""Scores of which many answers are missing: without an interval, beside the range that they could take.

An interval tells of chance alone. What the missing answers could change is said by the range, so that nobody takes a
score of a few answers for one of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qabias.benchmarks.facts import Measure, Scores, missing_share, possible_range
from qabias.tables.formatting import percent, show
from qabias.tables.model import Column, Estimate, Table, Value, estimate

RANGE = "range_"
"""What the name of a column of ranges begins with; the name of the column of its scores follows."""

READ_RANGES = (
    "Where more than 2 % of its examples lack an answer, a score has no interval but, beside it, the range that it "
    "could take with the missing answers."
)

_PERCENT = "\u00a0%"


def shown_estimate(scores: Scores, measure: Measure) -> Estimate:
    """A score with its interval, but without one where many answers are missing: a range says more then."""
    found = estimate(scores, measure.name)
    return found if possible_range(scores, measure) is None else Estimate(found.value)


def range_in_words(scores: Scores, measure: Measure) -> str:
    """What a score could be with the missing answers, such as "12.5 to 87.5 %"; "" where hardly any is missing."""
    ends = possible_range(scores, measure)
    return "" if ends is None else ends_in_words(ends, measure.kind)


def ends_in_words(ends: tuple[float, float], kind: str) -> str:
    """The two ends of a range of a column of that kind, such as "12.5 to 87.5 %"."""
    low, high = (show(end, kind) for end in ends)
    return f"{low.removesuffix(_PERCENT)} to {high}"


def range_column(column: Column, title: str) -> Column:
    """The column of the ranges of a column of scores."""
    return Column(f"{RANGE}{column.name}", title, "text")


def with_ranges(table: Table, groups: Sequence[Scores | None], measures: Sequence[Measure]) -> Table:
    """The table with the ranges of its scores, where many answers are missing."""
    by_name = {measure.name: measure for measure in measures}
    named = [column.name for column in table.columns if column.name in by_name]
    return with_ranges_of_cells(
        table, {name: [None if of is None else (of, by_name[name]) for of in groups] for name in named}
    )


def with_ranges_of_cells(table: Table, cells: Mapping[str, Sequence[tuple[Scores, Measure] | None]]) -> Table:
    """The table with a column of ranges behind every column that has some, and the worst share missing in its note."""
    ranges = {name: [range_in_words(*cell) if cell else "" for cell in column] for name, column in cells.items()}
    ranges = {name: texts for name, texts in ranges.items() if any(texts)}
    if not ranges:
        return table
    columns: list[Column] = []
    rows: list[list[Value]] = [[] for _ in table.rows]
    for place, column in enumerate(table.columns):
        texts = ranges.get(column.name, [""] * len(rows))
        columns.append(column)
        for row, old, text in zip(rows, table.rows, texts, strict=True):
            row.append(_without_interval(old[place]) if text else old[place])
        if column.name in ranges:
            columns.append(range_column(column, f"Possible, {column.title}"))
            for row, text in zip(rows, texts, strict=True):
                row.append(text or None)
    note = " ".join(filter(None, (table.note, READ_RANGES, _worst(table, {name: cells[name] for name in ranges}))))
    return replace(table, note=note, columns=tuple(columns), rows=tuple(map(tuple, rows)))


def _without_interval(value: Value) -> Value:
    return Estimate(value.value) if isinstance(value, Estimate) else value


def _worst(table: Table, cells: Mapping[str, Sequence[tuple[Scores, Measure] | None]]) -> str:
    """Of which score in which row the largest share of answers is missing."""
    titles = {column.name: column.title for column in table.columns}
    share, title, row = max(
        (
            (missing_share(*cell), titles[name], str(row[0]))
            for name, column in cells.items()
            for cell, row in zip(column, table.rows, strict=True)
            if cell is not None and possible_range(*cell) is not None
        ),
        key=lambda found: found[0],
    )
    return f"At worst {percent(share)} lack one ({row}: {title})."
