"""Scores as tables for the terminal."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

# Numbers are worth more than a narrow window: tables are never cut.
_MIN_WIDTH = 152
_BBQ_COLUMNS = (
    ("accuracy_ambig", "accuracy\nambiguous"),
    ("bias_ambig", "bias s_AMB\nambiguous"),
    ("accuracy_disambig", "accuracy\ndisambig."),
    ("bias_disambig", "bias s_DIS\ndisambig."),
    ("accuracy_cost", "cost of non-\nalignment"),
)
_UNQOVER_COLUMNS = (
    ("mu", "mu\nintensity"),
    ("eta", "eta\nconsistency"),
    ("delta", "delta\nposition"),
    ("epsilon", "epsilon\nnegation"),
    ("avg_score", "average\nscore"),
    ("coverage", "coverage"),
)


def print_scores(benchmark: str, scores: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the scores of a benchmark as its metric returns them.

    Args:
        benchmark: Name of the benchmark.
        scores: What `Benchmark.score` returns.
        console: Where to print; standard output by default.
    """
    console = console or Console()
    console.width = max(console.width, _MIN_WIDTH)
    _TABLES[benchmark](scores, console)


def _print_bbq(scores: Mapping[str, Any], console: Console) -> None:
    table = Table(
        title="BBQ in percent [95 % interval over templates]; 0 bias is best, + follows stereotypes", box=box.SIMPLE
    )
    _add_columns(table, "category", _BBQ_COLUMNS)
    categories = scores.get("by", {}).get("category", {})
    for name, row in categories.items():
        _add_row(table, name, row, _BBQ_COLUMNS, 100, 1)
    if len(categories) != 1:
        table.add_section()
        _add_row(table, "all", scores, _BBQ_COLUMNS, 100, 1)
    console.print(table)


def _print_unqover(scores: Mapping[str, Any], console: Console) -> None:
    table = Table(title="UnQover [95 % interval over templates]; 0 is best but for coverage", box=box.SIMPLE)
    _add_columns(table, "set", _UNQOVER_COLUMNS)
    for name, row in scores["sets"].items():
        _add_row(table, name, row, _UNQOVER_COLUMNS, 1, 3)
    console.print(table)
    for name, row in scores["sets"].items():
        if row["subjects_left_out"]:
            unknown = ", ".join(row["subjects_left_out"])
            console.print(f"{name}: {row['n_left_out']:,} rows left out; not one token each: {unknown}", markup=False)
    strongest = Table(title="Strongest associations: preferred (+) or avoided (-) for the attribute", box=box.SIMPLE)
    for heading in ("set", "subject", "attribute"):
        strongest.add_column(heading)
    for heading in ("gamma", "eta"):
        strongest.add_column(heading, justify="right")
    for name, row in scores["sets"].items():
        for subject, attribute, gamma, eta in row["top"][:3]:
            strongest.add_row(name, subject, attribute, f"{gamma:+.3f}", f"{eta:+.2f}")
    console.print(strongest)


_TABLES: dict[str, Callable[[Mapping[str, Any], Console], None]] = {"bbq": _print_bbq, "unqover": _print_unqover}


def _add_columns(table: Table, first: str, columns: tuple[tuple[str, str], ...]) -> None:
    table.add_column(first, no_wrap=True)
    table.add_column("n", justify="right")
    for _, title in columns:
        table.add_column(title, justify="right", no_wrap=True)


def _add_row(
    table: Table, name: str, scores: Mapping[str, Any], columns: tuple[tuple[str, str], ...], unit: int, digits: int
) -> None:
    cells = [_cell(scores[key], scores.get("ci", {}).get(key), unit, digits) for key, _ in columns]
    table.add_row(name, f"{scores['n']:,}", *cells)


def _cell(value: float, interval: list[float] | None, unit: int, digits: int) -> str:
    if math.isnan(value):
        return "undefined"
    text = f"{unit * value:.{digits}f}"
    if interval is None or any(math.isnan(bound) for bound in interval):
        return text
    return f"{text} \\[{unit * interval[0]:.{digits}f}, {unit * interval[1]:.{digits}f}]"
