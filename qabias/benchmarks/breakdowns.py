"""Tables of scores by groups, each a line of data."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

from qabias.scores.facts import Measure, Scores
from qabias.scores.formatting import percent
from qabias.scores.score import Score, estimate, limited, with_possible
from qabias.tables.model import Column, Figure, Table, Value

READ_RANGES = "A score that lacks over 2% of its answers has no CI but its possible range."
_READ_SIZES = "MDE: smallest bias that this run detects with 80% power, from the CI that such a bias would have."

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
    tables, by_name = [], {measure.name: measure for measure in measures}
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
        cells = tuple(
            (*compress(of_row, there), *(_cell(scores, column, by_name, one.mde) for column in shown))
            for of_row, scores in rows
        )
        title = one.title or one.name.replace("_", " ").capitalize()
        heading = (one.name, title, one.source, notes[one.name])
        table = Table(*heading, (*compress(one.labels, there), *shown), cells, figure, one.section)
        tables.append(with_reading(table))
    return tables


def _cell(scores: Scores, column: Column, measures: Mapping[str, Measure], mde: bool) -> Value:
    if column.kind == "count":
        return int(scores[column.name])
    if column.name not in measures:
        return estimate(scores, column.name)
    score = with_possible(scores, measures[column.name])
    return score._replace(mde=limited(scores, measures[column.name]).mde) if mde else score


def with_reading(table: Table) -> Table:
    """A table whose note tells how to read the possible ranges and detectable effects of its cells, if it has any."""
    scores = [
        (value, f"{row[0]}: {column.title}")
        for column, *values in zip(table.columns, *table.rows, strict=True)
        for row, value in zip(table.rows, values, strict=True)
        if isinstance(value, Score)
    ]
    notes = [table.note]
    ranged = [(score.missing, where) for score, where in scores if score.possible is not None]
    if ranged:
        share, where = max(ranged, key=lambda worst: worst[0])
        notes += [READ_RANGES, f"At worst {percent(share)} lack one ({where})."]
    if any(score.mde and math.isfinite(score.mde) for score, _ in scores):
        notes.append(_READ_SIZES)
    return replace(table, note=" ".join(filter(None, notes)))
