"""The tables of a comparison: the runs, their scores side by side, and the differences between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.caveats import (
    READ_RANGES,
    possible_range,
    range_column,
    range_in_words,
    shown_estimate,
    with_ranges,
)
from qabias.benchmarks.facts import RUNS, Scores, run_column, union
from qabias.comparison.comparable import mixed_fields
from qabias.comparison.paired_tests import Difference, holm
from qabias.runs.scored import ScoredRun
from qabias.tables.model import Column, Estimate, Figure, Table, Value, estimate

RUNS_TABLE = "runs"
"""Name of the table of what is compared."""

DIFFERENCES = "Differences between runs"
"""Section of the differences."""

DETECTABLE = "detectable_"
"""What the name of a column of detectable differences begins with; the name of the column of differences follows."""

WOULD_BE_FOUND = "would have been found from"
"""What stands above it."""

READ_INTERVALS = "Intervals are 95 % intervals over {clusters}."
_NOT_ASKED = "A dash beside 0 examples: not asked in this run."
_READ_DIFFERENCES = (
    "Score of the second run minus that of the first, over the examples that both answered; of shares and bias scores "
    "in percentage points, which are printed with a % sign. The 95 % intervals are over the {clusters}, the same for "
    "both. Beside them stands from what size on a true difference would have been found in four of five such "
    "comparisons: no difference shown is not no difference, there may be one below that size. The p-value is of a "
    "permutation test that exchanges the two models' answers to one of the {clusters} at a time; the adjusted one "
    "(Holm) is for the many rows of a column except All. With C {clusters} no p-value is below 2 to the power of 1 - "
    "C: with 4 it is 0.125 or more, which is too few to show any difference. A difference that is not small and not "
    "chance may still come from how the models were asked."
)


def runs_table(runs: Sequence[ScoredRun], names: Sequence[str]) -> Table:
    """What is compared, with a column for everything that should agree and does not."""
    mixed = mixed_fields(runs)
    note = "Each run by its name in the other tables, its signature and the day it was begun."
    if mixed:
        note = (
            f"MIXED: these runs differ in {', '.join(mixed)}, not in the model alone. A difference between them may be "
            f"due to that. {note}"
        )
    columns = (
        Column("run", "Run", "text"),
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
            run.file.created[:10],
            run.signature,
        )
        for number, (run, name) in enumerate(zip(runs, names, strict=True))
    )
    return Table(RUNS_TABLE, "The runs", "", note, columns, rows, None, RUNS)


def score_tables(
    benchmark: Benchmark, measures: Sequence[Measure], names: Sequence[str], scores: Sequence[Scores]
) -> list[Table]:
    """One table for each score: groups by runs, with intervals and numbers of examples."""
    tables = []
    read_intervals = READ_INTERVALS.format(clusters=benchmark.facts.clusters[0])
    for measure in measures:
        by_run = [benchmark.groups(of, measure) for of in scores]
        rows = union([list(of) for of in by_run])
        runs = [
            column
            for number, name in enumerate(names)
            for column in _run_columns(number, name, by_run[number], measure)
        ]
        counts = _count_columns(names, by_run, rows, measure)
        not_asked = _NOT_ASKED if any(row not in of for of in by_run for row in rows) else ""
        about_ranges = READ_RANGES if len(runs) > len(names) else ""
        tables.append(
            Table(
                measure.name,
                measure.title,
                measure.source,
                " ".join(filter(None, (measure.note, read_intervals, about_ranges, not_asked))),
                (
                    Column("group", benchmark.facts.group, "text"),
                    *(column for column, _ in runs),
                    *(column for column, _ in counts),
                ),
                tuple(
                    (row, *(values.get(row) for _, values in runs), *(values[row] for _, values in counts))
                    for row in rows
                ),
                Figure("intervals", "group", tuple(map(run_column, range(len(names))))),
                "Scores by run",
            )
        )
    return tables


def _run_columns(
    number: int, name: str, groups: Mapping[str, Scores], measure: Measure
) -> list[tuple[Column, dict[str, Value]]]:
    """The scores of a run by group, and where many answers are missing the ranges that they could take."""
    column = Column(run_column(number), name, measure.kind)
    found: list[tuple[Column, dict[str, Value]]] = [
        (column, {group: shown_estimate(of, measure) for group, of in groups.items()})
    ]
    ranges = {group: range_in_words(of, measure) for group, of in groups.items()}
    if any(ranges.values()):
        found.append(
            (range_column(column, f"Possible, {name}"), {group: text or None for group, text in ranges.items()})
        )
    return found


def _count_columns(
    names: Sequence[str], by_run: Sequence[Mapping[str, Scores]], rows: Sequence[str], measure: Measure
) -> list[tuple[Column, dict[str, int]]]:
    """Numbers of examples: one column where all runs have the same, else one for each run."""
    if measure.parts:
        return [
            (
                Column(f"{count}_{run_column(number)}", f"{title}, {name}", "count"),
                {row: int(by_run[number][row][count]) if row in by_run[number] else 0 for row in rows},
            )
            for number, name in enumerate(names)
            for count, title in measure.parts
        ]
    counts = [{row: n_examples(of[row], measure) if row in of else 0 for row in rows} for of in by_run]
    if all(of == counts[0] for of in counts):
        return [(Column("n", "Examples", "count"), counts[0])]
    return [
        (Column(f"n_{run_column(number)}", f"Examples, {name}", "count"), of)
        for number, (name, of) in enumerate(zip(names, counts, strict=True))
    ]


def n_examples(scores: Scores, measure: Measure) -> int:
    """The number of examples that a score is of."""
    return sum(int(scores[count]) for count in measure.counts)


def heatmaps(
    benchmark: Benchmark, measures: Sequence[Measure], names: Sequence[str], scores: Sequence[Scores]
) -> list[Table]:
    """Bias by category and model at a glance; what a run was not asked has no cell."""
    tables = []
    for measure in measures:
        if measure.name in benchmark.facts.heatmaps:
            by_run = [benchmark.groups(of, measure) for of in scores]
            columns = (
                Column("group", benchmark.facts.group, "text"),
                Column("run", "Run", "text"),
                Column(measure.name, measure.title, measure.kind),
                Column("n", "Examples", "count"),
            )
            groups = [
                (row, name, of[row])
                for row in union([list(of) for of in by_run])
                for name, of in zip(names, by_run, strict=True)
                if row in of
            ]
            table = Table(
                f"{measure.name}_by_model",
                f"{measure.title}: all models",
                measure.source,
                f"{measure.note} The same numbers as above, at a glance.",
                columns,
                tuple((row, name, estimate(of, measure.name), n_examples(of, measure)) for row, name, of in groups),
                Figure("heatmap", "group", (measure.name,), "run"),
                "Scores by run",
            )
            tables.append(with_ranges(table, [of for _, _, of in groups], [measure]))
    return tables


class Compared(NamedTuple):
    """Two runs by their numbers, and for every group their number of clusters and differences by score."""

    first: int
    second: int
    groups: Mapping[str, tuple[int, Mapping[str, Difference]]]


def difference_tables(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Sequence[Scores],
    compared: Sequence[Compared],
) -> list[Table]:
    """One table for each score: groups by pairs of runs, with intervals and p-values."""
    if not compared:
        return []
    tables = []
    for measure in measures:
        rows = [
            row
            for row in union([list(benchmark.groups(of, measure)) for of in scores])
            if any(row in pair.groups for pair in compared)
        ]
        kind = "signed" if measure.kind == "share" else measure.kind
        columns = [Column("group", benchmark.facts.group, "text")]
        cells: dict[str, list[Value]] = {row: [] for row in rows}
        figure = []
        for pair in compared:
            key, title = (
                f"run_{pair.second + 1}_minus_{pair.first + 1}",
                f"{names[pair.second]} − {names[pair.first]}",
            )
            figure.append(key)
            by_run = [benchmark.groups(scores[number], measure) for number in (pair.first, pair.second)]
            columns += [
                Column(key, title, kind),
                Column(f"p_{key}", f"p ({title})", "p"),
                Column(f"p_adjusted_{key}", f"adjusted p ({title})", "p"),
                Column(f"n_templates_{key}", f"{benchmark.facts.clusters[0].capitalize()} ({title})", "count"),
                Column(f"{DETECTABLE}{key}", f"{WOULD_BE_FOUND} ({title})", "share" if kind == "signed" else kind),
            ]
            found = {row: pair.groups[row][1][measure.name] if row in pair.groups else None for row in rows}
            family = [row for row in rows if row != ALL]
            p_values = [None if (of := found[row]) is None else of.p for row in family]
            adjusted = dict(zip(family, holm(p_values), strict=True))
            for row in rows:
                of = found[row]
                cells[row] += [
                    Estimate(*of[:3]) if of else None,
                    of.p if of else None,
                    adjusted.get(row),
                    pair.groups[row][0] if of else 0,
                    of.detectable if of and not lacks_answers(by_run, row, measure) else None,
                ]
        tables.append(
            Table(
                f"difference_{measure.name}",
                f"Difference: {measure.title}",
                "",
                _READ_DIFFERENCES.format(clusters=benchmark.facts.clusters[0]),
                tuple(columns),
                tuple((row, *cells[row]) for row in rows),
                Figure("intervals", "group", tuple(figure)),
                DIFFERENCES,
            )
        )
    return tables


def lacks_answers(by_run: Sequence[Mapping[str, Scores]], row: str, measure: Measure) -> bool:
    """Whether a run lacks so many answers of a group that no size can be called detectable."""
    return any(possible_range(of[row], measure) is not None for of in by_run if row in of)
