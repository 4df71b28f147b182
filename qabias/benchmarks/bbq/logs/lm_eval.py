"""BBQ as lm-evaluation-harness asks it: its own tasks `bbq`, `bbq_generate` and their halves, and those of qabias."""

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

# What the harness's tasks add to a row, and what only rows of this project have.
_ADDED = ("biased_answers", "ans0_groups")
OWN_COLUMNS = ("category", "template_id", "set_id", "biased_loc", "unknown_loc")

_ANSWERS = ("ans0", "ans1", "ans2")
TEXTS = ("question_polarity", "context_condition", "context", "question", *_ANSWERS, "label")
"""Columns of the published rows that are compared with the examples here."""

_PERSONS = 2

_FIGURES = {
    "acc": "accuracy",
    "accuracy_amb": "accuracy_ambig",
    "accuracy_disamb": "accuracy_disambig",
    "amb_bias_score": "bias_ambig",
    "disamb_bias_score": "bias_disambig",
}
_CROSSED = ("Race_x_gender", "Race_x_SES")
_ZERO = (
    "0 there is also always against the stereotype (-1 here), and nobody named (here undefined in disambiguated "
    "contexts)"
)
_BY_RACE = "where groups cross the target there is told by race alone: both persons or neither may be the biased answer"
_TIES = "of equally likely answers the first counts there, none here"
_TEXTS = (
    "there whole answers are compared with single words, and what is not read is UNKNOWN; here qabias reads the texts"
)


def logged(log: Log, hints: Mapping[str, str]) -> Logged | None:
    """The answers in a log of a task on BBQ; None where it is of another task."""
    if set(_ADDED) <= first_document(log).keys():
        return _of_harness(log)
    return own_questions(log, load_benchmark(NAME), hints)


def own_questions(log: Log, benchmark: Benchmark, hints: Mapping[str, str]) -> Logged | None:
    """The answers in a log of this project's task on a benchmark of BBQ's form; None where it is of another task."""
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
    """The place in the row of the answer that each option gives; all wordings of UNKNOWN that of the row's own."""
    options, texts = read_options(sample), [str(document(sample)[name]).strip() for name in _ANSWERS]
    if sorted(options) == sorted(texts):  # a task of somebody's that asks the three answers as they are
        return [texts.index(option) for option in options]
    persons = [texts.index(option) for option in options[:_PERSONS] if option in texts]
    if len(set(persons)) < _PERSONS or not set(texts) <= set(options):
        raise QabiasError(
            f"{log.called}: {sample.where}: its options are not the two persons of the row and then wordings of "
            f"UNKNOWN, as those of the harness's task bbq: {', '.join(options)}; give a table of answers "
            "(qabias score FILE.csv) instead"
        )
    unknown = sum(range(len(texts))) - sum(persons)
    return [*persons, *[unknown] * (len(options) - _PERSONS)]


def config_of(categories: set[str], configs: Sequence[str]) -> str:
    """The configuration of some categories: their names in their order, or that of all, which is the last."""
    named = [name for name in configs[:-1] if name in categories]
    return configs[-1] if len(named) == len(configs) - 1 else ",".join(named) or configs[-1]


def _about_asking(n_wordings: int, n_ties: int) -> list[str]:
    """What to know of how the harness asks."""
    notes = []
    if not n_wordings:
        notes.append("The model was shown no answers to choose from; its texts are read by qabias as one of the three.")
    if n_wordings > 1:
        notes.append(
            f"UNKNOWN was offered in {n_wordings} wordings and each person in one, by the sum of log-likelihoods, so "
            "that UNKNOWN is chosen more often than by the one wording of the row. Do not compare with runs of qabias."
        )
    return [*notes, *about_ties(n_ties)]


def _figures(log: Log, categories: set[str], written: bool, n_ties: int) -> tuple[OtherFigure, ...]:
    """The scores of the harness, those of categories beside the same category."""
    figures = []
    for name, value in log.figures.items():
        if math.isnan(value):
            continue
        base = next((known for known in _FIGURES if name == known or name.startswith(f"{known}_")), "")
        category = name[len(base) + 1 :]
        if not base or (category and category not in categories):
            figures.append(OtherFigure(name, value, why="a score of this task alone"))
            continue
        ours = ("by", "category", category, _FIGURES[base]) if category else (_FIGURES[base],)
        whole = {category} if category else categories
        figures.append(OtherFigure(name, value, ours, _why("bias" in base, value, whole, written, n_ties)))
    return tuple(figures)


def _why(is_bias: bool, value: float, categories: set[str], written: bool, n_ties: int) -> str:
    """Why a score differs from ours, in a sentence; "" where it is the same quantity."""
    reasons = [
        *([_ZERO] if is_bias and value == 0 else []),
        *([_BY_RACE] if is_bias and not categories.isdisjoint(_CROSSED) else []),
        *([_TIES] if n_ties else []),
        *([_TEXTS] if written else []),
    ]
    return "; ".join(reasons)
