"""BBQ as the task `bbq` of inspect_evals, and as tasks derived from it."""

from __future__ import annotations

import re
import reprlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import Written, outcome
from qabias.benchmarks.base import Benchmark, External, ReportedScore
from qabias.benchmarks.bbq import NAME
from qabias.benchmarks.bbq.published import SOURCE
from qabias.benchmarks.harness_logs import config_of
from qabias.benchmarks.inspect_logs import FACTS
from qabias.errors import QabiasError
from qabias.logs import Log, Sample
from qabias.logs.inspect_eval import TOOL
from qabias.scores.formatting import pluralize
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


class _Row(NamedTuple):
    """A sample as an example of BBQ with its answer."""

    key: dict[str, Any]
    reference: dict[str, Any]
    place: int = NO_ANSWER
    became: str | None = None
    text: str | None = None
    missing: str = ""
    failed: bool = False
    is_scored: bool = False


def read(log: Log, benchmark: Benchmark, asked: Mapping[str, Any]) -> External | None:
    """The answers in a log of the task, or None for another task."""
    if log.tool != TOOL or not _is_bbq(log):
        return None
    # All samples have the same scorers.
    scorers = next((list(sample.answers) for sample in log.samples() if sample.answers and not sample.error), [])
    scorer = _scorer(log, scorers)
    rows = [_row(log, sample, scorer) for sample in log.samples()]
    fix = "Finish it with `inspect eval-retry`."
    if not rows:
        raise QabiasError(f"{log.called}: the log has no samples.", fix)
    if all(row.missing for row in rows):
        raise QabiasError(f"{log.called}: no sample has an answer; the first: {rows[0].missing}.", fix)
    keys = pa.Table.from_pylist([row.key for row in rows])
    answers = {
        "prediction": pa.array([row.place for row in rows], pa.int64()),
        "outcome": pa.array([row.became for row in rows], pa.string()),
        "outputs": pa.array([None if row.text is None else [row.text] for row in rows], pa.list_(pa.string())),
    }
    return External(
        pa.table({**{name: keys[name] for name in keys.column_names}, **answers}),
        config=config_of({row.key["category"] for row in rows}, _origin.CONFIGS),
        source=SOURCE,
        references=pa.Table.from_pylist([row.key | row.reference for row in rows]),
        figures=tuple(_figures(log, scorer, rows)),
        notes=tuple(_notes(scorers, scorer, rows)),
    )


def _row(log: Log, sample: Sample, scorer: str) -> _Row:
    if sample.run > 1:
        raise QabiasError(
            f"{log.called}: {sample.where}: several epochs, and scores need one answer per question.",
            "Rerun the task with --epochs 1.",
        )
    metadata = sample.asked.get("metadata") or {}
    _check(log, sample, metadata)
    key = {"category": metadata["category"], "example_id": metadata["source_id"]}
    row = _Row(key, _reference(sample.asked, metadata), failed=bool(sample.error), is_scored=scorer in sample.answers)
    answer = sample.answers.get(scorer)
    if sample.error or answer is None:
        return row._replace(missing=f"{sample.where}: {sample.error or 'not scored, see `inspect score`'}")
    text, place = sample.text or "", _place(log, sample, answer)
    return row._replace(text=text, place=place, became=outcome(Written(text, sample.finish, sample.thinking), place))


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


def _figures(log: Log, scorer: str, rows: list[_Row]) -> Iterator[ReportedScore]:
    """The metrics of inspect; the scorer that counts has counterparts here."""
    # With one answer per question all reducers agree.
    reducers = (log.settings.get("config") or {}).get("epochs_reducer") or []
    groups = [scorer, *(f"{scorer}/{reducer}" for reducer in reducers)]
    for name, value in log.figures.items():
        group, _, metric = name.rpartition("/")
        if group in groups:
            why = {"accuracy": _why_accuracy(log, rows), "stderr": _STDERR}.get(metric, "")
            yield ReportedScore(name, value, ("accuracy",) if metric == "accuracy" else (), why)
        else:
            yield ReportedScore(name, value, why="" if name.startswith(f"{scorer}/") else _OTHER_SCORER)


def _why_accuracy(log: Log, rows: list[_Row]) -> str:
    """Why inspect's accuracy is not ours, or ""."""
    missing = [row for row in rows if row.missing]
    reasons = {
        "inspect counts unparseable answers as wrong, qabias does not score them": any(
            row.place == NO_ANSWER and not row.missing for row in rows
        ),
        "scored samples that failed or are invalid count only there": any(
            row.failed and row.is_scored for row in missing
        ),
        "samples whose score names no answer count only there": any(
            row.is_scored and not row.failed for row in missing
        ),
        "both exclude samples without a score": any(not row.is_scored for row in missing),
        "samples that are not in the log may count there": log.n_expected is not None and len(rows) < log.n_expected,
    }
    return "; ".join(reason for reason, holds in reasons.items() if holds)


def _notes(scorers: list[str], scorer: str, rows: list[_Row]) -> Iterator[str]:
    if len(scorers) > 1:
        yield f"The scorer {scorer} of {', '.join(scorers)} parsed the answers."
    unscored = [row.missing for row in rows if row.missing and not row.failed]
    if unscored:
        yield f"{pluralize(len(unscored), 'sample')} without a score count as missing; the first: {unscored[0]}."
    lacking = defaultdict(list)
    for name in rows[0].reference:
        lacking[sum(row.reference[name] is None for row in rows)].append(name)
    lacking.pop(0, None)
    for n, names in lacking.items():
        yield f"{pluralize(n, 'sample')} without {', '.join(names)}, which is not checked."
