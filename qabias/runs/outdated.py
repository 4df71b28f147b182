"""Intervals that an older version of a metric made: left out of what is read of a run, with the reason.

The scores themselves are kept: a version that changes them has other names for them, or refuses the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabias.benchmarks import Benchmark
from qabias.benchmarks.caveats import MDE_COLUMN, READ_MDE
from qabias.tables.model import Analysis, Estimate, Table, Value

OF_INTERVALS = ("ci", "detectable")
"""Keys of a metric's result that hold intervals, and what follows from them."""


def about_outdated(benchmark: Benchmark, scores: Mapping[str, Any], folder: Path) -> str:
    """Why the intervals of a run are left out; "" where its metric is not older than the one that is installed."""
    installed = benchmark.metric_version
    made_by = min((version for version in _versions(scores)), default=installed)
    if installed is None or made_by is None or made_by >= installed:
        return ""
    return (
        f"95 % intervals are left out: version {made_by} of the metric made them, here is version {installed}; "
        f"`qabias score {folder}` makes them again"
    )


def without_intervals(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The same scores with no interval in any part."""
    return {
        name: {} if name in OF_INTERVALS else without_intervals(value) if isinstance(value, Mapping) else value
        for name, value in scores.items()
    }


def analysis_without_intervals(analysis: Analysis, why: str) -> Analysis:
    """The same tables with no interval; the reason is the first note."""
    tables = tuple(map(_table_without_intervals, analysis.tables))
    return replace(analysis, tables=tables, notes=(about_left_out(why), *analysis.notes))


def about_left_out(why: str) -> str:
    """The reason as a note."""
    return f"{why}."


def _table_without_intervals(table: Table) -> Table:
    kept = [place for place, column in enumerate(table.columns) if not column.name.startswith(MDE_COLUMN)]
    rows = tuple(tuple(_alone(row[place]) for place in kept) for row in table.rows)
    note = table.note.replace(f" {READ_MDE}", "")
    return replace(table, note=note, columns=tuple(table.columns[place] for place in kept), rows=rows)


def _alone(value: Value) -> Value:
    return Estimate(value.value) if isinstance(value, Estimate) else value


def _versions(scores: Mapping[str, Any]) -> Iterator[int]:
    """The versions in all signatures of a result, such as 1 in "NAME|...|version:1"."""
    for name, value in scores.items():
        if name == "signature" and isinstance(value, str):
            number = value.rpartition("|version:")[2]
            if number.isdecimal():
                yield int(number)
        elif isinstance(value, Mapping):
            yield from _versions(value)
