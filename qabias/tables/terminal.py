"""Tables in the terminal, with every text shown literally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import rich.console
from rich import box
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from qabias.scores.facts import ALL
from qabias.scores.score import Score
from qabias.support.printable import printable
from qabias.tables.model import Table, cells, flat

MIN_WIDTH = 40  # minimum terminal width in columns
_TEXT = 32  # minimum width of a text column; longer texts wrap


class Console(rich.console.Console):
    """A rich console without markup, emoji and control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a text for rich, including every table text."""
        return super().render_str(printable(text), **options)


def print_table(table: Table, console: Console, most_rows: int | None = None, *, whole: bool = False) -> None:
    """Print the table columns that fit the terminal, or the `whole` table, in blocks."""
    console.width = max(console.width, MIN_WIDTH)
    table = flat(table, ranges=False)
    if any(isinstance(value, Score) and value.possible for row in table.rows for value in row):
        table = replace(table, title=f"{table.title} (range with the missing answers)")
    rows = table.rows[:most_rows]
    places = list(range(len(table.columns)))
    while places:
        shown = _fitting(replace(table, rows=rows, figure=None), places, console)
        console.print(_drawn(shown))
        left = places[len(shown.columns) :]
        if not whole or not left:
            break
        places = [0, *left]
    hidden = [] if whole else [table.columns[place].title for place in left]
    counts = ((len(table.rows) - len(rows), "row"), (len(hidden), "column"))
    if more := [f"{n:,} more {what}{'s' * (n > 1)}" for n, what in counts if n]:
        console.print(f"{' and '.join(more)} not shown{': ' * bool(hidden)}{'; '.join(hidden)}", markup=False)


def _fitting(table: Table, places: Sequence[int], console: Console) -> Table:
    """The table with the columns that fit, at least two if possible."""
    wide = console.options.update(max_width=10_000)

    def width(chosen: Sequence[int]) -> int:
        return Measurement.get(console, wide, _drawn(_with_columns(table, chosen), _TEXT)).maximum

    first, *others = places
    alone = total = width([first])
    n = 1
    for place in others:
        total += width([first, place]) - alone  # a column adds as much after any other
        if n >= 2 and total > console.width:
            break
        n += 1
    return _with_columns(table, places[:n])


def _with_columns(table: Table, chosen: Sequence[int]) -> Table:
    columns = tuple(table.columns[place] for place in chosen)
    return replace(table, columns=columns, rows=tuple(tuple(row[place] for place in chosen) for row in table.rows))


def _drawn(table: Table, text_width: int | None = None) -> RichTable:
    shown = RichTable(
        title=table.title or None, box=box.SIMPLE, title_justify="left", collapse_padding=True, pad_edge=False
    )
    for column in table.columns:
        text = column.kind == "text"
        shown.add_column(
            column.title, justify="left" if text else "right", no_wrap=not text, max_width=text_width if text else None
        )
    for row in table.rows:
        if row[0] == ALL and shown.row_count:
            shown.add_section()
        shown.add_row(*cells(table, row))
    return shown
