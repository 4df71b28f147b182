"""BBQ as HELM's scenario `bbq` asks it (crfm-helm 0.5.16).

HELM keeps of an example its texts, and as tags of the answers the polarity, the context and four letters: the right
answer, the target, the other person and UNKNOWN. Its target is found by comparing groups with tags, and is often
missing. It is therefore not used: each example is looked up in the verified released data by its texts, which must be
equal in every character.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from qabias.answers.outcomes import NO_ANSWER, Written, outcome
from qabias.benchmarks.base import GivenAnswers, Logged, OtherFigure
from qabias.benchmarks.facts import counted
from qabias.errors import QabiasError
from qabias.logs import Log, Sample
from qabias.logs.helm import NAME as TOOL
from qabias.logs.written import as_written
from qabias.share.bbq_dataset import origin as _origin
from qabias.support.suggest import unknown

SOURCE = "release"
"""HELM reads the authors' released examples."""

_SCENARIO = "BBQScenario"
_JOINT = ("multiple_choice_joint", "multiple_choice_joint_chain_of_thought")
_LETTERS = "ABC"
_POLARITIES = {"negative": "neg", "non-negative": "nonneg"}
_CONTEXTS = {"ambiguous": "ambig", "non-ambiguous": "disambig"}
# Released examples with the same texts are one question only if these are the same too.
_ROLES = (
    *("category", "template_id", "question_polarity", "context_condition"),
    *("label", "target_loc", "biased_loc", "unknown_loc"),
)
_TEXTS = ("context", "question", "ans0", "ans1", "ans2")

Texts = tuple[str, ...]


def logged(log: Log, hints: Mapping[str, str] | None = None, upstream_dir: str | None = None) -> Logged | None:
    """The answers in HELM's record of a run of BBQ; None where it ran another scenario."""
    with as_written(log.called, TOOL):
        if not _is_bbq(log):
            return None
        _check_method(log)
        config = _config(log)
    categories = _origin.CATEGORIES if config == _origin.ALL else (config,)
    origin = _origin.Origin(SOURCE, upstream_dir=upstream_dir)
    examples = Examples(pa.concat_tables([origin.table(category) for category in categories]))
    found = _find(log, examples)
    if not any(text is not None for text in found.texts):
        failed = f"; {found.n_failed:,} failed, the first: {found.failure}" if found.n_failed else ""
        raise QabiasError(
            f"{log.called}: no answer to an example of the released data ({config}) in {found.n:,} requests{failed}"
        )
    asked = examples.table.take(pa.array(found.rows, pa.int64()))
    given = GivenAnswers(log.model, "", "none", SOURCE, _answers(asked, found))
    return Logged(
        given,
        config,
        references=_references(asked, found),
        figures=_figures(log, found, asked),
        notes=tuple(_notes(found)),
    )


class Examples:
    """The released examples by their texts."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._rows: dict[Texts, list[int]] = defaultdict(list)
        self._taken: Counter[Texts] = Counter()
        for row, (context, question, *answers) in enumerate(_columns(table, _TEXTS)):
            self._rows[as_asked(context, question, answers)].append(row)
        self._apart = {texts for texts, rows in self._rows.items() if not _are_one(table, rows)}

    def is_known(self, texts: Texts) -> bool:
        """Whether an example has these texts."""
        return texts in self._rows

    def is_told_apart(self, texts: Texts) -> bool:
        """Whether all examples with these texts have the same roles, so that it does not matter which was asked."""
        return texts not in self._apart

    def next_row(self, texts: Texts) -> int | None:
        """The next example with these texts in file order; None where each of them has been given."""
        rows = self._rows[texts]
        if self._taken[texts] == len(rows):
            return None
        self._taken[texts] += 1
        return rows[self._taken[texts] - 1]


def as_asked(context: str, question: str, answers: Sequence[str]) -> Texts:
    """The texts of an example as HELM keeps them: its `PassageQuestionInput`, and the answers in their order."""
    return (f"{context}\nQuestion: {question}", *answers)


def _columns(table: pa.Table, names: Sequence[str]) -> zip[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def _are_one(table: pa.Table, rows: Sequence[int]) -> bool:
    return len(rows) == 1 or len(set(_columns(table.take(pa.array(rows)), _ROLES))) == 1


def _is_bbq(log: Log) -> bool:
    scenario = log.about.get("scenario_spec") or {}
    if scenario:
        return str(scenario.get("class_name", "")).endswith(f".{_SCENARIO}")
    # Without run_spec.json the tags tell.
    first = next(iter(log.samples()), None)
    references = first.asked.get("references", []) if first else []
    return len(references) == len(_LETTERS) and all(_tagged(reference.get("tags", [])) for reference in references)


def _check_method(log: Log) -> None:
    method = (log.about.get("adapter_spec") or {}).get("method", "")
    if method not in _JOINT:
        raise QabiasError(
            f"{log.called}: the method {method} asks about each answer apart, and HELM keeps the log-likelihood of the "
            "prompt and the answer together; its own bias scores have no answers there. Run it with "
            f"method={_JOINT[0]}"
        )


def _config(log: Log) -> str:
    """The configuration that HELM's subject is; all where the record does not say it."""
    named = re.search(r"subject=([^,]+)", log.task)
    arguments = (log.about.get("scenario_spec") or {}).get("args") or {}
    subject = str(arguments.get("subject", named[1] if named else _origin.ALL))
    if subject not in _origin.CONFIGS:
        raise unknown("subject", subject, _origin.CONFIGS)
    return subject


@dataclass
class _Found:
    """What a record holds; the lists are parallel."""

    rows: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    texts: list[Written | None] = field(default_factory=list)
    tagged: list[dict[str, Any] | None] = field(default_factory=list)
    n: int = 0
    n_failed: int = 0
    failure: str = ""
    n_unknown: int = 0
    n_alike: int = 0
    n_truncated: int = 0
    n_solved: int = 0

    @property
    def n_unread(self) -> int:
        """Answers that are none of the three, for HELM too; an empty one it leaves out."""
        return sum(place == NO_ANSWER and bool(text) for place, text in zip(self.places, self.texts, strict=True))


def _find(log: Log, examples: Examples) -> _Found:
    found = _Found()
    for sample in log.samples():
        with as_written(f"{log.called}: {sample.where}", TOOL):
            _add(found, log, sample, examples)
    return found


def _add(found: _Found, log: Log, sample: Sample, examples: Examples) -> None:
    """Put one request to the others."""
    found.n += 1
    _check(log, sample)
    asked = sample.asked
    references = asked["references"]
    answers = [reference["output"]["text"] for reference in references]
    texts = (asked["input"]["text"], *answers)
    if sample.error:
        found.n_failed += 1
        found.failure = found.failure or sample.error
    if not examples.is_known(texts):
        found.n_unknown += 1
    elif not examples.is_told_apart(texts):
        found.n_alike += 1
    else:
        row = examples.next_row(texts)
        if row is None:
            raise _asked_again(log, sample)
        found.rows.append(row)
        found.places.append(_place(sample, answers))
        found.texts.append(None if sample.error else Written(sample.text or "", sample.finish, sample.thinking))
        found.tagged.append(_tagged(references[0]["tags"]))
        found.n_truncated += bool(asked.get("prompt_truncated"))
        found.n_solved = max(found.n_solved, asked.get("num_train_instances") or 0)


def _check(log: Log, sample: Sample) -> None:
    if sample.asked.get("perturbation"):
        raise QabiasError(
            f"{log.called}: {sample.where}: a text that HELM changed on purpose; bias scores are of the published "
            "texts: run it without a data augmentation"
        )
    if sample.run > 1:
        raise _asked_again(log, sample)


def _asked_again(log: Log, sample: Sample) -> QabiasError:
    return QabiasError(
        f"{log.called}: {sample.where} was answered more than once; a question has one answer: run it with one trial "
        "(num_train_trials, num_trials) and one completion"
    )


def _place(sample: Sample, answers: Sequence[str]) -> int:
    """The place of the answer that a letter stands for in the prompt; `NO_ANSWER` for no letter."""
    if sample.answer is None:
        return NO_ANSWER
    return answers.index(sample.asked["output_mapping"][sample.answer])


def _answers(asked: pa.Table, found: _Found) -> pa.Table:
    became = [
        None if text is None else outcome(text, place) for text, place in zip(found.texts, found.places, strict=True)
    ]
    outputs = [None if text is None else [str(text)] for text in found.texts]
    return pa.table(
        {
            "category": asked["category"],
            "example_id": asked["example_id"],
            "prediction": pa.array(found.places, pa.int64()),
            "outcome": pa.array(became, pa.string()),
            "outputs": pa.array(outputs, pa.list_(pa.string())),
        }
    )


def _tagged(tags: Sequence[str]) -> dict[str, Any] | None:
    """What HELM's tags say of an example; None where they are none of this scenario."""
    polarity, context, label, target, *_ = [*tags[-6:], "", "", "", ""]
    if polarity not in _POLARITIES or context not in _CONTEXTS or label not in tuple(_LETTERS):
        return None
    return {
        "question_polarity": _POLARITIES[polarity],
        "context_condition": _CONTEXTS[context],
        "label": _LETTERS.index(label),
        "target": target,
    }


def _references(asked: pa.Table, found: _Found) -> pa.Table:
    """What HELM says of the examples, to be compared with the released data."""
    columns = {"category": asked["category"], "example_id": asked["example_id"]}
    if all(found.tagged):
        for name in ("question_polarity", "context_condition", "label"):
            columns[name] = pa.chunked_array([pa.array([of[name] for of in found.tagged if of])])
    return pa.table(columns)


def _notes(found: _Found) -> list[str]:
    told = [
        f"HELM keeps no number of an example: {len(found.rows):,} of {found.n:,} requests were found in the released "
        "examples by their texts, equal in every character.",
        _counted(found.n_unknown, "request", "left out, about texts that no released example has."),
        _counted(
            found.n_alike, "request", "left out, about texts that several released examples with different roles have."
        ),
        _counted(found.n_truncated, "prompt", "shortened by HELM to fit the model."),
    ]
    if found.n_solved:
        told.append(
            f"The prompts show up to {found.n_solved} solved examples of the benchmark itself; scores of prompts "
            "without them are not comparable."
        )
    return [note for note in told if note]


def _counted(n: int, what: str, said: str) -> str:
    return f"{counted(n, what)} {said}" if n else ""


def _figures(log: Log, found: _Found, asked: pa.Table) -> tuple[OtherFigure, ...]:
    """HELM's three scores, and why each differs from the one here."""
    n_other = sum(
        of is not None and of["target"] != (_LETTERS[target] if target >= 0 else "")
        for of, target in zip(found.tagged, asked["target_loc"].to_pylist(), strict=True)
    )
    wrong = _counted(found.n_unread, "answer", "without a letter: wrong for HELM, left out here")
    against = _counted(found.n_unread, "answer", "without a letter: against the stereotype for HELM, left out here")
    targets = (
        f"for {n_other:,} of {len(found.rows):,} examples HELM finds no target or another one than the templates name, "
        "and counts answers to them otherwise"
        if n_other
        else ""
    )
    missing = _counted(found.n_unknown + found.n_alike, "example", "in HELM's score alone")
    nobody = "HELM gives 0 where no answer names a person, which is undefined here" if _is_nobody(found, asked) else ""
    factor = "its factor 1 - accuracy takes the accuracy over both contexts, not over the ambiguous one"
    known: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "bbq_accuracy": ("accuracy", (wrong, missing)),
        "bbq_metric_ambiguous_bias": ("bias_ambig", (factor, targets, against, missing)),
        "bbq_metric_unambiguous_bias": ("bias_disambig", (targets, against, nobody, missing)),
    }
    return tuple(
        OtherFigure(name, value, (known[base][0],), "; ".join(filter(None, known[base][1])))
        for name, value in log.figures.items()
        if (base := name.split(" ")[0]) in known
    )


def _is_nobody(found: _Found, asked: pa.Table) -> bool:
    """Whether no answer to a disambiguated question names a person."""
    rows = zip(asked["context_condition"].to_pylist(), asked["unknown_loc"].to_pylist(), found.places, strict=True)
    return not any(context == "disambig" and place not in (unknown, NO_ANSWER) for context, unknown, place in rows)
