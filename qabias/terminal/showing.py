"""A run in the terminal: the same numbers as in its report, for those who live in a shell."""

from __future__ import annotations

from pathlib import Path

from qabias.comparison.outcomes import with_ranges_in_cells
from qabias.runs.folder import RUN_FILE
from qabias.runs.scored import ScoredRun, check_complete, read_any_tables, read_scored
from qabias.tables.model import Table, find
from qabias.terminal.console import Console
from qabias.terminal.scores import print_findings, print_scores
from qabias.terminal.table import MIN_WIDTH, print_table

MOST_ROWS = 15
"""Rows of a table that are printed where the whole folder is shown."""


def show_folder(folder: Path, console: Console) -> None:
    """Print what was measured, the scores and the tables, long ones in part."""
    console.width = max(console.width, MIN_WIDTH)
    analysis = read_any_tables(folder)
    run = read_scored(folder) if (folder / RUN_FILE).exists() else None
    if run is not None:
        _print_head(run, console)
    for note in analysis.notes:
        console.print(note, markup=False)
    for table in analysis.tables:
        _print(table, console, MOST_ROWS, f"qabias show {folder} --table {table.name}")
    examples = f"; {len(analysis.examples)} examples are in its report" if analysis.examples else ""
    console.print(
        f"{len(analysis.tables)} tables: {', '.join(table.name for table in analysis.tables)}{examples}", markup=False
    )
    if run is not None:
        print_findings(run.benchmark, run.scores, console, run.is_question_only)


def _print_head(run: ScoredRun, console: Console) -> None:
    check_complete(run)
    facts = {
        "signature": run.signature,
        "model": run.arguments.model,
        "revision": run.arguments.revision,
        "date": run.file.created,
        "qabias": run.file.qabias_version,
    }
    for name, value in facts.items():
        if value:
            # A line feed in a name would begin a line that looks like one of this program.
            console.print(f"{name:<11}{' '.join(value.split())}", markup=False, soft_wrap=True, highlight=False)
    print_scores(run.benchmark, run.scores, console, run.is_question_only)


def show_table(folder: Path, name: str, console: Console) -> None:
    """Print a table whole."""
    console.width = max(console.width, MIN_WIDTH)
    _print(find(read_any_tables(folder).tables, name), console)


def _print(table: Table, console: Console, most_rows: int | None = None, whole: str = "") -> None:
    n_left_out = print_table(with_ranges_in_cells(table), console, most_rows)
    if n_left_out:
        console.print(f"… and {n_left_out:,} more rows: {whole}", markup=False, soft_wrap=True, highlight=False)
    about = " ".join(filter(None, (table.source and f"[{table.source}]", table.note)))
    console.print(about, markup=False, highlight=False)
