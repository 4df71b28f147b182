"""BBQ as the task `bbq` of inspect_evals, and as tasks derived from it."""

from __future__ import annotations

import re
import reprlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import Written, outcome
from qabias.benchmarks.base import ExternalAnswers, Logged, OtherFigure
from qabias.benchmarks.bbq import NAME
from qabias.benchmarks.bbq.logs.lm_eval import config_of
from qabias.benchmarks.bbq.published import SOURCE
from qabias.benchmarks.task_logs import FACTS
from qabias.errors import QabiasError
from qabias.logs import Log, Sample
from qabias.scores.formatting import counted
from qabias.share.bbq_dataset import origin as _origin

LETTERS = "ABC"  # inspect's names for the answers

_TASKS = re.compile(rf"(inspect_evals/)?{NAME}(:\w+)?")

_SCORER = "choice"

_MOST = 2**31 - 1
"""The largest example id that its column can hold."""

_VALUES = {"question_polarity": ("neg", "nonneg"), "context_condition": ("ambig", "disambig")}
"""Metadata that identify a renamed task."""

_SAME = ("question_index", "question_polarity", "context_condition")
"""Metadata that must equal the released examples."""

_CONTEXT, _QUESTION = "Context: ", "\n\nQuestion: "
_STDERR = "not clustered; the intervals here are clustered by template"
_OTHER_SCORER = "a score of another scorer"


def logged(log: Log) -> Logged | None:
    """The answers in a log of the task, or None for another task."""
    if not _is_bbq(log):
        return None
    # All samples have the same scorers.
    scorers = next((list(sample.answers) for sample in log.samples() if sample.answers and not sample.error), [])
    scorer = _scorer(log, scorers)
    samples = [_Asked(log, sample, scorer) for sample in log.samples()]
    if not samples:
        raise QabiasError(f"{log.called}: the log has no samples.", "Finish it with `inspect eval-retry`.")
    if all(asked.missing for asked in samples):
        problem = f"{log.called}: no sample has an answer; the first: {samples[0].missing}."
        raise QabiasError(problem, "Finish it with `inspect eval-retry`.")
    references = {name: [asked.reference[name] for asked in samples] for name in samples[0].reference}
    return Logged(
        ExternalAnswers(log.model, "", "none", SOURCE, _answers(samples)),
        config_of({asked.category for asked in samples}, _origin.CONFIGS),
        references=pa.table(_keys(samples) | references),
        figures=tuple(_figures(log, scorer, samples)),
        notes=tuple(_notes(scorers, scorer, samples)),
    )


class _Asked:
    """A sample as an example of BBQ with its answer."""

    __slots__ = (*("became", "category", "example_id", "failed", "is_scored", "missing", "place", "reference", "text"),)

    def __init__(self, log: Log, sample: Sample, scorer: str) -> None:
        if sample.run > 1:
            raise QabiasError(
                f"{log.called}: {sample.where}: several epochs, and scores need one answer per question.",
                "Rerun the task with --epochs 1.",
            )
        metadata = sample.asked.get("metadata") or {}
        _check(log, sample, metadata)
        self.category: str = metadata["category"]
        self.example_id: int = metadata["source_id"]
        self.reference = _reference(sample.asked, metadata)
        self.missing = ""
        self.failed = bool(sample.error)
        self.is_scored = scorer in sample.answers
        self.place, self.became, self.text = NO_ANSWER, None, None
        answer = sample.answers.get(scorer)
        if self.failed or answer is None:
            self.missing = f"{sample.where}: {sample.error or 'not scored, see `inspect score`'}"
            return
        self.text = sample.text or ""
        self.place = _place(log, sample, answer)
        self.became = outcome(Written(self.text, sample.finish, sample.thinking), self.place)


def _is_bbq(log: Log) -> bool:
    """Whether a task has BBQ's name, or its first sample BBQ's metadata but not this package's."""
    name = log.settings.get("task_registry_name") or log.task
    if _TASKS.fullmatch(name):
        return True
    first = next(log.samples(), None)
    metadata = (first.asked.get("metadata") or {}) if first else {}
    is_known = all(metadata.get(name) in values for name, values in _VALUES.items())
    return is_known and FACTS not in metadata and metadata.get("category") in _origin.CATEGORIES


def _scorer(log: Log, scorers: list[str]) -> str:
    if _SCORER in scorers or not scorers:
        return _SCORER
    if len(scorers) > 1:
        raise QabiasError(
            f"{log.called}: its scorers are {', '.join(scorers)}, and none is inspect's `{_SCORER}`.",
            f"Add it: `inspect score --scorer {_SCORER} --action append`.",
        )
    return scorers[0]


def _check(log: Log, sample: Sample, metadata: Mapping[str, Any]) -> None:
    category, number = metadata.get("category"), metadata.get("source_id")
    fault = ""
    if category not in _origin.CATEGORIES or type(number) is not int or not 0 <= number <= _MOST:
        fault = f"unknown example with category {category!r}, source_id {number!r}"
    choices = sample.asked.get("choices")
    n_choices = len(choices) if isinstance(choices, list) and all(isinstance(text, str) for text in choices) else 0
    if n_choices != len(LETTERS):
        fault = fault or f"its choices are {reprlib.repr(choices)}, not three texts"
    if fault:
        raise QabiasError(f"{log.called}: {sample.where}: {fault}.", f"Use the task inspect_evals/{NAME}.")


def _place(log: Log, sample: Sample, answer: Any) -> int:
    """The position of an answer of inspect's scorer `choice`; `NO_ANSWER` for none or several."""
    letters = [letter.strip() for letter in str(answer).split(",") if letter.strip()]
    if any(letter not in LETTERS or len(letter) != 1 for letter in letters):
        raise QabiasError(
            f"{log.called}: {sample.where}: the answer {reprlib.repr(answer)} is not a letter of {', '.join(LETTERS)}.",
            f"Score the log with inspect's scorer `{_SCORER}`.",
        )
    return LETTERS.index(letters[0]) if len(letters) == 1 else NO_ANSWER


def _reference(asked: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A sample's fields under the names of the released examples; None for missing ones."""
    target = asked.get("target")
    question = asked.get("input")
    context, between, question = question.rpartition(_QUESTION) if isinstance(question, str) else ("", "", "")
    is_as_written = between and context.startswith(_CONTEXT)
    return {
        **{name: metadata.get(name) for name in _SAME},
        "context": context.removeprefix(_CONTEXT) if is_as_written else None,
        "question": question if is_as_written else None,
        **{f"ans{place}": text for place, text in enumerate(asked["choices"])},
        "label": LETTERS.index(target) if target in tuple(LETTERS) else None,
    }


def _keys(samples: list[_Asked]) -> dict[str, Any]:
    return {
        "category": pa.array([asked.category for asked in samples], pa.string()),
        "example_id": pa.array([asked.example_id for asked in samples], pa.int64()),
    }


def _answers(samples: list[_Asked]) -> pa.Table:
    texts = [None if asked.text is None else [asked.text] for asked in samples]
    return pa.table(
        _keys(samples)
        | {
            "prediction": pa.array([asked.place for asked in samples], pa.int64()),
            "outcome": pa.array([asked.became for asked in samples], pa.string()),
            "outputs": pa.array(texts, pa.list_(pa.string())),
        }
    )


def _figures(log: Log, scorer: str, samples: list[_Asked]) -> Iterator[OtherFigure]:
    """The metrics of inspect; the scorer that counts has counterparts here."""
    # With one answer per question all reducers agree.
    reducers = (log.settings.get("config") or {}).get("epochs_reducer") or []
    groups = [scorer, *(f"{scorer}/{reducer}" for reducer in reducers)]
    for name, value in log.figures.items():
        group, _, metric = name.rpartition("/")
        if group in groups:
            why = {"accuracy": _why_accuracy(log, samples), "stderr": _STDERR}.get(metric, "")
            yield OtherFigure(name, value, ("accuracy",) if metric == "accuracy" else (), why)
        else:
            yield OtherFigure(name, value, why="" if name.startswith(f"{scorer}/") else _OTHER_SCORER)


def _why_accuracy(log: Log, samples: list[_Asked]) -> str:
    """Why inspect's accuracy is not ours, or ""."""
    missing = [asked for asked in samples if asked.missing]
    reasons = {
        "inspect counts unparseable answers as wrong, qabias does not score them": any(
            asked.place == NO_ANSWER and not asked.missing for asked in samples
        ),
        "scored samples that failed or are invalid count only there": any(
            asked.failed and asked.is_scored for asked in missing
        ),
        "samples whose score names no answer count only there": any(
            asked.is_scored and not asked.failed for asked in missing
        ),
        "both exclude samples without a score": any(not asked.is_scored for asked in missing),
        "samples that are not in the log may count there": log.n_expected is not None and len(samples) < log.n_expected,
    }
    return "; ".join(reason for reason, holds in reasons.items() if holds)


def _notes(scorers: list[str], scorer: str, samples: list[_Asked]) -> Iterator[str]:
    if len(scorers) > 1:
        yield f"The scorer {scorer} of {', '.join(scorers)} parsed the answers."
    unscored = [asked.missing for asked in samples if asked.missing and not asked.failed]
    if unscored:
        yield f"{counted(len(unscored), 'sample')} without a score count as missing; the first: {unscored[0]}."
    lacking = defaultdict(list)
    for name in samples[0].reference:
        lacking[sum(asked.reference[name] is None for asked in samples)].append(name)
    lacking.pop(0, None)
    for n, names in lacking.items():
        yield f"{counted(n, 'sample')} without {', '.join(names)}, which is not checked."
