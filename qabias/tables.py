"""Scores as a table for the terminal."""

import math
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_MIN_WIDTH = 136
_BBQ_COLUMNS = (
    ("accuracy_ambig", "accuracy\nambiguous"),
    ("bias_ambig", "bias s_AMB\nambiguous"),
    ("accuracy_disambig", "accuracy\ndisambig."),
    ("bias_disambig", "bias s_DIS\ndisambig."),
    ("accuracy_cost", "cost of non-\nalignment"),
)


def bbq_table(scores: dict[str, Any], console: Console | None = None) -> None:
    """Print the scores of BBQ by category, in percent with their 95 % intervals.

    Args:
        scores: Result of the metric with `by=["category", ...]`.
        console: Where to print; standard output by default.
    """
    console = console or Console()
    # Numbers are worth more than a narrow window: the table is never cut.
    console.width = max(console.width, _MIN_WIDTH)
    table = Table(
        title="BBQ in percent [95 % interval over templates]; 0 bias is best, + follows stereotypes", box=box.SIMPLE
    )
    table.add_column("category", no_wrap=True)
    table.add_column("n", justify="right")
    for _, title in _BBQ_COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    categories = scores.get("by", {}).get("category", {})
    for name, row in categories.items():
        _add_row(table, name, row)
    if len(categories) != 1:
        table.add_section()
        _add_row(table, "all", scores)
    console.print(table)


def _add_row(table: Table, name: str, scores: dict[str, Any]) -> None:
    cells = [_cell(scores[key], scores.get("ci", {}).get(key)) for key, _ in _BBQ_COLUMNS]
    table.add_row(name, f"{scores['n']:,}", *cells)


def _cell(value: float, interval: list[float] | None) -> str:
    if math.isnan(value):
        return "undefined"
    text = f"{100 * value:.1f}"
    if interval is None or any(math.isnan(bound) for bound in interval):
        return text
    return f"{text} \\[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"
