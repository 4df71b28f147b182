"""Comparable runs: checked for agreement, and named by their differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from qabias.benchmarks import Benchmark
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError, arg
from qabias.runs.folder import read_keys
from qabias.runs.opened import Run
from qabias.runs.signature import coverage_field, scorer_name, signature_fields
from qabias.support.outputs import TEMPORARY

SAME = ("benchmark", "config", "source", "fixes", "limit", "seed")
"""What must agree for runs of the same questions, except that a suite varies the prompts."""

ASKED = ("format", "scorer", "norm")  # signature fields of the prompt. Baselines see neither prompt nor likelihoods
COUNTED = "score"  # signature field of the scoring rules, if not the default
COVERAGE = "coverage"  # signature field of the share of answered examples, if not all
DRAWN = ("limit", "seed", COVERAGE)  # how examples were sampled, relevant only if the runs' examples differ
_MOST_FOUND = 10


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read runs for a comparison."""
    if len(folders) < 2:
        raise QabiasError("compare needs at least two run folders.", "Add another run folder.")
    return [Run.scored(folder) for folder in folders]


def check_agree(runs: Sequence[Run], allow_mixed: bool = False) -> dict[str, list[str]]:
    """Refuse runs of different questions or prompts."""
    common_benchmark(runs)
    differing = mixed_fields(runs)
    if differing and not allow_mixed:
        what = "; ".join(f"{name}: {_values_by_run(runs, values)}" for name, values in differing.items())
        questions = "different questions" if set(differing) & set(SAME) else "the same questions in different ways"
        raise QabiasError(
            f"These runs measured {questions} ({what}).", f"Compare runs that agree in it, or add {arg('allow_mixed')}."
        )
    return differing


def common_benchmark(runs: Sequence[Run]) -> Benchmark:
    """The benchmark with scores that all runs have or can get."""
    benchmarks = {run.benchmark.name: run.benchmark for run in runs}
    for name, benchmark in benchmarks.items():
        if set(benchmarks) <= {name, *benchmark.rescored}:
            return benchmark
    values = _values_by_run(runs, [run.benchmark.name for run in runs])
    raise QabiasError(
        f"These runs measured different questions (benchmark: {values}), with no scores in common.",
        "Compare runs of one benchmark.",
    )


def asked_questions(run: Run) -> str:
    """A run's questions, as text equal for runs of the same questions."""
    return json.dumps([run.benchmark.name, *(getattr(run.arguments, name) for name in SAME[1:]), _field(run, "source")])


def mixed_fields(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Fields that must agree but differ: every run's value by field, as text."""
    fields: dict[str, list[str]] = {}
    for name in ("benchmark", "source", "config", *ASKED, COUNTED, *DRAWN):
        values = [_field(run, name) for run in runs]
        asked = [value for run, value in zip(runs, values, strict=True) if name not in ASKED or not run.is_baseline]
        if len(set(asked)) > 1:
            fields[name] = values
    if set(fields) & set(DRAWN) and _have_same_examples(runs):
        return {name: values for name, values in fields.items() if name not in DRAWN}
    return fields


def _have_same_examples(runs: Sequence[Run]) -> bool:
    """Whether all runs answer the same bundled examples; other texts depend on the seed."""
    if {(run.benchmark.name, run.arguments.source) for run in runs} != {(runs[0].benchmark.name, BUNDLED)}:
        return False
    first, *others = (sorted(map(repr, read_keys(run, run.benchmark).to_pylist())) for run in runs)
    return all(other == first for other in others)


def _field(run: Run, name: str) -> str:
    if name == "source":
        source = signature_fields(run.signature).get("source", run.arguments.source)
        return source + (" with fixes" if run.arguments.fixes and "+" not in source else "")
    if name == "benchmark":
        return run.benchmark.name
    if name == COUNTED:
        return signature_fields(run.signature).get(name, "default")
    if name == COVERAGE:
        return coverage_field(run.arguments) or "whole"
    if name == "scorer" and not run.arguments.answers:
        # A scorer's defaults, such as the maximum answer length, may follow from the model.
        options = run.arguments.scorer_options
        return scorer_name(run.signature) + "".join(f"+{option}={options[option]}" for option in sorted(options))
    if name in ASKED:
        # Answers of another scorer, or with other options, come from other prompts.
        return signature_fields(run.signature).get(name, "")
    value = getattr(run.arguments, name)
    return "none" if value is None else str(value)


def are_question_only(runs: Sequence[Run]) -> bool:
    """Whether all models saw questions only. A baseline reads nothing and agrees with any format."""
    models = [run for run in runs if not run.is_baseline] or runs
    return all(run.is_question_only for run in models)


def _values_by_run(runs: Sequence[Run], values: Sequence[str]) -> str:
    """The different values, each with a run that has it."""
    having: dict[str, list[str]] = {}
    for run, value in zip(runs, values, strict=True):
        is_temporary = run.folder.parent.name.startswith(TEMPORARY)
        having.setdefault(value, []).append(_model_name(run) if is_temporary else str(run.folder))
    shown = [f"{own[0]}{f' and {len(own) - 1} more' if own[1:] else ''}: {value!r}" for value, own in having.items()]
    more = len(shown) - _MOST_FOUND
    return ", ".join(shown[:_MOST_FOUND]) + (f" and {more} values more" if more > 0 else "")


def differing_fields(signatures: Sequence[str]) -> list[str]:
    """For each signature the fields that others lack, e.g. "format:gpt3@1"; the whole text if none differs."""
    fields = [signature.split("|") for signature in signatures]
    shared = set.intersection(*(set(parts) for parts in fields))
    return [" ".join(part for part in parts if part not in shared) or "|".join(parts) for parts in fields]


def run_names(runs: Sequence[Run]) -> list[str]:
    """Short distinct names of runs: the model, then other differences, then a number."""
    names = [_model_name(run) for run in runs]
    for name in ("benchmark", "config", "format", "scorer", "norm", COUNTED, "limit", "seed", "source"):
        if len(set(names)) == len(names):
            break
        values = [_field(run, name) for run in runs]
        if len(set(values)) > 1:
            names = [f"{shown}, {value}" for shown, value in zip(names, values, strict=True)]
    return distinct_names(names, 40, ": ")


def distinct_names(names: Sequence[str], longest: int, separator: str) -> list[str]:
    """Names shortened to a length, numbered if two are equal."""
    cut = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name in names]
    if len(set(cut)) == len(cut):
        return cut
    return [f"{number}{separator}{name}" for number, name in enumerate(cut, start=1)]


def _model_name(run: Run) -> str:
    model = run.arguments.model
    return model if run.is_baseline else model.rstrip("/").rpartition("/")[2] or model
