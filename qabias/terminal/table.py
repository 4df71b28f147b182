"""A table in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as RichTable

from qabias.tables.export import cells
from qabias.tables.model import Table

MIN_WIDTH = 152
"""Columns of the terminal at least: numbers are worth more than a narrow window, so tables are never cut."""


def print_whole(shown: RichTable, console: Console) -> None:
    """Print a table with all its columns, however wide they are."""
    console.width = max(
        console.width, Measurement.get(console, console.options.update(max_width=10_000), shown).maximum
    )
    console.print(shown)


def print_table(table: Table, console: Console, most_rows: int | None = None) -> int:
    """Print a table.

    Args:
        table: What to print.
        console: Where to print.
        most_rows: Print so many rows at most; None for all.

    Returns:
        The number of rows that were left out.
    """
    shown = RichTable(title=escape(table.title), box=box.SIMPLE)
    for column in table.columns:
        text = column.kind == "text"
        shown.add_column(escape(column.title), justify="left" if text else "right", no_wrap=not text)
    rows = table.rows[:most_rows]
    for row in rows:
        shown.add_row(*map(escape, cells(table, row)))
    print_whole(shown, console)
    return len(table.rows) - len(rows)
