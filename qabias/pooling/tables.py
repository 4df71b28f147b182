"""Means over runs beside the runs themselves: one table for each score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabias.benchmarks import Benchmark, Measure
from qabias.benchmarks.facts import Scores, run_column
from qabias.comparison.outcomes import range_column, range_in_words, shown_estimate
from qabias.tables.model import Column, Figure, Table, Value, estimate

_NOTE = (
    "The mean over the {what}, each counting once. Intervals are 95 % bootstrap intervals over {clusters}, which are "
    "drawn for all {what} at once. The spread is the standard deviation over the {what}; of two or three it is rough."
)

_READ_RANGES = (
    "Where more than 2 % of the answers are missing, a mean has no interval but, beside it, the range that it could "
    "take with them."
)


def pooled_tables(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Mapping[str, Any],
    of_runs: Sequence[Mapping[str, Any]],
    what: str = "runs",
) -> list[Table]:
    """A table for each score: groups by mean, spread and runs.

    Args:
        benchmark: The benchmark.
        measures: Its scores.
        names: Short names of the runs.
        scores: The means.
        of_runs: The scores of every run.
        what: What the runs are called, in the plural.
    """
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
    mean = Column("mean", "Mean", measure.kind)
    ranges = {group: range_in_words(of, measure) or None for group, of in means.items()}
    has_ranges = any(ranges.values())
    about = _NOTE.format(clusters=benchmark.facts.clusters[0], what=what)
    note = " ".join(filter(None, (measure.note, about, _READ_RANGES * has_ranges)))
    return Table(
        f"pooled_{measure.name}",
        f"{measure.title}: mean over {len(names)} {what}",
        "",
        note,
        (
            Column("group", benchmark.facts.group, "text"),
            mean,
            *([range_column(mean, "Possible")] if has_ranges else []),
            Column("spread", "Spread", "share" if measure.kind in ("share", "signed") else measure.kind),
            *(Column(run_column(number), name, measure.kind) for number, name in enumerate(names)),
        ),
        tuple(
            (
                group,
                shown_estimate(of, measure.name),
                *([ranges[group]] if has_ranges else []),
                _spread(of, measure.name),
                *(estimate(runs[group], measure.name).value if group in runs else None for runs in by_run),
            )
            for group, of in means.items()
        ),
        Figure("intervals", "group", ("mean",)),
        "Means and spread",
    )


def _spread(scores: Scores, name: str) -> Value:
    value = scores["spread"][name]
    return None if value is None or value != value else float(value)
