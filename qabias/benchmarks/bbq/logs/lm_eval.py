"""BBQ in lm-evaluation-harness: its own tasks `bbq`, `bbq_generate` and their halves, and qabias's tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from qabias.answers.likelihoods import NO_ANSWER
from qabias.benchmarks.base import ExternalAnswers, Logged, OtherFigure
from qabias.benchmarks.bbq import NAME
from qabias.benchmarks.bbq.published import SOURCE
from qabias.benchmarks.registry import load_benchmark
from qabias.benchmarks.task_logs import (
    about_ties,
    column,
    columns_of,
    document,
    first_document,
    first_of_several,
    harness_answers,
    likeliest,
    of_sample,
)
from qabias.errors import QabiasError
from qabias.logs.lm_eval_samples import read_options

if TYPE_CHECKING:
    from qabias.benchmarks.base import Benchmark
    from qabias.logs import Log, Sample

# Columns that only the harness's tasks have, and only qabias rows.
_ADDED = ("biased_answers", "ans0_groups")
OWN_COLUMNS = ("category", "template_id", "set_id", "biased_loc", "unknown_loc")

_ANSWERS = ("ans0", "ans1", "ans2")
TEXTS = ("question_polarity", "context_condition", "context", "question", *_ANSWERS, "label")
"""Columns of the published rows that must equal the examples here."""

_PERSONS = 2

_FIGURES = {
    "acc": "accuracy",
    "accuracy_amb": "accuracy_ambig",
    "accuracy_disamb": "accuracy_disambig",
    "amb_bias_score": "bias_ambig",
    "disamb_bias_score": "bias_disambig",
}
_CROSSED = ("Race_x_gender", "Race_x_SES")
_ZERO = "0 there also means always anti-stereotyped (-1 here), or only UNKNOWN (undefined here)"
_BY_RACE = "in intersectional categories the target there is set by race only, so it may be both persons or neither"
TIES = "the first of equally likely answers counts there, none here"
_TEXTS = "the harness compares whole texts with single words and counts the rest as UNKNOWN, qabias parses the texts"


def logged(log: Log, hints: Mapping[str, str]) -> Logged | None:
    """The answers in a log of a task on BBQ, or None for another task."""
    if set(_ADDED) <= first_document(log).keys():
        return _of_harness(log)
    return own_questions(log, load_benchmark(NAME), hints)


def own_questions(log: Log, benchmark: Benchmark, hints: Mapping[str, str]) -> Logged | None:
    """The answers in a log of a qabias task on a benchmark of BBQ's form, or None."""
    compared = (*TEXTS, "template_id", "set_id", "target_loc", "biased_loc", "unknown_loc")
    return harness_answers(log, benchmark, hints, OWN_COLUMNS, compared, of_set=("set_id", 4))


def _of_harness(log: Log) -> Logged:
    rows: list[dict[str, Any]] = []
    answers: list[int | str] = []
    n_samples = n_ties = n_wordings = 0
    for sample in log.samples():
        n_samples += 1
        if sample.run > 1:
            continue
        with of_sample(log, sample):
            row = {name: column(log, sample, name) for name in ("category", "example_id", *TEXTS)}
            if sample.loglikelihoods:
                places = _places(log, sample)
                n_wordings = len(places) - _PERSONS
                if n_wordings > 1:
                    row["unknown_loc"] = places[-1]
                answers.append(likeliest(sample.loglikelihoods, places))
                n_ties += answers[-1] == NO_ANSWER
            else:
                answers.append(sample.text or "")
        rows.append(row)
    columns = columns_of(rows, rows[0])
    written = bool(answers) and isinstance(answers[0], str)
    asked = set(columns["category"])
    keys = {name: columns[name] for name in ("category", "example_id")}
    return Logged(
        external=ExternalAnswers(log.model, "", "none", SOURCE, pa.table({**keys, "prediction": answers})),
        config=config_of(asked, load_benchmark(NAME).configs),
        references=pa.table(columns),
        figures=_figures(log, asked, written, n_ties),
        notes=(*first_of_several(n_samples, len(rows)), *_about_asking(n_wordings, n_ties)),
    )


def _places(log: Log, sample: Sample) -> list[int]:
    """The position of each option's answer in the row; all wordings of UNKNOWN share one."""
    options, texts = read_options(sample), [str(document(sample)[name]).strip() for name in _ANSWERS]
    if sorted(options) == sorted(texts):  # another task with the three answers
        return [texts.index(option) for option in options]
    persons = [texts.index(option) for option in options[:_PERSONS] if option in texts]
    if len(set(persons)) < _PERSONS or not set(texts) <= set(options):
        raise QabiasError(
            f"{log.called}: {sample.where}: its options are not two persons and wordings of UNKNOWN: "
            f"{', '.join(options)}.",
            "Score a table of answers: qabias score FILE.csv.",
        )
    unknown = sum(range(len(texts))) - sum(persons)
    return [*persons, *[unknown] * (len(options) - _PERSONS)]


def config_of(categories: set[str], configs: Sequence[str]) -> str:
    """The config of some categories: their names in order, or the config of all."""
    named = [name for name in configs[:-1] if name in categories]
    return configs[-1] if len(named) == len(configs) - 1 else ",".join(named) or configs[-1]


def _about_asking(n_wordings: int, n_ties: int) -> list[str]:
    notes = []
    if not n_wordings:
        notes.append("The prompts listed no answers. qabias parses the texts.")
    if n_wordings > 1:
        notes.append(
            f"UNKNOWN had {n_wordings} wordings and each person one, which favors UNKNOWN. Do not compare with qabias "
            "runs."
        )
    return [*notes, *about_ties(n_ties)]


def _figures(log: Log, categories: set[str], written: bool, n_ties: int) -> tuple[OtherFigure, ...]:
    """The scores of the harness, with their counterparts here."""
    figures = []
    for name, value in log.figures.items():
        if math.isnan(value):
            continue
        base = next((known for known in _FIGURES if name == known or name.startswith(f"{known}_")), "")
        category = name[len(base) + 1 :]
        if not base or (category and category not in categories):
            figures.append(OtherFigure(name, value, why="only this task has it"))
            continue
        ours = ("by", "category", category, _FIGURES[base]) if category else (_FIGURES[base],)
        whole = {category} if category else categories
        figures.append(OtherFigure(name, value, ours, _why("bias" in base, value, whole, written, n_ties)))
    return tuple(figures)


def _why(is_bias: bool, value: float, categories: set[str], written: bool, n_ties: int) -> str:
    """Why a score differs from ours, or ""."""
    reasons = [
        *([_ZERO] if is_bias and value == 0 else []),
        *([_BY_RACE] if is_bias and not categories.isdisjoint(_CROSSED) else []),
        *([TIES] if n_ties else []),
        *([_TEXTS] if written else []),
    ]
    return "; ".join(reasons)
