"""Answers to BBQ that others collected: its authors, lm-evaluation-harness, inspect_evals, and qabias's tasks."""

from __future__ import annotations

import re
import reprlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import Written, outcome
from qabias.benchmarks.base import Benchmark, External, ReportedScore
from qabias.benchmarks.bbq import NAME
from qabias.benchmarks.harness_logs import HarnessTask, OwnTask, config_of
from qabias.benchmarks.text_logs import FACTS
from qabias.errors import QabiasError
from qabias.logs import Log, Sample
from qabias.logs.inspect_eval import TOOL
from qabias.scores.formatting import pluralize
from qabias.share.bbq_dataset import origin as _origin

REPOSITORY = "nyu-mll/BBQ"

SOURCE = "release"
"""The source of the models' questions."""

UNIFIEDQA = "unifiedqa-11b"
FORMATS = {"race": "race_unifiedqa", "arc": "arc_unifiedqa", "qonly": "question_only_unifiedqa"}
"""Prompts in the authors' columns, and their names here."""

_OUTPUT = re.compile(r"(?P<model>.+)_pred_(?P<prompt>[a-z]+)")
# Models in the authors' files, and their names here.
_MODELS = {"unifiedqa-t5-11b": UNIFIEDQA}
_LOGITS = ("ans0", "ans1", "ans2")
_LOGIT_COLUMNS = ("index", "cat", "model", *_LOGITS)
_LOGIT_FORMAT = "pair"


def recognise(table: pa.Table) -> list[External]:
    """The answers in a table of one of the authors' two forms; none in any other table."""
    names = set(table.column_names)
    if names >= set(_LOGIT_COLUMNS):
        return list(_of_logits(table))
    outputs = {name: _OUTPUT.fullmatch(name) for name in table.column_names}
    return [
        External(
            _answers(table["category"], table["example_id"], table[name]),
            model=_MODELS.get(match["model"], match["model"]),
            source=SOURCE,
            format=FORMATS.get(match["prompt"], ""),
            norm="released",
        )
        for name, match in outputs.items()
        if match and {"category", "example_id"} <= names
    ]


def _of_logits(table: pa.Table) -> Iterator[External]:
    """Answers by model. Equal largest logits are no answer, as in the authors' script."""
    logits = np.stack([table[name].to_numpy() for name in _LOGITS], axis=1)
    best = logits.max(axis=1, keepdims=True)
    unique = (logits == best).sum(axis=1) == 1
    weights = np.exp(logits - best)
    likely = pa.chunked_array([pa.array((weights / weights.sum(axis=1, keepdims=True)).tolist())])
    chosen = pa.array(np.where(unique, logits.argmax(axis=1), NO_ANSWER))
    for model in pc.unique(table["model"]).to_pylist():
        of_model = pc.equal(table["model"], model)
        rows = table.filter(of_model)
        answers = _answers(rows["cat"], rows["index"], pa.chunked_array([chosen]).filter(of_model))
        answers = answers.append_column("probabilities", likely.filter(of_model))
        yield External(answers, model=_MODELS.get(model, model), source=SOURCE, format=_LOGIT_FORMAT)


def _answers(category: pa.ChunkedArray, example_id: pa.ChunkedArray, answers: pa.ChunkedArray) -> pa.Table:
    return pa.table({"category": category, "example_id": example_id, "prediction": answers})


_TEXTS = ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "ans2", "label")
_BY_RACE = {"Race_x_gender", "Race_x_SES"}


def _why(name: str, value: float, categories: set[str], written: bool) -> list[str]:
    reasons = []
    if "bias" in name and value == 0:
        reasons.append("0 there also means always anti-stereotyped (-1 here), or only UNKNOWN (undefined here)")
    if "bias" in name and categories & _BY_RACE:
        reasons.append(
            "in intersectional categories the target there is set by race only, so it may be both persons or neither"
        )
    if written:
        reasons.append(
            "the harness compares whole texts with single words and counts the rest as UNKNOWN, qabias parses the texts"
        )
    return reasons


TASK = HarnessTask(
    document=("biased_answers", "ans0_groups"),
    columns={name: name for name in ("category", "example_id", *_TEXTS)},
    figures={
        "acc": "accuracy",
        "accuracy_amb": "accuracy_ambig",
        "accuracy_disamb": "accuracy_disambig",
        "amb_bias_score": "bias_ambig",
        "disamb_bias_score": "bias_disambig",
    },
    why=_why,
    source=SOURCE,
)

OWN_TASK = OwnTask(
    document=("category", "template_id", "set_id", "biased_loc", "unknown_loc"),
    columns=(*_TEXTS, "template_id", "set_id", "target_loc", "biased_loc", "unknown_loc"),
    set=("set_id", 4),
)
"""A qabias task on a benchmark of BBQ's form."""


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
    category, number, choices = metadata.get("category"), metadata.get("source_id"), sample.asked.get("choices")
    n_texts = len(choices) if isinstance(choices, list) and all(isinstance(text, str) for text in choices) else 0
    if category not in _origin.CATEGORIES or type(number) is not int or not 0 <= number <= _MOST:
        fault = f"unknown example with category {category!r}, source_id {number!r}"
    elif n_texts != len(LETTERS):
        fault = f"its choices are {reprlib.repr(choices)}, not three texts"
    else:
        return
    raise QabiasError(f"{log.called}: {sample.where}: {fault}.", f"Use the task inspect_evals/{NAME}.")


def _place(log: Log, sample: Sample, answer: Any) -> int:
    """The position of an answer of inspect's scorer `choice`; `NO_ANSWER` for none or several."""
    letters = [letter.strip() for letter in str(answer).split(",") if letter.strip()]
    if not set(letters) <= set(LETTERS):
        problem = f"the answer {reprlib.repr(answer)} is not a letter of {', '.join(LETTERS)}"
        fix = f"Score the log with inspect's scorer `{_SCORER}`."
        raise QabiasError(f"{log.called}: {sample.where}: {problem}.", fix)
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
            why = {
                "accuracy": _why_accuracy(log, rows),
                "stderr": "not clustered; the intervals here are clustered by template",
            }.get(metric, "")
            yield ReportedScore(name, value, ("accuracy",) if metric == "accuracy" else (), why)
        else:
            yield ReportedScore(name, value, why="" if name.startswith(f"{scorer}/") else "a score of another scorer")


def _why_accuracy(log: Log, rows: list[_Row]) -> str:
    """Why inspect's accuracy is not ours, or ""."""
    missing = [row for row in rows if row.missing]
    is_unread = any(row.place == NO_ANSWER and not row.missing for row in rows)
    is_unnamed = any(row.is_scored and not row.failed for row in missing)
    reasons = {
        "inspect counts unparseable answers as wrong, qabias does not score them": is_unread,
        "scored samples that failed or are invalid count only there": any(r.failed and r.is_scored for r in missing),
        "samples whose score names no answer count only there": is_unnamed,
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
