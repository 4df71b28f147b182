"""BBQ as the task `bbq` of inspect_evals asks it, and as tasks of that name ask it that were made from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import Written, outcome
from qabias.benchmarks import locate
from qabias.benchmarks.bbq import NAME
from qabias.benchmarks.bbq.published import SOURCE
from qabias.benchmarks.given import GivenAnswers
from qabias.benchmarks.logged import Logged, OtherFigure
from qabias.errors import QabiasError
from qabias.logs import Log, Sample

_builder = locate.dataset_module(NAME, "builder")

LETTERS = "ABC"
"""What inspect calls the answers, in the order of the released examples."""

_KEYS = {"category": str, "source_id": int}
_SAME = ("question_index", "question_polarity", "context_condition")
"""Metadata that must be as in the released examples."""

_WITHOUT_IDS = ("openbench", "lighteval")
"""Packages whose tasks of BBQ keep neither the example nor its groups."""

_CONTEXT, _QUESTION = "Context: ", "\n\nQuestion: "
_FIGURES = {"accuracy": ("accuracy",)}
"""Where the result of BBQ's metric has a metric of inspect."""

_WHY = {
    "accuracy": "inspect counts what it cannot read as wrong, and leaves failed samples out; here neither is scored",
    "stderr": "over single questions, as if they were independent; the intervals here are over templates",
}


def logged(log: Log) -> Logged | None:
    """The answers in a log of the task; None where it is of another task.

    Raises:
        QabiasError: If the log does not say which examples were asked or what was answered, or has several answers to
            one question.
    """
    if not _is_bbq(log):
        return None
    samples = [_Asked(log, sample) for sample in log.samples()]
    if not samples:
        raise QabiasError(f"{log.called}: no sample is in this log; ask first, or finish it by `inspect eval-retry`")
    answered = [asked for asked in samples if not asked.missing]
    if not answered:
        raise QabiasError(f"{log.called}: no sample has an answer; the first is {samples[0].missing}")
    return Logged(
        GivenAnswers(log.model, "", "none", SOURCE, _answers(samples)),
        _config(asked.category for asked in samples),
        references=_references(samples),
        figures=tuple(_figures(log, all(asked.place != NO_ANSWER for asked in answered))),
        notes=tuple(_notes(log, samples)),
    )


class _Asked:
    """A sample as an example of BBQ with its answer, without what else the log has of it.

    Attributes:
        category: Category of the example.
        example_id: Its number in the category.
        place: The place of the answer, 0 to 2, or `NO_ANSWER`.
        became: Its outcome; None where the model was not heard.
        text: What the model wrote; None where it was not heard.
        missing: Why the model was not heard, with the sample's name; "" where it was.
        reference: What the log says of the example.
    """

    __slots__ = ("became", "category", "example_id", "missing", "place", "reference", "text")

    def __init__(self, log: Log, sample: Sample) -> None:
        if sample.run > 1:
            raise QabiasError(
                f"{log.called}: {sample.where}: every question was asked several times, and scores are of one answer "
                "to each; ask with --epochs 1"
            )
        metadata = sample.asked.get("metadata") or {}
        _check_keys(log, sample, metadata)
        self.category: str = metadata["category"]
        self.example_id: int = metadata["source_id"]
        self.reference = _reference(sample.asked, metadata)
        self.missing = ""
        self.place, self.became, self.text = NO_ANSWER, None, None
        if sample.error or sample.answer is None:
            self.missing = f"{sample.where}: {sample.error or 'not scored; score it by `inspect score`'}"
            return
        self.text = sample.text or ""
        self.place = _place(log, sample)
        self.became = outcome(Written(self.text, sample.finish, sample.thinking), self.place)


def _is_bbq(log: Log) -> bool:
    """Whether a task is called so, in any package but this one, whose tasks keep other metadata."""
    names = {log.task, log.about.get("task_registry_name") or log.task}
    parts = {name.rpartition("/")[::2] for name in names}
    return any(package != "qabias" and re.match(rf"{NAME}(?![^_:])", name) for package, name in parts)


def _check_keys(log: Log, sample: Sample, metadata: Mapping[str, Any]) -> None:
    lacking = [name for name, kind in _KEYS.items() if not isinstance(metadata.get(name), kind)]
    if not lacking and metadata["category"] in _builder.CATEGORIES:
        return
    if not lacking:
        raise QabiasError(f"{log.called}: {sample.where}: no category of BBQ is called {metadata['category']!r}")
    whose = {log.task.partition("/")[0], *log.about.get("packages", {})}
    drops = "".join(f"; {package} drops them" for package in _WITHOUT_IDS if package in whose)
    raise QabiasError(
        f"{log.called}: {sample.where}: no {' and '.join(lacking)} in its metadata, which tell the example that was "
        f"asked (it has {', '.join(metadata) or 'none'}){drops}; ask with the task inspect_evals/{NAME}"
    )


def _place(log: Log, sample: Sample) -> int:
    """The place of an answer as inspect's scorer `choice` gives it; none where it names no answer or several."""
    letters = [letter.strip() for letter in str(sample.answer).split(",") if letter.strip()]
    if any(letter not in LETTERS or len(letter) != 1 for letter in letters):
        raise QabiasError(
            f"{log.called}: {sample.where}: the answer {sample.answer!r} is no letter of {', '.join(LETTERS)}; score "
            "the log by inspect's scorer `choice`"
        )
    return LETTERS.index(letters[0]) if len(letters) == 1 else NO_ANSWER


def _reference(asked: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a sample says of its example, under the names of the released examples; None for what it does not say."""
    choices = asked.get("choices") or ()
    target = asked.get("target")
    question = asked.get("input")
    context, between, question = question.rpartition(_QUESTION) if isinstance(question, str) else ("", "", "")
    told = between and context.startswith(_CONTEXT)
    return {
        **{name: metadata.get(name) for name in _SAME},
        "context": context.removeprefix(_CONTEXT) if told else None,
        "question": question if told else None,
        **{f"ans{place}": choices[place] if len(choices) == len(LETTERS) else None for place in range(len(LETTERS))},
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


def _references(samples: list[_Asked]) -> pa.Table:
    """What all samples say of their examples."""
    columns = {name: [asked.reference[name] for asked in samples] for name in samples[0].reference}
    return pa.table(_keys(samples) | {name: values for name, values in columns.items() if None not in values})


def _config(categories: Iterable[str]) -> str:
    there = set(categories)
    names = [name for name in _builder.CATEGORIES if name in there]
    return _builder.ALL if len(names) == len(_builder.CATEGORIES) else ",".join(names)


def _figures(log: Log, all_read: bool) -> Iterator[OtherFigure]:
    for name, value in log.figures.items():
        metric = name.rpartition("/")[2]
        same = metric == "accuracy" and all_read
        yield OtherFigure(name, value, _FIGURES.get(metric, ()), "" if same else _WHY.get(metric, ""))


def _notes(log: Log, samples: list[_Asked]) -> Iterator[str]:
    if log.n_expected is not None and len(samples) < log.n_expected:
        yield f"{len(samples):,} of {log.n_expected:,} samples are in the log; the others have no answer"
    missing = [asked.missing for asked in samples if asked.missing]
    if missing:
        yield (
            f"{len(missing):,} of {len(samples):,} samples failed and count as unparsed, without an outcome; the first "
            f"is {missing[0]}"
        )
