"""A comparison in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qabias.benchmarks.facts import RUNS
from qabias.comparison import Comparison
from qabias.comparison.comparable import differing_fields
from qabias.comparison.forms import STEREOTYPES_TABLE
from qabias.comparison.ranking_tests import RANKING
from qabias.comparison.tables import DIFFERENCES, RUNS_TABLE
from qabias.report.terminal import print_side_by_side
from qabias.runs.outcomes import with_ranges_in_cells
from qabias.tables.model import Table
from qabias.tables.terminal import MIN_WIDTH, Console, narrowed, print_table

MOST_ROWS = 10
"""Rows of the tables of single stereotypes, and of many runs, that are printed."""

_WHOLE = "analysis.json and on the page (--output)"

_COLUMNS = 5
"""Columns of a pair of runs in a table of differences."""


def print_compared(comparison: Comparison, console: Console | None = None) -> None:
    """Print the scores of every run, and the differences of every pair of runs."""
    console = console or Console()
    for note in comparison.analysis.notes:
        console.print(note, markup=False)
    if comparison.are_forms:
        _print_forms(comparison, console)
        return
    if comparison.is_by_language:
        _print_by_language(comparison, console)
        return
    if comparison.are_many:
        _print_many(comparison, console)
        return
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


def _print_forms(comparison: Comparison, console: Console) -> None:
    """The differences of the two forms; of the stereotypes the first ones."""
    width = console.width  # before wide tables widen it
    for name, run in zip(comparison.names, comparison.runs, strict=True):
        console.print(f"{name}: {run.signature}", markup=False)
    for table in comparison.analysis.tables:
        if table.name != RUNS_TABLE:
            if table.name == STEREOTYPES_TABLE:
                _print_shortened(table, console, width)
            else:
                print_table(table, console)
    for sentence in comparison.findings:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    console.print(
        "p: permutation test that exchanges the two forms of a stereotype; adjusted (Holm) for the rows of a table "
        "except All. A difference may be one of wording or difficulty, and no difference proves nothing: see "
        "docs/contamination.md.",
        markup=False,
    )


def _print_many(comparison: Comparison, console: Console) -> None:
    """The first runs of every table: of a ranking the best ones."""
    width = max(console.width, MIN_WIDTH)
    for table in comparison.analysis.tables:
        if table.name != RUNS_TABLE:
            _print_shortened(with_ranges_in_cells(table), console, width)
    for sentence in comparison.findings:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _print_by_language(comparison: Comparison, console: Console) -> None:
    """The scores by language, and the differences where the questions are the same."""
    for name, run in zip(comparison.names, comparison.runs, strict=True):
        console.print(f"{name}: {run.signature}", markup=False)
    for table in comparison.analysis.tables:
        if table.name != RUNS_TABLE:
            print_table(with_ranges_in_cells(table), console)
    for sentence in [*comparison.by_run, *comparison.findings]:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _print_shortened(table: Table, console: Console, width: int) -> None:
    """Print the first rows of a table, and the columns that fit into the terminal."""
    first = replace(table, rows=table.rows[:MOST_ROWS])
    shown = narrowed(first, width)
    print_table(shown, console)
    n_rows, n_columns = len(table.rows) - len(first.rows), len(table.columns) - len(shown.columns)
    if n_rows:
        console.print(f"{n_rows} more in {_WHOLE}", markup=False)
    if n_columns:
        console.print(f"{n_columns} columns more in {_WHOLE}", markup=False)


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
