"""Logs of qabias's own tasks in other tools: every sample names its question, so that nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.answers.outcomes import Written
from qabias.benchmarks.base import Benchmark, make_origin
from qabias.benchmarks.facts import ALL
from qabias.benchmarks.given import GivenAnswers
from qabias.benchmarks.logged import Logged, OtherFigure
from qabias.benchmarks.registry import load_benchmark
from qabias.benchmarks.texts import answers_to, in_whole_units, is_answered, questions_of, written_format
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError
from qabias.logs import Log, Sample

FACTS = "qabias"
"""What a sample of our tasks has in its metadata: what was asked, see `qabias.inspect_tasks.asking.Asked.facts`."""

KEY = "key"
"""Which of the facts is the key of the question."""

FINISHES = {"max_tokens": "length", "model_length": "length", "unknown": ""}
"""What inspect calls the ends of a text, where `qabias.answers.outcomes.Written` has other names."""

_TEXTS = ("benchmark", "config", "source", "texts", "format", "norm", KEY)
_KINDS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(_TEXTS, (str, "a text")),
    "fixes": (bool, "true or false"),
    "orders": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "options": (Mapping, "texts by name"),
}
"""What every fact is that is needed to find the questions again."""

_TOOL = "inspect_ai"
_ANSWERS = "answers"
"""The number of answers that count, among the figures of our tasks."""
_NO_PLACE = "the benchmark does not say where this score stands here"


def own_answers(log: Log, upstream_dir: str | None = None) -> tuple[str, Logged] | None:
    """The answers in a log of one of our own tasks, with the name of its benchmark."""
    if log.tool != _TOOL:
        return None
    first = next(iter(log.samples()), None)
    facts = None if first is None else _facts(first)
    if first is None or facts is None or "benchmark" not in facts:
        return None
    _check(log, first, facts)
    benchmark = load_benchmark(facts["benchmark"])
    found = _texts(log, benchmark)
    given, n_each, n_in_part = _read(log, benchmark, facts, found, upstream_dir)
    notes = []
    if facts["orders"] > 1:
        notes.append(f"Asked in {facts['orders']} orders of the answers; what most of them say counts.")
    if found.n_more:
        notes.append(f"The first answer to every question counts; {found.n_more:,} of further epochs are left out.")
    if n_in_part:
        notes.append(f"{n_in_part:,} examples are left out, because other questions of their sets have no answer.")
    return benchmark.name, Logged(
        given,
        facts["config"],
        options=facts["options"],
        seed=facts["seed"],
        fixes=facts["fixes"],
        figures=_figures(benchmark, log, facts, len(given.answers) * n_each, found.n_epochs),
        notes=tuple(notes),
        failed="their sets are left out" + (", unless another epoch has an answer" if found.n_epochs > 1 else ""),
    )


def _facts(sample: Sample) -> Mapping[str, Any] | None:
    """What our task says of a sample; None where it is of another one."""
    metadata = sample.asked.get("metadata")
    facts = metadata.get(FACTS) if isinstance(metadata, Mapping) else None
    return facts if isinstance(facts, Mapping) else None


def _check(log: Log, sample: Sample, facts: Mapping[str, Any]) -> None:
    """Refuse facts that are missing or of another kind."""
    missing = [name for name in _KINDS if name not in facts]
    if missing:
        raise QabiasError(f"{log.called}: its samples lack {', '.join(missing)} in their metadata {FACTS!r}")
    for name, (kind, called) in _KINDS.items():
        value = facts[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _no_fact(log, sample, name, value, called)
    for value in facts["options"].values():
        if not isinstance(value, str):
            raise _no_fact(log, sample, "options", facts["options"], "texts by name")


def _no_fact(log: Log, sample: Sample, name: str, value: Any, called: str) -> QabiasError:
    return QabiasError(
        f"{log.called}: {sample.where}: {name} in its metadata {FACTS!r} is {value!r}; it must be {called}"
    )


@dataclass
class _Found:
    """What came back."""

    texts: dict[str, str] = field(default_factory=dict)
    examples: set[tuple[Any, ...]] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    n_more: int = 0
    n_epochs: int = 1


def _texts(log: Log, benchmark: Benchmark) -> _Found:
    found = _Found()
    for sample in log.samples():
        key, example = _question(log, benchmark, sample)
        found.examples.add(example)
        found.n_epochs = max(found.n_epochs, sample.run)
        if sample.error or sample.text is None:
            found.failed.add(key)
        elif key in found.texts:
            found.n_more += 1
        else:
            finish = FINISHES.get(sample.finish, sample.finish)
            found.texts[key] = Written(sample.text, finish, sample.thinking)
    found.failed -= found.texts.keys()
    return found


def _question(log: Log, benchmark: Benchmark, sample: Sample) -> tuple[str, tuple[Any, ...]]:
    """The key of the question of a sample, and that of its example."""
    facts, metadata = _facts(sample), sample.asked.get("metadata") or {}
    if facts is None or KEY not in facts or any(name not in metadata for name in benchmark.key):
        raise QabiasError(f"{log.called}: {sample.where} does not name its question in the metadata")
    if not isinstance(facts[KEY], str):
        raise _no_fact(log, sample, KEY, facts[KEY], "a text")
    example = {name: metadata[name] for name in benchmark.key}
    for name, value in example.items():
        if not isinstance(value, str | int):
            raise QabiasError(
                f"{log.called}: {sample.where}: {name} in its metadata is {value!r}, which names no example"
            )
    return facts[KEY], tuple(example.values())


def _read(
    log: Log, benchmark: Benchmark, facts: Mapping[str, Any], found: _Found, upstream_dir: str | None
) -> tuple[GivenAnswers, int, int]:
    """The answers in whole sets, questions to an example, and examples that are left out for what their sets lack."""
    seed = 0 if facts["source"] == BUNDLED else facts["seed"]
    origin = make_origin(benchmark, facts["source"], seed, facts["fixes"], upstream_dir, facts["options"])
    name = facts["format"].partition("@")[0]
    prompt_format = written_format(benchmark, name, facts["orders"])
    now = {"texts": origin.version, "format": prompt_format.signature}
    for what, version in now.items():
        if facts[what] != version:
            raise QabiasError(
                f"{log.called}: its {what} have changed since ({facts[what]} then, {version} now); score it with the "
                f"version of qabias that asked, {facts.get('version', 'which it does not say')}"
            )
    table = benchmark.load(facts["config"], origin)
    keys = zip(*(table[name].to_pylist() for name in benchmark.key), strict=True)
    in_log = np.array([key in found.examples for key in keys], dtype=bool)
    asked = table.filter(pa.array(in_log))
    questions = questions_of(benchmark, asked, prompt_format, facts["norm"]) if asked.num_rows else []
    unknown = (found.texts.keys() | found.failed) - {question.key for question in questions}
    if unknown:
        raise QabiasError(f"{log.called}: no question {min(unknown)!r} in the configuration {facts['config']}")
    answered = np.zeros(table.num_rows, dtype=bool)
    answered[in_log] = is_answered(questions, found.texts, asked.num_rows)
    kept = in_whole_units(benchmark, table, answered)
    rows = table.filter(pa.array(kept))
    if not rows.num_rows:
        raise QabiasError(f"{log.called}: no set of examples in it is answered as a whole")
    answers = answers_to(benchmark, rows, found.texts, prompt_format, facts["norm"])
    names = [name for name in (*benchmark.answer_columns, *benchmark.optional_columns) if name in answers.column_names]
    columns = {name: rows[name] for name in benchmark.key} | {name: answers[name] for name in names}
    n_each = len(questions) // asked.num_rows
    n_begun = len({question.row for question in questions if question.key in found.texts})
    return GivenAnswers("", name, facts["norm"], facts["source"], pa.table(columns)), n_each, n_begun - rows.num_rows


def _figures(
    benchmark: Benchmark, log: Log, facts: Mapping[str, Any], n_answers: int, n_epochs: int
) -> tuple[OtherFigure, ...]:
    """The scores in the log, those of groups named "GROUP/score", without ends of intervals and counts."""
    # `Log.figures` has the scorer before each name.
    there = {name.partition("/")[2]: value for name, value in log.figures.items()}
    why = _why(benchmark, there.get(_ANSWERS), n_answers, n_epochs)
    names = {measure.name for measure in benchmark.facts.measures}
    figures = []
    for called, value in there.items():
        group, _, name = called.rpartition("/")
        if name not in names:
            continue
        path = _path(benchmark, group, facts["config"])
        ours, reason = ((*path, name), why) if path is not None else ((), _NO_PLACE)
        figures.append(OtherFigure(called, value, ours, reason))
    return tuple(figures)


def _path(benchmark: Benchmark, group: str, config: str) -> tuple[str, ...] | None:
    """Where the scores of a group stand; "" is all examples, which may be the only group: it is called as `config`."""
    if group:
        return benchmark.group_path(group)
    whole = benchmark.group_path(ALL)
    return benchmark.group_path(config) if whole is None else whole


def _why(benchmark: Benchmark, n_there: float | None, n_here: int, n_epochs: int) -> str:
    """Why the scores there and here differ; "" where they are of the same answers."""
    if n_epochs > 1 and benchmark.pools:
        return f"the mean over {n_epochs} epochs there, the first one here"
    if n_there is not None and n_there != n_here:
        return (
            f"of {n_there:,.0f} answers there, of {n_here:,} here, where samples that failed or were marked as "
            "invalid are left out with their sets"
        )
    return ""
