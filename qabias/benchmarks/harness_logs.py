"""Logs of lm-evaluation-harness: qabias's own tasks, and others by a map of their columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from qabias.answers.likelihoods import NO_ANSWER, NORMS, probability_column
from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks.base import Benchmark, External, ReportedScore
from qabias.errors import QabiasError, arg
from qabias.logs import Log, Sample, as_written
from qabias.logs.lm_eval_samples import TOOL, read_options

_OURS = "qabias"
"""The key of a task's metadata that describes its questions."""

_RECORDED = ("config", "source", "format", "norm")
"""What a task records of its texts and prompts."""

_PROBABILITIES = "probabilities"
_PERSONS = 2
_KEYS = ("category", "example_id")
_TIES = "the first of equally likely answers counts there, none here"


@dataclass(frozen=True)
class HarnessTask:
    """A task of others on a benchmark of BBQ's form: its columns and scores by the names here.

    Attributes:
        document: Columns that only its documents have.
        columns: Its columns by their names here; they must equal the examples.
        figures: Its scores with their counterparts here. A "-" before a name turns the sign.
        why: Why a score (name, value, categories, whether answers are texts) differs from ours.
        numbers: Columns that may be texts of numbers.
        source: Source of the texts; "" for the benchmark's first.
        options: Options that choose the texts.
        unknown: Wordings of UNKNOWN if the documents lack this answer.
    """

    document: Sequence[str]
    columns: Mapping[str, str]
    figures: Mapping[str, str]
    why: Callable[[str, float, set[str], bool], list[str]]
    numbers: Sequence[str] = ()
    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    unknown: Sequence[str] = ()

    def __call__(self, log: Log, benchmark: Benchmark, asked: Mapping[str, Any]) -> External | None:
        """The answers in a log of the task, or None for another task."""
        first = first_sample(log)
        if first is None or not set(self.document) <= document(first).keys():
            return None
        if self.unknown and tuple(read_options(first)[_PERSONS:]) != tuple(self.unknown):
            return None  # in another language
        rows, n_samples = read_rows(log, self.columns, self._places, self.numbers)
        n_wordings = max(len(row["places"]) for row in rows) - _PERSONS
        n_ties = sum(row["prediction"] == NO_ANSWER for row in rows)
        if n_wordings > 1:
            rows = [{**row, "unknown_loc": row["places"][-1]} for row in rows]
        references = columns_of(rows, (*self.columns, "unknown_loc"))
        categories = set(references["category"])
        return External(
            pa.table(columns_of(rows, (*_KEYS, "prediction"))),
            config=config_of(categories, benchmark.configs),
            source=self.source or benchmark.sources[0],
            options=self.options,
            references=pa.table(references),
            figures=tuple(self._figures(log, categories, isinstance(rows[0]["prediction"], str), n_ties)),
            notes=(*first_of_several(n_samples, len(rows)), *_notes(n_wordings, n_ties)),
        )

    def _places(self, log: Log, sample: Sample) -> Sequence[int]:
        """The position of each option's answer in the row; all wordings of UNKNOWN share one."""
        options = list(read_options(sample))
        answers = ("ans0", "ans1", "ans2")[: _PERSONS if self.unknown else None]
        texts = [str(column(log, sample, name)).strip() for name in answers]
        if sorted(options) == sorted(texts):  # another task with the three answers
            return [texts.index(option) for option in options]
        persons = [texts.index(option) for option in options[:_PERSONS] if option in texts]
        is_known = options[_PERSONS:] == list(self.unknown) if self.unknown else set(texts) <= set(options)
        if len(set(persons)) < _PERSONS or not is_known:
            wrong = f"its options are not two persons and wordings of UNKNOWN: {', '.join(options)}"
            raise _error(log, sample, wrong, "Score a table of answers: qabias score FILE.csv")
        return [*persons, *[3 - sum(persons)] * (len(options) - _PERSONS)]

    def _figures(self, log: Log, categories: set[str], written: bool, n_ties: int) -> Iterable[ReportedScore]:
        """The scores of the harness, with their counterparts here."""
        for name, value in log.figures.items():
            if math.isnan(value):
                continue
            base = next((known for known in self.figures if name == known or name.startswith(f"{known}_")), "")
            category = name[len(base) + 1 :]
            if not base or (category and category not in categories):
                yield ReportedScore(name, value, why="only this task has it")
                continue
            ours = self.figures[base].removeprefix("-")
            sign = "-" if ours != self.figures[base] else ""
            why = [*self.why(base, value, {category} if category else categories, written), *[_TIES] * bool(n_ties)]
            path = ("by", "category", category, ours) if category else (ours,)
            yield ReportedScore(sign + name, -value if sign else value, path, "; ".join(why))


def config_of(categories: set[str], configs: Sequence[str]) -> str:
    """The config of some categories: their names in order, or the config of all."""
    named = [name for name in configs[:-1] if name in categories]
    return configs[-1] if len(named) == len(configs) - 1 else ",".join(named) or configs[-1]


def _notes(n_wordings: int, n_ties: int) -> list[str]:
    notes = {
        "The prompts listed no answers. qabias parses the texts.": n_wordings < 1,
        f"UNKNOWN had {n_wordings} wordings and each person one, which favors UNKNOWN. Do not compare with qabias "
        "runs.": n_wordings > 1,
        f"{n_ties:,} questions have no answer: two options were equally likely, or NaN.": n_ties > 0,
    }
    return [note for note, applies in notes.items() if applies]


# The samples of a log


def first_sample(log: Log) -> Sample | None:
    """The first sample of a harness log; None for another tool, or without a sample."""
    return next(iter(log.samples()), None) if log.tool == TOOL else None


def document(sample: Sample | None) -> Mapping[str, Any]:
    """The document of a sample: a row of the task's dataset, with additions by the task."""
    row = sample.asked["doc"] if sample else None
    return row if isinstance(row, Mapping) else {}


def column(log: Log, sample: Sample, name: str) -> Any:
    """A value of a sample's document."""
    if name not in document(sample):
        raise _error(log, sample, f"its document lacks {name}", "Ask with a task of integrations/lm_eval")
    value = document(sample)[name]
    if not isinstance(value, str | int | float | None):
        raise _error(log, sample, f"{name} is {value!r}, not a text or number", "Repair the sample")
    return value


def _error(log: Log, sample: Sample, problem: str, fix: str) -> QabiasError:
    return QabiasError(f"{log.called}: {sample.where}: {problem}.", f"{fix}.")


def of_sample(log: Log, sample: Sample) -> AbstractContextManager[None]:
    """Context that names the sample in errors about its values, see `as_written`."""
    return as_written(f"{log.called}: {sample.where}", TOOL)


def likeliest(loglikelihoods: Sequence[float], answer_of: Sequence[int]) -> int:
    """The answer of the likeliest option, or `NO_ANSWER` for a tie."""
    best = max(loglikelihoods)
    answers = {answer for value, answer in zip(loglikelihoods, answer_of, strict=True) if value == best}
    is_known = len(answers) == 1 and not any(map(math.isnan, loglikelihoods))
    return answers.pop() if is_known else NO_ANSWER


def read_rows(
    log: Log,
    columns: Mapping[str, str],
    places: Callable[[Log, Sample], Sequence[int]] | None = None,
    numbers: Sequence[str] = (),
) -> tuple[list[dict[str, Any]], int]:
    """The first answer to every document with the columns of a map, and the number of answers."""
    rows, n_samples = [], 0
    for sample in log.samples():
        n_samples += 1
        if sample.run > 1:
            continue
        with of_sample(log, sample):
            likely = sample.loglikelihoods
            row = {ours: column(log, sample, theirs) for ours, theirs in columns.items()}
            row |= {name: int(row[name]) for name in numbers}
            options = () if not likely else range(len(likely)) if places is None else places(log, sample)
            row["prediction"] = likeliest(likely, options) if likely else sample.text or ""
            size = column(log, sample, "set_size") if "set_size" in document(sample) else None
            rows.append({**row, "set_size": size, "places": options, _PROBABILITIES: likely})
    return rows, n_samples


def columns_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    """The columns that all rows have."""
    return {name: [row[name] for row in rows] for name in names if all(name in row for row in rows)}


def first_of_several(n_samples: int, n_examples: int) -> tuple[str, ...]:
    """A sentence if questions were answered several times."""
    if n_samples == n_examples:
        return ()
    return (f"{n_samples:,} answers to {n_examples:,} questions: the first to each is scored, as in the harness.",)


# Tasks of qabias


@dataclass(frozen=True)
class OwnTask:
    """A qabias task with one question per example.

    Attributes:
        document: Columns that its documents have.
        columns: Columns that must equal the examples, besides the key.
        set: Column of a set of examples, and its size if the documents lack `set_size`. Parts of sets are excluded.
    """

    document: Sequence[str]
    columns: Sequence[str]
    set: tuple[str, int]

    def __call__(self, log: Log, benchmark: Benchmark, asked: Mapping[str, Any]) -> External | None:
        """The answers in a log of the task, or None for another task."""
        recorded = own_task(log, benchmark, asked, self.document)
        if recorded is None:
            return None
        names = [*benchmark.key, *self.columns]
        set_column, set_size = self.set
        rows, n_samples = read_rows(log, {name: name for name in dict.fromkeys((*names, set_column))})
        sets = [(row[set_column], row["set_size"] or set_size) for row in rows]
        counts = Counter(sets)
        whole = [row for row, one in zip(rows, sets, strict=True) if counts[one] == one[1]]
        if not whole:
            raise QabiasError(f"{log.called}: no set of examples is complete.", "Rerun the task with a larger --limit.")
        n_cut = len(rows) - len(whole)
        cut = f"{n_cut:,} examples are excluded because their sets are incomplete, as in the task."
        likely = [row[_PROBABILITIES] for row in whole]
        answers = columns_of(whole, (*benchmark.key, "prediction"))
        if all(likely) and _PROBABILITIES in benchmark.optional_columns:
            sizes = pa.array([[1] * len(one) for one in likely])  # read by other norms only
            numbers = {"loglikelihoods": pa.array(likely), "n_tokens": sizes, "n_bytes": sizes}
            answers[_PROBABILITIES] = probability_column(numbers, NORMS[0])
        notes = ((cut,) if n_cut else ()) + first_of_several(n_samples, len(rows))
        return own_answers(log, benchmark, recorded, answers, columns_of(whole, names), notes)


def own_task(
    log: Log, benchmark: Benchmark, asked: Mapping[str, Any], document_columns: Iterable[str]
) -> Mapping[str, Any] | None:
    """What a qabias task records of its questions, or None for a log of another task or benchmark."""
    if log.tool != TOOL:
        return None
    metadata = ((log.settings.get("config") or {}).get("metadata") or {}).get(_OURS)
    if isinstance(metadata, Mapping):
        return _recorded(log, benchmark, metadata, asked) if metadata.get("benchmark") == benchmark.name else None
    if not set(document_columns) <= document(first_sample(log)).keys():
        return None
    if asked.get("benchmark") == benchmark.name and asked.get("format"):
        return asked
    raise QabiasError(
        f"{log.called}: the benchmark and the prompt format are unknown: no results_*.json with the same date.",
        f"Put that file next to the log, or add {arg('benchmark')} and {arg('format')}.",
    )


def _recorded(
    log: Log, benchmark: Benchmark, metadata: Mapping[str, Any], asked: Mapping[str, Any]
) -> Mapping[str, Any]:
    """A task's metadata, completed by its dataset and the caller's arguments."""
    name = (log.settings.get("config") or {}).get("dataset_name")
    options = metadata.get("options") or {}
    recorded = {name: metadata[name] for name in _RECORDED if metadata.get(name)}
    values = [*recorded.values(), *(options.values() if isinstance(options, Mapping) else [options])]
    if not all(isinstance(value, str) for value in values):
        problem = f"{log.called}: its metadata {_OURS!r} has values other than texts: {dict(metadata)}."
        raise QabiasError(problem, "Restore the metadata that the task wrote.")
    stated = {name: asked[name] for name in _RECORDED if asked.get(name)}
    return {**stated, **({"config": name} if name in benchmark.configs else {}), **recorded, "options": options}


def own_answers(
    log: Log,
    benchmark: Benchmark,
    recorded: Mapping[str, Any],
    answers: Mapping[str, Any],
    references: Mapping[str, Any],
    notes: tuple[str, ...] = (),
    path: tuple[str, ...] = (),
) -> External:
    """Answers to a qabias task. Its scores are under a path in the scores here."""
    outcomes = {f"{name}_share": "counted under `outcomes` here" for name in OUTCOMES}
    return External(
        pa.table(dict(answers)),
        config=str(recorded.get("config") or benchmark.configs[-1]),
        source=recorded.get("source") or benchmark.sources[0],
        format=recorded.get("format", ""),
        norm=recorded.get("norm", NORMS[0]),
        options=recorded.get("options") or {},
        references=pa.table(dict(references)),
        figures=tuple(
            ReportedScore(name, value, () if name in outcomes else (*path, name), outcomes.get(name, ""))
            for name, value in log.figures.items()
        ),
        notes=notes,
    )
