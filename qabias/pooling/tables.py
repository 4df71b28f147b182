"""Means over runs beside the runs themselves: one table for each score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabias.benchmarks import Benchmark, Measure
from qabias.benchmarks.facts import Scores, run_column
from qabias.benchmarks.ranges import with_ranges_of_cells
from qabias.tables.model import Column, Figure, Table, Value, estimate

_NOTE = (
    "The mean over the {what}, each counting once, with 95 % intervals over {clusters}; all {what} are of the same "
    "{clusters}. The spread is the standard deviation over the {what}; of two or three it is rough."
)


def pooled_tables(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Mapping[str, Any],
    of_runs: Sequence[Mapping[str, Any]],
    what: str = "runs",
) -> list[Table]:
    """A table for each score: groups by mean, spread and runs."""
    return [_table(benchmark, measure, names, scores, of_runs, what) for measure in measures]


def _table(
    benchmark: Benchmark,
    measure: Measure,
    names: Sequence[str],
    scores: Mapping[str, Any],
    of_runs: Sequence[Mapping[str, Any]],
    what: str,
) -> Table:
    means = benchmark.groups(scores, measure)
    by_run = [benchmark.groups(of, measure) for of in of_runs]
    about = _NOTE.format(clusters=benchmark.facts.clusters[0], what=what)
    columns = [run_column(number) for number in range(len(names))]
    table = Table(
        f"pooled_{measure.name}",
        f"{measure.title}: mean over {len(names)} {what}",
        "",
        " ".join(filter(None, (measure.note, about))),
        (
            Column("group", benchmark.facts.group, "text"),
            Column("mean", "Mean", measure.kind),
            Column("spread", "Spread", "share" if measure.kind in ("share", "signed") else measure.kind),
            *(Column(column, name, measure.kind) for column, name in zip(columns, names, strict=True)),
        ),
        tuple(
            (
                group,
                estimate(of, measure.name),
                _spread(of, measure.name),
                *(estimate(runs[group], measure.name).value if group in runs else None for runs in by_run),
            )
            for group, of in means.items()
        ),
        Figure("intervals", "group", ("mean",)),
        "Means and spread",
    )
    found = {"mean": means, **dict(zip(columns, by_run, strict=True))}
    return with_ranges_of_cells(
        table,
        {name: [(of[group], measure) if group in of else None for group in means] for name, of in found.items()},
    )


def _spread(scores: Scores, name: str) -> Value:
    value = scores["spread"][name]
    return None if value is None or value != value else float(value)
