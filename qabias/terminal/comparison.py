"""A comparison in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console

from qabias.benchmarks.facts import RUNS
from qabias.comparison import Comparison
from qabias.comparison.comparable import differing_fields
from qabias.comparison.outcomes import with_ranges_in_cells
from qabias.comparison.ranking_tables import RANKING
from qabias.comparison.tables import DIFFERENCES, RUNS_TABLE
from qabias.tables.model import Table
from qabias.terminal.scores import print_side_by_side
from qabias.terminal.table import print_table

_COLUMNS = 5
"""Columns of a pair of runs in a table of differences."""


def print_compared(comparison: Comparison, console: Console | None = None) -> None:
    """Print the scores of every run, and the differences of every pair of runs.

    Args:
        comparison: What to print.
        console: Where to print; standard output by default.
    """
    console = console or Console()
    for note in comparison.analysis.notes:
        console.print(note, markup=False)
    for table in comparison.analysis.tables:
        if table.section == RUNS and table.name != RUNS_TABLE:
            print_table(table, console)
    print_side_by_side(
        comparison.benchmark,
        comparison.measures,
        differing_fields([run.signature for run in comparison.runs]),
        comparison.scores,
        console,
        headings=comparison.names,
    )
    for table in comparison.analysis.tables:
        if table.section == RANKING:
            print_table(with_ranges_in_cells(table), console)
    for table in comparison.analysis.tables:
        if table.name.startswith("difference_"):
            for pair in _pairs(table):
                print_table(pair, console)
    clusters = comparison.benchmark.facts.clusters[0]
    if any(table.section == DIFFERENCES for table in comparison.analysis.tables):
        console.print(
            "found from: a true difference of this size would have been found in four of five such comparisons; "
            "no difference shown is not no difference.",
            markup=False,
        )
        console.print(
            f"p: permutation test that exchanges the models' answers to whole {clusters}; adjusted (Holm) for the rows "
            "of a table except All.",
            markup=False,
        )
    for sentence in [*comparison.by_run, *comparison.findings]:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _pairs(table: Table) -> Iterator[Table]:
    """The pairs of runs of a table of differences, each as a table that fits a terminal."""
    label, rest = table.columns[0], table.columns[1:]
    for start in range(0, len(rest), _COLUMNS):
        columns = rest[start : start + _COLUMNS]
        titles = ("difference", "p", "adjusted p", columns[3].title.partition(" (")[0].lower(), "found from")
        short = [replace(column, title=title) for column, title in zip(columns, titles, strict=True)]
        yield Table(
            table.name,
            f"{table.title}: {columns[0].title}",
            "",
            "",
            (label, *short),
            tuple((row[0], *row[1 + start : 1 + start + _COLUMNS]) for row in table.rows),
        )
