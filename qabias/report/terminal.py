"""Scores, pools and whole folders in the terminal: the same numbers as in the report."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table as RichTable

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.base import HasRemarks, meaningful
from qabias.benchmarks.caveats import NOT_DETECTABLE, format_mde, possible_range
from qabias.benchmarks.facts import RUNS, WORDINGS, Facts, Scores
from qabias.benchmarks.findings import findings, in_one, listed
from qabias.comparison import Comparison
from qabias.comparison.comparable import differing_fields
from qabias.comparison.forms import STEREOTYPES_TABLE
from qabias.comparison.ranking_tests import RANKING
from qabias.comparison.tables import DIFFERENCES, RUNS_TABLE, score_tables
from qabias.pooling import Pool
from qabias.runs.folder import is_run
from qabias.runs.outcomes import OUTCOMES_TABLE, with_ranges_in_cells
from qabias.runs.scored import ScoredRun, read_scored
from qabias.tables.export import read_folder
from qabias.tables.model import Table, find
from qabias.tables.terminal import MIN_WIDTH, Console, narrowed, print_table, print_whole

MOST_ROWS = 15
"""Rows of a table that are printed where the whole folder is shown."""

MOST_COMPARED = 10
"""Rows of the tables of single stereotypes, and of many runs, that are printed."""

_WHOLE = "analysis.json and on the page (--output)"

_COLUMNS = 5
"""Columns of a pair of runs in a table of differences."""

_READ_RANGES = (
    "Where more than 2 % of its answers are missing, a score has no interval but, in round brackets, the range that it "
    "could take with them: {range}."
)
_READ_TESTS = (
    "p: permutation test that exchanges the answers to whole {clusters}; adjusted (Holm) for the rows of a table "
    "except All."
)
_HEADING_WIDTH = 24
# A column of scores and one of examples, below a heading.
_RUN_WIDTH = 52


def print_scores(
    benchmark: Benchmark, scores: Mapping[str, Any], console: Console | None = None, question_only: bool = False
) -> None:
    """Print the scores of a benchmark as its metric returns them."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    facts = benchmark.facts
    only = facts.question_only if question_only else None
    if any(possible_range(group, measure) for group in benchmark.groups(scores).values() for measure in facts.measures):
        for line in (benchmark.sample_facts(scores).get("Unparsed"), _READ_RANGES.format(range=facts.notes.range)):
            if line is not None:
                console.print(line, markup=False)
    measures = meaningful(benchmark, question_only, facts.columns)
    print_whole(_table(facts, benchmark.groups(scores), measures, only.count if only else "n"), console)
    for line in _detectable_lines(benchmark.groups(scores).get(ALL, {}), measures):
        console.print(line, markup=False)
    if WORDINGS in scores:
        print_whole(_wordings(facts, scores, measures), console)
    if only is not None:
        console.print(only.remark)
    for remark in benchmark.remarks(scores) if isinstance(benchmark, HasRemarks) else ():
        if isinstance(remark, str):
            console.print(remark, markup=False)
        else:
            print_table(remark, console)


def print_findings(
    benchmark: Benchmark, scores: Mapping[str, Any], console: Console | None = None, question_only: bool = False
) -> None:
    """Print what was found, in sentences."""
    console = console or Console()
    for sentence in findings(benchmark, scores, question_only):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _detectable_lines(scores: Scores, measures: Sequence[Measure]) -> list[str]:
    """From what size on a bias in all examples would have been found, in one line if that is known."""
    sizes = [
        (measure.heading.replace("-\n", "-").replace("\n", " ").rstrip("."), format_mde(scores, measure))
        for measure in measures
    ]
    seen = [f"{size} in {heading}" for heading, size in sizes if size and size != NOT_DETECTABLE]
    missed = [heading for heading, size in sizes if size == NOT_DETECTABLE]
    clauses = []
    if seen:
        clauses.append(f"a bias would have been found, in about four of five such runs, of at least {listed(seen)}")
    if missed:
        clauses.append(f"in {listed(missed)} even the largest bias could have been missed")
    return [in_one("Over all examples", clauses)] if clauses else []


def _table(facts: Facts, groups: Mapping[str, Scores], measures: Sequence[Measure], count: str) -> RichTable:
    """Groups by scores; all together last, set apart, unless there is one group alone."""
    table = RichTable(title=facts.caption, box=box.SIMPLE)
    table.add_column(facts.row, no_wrap=True)
    table.add_column("n", justify="right")
    for measure in measures:
        table.add_column(measure.heading, justify="right", no_wrap=True)
    for name, scores in groups.items():
        if name == ALL:
            if len(groups) == 2:
                continue
            table.add_section()
        cells = [_cell(facts, scores, measure) for measure in measures]
        table.add_row(name, f"{scores[count]:,}", *cells)
    return table


def _wordings(facts: Facts, scores: Scores, measures: Sequence[Measure]) -> RichTable:
    """The scores of every wording of a set, of all examples together, with their mean and spread below."""
    table = RichTable(title="the same by wording, all examples", box=box.SIMPLE)
    table.add_column("wording", no_wrap=True)
    for measure in measures:
        table.add_column(measure.heading, justify="right", no_wrap=True)
    for name, wording in scores[WORDINGS].items():
        table.add_row(name, *(_cell(facts, wording, measure) for measure in measures))
    table.add_section()
    table.add_row("mean", *(_cell(facts, scores, measure) for measure in measures))
    spread = {"ci": {}, **scores["spread"]}
    table.add_row("spread (standard deviation)", *(_cell(facts, spread, measure) for measure in measures))
    return table


def _cell(facts: Facts, scores: Scores, measure: Measure) -> str:
    """A score with its interval, or where answers are missing with the range that it could take."""
    value = scores[measure.name]
    is_undefined = value is None or math.isnan(value)
    text = "undefined" if is_undefined else _number(facts, value)
    possible = possible_range(scores, measure)
    ends = possible or scores.get("ci", {}).get(measure.name)
    if (is_undefined and not possible) or ends is None or any(end is None or math.isnan(end) for end in ends):
        return text
    low, high = (_number(facts, end) for end in ends)
    return f"{text} ({low} to {high})" if possible else f"{text} [{low}, {high}]"


def _number(facts: Facts, value: float) -> str:
    """A score in percent, or as it is in a table with numbers that are no shares."""
    are_shares = all(measure.kind != "number" for measure in facts.chosen(facts.columns))
    return f"{100 * value:.1f}" if are_shares else f"{value:.3f}"


def print_side_by_side(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    runs: Sequence[ScoredRun],
    names: Sequence[str],
    scores: Sequence[Mapping[str, Any]],
    console: Console | None = None,
) -> None:
    """Print one table for each measure, one column for each run."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH, _RUN_WIDTH * (1 + len(names)))
    for number, fields in enumerate(differing_fields([run.signature for run in runs]), start=1):
        console.print(f"run {number}: {fields}", markup=False)
    titles = [
        "\n".join([f"run {number}", *textwrap.wrap(name, _HEADING_WIDTH)]) for number, name in enumerate(names, start=1)
    ]
    for table in score_tables(benchmark, measures, titles, scores):
        title = f"{table.title[0].lower()}{table.title[1:]} [95 % interval]"
        # An undefined score is an estimate without a value.
        rows = tuple(tuple("not asked" if value is None else value for value in row) for row in table.rows)
        print_table(with_ranges_in_cells(replace(table, title=title, rows=rows)), console)


def print_pool(pool: Pool, console: Console | None = None) -> None:
    """Print the means with their spread and the scores of the runs."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    console.print(pool.signature, markup=False)
    if pool.claim:
        console.print(pool.claim, markup=False)
    for label, text in pool.benchmark.sample_facts(pool.scores).items():
        console.print(f"{label}: {text}", markup=False)
    for note in pool.analysis.notes:
        console.print(note, markup=False)
    names = {f"pooled_{measure.name}" for measure in pool.measures}
    for table in pool.analysis.tables:
        if table.name == OUTCOMES_TABLE:
            print_table(table, console)
        if table.name in names:
            print_table(with_ranges_in_cells(replace(table, title=f"{table.title} [95 % interval]")), console)
    print_findings(pool.benchmark, pool.scores, console, pool.is_question_only)


def show_folder(folder: Path, console: Console) -> None:
    """Print what was measured, the scores and the tables, long ones in part."""
    console.width = max(console.width, MIN_WIDTH)
    run = read_scored(folder) if is_run(folder) else None
    analysis = read_folder(folder)
    if run is not None:
        _print_head(run, console)
    for note in analysis.notes:
        console.print(note, markup=False)
    for table in analysis.tables:
        _print_with_note(table, console, MOST_ROWS, f"qabias show {folder} --table {table.name}")
    examples = f"; {len(analysis.examples)} examples are in its report" if analysis.examples else ""
    console.print(
        f"{len(analysis.tables)} tables: {', '.join(table.name for table in analysis.tables)}{examples}", markup=False
    )
    if run is not None:
        print_findings(run.benchmark, run.scores, console, run.is_question_only)


def _print_head(run: ScoredRun, console: Console) -> None:
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
    _print_with_note(find(read_folder(folder).tables, name), console)


def _print_with_note(table: Table, console: Console, most_rows: int | None = None, whole: str = "") -> None:
    n_left_out = print_table(with_ranges_in_cells(table), console, most_rows)
    if n_left_out:
        console.print(f"… and {n_left_out:,} more rows: {whole}", markup=False, soft_wrap=True, highlight=False)
    note = " ".join(filter(None, (table.source and f"[{table.source}]", table.note)))
    console.print(note, markup=False, highlight=False)


def print_compared(comparison: Comparison, console: Console | None = None) -> None:
    """Print the scores of every run, and the differences of every pair of runs."""
    console = console or Console()
    for note in comparison.analysis.notes:
        console.print(note, markup=False)
    if comparison.are_forms or comparison.is_by_language or comparison.are_many:
        _print_tables(comparison, console)
    else:
        _print_pairs(comparison, console)
    by_run = [] if comparison.are_many else comparison.by_run
    for sentence in [*by_run, *comparison.findings]:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if comparison.are_forms:
        console.print(
            f"{_READ_TESTS.format(clusters='stereotypes')} A difference may be one of wording or difficulty, and no "
            "difference proves nothing: see docs/contamination.md.",
            markup=False,
        )


def _print_tables(comparison: Comparison, console: Console) -> None:
    """All tables; of many runs the best ones, and of single stereotypes the first ones."""
    width = max(console.width, MIN_WIDTH if comparison.are_many else 0)  # before wide tables widen it
    if not comparison.are_many:
        for name, run in zip(comparison.names, comparison.runs, strict=True):
            console.print(f"{name}: {run.signature}", markup=False)
    for table in comparison.analysis.tables:
        if (comparison.are_many and table.name != RUNS_TABLE) or table.name == STEREOTYPES_TABLE:
            _print_shortened(with_ranges_in_cells(table), console, width)
        elif table.name != RUNS_TABLE:
            print_table(with_ranges_in_cells(table), console)


def _print_pairs(comparison: Comparison, console: Console) -> None:
    """The scores of every run side by side, then the differences of every pair."""
    for table in comparison.analysis.tables:
        if table.section == RUNS and table.name != RUNS_TABLE:
            print_table(table, console)
    print_side_by_side(
        comparison.benchmark, comparison.measures, comparison.runs, comparison.names, comparison.scores, console
    )
    for table in comparison.analysis.tables:
        if table.section == RANKING:
            print_table(with_ranges_in_cells(table), console)
    for table in comparison.analysis.tables:
        if table.name.startswith("difference_"):
            for pair in _pairs(table):
                print_table(pair, console)
    if any(table.section == DIFFERENCES for table in comparison.analysis.tables):
        tests = _READ_TESTS.format(clusters=comparison.benchmark.facts.clusters[0])
        console.print(
            "found from: a true difference of this size would have been found in four of five such comparisons; no "
            f"difference shown is not no difference.\n{tests}",
            markup=False,
        )


def _print_shortened(table: Table, console: Console, width: int) -> None:
    """Print the first rows of a table, and the columns that fit into the terminal."""
    first = replace(table, rows=table.rows[:MOST_COMPARED])
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
