"""So many runs that they stand below each other: every score with runs as rows and groups as columns.

Beside each other, a table would have a column for every run and a figure a dot for every run and group, which nobody
reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.caveats import READ_RANGES, range_column, range_in_words, shown_estimate
from qabias.benchmarks.facts import Scores, counted, union
from qabias.benchmarks.findings import listed
from qabias.comparison.tables import READ_INTERVALS, n_examples
from qabias.tables.model import Column, Table, Value

MOST_BESIDE = 30
"""So many runs stand beside each other, with figures and paired differences; more stand below each other."""

BY_RUN = "Scores by run"
"""Section of the scores."""

_MOST_NAMED = 3
_MOST_MISSING = 10
_NOT_ASKED = "An empty cell: not asked in this run."


def many_notes(n_runs: int) -> list[str]:
    """What is left out of a comparison of many runs, and how to see it."""
    return [
        f"With more than {MOST_BESIDE} runs ({n_runs:,} here) the scores stand below each other, without figures, "
        "without paired differences with the first run and without what single runs found; neighbours in the rankings "
        "are tested. Compare the runs of interest by themselves to see all that."
    ]


def tables_by_run(
    benchmark: Benchmark, measures: Sequence[Measure], names: Sequence[str], scores: Sequence[Scores]
) -> list[Table]:
    """One table per score: runs by groups, with intervals and number of examples."""
    return [
        _by_run(benchmark, measure, names, [benchmark.groups(of, measure) for of in scores]) for measure in measures
    ]


def _by_run(
    benchmark: Benchmark, measure: Measure, names: Sequence[str], by_run: Sequence[Mapping[str, Scores]]
) -> Table:
    groups = union([list(of) for of in by_run])
    columns: list[tuple[Column, list[Value]]] = []
    for place, group in enumerate(groups, start=1):
        found = [of.get(group) for of in by_run]
        column = Column(f"group_{place}", group, measure.kind)
        columns.append((column, [None if of is None else shown_estimate(of, measure) for of in found]))
        ranges = ["" if of is None else range_in_words(of, measure) for of in found]
        if any(ranges):
            columns.append((range_column(column, f"Possible, {group}"), [text or None for text in ranges]))
    if all(ALL in of for of in by_run):
        columns.append((Column("n", "Examples", "count"), [n_examples(of[ALL], measure) for of in by_run]))
    notes = (
        measure.note,
        READ_INTERVALS.format(clusters=benchmark.facts.clusters[0]),
        READ_RANGES if any(column.kind == "text" for column, _ in columns) else "",
        _NOT_ASKED if any(group not in of for of in by_run for group in groups) else "",
    )
    return Table(
        measure.name,
        measure.title,
        measure.source,
        " ".join(filter(None, notes)),
        (Column("run", "Run", "text"), *(column for column, _ in columns)),
        tuple((name, *(values[place] for _, values in columns)) for place, name in enumerate(names)),
        None,
        BY_RUN,
    )


def notes_by_run(names: Sequence[str], notes: Sequence[Sequence[str]]) -> list[str]:
    """The notes of single runs: each once, with the names of the runs that have it or their number."""
    having: dict[str, list[str]] = {}
    for name, of_run in zip(names, notes, strict=True):
        for note in of_run:
            having.setdefault(note, []).append(name)
    return [f"{named(of)}: {note}" for note, of in having.items()]


def missing_by_run(notes: Sequence[str]) -> list[str]:
    """The first notes on runs that lack many answers, and how many more of them there are."""
    n_more = len(notes) - _MOST_MISSING
    if n_more <= 0:
        return list(notes)
    more = f"{counted(n_more, 'run')} more with less than 98 % answered; the table of written answers has all."
    return [*notes[:_MOST_MISSING], more]


def named(names: Sequence[str]) -> str:
    """A few names, or the first of many and their number."""
    if len(names) <= _MOST_NAMED:
        return listed(names)
    return f"{len(names):,} runs ({', '.join(names[:_MOST_NAMED])}, ...)"
