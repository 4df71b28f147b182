"""Examples that runs answer differently, with counts of the changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qabias.benchmarks.base import RUN
from qabias.comparison.paired import common_answers
from qabias.runs.opened import Run
from qabias.scores.facts import ALL, Row
from qabias.tables.model import Column, Table

OWN = ("outcome", "labels", "probabilities", "answer", "generated", "said")
"""Keys of an example that differ between runs; each becomes `KEY: RUN`."""


class Changes(NamedTuple):
    """Examples whose answers differ from the first run's, among all common ones, and the counts of the changes."""

    rows: Sequence[Row]
    key: Sequence[str]
    n_common: int
    table: Table


def changed_answers(runs: Sequence[Run], names: Sequence[str]) -> Changes | None:
    """Compare the answers of the first run with the answers of the others; None without common examples."""
    common = common_answers(runs)
    benchmark = runs[0].benchmark
    shown = [benchmark.examples(common[0], answers) for answers in common[1]] if common else []
    if common is None or not shown[0] or not {"answer", "outcome"} <= {*shown[0][0]}:
        return None
    table = common[0]
    wordings = table[RUN].to_pylist() if RUN in table.column_names else [None] * table.num_rows
    counts: list[Counter[str]] = [Counter({ALL: 0}) for _ in names[1:]]
    rows = []
    for wording, first, *others in zip(wordings, *shown, strict=True):
        if all(other["answer"] == first["answer"] for other in others):
            continue
        changes = [[f"became {one}" for one in other["outcome"] if one not in first["outcome"]] for other in others]
        for count, other, change in zip(counts, others, changes, strict=True):
            count.update([*change, *[ALL] * (other["answer"] != first["answer"])])
        row = {name: value for name, value in first.items() if name not in OWN}
        row |= {"change": list(dict.fromkeys(one for change in changes for one in change))}
        row |= {
            f"{name}: {run}": one.get(name) for name in OWN for run, one in zip(names, (first, *others), strict=True)
        }
        rows.append(row if wording is None else {**row, RUN: wording})
    key = benchmark.key if RUN not in table.column_names else (*benchmark.key, RUN)
    return Changes(rows, key, table.num_rows, _table(names, counts))


def _table(names: Sequence[str], counts: Sequence[Mapping[str, Any]]) -> Table:
    """The number of examples with each change, by run."""
    kinds = sorted(
        {kind for count in counts for kind in count}, key=lambda kind: (kind == ALL, -max(one[kind] for one in counts))
    )
    return Table(
        "answers_that_differ",
        "Changes",
        "",
        "A change can count in two rows, because an UNKNOWN answer can be right.",
        (
            Column("change", f"Change from {names[0]}", "text"),
            *(Column(f"run_{place}", name, "count") for place, name in enumerate(names[1:], start=2)),
        ),
        tuple((kind, *(count[kind] for count in counts)) for kind in kinds),
    )
