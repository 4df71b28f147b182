"""Scores, averages, whole folders and templates in the terminal, with the report's numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.base import RUN, short_title
from qabias.benchmarks.headline import Headline, headline, meaningful
from qabias.benchmarks.scoring import by_run
from qabias.comparison import PUBLISHED, Comparison
from qabias.comparison.ranking_tests import RANKING
from qabias.errors import QabiasError, arg
from qabias.pooling import Pool
from qabias.report.content import about_texts, comparison_headlines
from qabias.runs.estimands import estimands
from qabias.runs.folder import SCORES_FILE, is_run
from qabias.runs.looks import verdict_lines
from qabias.runs.opened import Run, is_question_only
from qabias.runs.scored import OUTCOMES_TABLE, cost_in_words
from qabias.runs.signature import coverage_of
from qabias.runs.unfinished import command_of, read_unfinished
from qabias.scores.facts import SHOWN, WORDINGS, Facts, Scores, TemplateView
from qabias.scores.formatting import show, show_interval, show_p
from qabias.scores.score import Score, as_score, estimate, limited, possible_range
from qabias.support.suggest import closest
from qabias.tables.export import read_folder
from qabias.tables.model import Column, Table, Value, find, flat
from qabias.tables.terminal import MIN_WIDTH, Console, print_table

MOST_ROWS = 15  # rows per table in a view of the whole folder
MOST_COMPARED = 10  # printed rows in tables of single stereotypes and of many runs
N_ITEMS = 4  # examples of a template
_LARGEST = 2  # groups in a summary, largest bias first
_CAVEAT = "A low score does not prove a model unbiased."
_RANGE = "(a to b): possible range, if over 2% of answers are missing"
_PUBLISHED_WIDTH = 100
_BEST = {0.0: "best 0", 1.0: "best 100%"}
_NOISE = "includes 0"


def print_summary(run: Run, console: Console | None = None) -> None:
    """Print a run in at most 20 lines: headline, overall scores, largest groups, limits and signature."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    benchmark, scores, model = run.benchmark, run.scores, run.arguments.model or "unnamed model"
    facts = benchmark.sample_facts(scores)
    outcome = run.outcome
    for line in verdict_lines(outcome) if outcome else ():
        print_line(line, console)
    print_line(f"{' '.join(model.split())} on {benchmark.title.partition(':')[0]}: {facts.get('Sample', '')}", console)
    if covered := coverage_of(run.arguments):
        print_line(covered, console)
    if outcome is None:
        print_headline(headline(benchmark, scores, model, run.is_question_only), console)
    is_part = bool(run.arguments.until or run.arguments.scores)  # only the questions of some scores were asked
    print_table(_overview(benchmark, scores, run.is_question_only, is_part), console)
    if not is_part:
        explained = [one for one in meaningful(benchmark, run.is_question_only) if one.name in scores]
        _print_explained([one for one in explained if not limited(scores, one).is_noise], benchmark.facts, console)
    limits = [f"sample ({run.arguments.limit})"] if run.arguments.limit is not None else []
    limits += ["stopped early"] if run.stopped_early else []
    if _has_ranges(benchmark, scores):
        limits.append(_RANGE)
    if texts := about_texts(run):
        _print_labeled("Texts", texts, console)
    if cost := cost_in_words(run.cost):
        _print_labeled("Cost", cost, console)
    _print_labeled("Limits", ". ".join([*limits, _CAVEAT]), console)
    print_line(f"{'Cite':<9}{run.signature}", console)


def _has_ranges(benchmark: Benchmark, scores: Mapping[str, Any]) -> bool:
    """Whether a score has too many missing answers for an interval."""
    groups, measures = benchmark.groups(scores).values(), benchmark.facts.measures
    return any(possible_range(one, measure) for one in groups for measure in measures)


def _print_explained(measures: Sequence[Measure], facts: Facts, console: Console) -> None:
    """Print how to read the headline score that needs it."""
    for measure in measures:
        if measure.name == facts.explained:
            _print_labeled("Read", f"{measure.tile}: {measure.note}", console)


def _print_labeled(label: str, text: str, console: Console) -> None:
    """Print a text after a label, wrapped at the width of the terminal."""
    print_line(fill(f"{label:<9}{text}", console.width, subsequent_indent=" " * 9, break_on_hyphens=False), console)


def print_line(text: str, console: Console) -> None:
    """Print a text in one line of any length."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_headline(first: Headline | None, console: Console) -> None:
    """Print a headline, and the minimum detectable effect."""
    for text in () if first is None else (first.text, first.detail):
        if text:
            print_line(text, console)


def _overview(benchmark: Benchmark, scores: Mapping[str, Any], question_only: bool, is_part: bool = False) -> Table:
    """The overall headline scores and the groups with the largest bias; without common scores all groups."""
    facts, groups, rules = benchmark.facts, benchmark.groups(scores), benchmark.facts.headline
    measures = meaningful(benchmark, question_only, facts.tiles)
    if benchmark.group_path(ALL) is None:
        names = (rules.excess, rules.magnitude, *rules.errors) if rules and rules.magnitude else facts.tiles
        measures = meaningful(benchmark, question_only, names)
        return _by_group(facts, groups, measures, "")
    asked = [one for one in measures if not is_part or estimate(scores, one.name).value is not None]
    rows = [(measure.tile or measure.title, scores, measure) for measure in asked]
    first = meaningful(benchmark, question_only, tuple(rules.biases))[0] if rules and rules.biases else measures[0]
    named = scores["by"][rules.by] if rules and rules.by else {name: groups[name] for name in groups if name != ALL}
    read = {name: estimate(one, first.name) for name, one in named.items()}
    sizes = {name: abs(one.value) for name, one in read.items() if one.value is not None and one.low is not None}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_LARGEST] if len(named) > 1 else []
    if all(limited(named[name], first).is_noise for name in largest):
        largest = []  # the table of --full has them
    columns = (
        ("All examples", "text"),
        ("score", "number"),
        ("95% CI", "number"),
        ("MDE", "number"),
        ("reading", "text"),
    )
    cells = [
        *(_cells(title, one, measure) for title, one, measure in rows),
        *[(f"Largest of {len(named)}: {first.tile or first.title}", "", "", "", "")] * bool(largest),
        *(_cells(f"  {name}", named[name], first) for name in largest),
    ]
    return Table("overview", "", "", "", tuple(Column(title, title, kind) for title, kind in columns), tuple(cells))


def _cells(title: str, scores: Scores, measure: Measure) -> tuple[str, ...]:
    """A score, its interval or possible range, its minimum detectable effect and how to read it."""
    score = limited(scores, measure)
    text = "undefined" if score.value is None else show(score, measure.kind)
    reading = _NOISE if score.is_noise and not score.possible else "" if measure.best is None else _BEST[measure.best]
    limits = f"({score.possible_in_words})" if score.possible else score.interval
    return title, text, limits, score.size.removesuffix(" points"), reading


def print_scores(
    benchmark: Benchmark, scores: Mapping[str, Any], console: Console | None = None, question_only: bool = False
) -> None:
    """Print the scores of all groups as a metric returns them."""
    console = console or Console()
    facts = benchmark.facts
    only = facts.question_only if question_only else None
    groups = benchmark.groups(scores)
    if _has_ranges(benchmark, scores):
        for line in (benchmark.sample_facts(scores).get("Unparsed"), f"{_RANGE}: {facts.notes.range}"):
            if line is not None:
                console.print(line, markup=False)
    measures = meaningful(benchmark, question_only, facts.columns)
    shown = {name: group for name, group in groups.items() if name != ALL or len(groups) != 2}
    print_table(_by_group(facts, shown, measures, only.count if only else "n"), console, whole=True)
    if WORDINGS in scores:
        print_table(_wordings(facts, scores, measures), console, whole=True)
    if only is not None:
        console.print(only.remark)
    for remark in benchmark.remarks(scores):
        if isinstance(remark, str):
            console.print(remark, markup=False)
        else:
            print_table(remark, console)


def _by_group(facts: Facts, groups: Mapping[str, Scores], measures: Sequence[Measure], count: str) -> Table:
    columns = (
        Column(facts.row, facts.row, "text"),
        *([Column("n", "n", "count")] if count else []),
        *_headings(measures),
    )
    rows: list[tuple[Value, ...]] = []
    for name, one in groups.items():
        n = [int(one[count])] if count else []
        rows.append((name, *n, *(_cell(facts, one, each) for each in measures)))
    return Table("scores", facts.caption if count else "", "", "", columns, tuple(rows))


def _headings(measures: Sequence[Measure]) -> list[Column]:
    return [Column(measure.name, measure.heading, measure.kind) for measure in measures]


def _wordings(facts: Facts, scores: Scores, measures: Sequence[Measure]) -> Table:
    """The overall scores of every prompt variant, with average and standard deviation."""
    spread = {"ci": {}, **scores["spread"]}
    of_each = {**scores[WORDINGS], "average": scores, "standard deviation": spread}
    columns = (Column("wording", "prompt variant", "text"), *_headings(measures))
    rows = tuple((name, *(_cell(facts, one, each) for each in measures)) for name, one in of_each.items())
    return Table("wordings", "All examples, by prompt variant", "", "", columns, rows)


def _cell(facts: Facts, scores: Scores, measure: Measure) -> str:
    """A score with its interval, or its possible range if answers are missing."""
    value = scores.get(measure.name)
    is_undefined = value is None or math.isnan(value)
    text = "undefined" if value is None or is_undefined else _number(facts, value)
    possible = possible_range(scores, measure)
    ends = possible or scores.get("ci", {}).get(measure.name)
    if measure.name in scores.get("p_values", {}):
        return f"{text} ({show_p(scores['p_values'][measure.name])})"
    if (is_undefined and not possible) or ends is None or any(end is None or math.isnan(end) for end in ends):
        return text
    low, high = (_number(facts, end) for end in ends)
    return f"{text} ({low} to {high})" if possible else f"{text} [{low}, {high}]"


def _number(facts: Facts, value: float) -> str:
    """A score in percent, or unchanged in a table of other numbers."""
    are_shares = all(measure.kind != "number" for measure in facts.chosen(facts.columns))
    return f"{100 * value:.1f}" if are_shares else f"{value:.3f}"


def print_pool(pool: Pool, console: Console | None = None) -> None:
    """Print the averages with their standard deviations, and each run's scores."""
    console = console or Console()
    if pool.claim:
        console.print(pool.claim, markup=False)
    print_headline(headline(pool.benchmark, pool.scores, "", pool.is_question_only), console)
    for label, text in pool.benchmark.sample_facts(pool.scores).items():
        console.print(f"{label}: {text}", markup=False)
    for note in pool.analysis.notes:
        console.print(note, markup=False)
    names = {f"pooled_{measure.name}" for measure in pool.measures}
    for table in pool.analysis.tables:
        if table.name == OUTCOMES_TABLE:
            print_table(table, console)
        if table.name in names:
            print_table(replace(table, title=f"{table.title} [95% CI]"), console)
    print_line(pool.signature, console)


def show_folder(folder: Path, console: Console, *, full: bool = False) -> None:
    """Print a run's arguments and findings, and the names of its tables; in full also scores and tables."""
    if is_run(folder) and not (folder / SCORES_FILE).exists():
        return _show_unfinished(folder, console)
    run = Run.scored(folder) if is_run(folder) else None
    analysis = read_folder(folder)
    if run is not None:
        print_summary(run, console)
    for note in analysis.notes:
        console.print(note, markup=False)
    if run is not None and full:
        made = {"revision": run.arguments.revision, "date": run.created, "qabias": run.qabias_version}
        for name, value in made.items():
            if value:
                # A line feed in a name would begin a line that looks like one of this program.
                print_line(f"{name:<9}{' '.join(value.split())}", console)
        print_scores(run.benchmark, run.scores, console, run.is_question_only)
    for table in analysis.tables if full or run is None else ():
        _print_with_note(table, console, MOST_ROWS)
    names = f": {', '.join(table.name for table in analysis.tables)}" if full or run is None else ", named by --full"
    print_line(f"{'More':<9}--full, or --table NAME: {len(analysis.tables)} tables{names}", console)


def _show_unfinished(folder: Path, console: Console) -> None:
    """Print what an interrupted run has: the scores of its finished parts."""
    run, question, scores, n_answered, n_asked = read_unfinished(folder)
    console.width = max(console.width, MIN_WIDTH)
    until = " until the next look" if run.arguments.until else ""
    print_line(f"Unfinished: {n_answered:,} of {n_asked:,} examples{until}.", console)
    print_line(f"To finish, rerun: {command_of(run)}", console)
    print_line(f"{' '.join(run.arguments.model.split())} on {short_title(question.benchmark)}", console)
    only = is_question_only(question.benchmark, question.signature)
    is_part = bool(run.arguments.until or run.arguments.scores)
    print_table(_overview(question.benchmark, scores, only, is_part), console)
    print_line(f"{'Limits':<9}{_RANGE}. The finished parts are no random sample.", console)


def show_both_intervals(folder: Path, console: Console) -> None:
    """Print the headline scores with both intervals, see `qabias.runs.estimands`."""
    run = Run.scored(folder)
    table = estimands(run)
    if table is None:
        raise QabiasError(f"{folder} has no scores of all examples in one prompt.", f"Remove {arg('both_intervals')}.")
    console.width = max(console.width, MIN_WIDTH)
    print_table(table, console)
    console.print(table.note, markup=False, highlight=False)


def show_table(folder: Path, name: str, console: Console) -> None:
    """Print a whole table."""
    _print_with_note(find(read_folder(folder).tables, name), console)


def _print_with_note(table: Table, console: Console, most_rows: int | None = None) -> None:
    print_table(table, console, most_rows, whole=most_rows is None)
    note = " ".join(filter(None, (table.source and f"[{table.source}]", table.note)))
    console.print(note, markup=False, highlight=False)


def print_compared(comparison: Comparison, console: Console | None = None, *, full: bool = False) -> None:
    """Print the differences of runs, for two in at most 25 lines; in full all scores and differences."""
    console = console or Console()
    title = " and ".join(dict.fromkeys(short_title(run.benchmark) for run in comparison.runs))
    if comparison.view is PUBLISHED:
        _print_published(comparison, console)
        return
    print_line(f"{len(comparison.runs):,} runs of {title}", console)
    for note in comparison.analysis.notes:
        console.print(note, markup=False)
    print_headline(comparison.headline, console)
    is_pair = len(comparison.runs) == 2 and comparison.view.has_examples
    for number, line in enumerate(comparison.by_run[:MOST_COMPARED]):
        print_line(f"  {'AB'[number] if is_pair else ' '} {line}", console)
    tables = comparison.analysis.tables
    if full:
        for table in tables:
            print_table(table, console, whole=comparison.view.has_columns)
    elif is_pair and any(table.name.startswith("difference_") for table in tables):
        print_table(_pair_overview(comparison), console)
        _print_explained(comparison.measures, comparison.benchmark.facts, console)
    elif comparison.view.n_tables:
        for table in tables[: comparison.view.n_tables]:
            print_table(table, console, MOST_COMPARED)
    else:
        print_table(_without_intervals(comparison_headlines(comparison)), console, MOST_COMPARED)
        for table in [table for table in tables if table.section in (SHOWN, RANKING)][:1]:
            print_table(table, console, MOST_COMPARED)
    paired = comparison.clusters.removesuffix("s")
    print_line(f'Limits   paired by {paired}. {comparison.view.caveat}"Not detected" does not mean "equal".', console)
    if not full:
        print_line("More     --full, or --output FOLDER for a page", console)


def _print_published(comparison: Comparison, console: Console) -> None:
    """Print a run next to published scores, in at most 30 lines without names."""
    (table,), notes = comparison.analysis.tables, comparison.analysis.notes
    console.width = max(console.width, _PUBLISHED_WIDTH)
    print_table(table, console)
    for note in notes:
        print_line(note, console)


def _without_intervals(table: Table) -> Table:
    """The table with narrow score columns."""
    table = flat(table)
    columns = tuple(replace(column, title=column.title.replace(", ", ",\n")) for column in table.columns)
    rows = tuple(
        tuple(Score(value.value) if isinstance(value, Score) else value for value in row) for row in table.rows
    )
    return replace(table, title="", columns=columns, rows=rows)


def _pair_overview(comparison: Comparison) -> Table:
    """The overall headline scores of two runs with differences, and the groups that differ most."""
    rows: list[tuple[str, ...]] = []
    largest: list[tuple[str, ...]] = []
    for measure in comparison.measures:
        table = next((one for one in comparison.analysis.tables if one.name == f"difference_{measure.name}"), None)
        if table is None or not measure.tile:
            continue
        by_group = [comparison.benchmark.groups(scores, measure) for scores in comparison.scores]
        by_name = {str(row[0]): row for row in table.rows}
        if ALL not in by_name:
            rows += [_pair_cells(f"{measure.tile}, {name}", row, by_group, measure) for name, row in by_name.items()]
            continue
        rows.append(_pair_cells(measure.tile, by_name.pop(ALL), by_group, measure))
        sizes = {name: abs(value) for name, row in by_name.items() if (value := as_score(row[1]).value) is not None}
        if not largest and len(by_name) > 1:
            groups = sorted(sizes, key=lambda name: -sizes[name])[:_LARGEST]
            title = f"Largest of {len(by_name)}, adjusted p: {measure.tile}"
            largest = [(title, *[""] * 6), *(_pair_cells(name, by_name[name], by_group, measure, 3) for name in groups)]
    titles = ("All examples", "A", "B", "B − A", "95% CI", "MDE", "p")
    columns = tuple(Column(title, title, "number" if place else "text") for place, title in enumerate(titles))
    return Table("pair", "", "", "", columns, (*rows[:MOST_COMPARED], *largest))


def _pair_cells(
    title: str, row: Sequence[Value], by_group: Sequence[Mapping[str, Scores]], measure: Measure, p: int = 2
) -> tuple[str, ...]:
    """A group's score in two runs, and its difference from the table of differences."""
    kind, group = "signed" if measure.kind == "share" else measure.kind, str(row[0])
    levels = [show(estimate(one[group], measure.name), measure.kind) if group in one else "" for one in by_group]
    size = "n/a" if row[5] is None else show(row[5], "share" if kind == "signed" else kind)
    texts = (*levels, show(row[1], kind), show_interval(row[1], kind), size, show(row[p], "p"))
    return title, *(text.removesuffix("\u00a0%") for text in texts)


def show_template(folder: Path, name: str, console: Console) -> None:
    """Print a template's answer shares by condition, and a few of its examples."""
    run = Run.open(folder)
    question, answers = run.question, run.answers
    benchmark, table = question.benchmark, question.table
    if RUN in table.column_names:
        table, *others = by_run(table)
        answers = answers.slice(0, table.num_rows)
        console.print(f"wording {table[RUN][0]}; the same was asked in {len(others)} others")
    view = benchmark.facts.view
    templates = view.template(table).cast(pa.string())
    chosen = pc.equal(templates, name)
    if not pc.any(chosen).as_py():
        raise _unknown(name, templates.unique().to_pylist())
    only = benchmark.facts.question_only
    if only is not None and question.prompt_format is not None and question.prompt_format.question_only:
        column, value = only.rows  # other rows ask the same once more; the report has one
        chosen = pc.and_(chosen, pc.equal(table[column], value))
    rows = table.filter(chosen)
    of_rows = answers.drop_columns(list(benchmark.key)).filter(chosen)
    for column in of_rows.column_names:
        rows = rows.append_column(column, of_rows[column])
    console.width = max(console.width, MIN_WIDTH)
    print_table(rates(view, name, rows), console)
    # The first items, unless they form a set, would all be of one kind.
    step = 1 if view.in_sets else max(1, rows.num_rows // N_ITEMS)
    places = range(0, rows.num_rows, step)[:N_ITEMS]
    for row in rows.take(list(places)).to_pylist():
        for line in view.lines(row):
            console.print(line, markup=False, highlight=False)
        console.print()
    console.print(f"{len(places)} of {rows.num_rows:,} items", markup=False, highlight=False)


def _unknown(name: str, known: Sequence[str]) -> QabiasError:
    same_number = [one for one in known if one.replace("-0", "-") == name.replace("-0", "-")]
    group = [one for one in known if one.rpartition("-")[0] == name.rpartition("-")[0]]
    close = same_number or ([] if group else closest(name, known))
    meant = f" Did you mean {close[0]!r}?" if close else ""
    first, last = (group or known)[0], (group or known)[-1]
    return QabiasError(f"the run has no template {name!r}.{meant}", f"Use {arg('template')} {first} to {last}.")


def rates(view: TemplateView, name: str, rows: pa.Table) -> Table:
    """Answer shares by condition, or the benchmark's own view."""
    if view.rates is not None:
        return view.rates(name, rows)
    counts: dict[tuple[str, ...], Counter[str]] = {}
    columns = [column for column in (*view.conditions, *view.columns) if column in rows.column_names]
    for row in rows.select(columns).to_pylist():
        condition = tuple(str(row[column] or "none") for column in view.conditions)
        counts.setdefault(condition, Counter()).update(view.answers(row))
    left_out = [kind for kind in view.left_out if any(count[kind] for count in counts.values())]
    cells: list[tuple[Value, ...]] = []
    for condition, count in sorted(counts.items()):
        n = sum(count[kind] for kind in view.kinds)
        shares = [count[kind] / n if n else None for kind in view.kinds]
        cells.append((*condition, *shares, n, *(count[kind] for kind in left_out)))
    return Table(
        "template",
        f"Answers to {name}",
        "",
        "",
        (
            *(Column(column, column.replace("_", " "), "text") for column in view.conditions),
            *(Column(kind, kind, "share") for kind in view.kinds),
            Column("n", "Answers", "count"),
            *(Column(kind, kind, "count") for kind in left_out),
        ),
        tuple(cells),
    )
