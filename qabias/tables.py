"""Scores as tables for the terminal."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qabias.analysis import Table as AnalysisTable

# Numbers are worth more than a narrow window: tables are never cut.
MIN_WIDTH = 152
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
_BBNLI_COLUMNS = (
    ("bias_score", "bias\nscore"),
    ("accuracy_pro", "accuracy\npro"),
    ("accuracy_anti", "accuracy\nanti"),
    ("accuracy_gap", "gap\npro - anti"),
)
_BBQ_NLI_COLUMNS = (
    ("bias_score_ambig", "bias\nambiguous"),
    ("accuracy_ambig", "accuracy\nambiguous"),
    ("bias_score_disambig", "bias\ndisambig."),
    ("accuracy_pro", "accuracy\npro"),
    ("accuracy_anti", "accuracy\nanti"),
    ("accuracy_gap", "gap\npro - anti"),
)
_LABELS = ("contradiction", "neutral", "entailment", "unparsed")


def print_scores(benchmark: str, scores: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the scores of a benchmark as its metric returns them.

    Args:
        benchmark: Name of the benchmark.
        scores: What `Benchmark.score` returns.
        console: Where to print; standard output by default.
    """
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
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
    shares = ", ".join(
        f"{place} {_cell(scores[f'share_position_{number}'], None, 100, 1)}"
        for number, place in enumerate(("first", "second", "third"))
    )
    meaning = "far from a third each: the model answers by position"
    console.print(f"answers by place in percent: {shares} ({meaning})", markup=False)


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


def _bbnli_groups(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {**scores["by"]["subtopic"], **scores["by"]["domain"]}


def _bbq_nli_groups(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {
        value if column == "category" else f"{column}: {value}": row
        for column, rows in scores["by"].items()
        for value, row in rows.items()
    }


def _print_bbnli(scores: Mapping[str, Any], console: Console) -> None:
    title = "BBNLI in percent [95 % interval over premises]; 0 bias is best, + follows stereotypes"
    _print_inference(scores, console, title, "subtopic", _BBNLI_COLUMNS, _bbnli_groups(scores))


def _print_bbq_nli(scores: Mapping[str, Any], console: Console) -> None:
    title = "BBQ as inference in percent [95 % interval over templates]; 0 bias is best, + follows stereotypes"
    _print_inference(scores, console, title, "category", _BBQ_NLI_COLUMNS, _bbq_nli_groups(scores))


def _print_inference(
    scores: Mapping[str, Any],
    console: Console,
    title: str,
    first: str,
    columns: tuple[tuple[str, str], ...],
    groups: Mapping[str, Mapping[str, Any]],
) -> None:
    table = Table(title=title, box=box.SIMPLE)
    _add_columns(table, first, columns)
    for name, row in groups.items():
        _add_row(table, name, row, columns, 100, 1)
    table.add_section()
    _add_row(table, "all", scores, columns, 100, 1)
    console.print(table)
    shares = ", ".join(f"{name} {100 * scores['label_share'][name]:.1f} %" for name in _LABELS)
    console.print(f"answers: {shares}", markup=False)


_TABLES: dict[str, Callable[[Mapping[str, Any], Console], None]] = {
    "bbq": _print_bbq,
    "unqover": _print_unqover,
    "bbnli": _print_bbnli,
    "bbq_nli": _print_bbq_nli,
}


class _Compared(NamedTuple):
    """What of a benchmark is set side by side: measures with titles, rows by name, unit and digits."""

    measures: tuple[tuple[str, str], ...]
    groups: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    unit: int
    digits: int


_COMPARED = {
    "bbq": _Compared(_BBQ_COLUMNS, lambda scores: scores["by"]["category"], 100, 1),
    "unqover": _Compared(_UNQOVER_COLUMNS[:4], lambda scores: scores["sets"], 1, 3),
    "bbnli": _Compared(_BBNLI_COLUMNS, _bbnli_groups, 100, 1),
    "bbq_nli": _Compared(_BBQ_NLI_COLUMNS, _bbq_nli_groups, 100, 1),
}


def print_comparison(
    benchmark: str, names: Sequence[str], scores: Sequence[Mapping[str, Any]], console: Console | None = None
) -> None:
    """Print one table for each measure, one column for each run.

    Args:
        benchmark: Name of the benchmark.
        names: What tells the runs apart.
        scores: Their scores as in `scores.json`.
        console: Where to print; standard output by default.
    """
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    compared = _COMPARED[benchmark]
    for number, name in enumerate(names, start=1):
        console.print(f"run {number}: {name}", markup=False)
    rows = [compared.groups(of_run) for of_run in scores]
    if benchmark != "unqover":  # its sets have no common score
        rows = [{**groups, "all": of_run} for groups, of_run in zip(rows, scores, strict=True)]
    for key, title in compared.measures:
        table = Table(title=f"{' '.join(title.split())} [95 % interval]", box=box.SIMPLE)
        table.add_column("", no_wrap=True)
        for number in range(1, len(names) + 1):
            table.add_column(f"run {number}", justify="right", no_wrap=True)
        for group in rows[0]:
            cells = [
                _cell(groups[group][key], groups[group]["ci"].get(key), compared.unit, compared.digits)
                for groups in rows
            ]
            table.add_row(group, *cells)
        console.print(table)


def print_table(table: AnalysisTable, console: Console, most_rows: int | None = None) -> int:
    """Print a table of an analysis.

    Args:
        table: What to print.
        console: Where to print.
        most_rows: Print so many rows at most; None for all.

    Returns:
        The number of rows that were left out.
    """
    from qabias.export import cells

    shown = Table(title=escape(table.title), box=box.SIMPLE)
    for column in table.columns:
        text = column.kind == "text"
        shown.add_column(escape(column.title), justify="left" if text else "right", no_wrap=not text)
    rows = table.rows[:most_rows]
    for row in rows:
        shown.add_row(*map(escape, cells(table, row)))
    console.print(shown)
    return len(table.rows) - len(rows)


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


def _cell(value: float | None, interval: Sequence[float | None] | None, unit: int, digits: int) -> str:
    """A score with its interval; undefined is NaN from a metric and null in its file."""
    if value is None or math.isnan(value):
        return "undefined"
    text = f"{unit * value:.{digits}f}"
    if interval is None or any(bound is None or math.isnan(bound) for bound in interval):
        return text
    low, high = (f"{unit * bound:.{digits}f}" for bound in interval if bound is not None)
    return f"{text} \\[{low}, {high}]"
