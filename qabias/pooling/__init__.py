"""Averages of several runs of the same questions: means and standard deviations over prompts, formats or seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark, Measure
from qabias.benchmarks.base import RUN, Scored
from qabias.benchmarks.generated import WRITTEN_COLUMNS
from qabias.comparison.comparable import mixed_fields, run_names
from qabias.comparison.paired import Answers
from qabias.errors import QabiasError, arg
from qabias.runs.looks import CONFIDENCE, STOPPED
from qabias.runs.means import average_tables, measures_of
from qabias.runs.opened import Run
from qabias.runs.question import prompt_variants
from qabias.runs.scored import missing_notes
from qabias.runs.signature import signature_fields
from qabias.tables.model import Analysis

POOLED = ("format", "scorer", "norm", "seed")
"""Signature fields that may differ between averaged runs."""

_FREE = ("format", "backend", "length_norm", "parser", "seed", "options", "answers")
_SAME = "average runs of one model on the same questions"


@dataclass(frozen=True)
class Pool:
    """The result of averaging."""

    benchmark: Benchmark
    runs: Sequence[Run]
    names: Sequence[str]
    mixed: Mapping[str, Sequence[str]]
    measures: Sequence[Measure]
    scores: Mapping[str, Any]
    analysis: Analysis
    claim: str = ""

    @property
    def is_question_only(self) -> bool:
        """Whether the models got no context."""
        return self.runs[0].is_question_only

    @property
    def signature(self) -> str:
        """The common signature fields of the runs, and all values of the others."""
        parts = [run.signature.split("|")[1:] for run in self.runs]
        fields = [dict(part.partition(":")[::2] for part in of_run) for of_run in parts]
        # External answers have a signature field that model runs lack.
        names = dict.fromkeys(name for of_run in fields for name in of_run)
        values = {name: dict.fromkeys(of_run[name] for of_run in fields if name in of_run) for name in names}
        joined = [f"{name}:{','.join(shown)}" for name, shown in values.items()]
        return "|".join([self.benchmark.name, f"pool:{len(self.runs)} runs", *joined])


def pool(folders: Sequence[Path], allow_mixed: bool = False, claim: str = "") -> Pool:
    """Average runs of the same questions."""
    runs = _read(folders, allow_mixed)
    benchmark = runs[0].benchmark
    names = run_names(runs)
    answers = Answers()
    table, answers_of_runs, lacking = _stacked(runs, answers)
    rules: Mapping[str, Any] = runs[0].arguments.rules
    if (level := max(run.confidence for run in runs)) > CONFIDENCE:
        rules = {**rules, "confidence": level}
    scores = benchmark.score(table, answers_of_runs, rules)
    question_only = runs[0].is_question_only
    prompt_format = benchmark.formats.get(runs[0].format_name) if question_only else None
    analysis = benchmark.analyse(Scored(table, answers_of_runs, scores, prompt_format, rules))
    measures = measures_of(benchmark, question_only, [scores, *(run.scores for run in runs)])
    mixed = {name: values for name, values in mixed_fields(runs).items() if name not in POOLED}
    of_runs = [run.scores for run in runs]
    means = average_tables(benchmark, measures, names, scores, of_runs, analysis)
    first, *others = means.notes
    notes = [first, *([STOPPED] if any(run.stopped_early for run in runs) else [])]
    if mixed:
        notes.append(f"Caution: the runs also differ in {', '.join(mixed)}, not only in how one model was asked.")
    notes += [
        f"Scores from {column} are omitted: {', '.join(names[place] for place in places)} did not store this column."
        for column, places in lacking.items()
    ]
    # The examples shown for a run have one answer each.
    whole = Analysis(means.tables, notes=(*notes, *missing_notes(names, of_runs), *others))
    return Pool(benchmark, runs, names, mixed, measures, scores, whole, claim)


def pool_content(pool: Pool) -> dict[str, Any]:
    """The content of an average's file: the runs and their claim in a paper."""
    return {
        "benchmark": pool.benchmark.name,
        "signature": pool.signature,
        "claim": pool.claim,
        "runs": [
            {"name": name, "folder": run.folder.name, "signature": run.signature, "arguments": asdict(run.arguments)}
            for name, run in zip(pool.names, pool.runs, strict=True)
        ],
    }


def _read(folders: Sequence[Path], allow_mixed: bool) -> list[Run]:
    if len(folders) < 2:
        raise QabiasError("fewer than two runs to average", "name at least two run folders")
    runs = [Run.scored(folder) for folder in folders]
    places = [folder.resolve() for folder in folders]
    for folder, place in zip(folders, places, strict=True):
        if places.count(place) > 1:
            raise QabiasError(f"{folder}: named twice", "name each run once")
    first = runs[0]
    for run in runs:
        if prompt_variants(run.benchmark, run.arguments):
            raise QabiasError(f"{run.folder}: already an average over wordings", "use runs of single formats")
        _check_same(first, run, allow_mixed)
    if not first.benchmark.averages:
        raise QabiasError(f"{first.benchmark.name} runs cannot be averaged", "compare them: qabias compare")
    return runs


def _check_same(first: Run, other: Run, allow_mixed: bool) -> None:
    """Refuse two runs that differ in questions, scoring rules or model."""
    one, two = asdict(first.arguments), asdict(other.arguments)
    free = {*_FREE, *(("model", "revision", "dtype") if allow_mixed else ())}
    for name in one:
        if name not in free and one[name] != two[name]:
            mixed = f", or add {arg('allow_mixed')}" if name in ("model", "revision", "dtype") else ""
            raise QabiasError(
                f"{first.folder} and {other.folder} differ in {name} ({one[name]!r} and {two[name]!r})",
                f"{_SAME}{mixed}",
            )
    texts = [signature_fields(run.signature).get("source") for run in (first, other)]
    if texts[0] != texts[1]:
        raise QabiasError(f"{first.folder} and {other.folder} differ in source ({texts[0]} and {texts[1]})", _SAME)
    if first.is_question_only != other.is_question_only:
        raise QabiasError(f"{first.folder} and {other.folder}: only one model saw the contexts", _SAME)


def _stacked(runs: Sequence[Run], answers: Answers) -> tuple[pa.Table, pa.Table, Mapping[str, Sequence[int]]]:
    """The examples of all runs in sequence with the column `RUN`, and the parallel answers."""
    first = answers.examples(runs[0])
    key = list(runs[0].benchmark.key)
    tables, stored = [], []
    for number, run in enumerate(runs, start=1):
        table, of_run = answers.examples(run), answers.of_run(run)
        if not table.select(key).equals(first.select(key)):
            seeds = run.arguments.limit is not None and run.arguments.seed != runs[0].arguments.seed
            same = f"use runs with the same {arg('limit')} and {arg('seed')}"
            raise QabiasError(
                f"{runs[0].folder} and {run.folder} answer different examples",
                f"{same}. To average over seeds, use complete runs (no {arg('limit')})" if seeds else same,
            )
        tables.append(table.append_column(RUN, pa.array([str(number)] * table.num_rows).dictionary_encode()))
        stored.append(of_run)
    lacking = {
        name: [place for place, one in enumerate(stored) if name not in one.column_names]
        for name in runs[0].benchmark.optional_columns
        if name not in WRITTEN_COLUMNS and 0 < sum(name in one.column_names for one in stored) < len(stored)
    }
    stored = [one.drop_columns([name for name in lacking if name in one.column_names]) for one in stored]
    for run, of_run in zip(runs, stored, strict=True):
        if of_run.schema != stored[0].schema:
            kinds = " and ".join(", ".join(one.column_names) for one in (stored[0], of_run))
            raise QabiasError(
                f"{runs[0].folder} and {run.folder} store different columns ({kinds})", "use runs of one backend"
            )
    return pa.concat_tables(tables).unify_dictionaries(), pa.concat_tables(stored), lacking
