"""Averages over runs or prompts: their analysis, and one table per score."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark, Measure, PromptFormat
from qabias.benchmarks.base import RUN, Rules, Scored
from qabias.benchmarks.breakdowns import with_reading
from qabias.benchmarks.headline import meaningful
from qabias.benchmarks.scoring import by_run
from qabias.runs.scored import outcomes_tables
from qabias.scores.facts import WORDINGS, Scores, run_column
from qabias.scores.score import with_possible
from qabias.tables.model import Analysis, Column, Figure, Level, Table, Value

_NOTE = (
    "The mean over the {what}, each counting once, with 95 % intervals over {clusters}; all {what} are of the same "
    "{clusters}. The spread is the standard deviation over the {what}; of two or three it is rough."
)


def measures_of(
    benchmark: Benchmark, question_only: bool = False, scores: Sequence[Mapping[str, Any]] = ()
) -> tuple[Measure, ...]:
    """The compared scores; if no model saw a context, with a note about them."""
    measures = tuple(
        measure
        for measure in meaningful(benchmark, question_only)
        if not measure.lacks or (scores and all(measure.name in group for group in scores))
    )
    blind = benchmark.facts.question_only
    if not question_only or blind is None:
        return measures
    return tuple(
        replace(
            measure,
            source=blind.source if measure.source else "",
            note=" ".join(filter(None, (blind.note, measure.note))),
        )
        for measure in measures
    )


def average_tables(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    names: Sequence[str],
    scores: Mapping[str, Any],
    of_runs: Sequence[Mapping[str, Any]],
    analysis: Analysis,
    what: str = "runs",
) -> Analysis:
    """Analysis of averages: outcomes, average, standard deviation and single runs first, then the other tables."""
    own = (
        *outcomes_tables(names, of_runs, what.removesuffix("s")),
        *(_table(benchmark, measure, names, scores, of_runs, what) for measure in measures),
    )
    note = f"Every score is the average of {len(names)} {what}. Counts and shares of answers are over all of them."
    means = benchmark.facts.means
    tables = tuple(_of_pool(table, table.name in means, what) for table in analysis.tables)
    return replace(analysis, tables=(*own, *tables), notes=(note, *analysis.notes))


def with_wordings(
    benchmark: Benchmark,
    table: pa.Table,
    answers: pa.Table,
    scores: Mapping[str, Any],
    analysis: Analysis,
    prompt_format: PromptFormat,
    rules: Rules,
) -> tuple[dict[str, Any], Analysis]:
    """Add the scores of each prompt variant to their averages."""
    tables = by_run(table)
    names = [variant[RUN][0].as_py() for variant in tables]
    n = answers.num_rows // len(tables)
    pairs = [(wording.drop_columns([RUN]), answers.slice(number * n, n)) for number, wording in enumerate(tables)]
    with warnings.catch_warnings():
        # The warning about missing answers covers all prompt variants.
        warnings.simplefilter("ignore", UserWarning)
        single = [benchmark.score(*pair, rules) for pair in pairs]
        shown = benchmark.analyse(Scored(*pairs[0], single[0], prompt_format.variants[0], rules))
    whole = average_tables(
        benchmark, measures_of(benchmark, False, single), names, scores, single, analysis, "wordings"
    )
    whole = replace(whole, examples=shown.examples, how_chosen=f"{shown.how_chosen} All are of the wording {names[0]}.")
    return {**scores, WORDINGS: dict(zip(names, single, strict=True))}, whole


def _of_pool(table: Table, is_in_paper: bool, what: str) -> Table:
    """Mark the table of a run as a table of averages."""
    section = f"{table.section}: mean of the {what}" if table.section else f"Means of the {what}"
    return replace(table, section=section, source=table.source if is_in_paper else "")


def _table(
    benchmark: Benchmark,
    measure: Measure,
    names: Sequence[str],
    scores: Mapping[str, Any],
    of_runs: Sequence[Mapping[str, Any]],
    what: str,
) -> Table:
    """The table of one score: groups by average, standard deviation and runs."""
    means = benchmark.groups(scores, measure)
    by_run = [benchmark.groups(group_scores, measure) for group_scores in of_runs]
    note = _NOTE.format(clusters=benchmark.facts.clusters[0], what=what)
    columns = [run_column(number) for number in range(len(names))]
    table = Table(
        f"pooled_{measure.name}",
        f"{measure.title}: mean over {len(names)} {what}",
        "",
        " ".join(filter(None, (measure.note, note))),
        (
            Column("group", benchmark.facts.group, "text"),
            Column("mean", "Mean", measure.kind),
            Column("spread", "Spread", "share" if measure.kind in ("share", "signed") else measure.kind),
            *(Column(column, name, measure.kind) for column, name in zip(columns, names, strict=True)),
        ),
        tuple(
            (
                group,
                with_possible(group_scores, measure),
                _spread(group_scores, measure.name),
                *(Level(*with_possible(runs[group], measure)) if group in runs else None for runs in by_run),
            )
            for group, group_scores in means.items()
        ),
        Figure("intervals", "group", ("mean",)),
        "Means and spread",
    )
    return with_reading(table)


def _spread(scores: Scores, name: str) -> Value:
    value = scores["spread"][name]
    return None if value is None or value != value else float(value)
