"""Tables in the terminal, on a console that shows every text as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rich.console
from rich import box
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from qabias.support.printable import printable
from qabias.tables.formatting import cells
from qabias.tables.model import Table

MIN_WIDTH = 152
"""Columns of the terminal at least: numbers are worth more than a narrow window, so tables are never cut."""


class Console(rich.console.Console):
    """A console of rich that takes no text for markup or emoji and none to steer the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A text as rich prints it; every text of a table passes here as well."""
        return super().render_str(printable(text), **options)


def print_whole(shown: RichTable, console: Console) -> None:
    """Print a table with all its columns, however wide they are."""
    console.width = max(
        console.width, Measurement.get(console, console.options.update(max_width=10_000), shown).maximum
    )
    console.print(shown)


def print_table(table: Table, console: Console, most_rows: int | None = None) -> int:
    """Print a table."""
    shown = _drawn(table, most_rows)
    print_whole(shown, console)
    return len(table.rows) - shown.row_count


def narrowed(table: Table, width: int) -> Table:
    """The table with fewer columns, so that it fits."""
    console = Console(width=10_000)
    first_number = next(place for place, column in enumerate(table.columns) if column.kind != "text")
    fewer = table
    for place in (*range(len(table.columns) - 1, first_number, -1), *range(first_number - 1, 0, -1)):
        if Measurement.get(console, console.options, _drawn(fewer)).maximum <= width:
            break
        fewer = replace(
            fewer,
            columns=(*fewer.columns[:place], *fewer.columns[place + 1 :]),
            rows=tuple((*row[:place], *row[place + 1 :]) for row in fewer.rows),
        )
    return fewer


def _drawn(table: Table, most_rows: int | None = None) -> RichTable:
    shown = RichTable(title=table.title, box=box.SIMPLE)
    for column in table.columns:
        text = column.kind == "text"
        shown.add_column(column.title, justify="left" if text else "right", no_wrap=not text)
    for row in table.rows[:most_rows]:
        shown.add_row(*cells(table, row))
    return shown
