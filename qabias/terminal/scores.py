"""Scores as tables for the terminal."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qabias.tables.model import Table as AnalysisTable
from qabias.comparison.measures import ALL, groups, measures_of
from qabias.comparison.tables import score_tables

# Numbers are worth more than a narrow window: tables are never cut.
MIN_WIDTH = 152
_HEADING_WIDTH = 24
# A column of scores and one of examples, below a heading.
_RUN_WIDTH = 52
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


def print_scores(
    benchmark: str, scores: Mapping[str, Any], console: Console | None = None, question_only: bool = False
) -> None:
    """Print the scores of a benchmark as its metric returns them.

    Args:
        benchmark: Name of the benchmark.
        scores: What `Benchmark.score` returns.
        console: Where to print; standard output by default.
        question_only: Whether the model saw no context (see `qabias.comparison.comparable.is_question_only`); only scores of
            ambiguous contexts are then printed.
    """
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    if benchmark == "bbq":
        _print_bbq(scores, console, question_only)
    else:
        _TABLES[benchmark](scores, console)


def _print_bbq(scores: Mapping[str, Any], console: Console, question_only: bool) -> None:
    table = Table(
        title="BBQ in percent [95 % interval over templates]; 0 bias is best, + follows stereotypes", box=box.SIMPLE
    )
    columns = tuple(column for column in _BBQ_COLUMNS if not question_only or column[0].endswith("_ambig"))
    _add_groups(table, "category", groups("bbq", scores), columns, "n_ambig" if question_only else "n")
    console.print(table)
    if question_only:
        console.print("The model saw no context; every question counts once, and UNKNOWN is always right.")
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


def _print_bbnli(scores: Mapping[str, Any], console: Console) -> None:
    title = "BBNLI in percent [95 % interval over premises]; 0 bias is best, + follows stereotypes"
    _print_inference(scores, console, title, "subtopic", _BBNLI_COLUMNS, groups("bbnli", scores))


def _print_bbq_nli(scores: Mapping[str, Any], console: Console) -> None:
    title = "BBQ as inference in percent [95 % interval over templates]; 0 bias is best, + follows stereotypes"
    _print_inference(scores, console, title, "category", _BBQ_NLI_COLUMNS, groups("bbq_nli", scores))


def _print_inference(
    scores: Mapping[str, Any],
    console: Console,
    title: str,
    first: str,
    columns: tuple[tuple[str, str], ...],
    rows: Mapping[str, Mapping[str, Any]],
) -> None:
    table = Table(title=title, box=box.SIMPLE)
    _add_groups(table, first, rows, columns)
    console.print(table)
    shares = ", ".join(f"{name} {100 * scores['label_share'][name]:.1f} %" for name in _LABELS)
    console.print(f"answers: {shares}", markup=False)


_TABLES: dict[str, Callable[[Mapping[str, Any], Console], None]] = {
    "unqover": _print_unqover,
    "bbnli": _print_bbnli,
    "bbq_nli": _print_bbq_nli,
}


def print_comparison(
    benchmark: str,
    names: Sequence[str],
    scores: Sequence[Mapping[str, Any]],
    console: Console | None = None,
    *,
    headings: Sequence[str] = (),
    question_only: bool = False,
) -> None:
    """Print one table for each measure, one column for each run.

    Args:
        benchmark: Name of the benchmark.
        names: What tells the runs apart.
        scores: Their scores as in `scores.json`.
        console: Where to print; standard output by default.
        headings: Short names of the runs, which stand above their columns.
        question_only: Whether no model saw a context; only scores of ambiguous contexts are then printed.
    """
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH, _RUN_WIDTH * (1 + len(names)))
    for number, name in enumerate(names, start=1):
        console.print(f"run {number}: {name}", markup=False)
    titles = [f"run {number}" for number in range(1, len(names) + 1)]
    if headings:
        titles = [
            "\n".join([title, *textwrap.wrap(name, _HEADING_WIDTH)])
            for title, name in zip(titles, headings, strict=True)
        ]
    for table in score_tables(benchmark, measures_of(benchmark, question_only), titles, scores):
        title = f"{table.title[0].lower()}{table.title[1:]} [95 % interval]"
        # An undefined score is an estimate without a value.
        rows = tuple(tuple("not asked" if value is None else value for value in row) for row in table.rows)
        print_table(replace(table, title=title, rows=rows), console)


def print_table(table: AnalysisTable, console: Console, most_rows: int | None = None) -> int:
    """Print a table of an analysis.

    Args:
        table: What to print.
        console: Where to print.
        most_rows: Print so many rows at most; None for all.

    Returns:
        The number of rows that were left out.
    """
    from qabias.tables.export import cells

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


def _add_groups(
    table: Table,
    first: str,
    rows: Mapping[str, Mapping[str, Any]],
    columns: tuple[tuple[str, str], ...],
    count: str = "n",
) -> None:
    """Columns and rows of scores in percent; all together last, set apart, unless there is one group alone."""
    _add_columns(table, first, columns)
    for name, row in rows.items():
        if name == ALL:
            if len(rows) == 2:
                continue
            table.add_section()
        _add_row(table, name, row, columns, 100, 1, count)


def _add_row(
    table: Table,
    name: str,
    scores: Mapping[str, Any],
    columns: tuple[tuple[str, str], ...],
    unit: int,
    digits: int,
    count: str = "n",
) -> None:
    cells = [_cell(scores[key], scores.get("ci", {}).get(key), unit, digits) for key, _ in columns]
    table.add_row(name, f"{scores[count]:,}", *cells)


def _cell(value: float | None, interval: Sequence[float | None] | None, unit: int, digits: int) -> str:
    """A score with its interval; undefined is NaN from a metric and null in its file."""
    if value is None or math.isnan(value):
        return "undefined"
    text = f"{unit * value:.{digits}f}"
    if interval is None or any(bound is None or math.isnan(bound) for bound in interval):
        return text
    low, high = (f"{unit * bound:.{digits}f}" for bound in interval if bound is not None)
    return f"{text} \\[{low}, {high}]"
