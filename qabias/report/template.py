"""One template of a run: its answers by condition, and a few examples verbatim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from qabias.benchmarks.base import RUN
from qabias.benchmarks.scoring import by_run
from qabias.errors import QabiasError, arg
from qabias.runs.opened import Run
from qabias.scores.facts import TemplateView
from qabias.support.suggest import closest
from qabias.tables.model import Column, Table, Value
from qabias.tables.terminal import MIN_WIDTH, Console, print_table

N_ITEMS = 4


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
