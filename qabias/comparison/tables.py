"""The tables of a comparison: runs, scores, and differences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.breakdowns import READ_RANGES, with_reading
from qabias.comparison.comparable import mixed_fields
from qabias.runs.opened import Run
from qabias.scores.facts import RUNS, Scores, run_column, union
from qabias.scores.formatting import listed, pluralize
from qabias.scores.judge import holm
from qabias.scores.score import Score, known_mde, possible_range, with_possible
from qabias.tables.model import Analysis, Column, Figure, Table, Value

RUNS_TABLE = "runs"
BY_RUN = "Scores by run"
DIFFERENCES = "Differences between runs"
SECTION = "Figures and tables of the papers, run by run"

DETECTABLE = "detectable_"
"""Start of the name of a column of detectable differences, before the name of its difference column."""

MOST_BESIDE = 30  # maximum runs in columns with figures and paired differences; more runs are rows
MANY = (
    f"More than {MOST_BESIDE} runs ({{n:,}} here) are shown as rows, without figures and paired differences with the "
    "first run. Neighbors in the rankings are tested. Compare fewer runs to see all that."
)

_MOST_NAMED = 3
_MOST_MISSING = 10
_EMPTY_CELL = "An empty cell: not asked in this run."

MOST_ROWS = 300

_RUN = Column("run", "Run", "text")
_Filled = tuple[Column, list[Value]]

READ_INTERVALS = "Intervals are 95% CIs over {clusters}."
_NOT_ASKED = "A dash with 0 examples: not asked in this run."
_READ_DIFFERENCES = (
    "Second run minus first, paired by {clusters}. Adjusted p (Holm) covers all rows except All. MDE n/a: the runs "
    "differ in too few {clusters} to know it, or a difference of 100 points could be missed."
)


def runs_table(runs: Sequence[Run], names: Sequence[str]) -> Table:
    """The runs, with a column for every differing field that should agree."""
    mixed = mixed_fields(runs)
    note = "The runs by their names in the other tables, with signature and date."
    if mixed:
        note = f"Caution: these runs also differ in {', '.join(mixed)}, not only in the model. {note}"
    columns = (
        _RUN,
        Column("model", "Model", "text"),
        *(Column(f"mixed_{name}", f"MIXED: {name}", "text") for name in mixed),
        Column("date", "Date", "text"),
        Column("signature", "Signature", "text"),
    )
    rows = tuple(
        (
            name,
            run.arguments.model,
            *(values[number] for values in mixed.values()),
            run.created[:10],
            run.signature,
        )
        for number, (run, name) in enumerate(zip(runs, names, strict=True))
    )
    return Table(RUNS_TABLE, "The runs", "", note, columns, rows, None, RUNS)


def score_tables(
    benchmark: Benchmark, measures: Sequence[Measure], names: Sequence[str], scores: Sequence[Scores]
) -> list[Table]:
    """One table per score: groups by runs, with intervals and numbers of examples."""
    tables = []
    read_intervals = READ_INTERVALS.format(clusters=benchmark.facts.clusters[0])
    for measure in measures:
        by_run = [benchmark.groups(groups, measure) for groups in scores]
        rows = union([list(groups) for groups in by_run])
        runs: list[_Filled] = [
            (
                Column(run_column(number), name, measure.kind),
                [with_possible(groups[row], measure) if row in groups else None for row in rows],
            )
            for number, (name, groups) in enumerate(zip(names, by_run, strict=True))
        ]
        columns = [*runs, *_count_columns(names, by_run, rows, measure)]
        not_asked = _NOT_ASKED if any(row not in groups for groups in by_run for row in rows) else ""
        ranges_note = READ_RANGES if _have_ranges(value for _, values in runs for value in values) else ""
        tables.append(
            Table(
                measure.name,
                measure.title,
                measure.source,
                " ".join(filter(None, (measure.note, read_intervals, ranges_note, not_asked))),
                (Column("group", benchmark.facts.group, "text"), *(column for column, _ in columns)),
                _filled(rows, columns),
                Figure("intervals", "group", tuple(map(run_column, range(len(names))))),
                BY_RUN,
            )
        )
    return tables


def _have_ranges(values: Iterable[Value]) -> bool:
    return any(isinstance(value, Score) and value.possible is not None for value in values)


def _count_columns(
    names: Sequence[str], by_run: Sequence[Mapping[str, Scores]], rows: Sequence[str], measure: Measure
) -> list[_Filled]:
    """Numbers of examples: one column if equal in all runs, else one per run."""
    if measure.subcounts:
        return [
            (
                Column(f"{count}_{run_column(number)}", f"{title}, {name}", "count"),
                [int(by_run[number][row][count]) if row in by_run[number] else 0 for row in rows],
            )
            for number, name in enumerate(names)
            for count, title in measure.subcounts
        ]
    counts = [[n_examples(groups[row], measure) if row in groups else 0 for row in rows] for groups in by_run]
    if all(of_run == counts[0] for of_run in counts):
        return [(Column("n", "Examples", "count"), list(counts[0]))]
    return [
        (Column(f"n_{run_column(number)}", f"Examples, {name}", "count"), list(of_run))
        for number, (name, of_run) in enumerate(zip(names, counts, strict=True))
    ]


def _filled(labels: Sequence[str], columns: Sequence[_Filled]) -> tuple[tuple[Value, ...], ...]:
    return tuple((label, *(values[place] for _, values in columns)) for place, label in enumerate(labels))


def n_examples(scores: Scores, measure: Measure) -> int:
    """The number of examples of a score."""
    return sum(int(scores[count]) for count in measure.counts)


def heatmaps(
    benchmark: Benchmark, measures: Sequence[Measure], names: Sequence[str], scores: Sequence[Scores]
) -> list[Table]:
    """Bias by category and model; no cell for examples that a run lacks."""
    tables = []
    for measure in measures:
        if measure.heatmap:
            by_run = [benchmark.groups(cell, measure) for cell in scores]
            columns = (
                Column("group", benchmark.facts.group, "text"),
                _RUN,
                Column(measure.name, measure.title, measure.kind),
                Column("n", "Examples", "count"),
            )
            groups = [
                (row, name, cell[row])
                for row in union([list(cell) for cell in by_run])
                for name, cell in zip(names, by_run, strict=True)
                if row in cell
            ]
            table = Table(
                f"{measure.name}_by_model",
                f"{measure.title}: all models",
                measure.source,
                "The same scores at a glance.",
                columns,
                tuple(
                    (row, name, with_possible(cell, measure), n_examples(cell, measure)) for row, name, cell in groups
                ),
                Figure("heatmap", "group", (measure.name,), "run"),
                BY_RUN,
            )
            tables.append(with_reading(table))
    return tables


class Compared(NamedTuple):
    """Two runs by number, with each group's cluster count and differences by score."""

    first: int
    second: int
    groups: Mapping[str, tuple[int, Mapping[str, Score]]]


def difference_tables(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Sequence[Scores],
    compared: Sequence[Compared],
) -> list[Table]:
    """One table per score: groups by pairs of runs, with intervals and p-values."""
    if not compared:
        return []
    tables = []
    for measure in measures:
        rows = [
            row
            for row in union([list(benchmark.groups(result, measure)) for result in scores])
            if any(row in pair.groups for pair in compared)
        ]
        kind = "signed" if measure.kind == "share" else measure.kind
        columns: list[_Filled] = []
        for pair in compared:
            key = f"run_{pair.second + 1}_minus_{pair.first + 1}"
            title = f"{names[pair.second]} − {names[pair.first]}"
            by_run = [benchmark.groups(scores[number], measure) for number in (pair.first, pair.second)]
            tested = {row: pair.groups[row][1][measure.name] for row in rows if row in pair.groups}
            family = [row for row in rows if row != ALL]
            p_values = [tested[row].p if row in tested else None for row in family]
            adjusted = dict(zip(family, holm(p_values), strict=True))
            complete = {row: one for row, one in tested.items() if not lacks_answers(by_run, row, measure)}
            mdes = {row: known_mde(one.mde, kind) for row, one in complete.items()}
            columns += [
                (Column(key, title, kind), [Score(*tested[row][:3]) if row in tested else None for row in rows]),
                (Column(f"p_{key}", f"p ({title})", "p"), [tested[row].p if row in tested else None for row in rows]),
                (Column(f"p_adjusted_{key}", f"adjusted p ({title})", "p"), [adjusted.get(row) for row in rows]),
                (
                    Column(f"n_templates_{key}", f"{benchmark.facts.clusters[0].capitalize()} ({title})", "count"),
                    [pair.groups[row][0] if row in tested else 0 for row in rows],
                ),
                (
                    Column(f"{DETECTABLE}{key}", f"MDE ({title})", "share" if kind == "signed" else kind),
                    [mdes.get(row) for row in rows],
                ),
            ]
        tables.append(
            Table(
                f"difference_{measure.name}",
                f"Difference: {measure.title}",
                "",
                _READ_DIFFERENCES.format(clusters=benchmark.facts.clusters[0]),
                (Column("group", benchmark.facts.group, "text"), *(column for column, _ in columns)),
                _filled(rows, columns),
                Figure("intervals", "group", tuple(column.name for column, _ in columns[::5])),
                DIFFERENCES,
            )
        )
    return tables


def lacks_answers(by_run: Sequence[Mapping[str, Scores]], row: str, measure: Measure) -> bool:
    """Whether a run lacks too many answers of a group for a detectable size."""
    return any(possible_range(groups[row], measure) is not None for groups in by_run if row in groups)


def table_by_run(benchmark: Benchmark, measure: Measure, names: Sequence[str], scores: Sequence[Scores]) -> Table:
    """A score with intervals and number of examples: runs by groups."""
    by_run = [benchmark.groups(run, measure) for run in scores]
    groups = union([list(run) for run in by_run])
    columns: list[_Filled] = [
        (
            Column(f"group_{place}", group, measure.kind),
            [with_possible(run[group], measure) if group in run else None for run in by_run],
        )
        for place, group in enumerate(groups, start=1)
    ]
    if all(ALL in run for run in by_run):
        columns.append((Column("n", "Examples", "count"), [n_examples(run[ALL], measure) for run in by_run]))
    notes = (
        measure.note,
        READ_INTERVALS.format(clusters=benchmark.facts.clusters[0]),
        READ_RANGES if _have_ranges(value for _, values in columns for value in values) else "",
        _EMPTY_CELL if any(group not in run for run in by_run for group in groups) else "",
    )
    return Table(
        measure.name,
        measure.title,
        measure.source,
        " ".join(filter(None, notes)),
        (_RUN, *(column for column, _ in columns)),
        _filled(names, columns),
        None,
        BY_RUN,
    )


def notes_by_run(names: Sequence[str], notes: Sequence[Sequence[str]]) -> list[str]:
    """Notes of single runs, each once, with the names or the number of its runs."""
    having: dict[str, list[str]] = {}
    for name, of_run in zip(names, notes, strict=True):
        for note in of_run:
            having.setdefault(note, []).append(name)
    return [f"{named(run_names)}: {note}" for note, run_names in having.items()]


def missing_by_run(notes: Sequence[str]) -> list[str]:
    """The first notes on runs with many missing answers, and the number of others."""
    n_more = len(notes) - _MOST_MISSING
    if n_more <= 0:
        return list(notes)
    more = f"{pluralize(n_more, 'run')} more with less than 98 % answered. The table of written answers has all."
    return [*notes[:_MOST_MISSING], more]


def named(names: Sequence[str]) -> str:
    """A few names, or the first of many and their number."""
    if len(names) <= _MOST_NAMED:
        return listed(names)
    return f"{len(names):,} runs ({', '.join(names[:_MOST_NAMED])}, ...)"


def joined_tables(names: Sequence[str], analyses: Sequence[Analysis], left_out: Collection[str] = ()) -> list[Table]:
    """Tables of the same name in several runs, joined by a first column of run names."""
    by_run = [{table.name: table for table in analysis.tables} for analysis in analyses]
    joined = []
    for wanted in dict.fromkeys(name for tables in by_run for name in tables):
        having = {name: tables[wanted] for name, tables in zip(names, by_run, strict=True) if wanted in tables}
        if len(having) > 1 and wanted not in left_out:
            joined.append(_join(having))
    return joined


def _join(tables: Mapping[str, Table]) -> Table:
    one = next(iter(tables.values()))
    columns = _columns(list(tables.values()))
    most = max(len(table.rows) for table in tables.values())
    notes = [_shared_sentences([table.note.replace(READ_RANGES, "") for table in tables.values()])]
    if _have_ranges(value for table in tables.values() for row in table.rows for value in row):
        notes.append(READ_RANGES)
    if sum(len(table.rows) for table in tables.values()) > MOST_ROWS:
        most = MOST_ROWS // len(tables)
        notes.append(f"First {most} rows of every run. Its report has all.")
    rows = []
    for name, table in tables.items():
        places = [table.columns.index(column) if column in table.columns else None for column in columns]
        rows += [(name, *(None if place is None else row[place] for place in places)) for row in table.rows[:most]]
    return replace(
        one,
        note=" ".join(filter(None, notes)),
        columns=(_RUN, *columns),
        rows=tuple(rows),
        figure=_figure(one.figure, [column.name for column in columns]),
        section=SECTION,
    )


def _columns(tables: Sequence[Table]) -> list[Column]:
    """The common columns of all tables."""
    return [column for column in tables[0].columns if all(column in table.columns for table in tables)]


def _shared_sentences(notes: Sequence[str]) -> str:
    """The common sentences of all notes; others hold a number of one run."""
    sentences = [re.split(r"(?<=[.!?]) ", note) for note in notes]
    return " ".join(sentence for sentence in sentences[0] if all(sentence in of_note for of_note in sentences))


def _figure(figure: Figure | None, columns: Sequence[str]) -> Figure | None:
    """Rows by runs, if a run's figure draws one value per row."""
    if figure is None or figure.across or len(figure.values) > 1 or figure.values[0] not in columns:
        return None
    return Figure("heatmap", figure.labels, figure.values, "run")
