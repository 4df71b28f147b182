"""Tables of scores by groups, each a line of data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

from qabias.benchmarks.limits import values, with_detectable, with_ranges
from qabias.scores.facts import Measure, Scores
from qabias.tables.model import Column, Figure, Table

Group = tuple[Sequence[Any], Scores]
"""The labels of a row, and the scores of its group."""


class Breakdown(NamedTuple):
    """A table of scores by groups.

    Attributes:
        by: Name of its groups; without any there is no table.
        labels: Columns of the groups' labels, and of any other values that are no scores.
        columns: Columns of scores and counts, by their names in the metric's result.
        figure: Kind of the figure. It draws the columns of the first one's kind, or those named after it:
            "intervals accuracy_pro accuracy_anti". A heat map is across the second label.
        title: Its heading, by default its name.
        mde: Whether minimum detectable effects are shown.
    """

    name: str
    by: str
    labels: Sequence[Column]
    columns: Sequence[Column]
    section: str
    figure: str = ""
    source: str = ""
    title: str = ""
    mde: bool = False


def columns(kind: str, **titles: str) -> tuple[Column, ...]:
    """Columns of one kind, as titles by names."""
    return tuple(Column(name, title, kind) for name, title in titles.items())


def make_tables(
    breakdowns: Iterable[Breakdown],
    groups: Mapping[str, Iterable[Group]],
    notes: Mapping[str, str],
    measures: Sequence[Measure],
    absent: Collection[str] = (),
) -> list[Table]:
    """The tables of breakdowns whose groups a run has, without the columns that are `absent` in it."""
    tables = []
    for one in breakdowns:
        rows = list(groups.get(one.by, ()))
        if not rows:
            continue
        there = [column.name not in absent for column in one.labels]
        shown = [column for column in one.columns if column.name not in absent]
        figure = None
        if one.figure:
            kind, *drawn = one.figure.split()
            drawn = drawn or [column.name for column in one.columns if column.kind == one.columns[0].kind]
            across = one.labels[1].name if kind == "heatmap" else ""
            figure = Figure(kind, one.labels[0].name, tuple(name for name in drawn if name not in absent), across)
        cells = tuple((*compress(of_row, there), *values(scores, shown)) for of_row, scores in rows)
        title = one.title or one.name.replace("_", " ").capitalize()
        heading = (one.name, title, one.source, notes[one.name])
        table = Table(*heading, (*compress(one.labels, there), *shown), cells, figure, one.section)
        of_rows = [scores for _, scores in rows]
        table = with_ranges(table, of_rows, measures)
        tables.append(with_detectable(table, of_rows, measures) if one.mde else table)
    return tables
