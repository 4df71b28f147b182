"""The figures and tables that several runs have, as one: the rows of every run one below the other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from qabias.benchmarks.caveats import RANGE, READ_RANGES
from qabias.tables.model import Analysis, Column, Figure, Table

MOST_ROWS = 300
"""Rows of a joined table."""

SECTION = "Figures and tables of the papers, run by run"

_RUN = Column("run", "Run", "text")


def joined_tables(names: Sequence[str], analyses: Sequence[Analysis], left_out: Collection[str] = ()) -> list[Table]:
    """Tables of the same name in two runs or more, joined by a first column that names the run."""
    by_run = [{table.name: table for table in analysis.tables} for analysis in analyses]
    joined = []
    for wanted in dict.fromkeys(name for tables in by_run for name in tables):
        found = {name: tables[wanted] for name, tables in zip(names, by_run, strict=True) if wanted in tables}
        if len(found) > 1 and wanted not in left_out:
            joined.append(_join(found))
    return joined


def _join(tables: Mapping[str, Table]) -> Table:
    one = next(iter(tables.values()))
    columns = _columns(list(tables.values()))
    most = max(len(table.rows) for table in tables.values())
    about_ranges = READ_RANGES if any(column.name.startswith(RANGE) for column in columns) else ""
    notes = [_shared_sentences([table.note.replace(READ_RANGES, "") for table in tables.values()]), about_ranges]
    if sum(len(table.rows) for table in tables.values()) > MOST_ROWS:
        most = MOST_ROWS // len(tables)
        notes.append(f"Here are the first {most} rows of every run; its report has all.")
    rows = []
    for name, table in tables.items():
        places = [table.columns.index(column) if column in table.columns else None for column in columns]
        rows += [(name, *(None if place is None else row[place] for place in places)) for row in table.rows[:most]]
    return replace(
        one,
        note=" ".join(filter(None, notes)),
        columns=(_RUN, *columns),
        rows=tuple(rows),
        figure=_figure(one.figure, [column.name for column in columns]),
        section=SECTION,
    )


def _columns(tables: Sequence[Table]) -> list[Column]:
    """The columns that all tables have, and behind a score the ranges that it has in any of them."""
    found = []
    for column in tables[0].columns:
        if all(column in table.columns for table in tables) and not column.name.startswith(RANGE):
            ranges = (of for table in tables for of in table.columns if of.name == f"{RANGE}{column.name}")
            found += [column, *itertools.islice(ranges, 1)]
    return found


def _shared_sentences(notes: Sequence[str]) -> str:
    """What all notes say; a sentence with a number of one run is not true of the others."""
    sentences = [re.split(r"(?<=[.!?]) ", note) for note in notes]
    return " ".join(sentence for sentence in sentences[0] if all(sentence in of_note for of_note in sentences))


def _figure(figure: Figure | None, columns: Sequence[str]) -> Figure | None:
    """Rows by runs, where the figure of a run draws one value by row."""
    if figure is None or figure.across or len(figure.values) > 1 or figure.values[0] not in columns:
        return None
    return Figure("heatmap", figure.labels, figure.values, "run")
