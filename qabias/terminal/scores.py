"""Scores in the terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.base import meaningful
from qabias.benchmarks.facts import Facts, Scores
from qabias.comparison.tables import score_tables
from qabias.terminal.table import MIN_WIDTH, print_table

_HEADING_WIDTH = 24
# A column of scores and one of examples, below a heading.
_RUN_WIDTH = 52


def print_scores(
    benchmark: Benchmark, scores: Mapping[str, Any], console: Console | None = None, question_only: bool = False
) -> None:
    """Print the scores of a benchmark as its metric returns them.

    Args:
        benchmark: The benchmark.
        scores: What `Benchmark.score` returns.
        console: Where to print; standard output by default.
        question_only: Whether the model saw no context; only the scores that mean anything then are printed.
    """
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    facts = benchmark.facts
    about = facts.question_only if question_only else None
    measures = meaningful(benchmark, question_only, facts.columns)
    console.print(_table(facts, benchmark.groups(scores), measures, about.count if about else "n"))
    if about is not None:
        console.print(about.remark)
    for remark in benchmark.remarks(scores):
        if isinstance(remark, str):
            console.print(remark, markup=False)
        else:
            print_table(remark, console)


def _table(facts: Facts, groups: Mapping[str, Scores], measures: Sequence[Measure], count: str) -> RichTable:
    """Groups by scores; all together last, set apart, unless there is one group alone."""
    table = RichTable(title=facts.caption.replace("[", "\\["), box=box.SIMPLE)
    table.add_column(facts.row, no_wrap=True)
    table.add_column("n", justify="right")
    for measure in measures:
        table.add_column(measure.heading, justify="right", no_wrap=True)
    for name, scores in groups.items():
        if name == ALL:
            if len(groups) == 2:
                continue
            table.add_section()
        cells = [_cell(facts, scores[measure.name], scores.get("ci", {}).get(measure.name)) for measure in measures]
        table.add_row(name, f"{scores[count]:,}", *cells)
    return table


def _cell(facts: Facts, value: float | None, interval: Sequence[float | None] | None) -> str:
    """A score with its interval; undefined is NaN from a metric and null in its file."""
    if value is None or math.isnan(value):
        return "undefined"
    text = f"{facts.unit * value:.{facts.digits}f}"
    if interval is None or any(bound is None or math.isnan(bound) for bound in interval):
        return text
    low, high = (f"{facts.unit * bound:.{facts.digits}f}" for bound in interval if bound is not None)
    return f"{text} \\[{low}, {high}]"


def print_side_by_side(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Sequence[Mapping[str, Any]],
    console: Console | None = None,
    *,
    headings: Sequence[str] = (),
) -> None:
    """Print one table for each measure, one column for each run.

    Args:
        benchmark: The benchmark.
        measures: The scores that are compared.
        names: What tells the runs apart.
        scores: Their scores as in `scores.json`.
        console: Where to print; standard output by default.
        headings: Short names of the runs, which stand above their columns.
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
    for table in score_tables(benchmark, measures, titles, scores):
        title = f"{table.title[0].lower()}{table.title[1:]} [95 % interval]"
        # An undefined score is an estimate without a value.
        rows = tuple(tuple("not asked" if value is None else value for value in row) for row in table.rows)
        print_table(replace(table, title=title, rows=rows), console)
