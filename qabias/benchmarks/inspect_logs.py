"""Logs of qabias's own tasks in inspect: questions, answers and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.answers.outcomes import Written
from qabias.benchmarks.base import Benchmark, External, ReportedScore, make_origin
from qabias.benchmarks.generated import answers_to, in_whole_units, is_answered, questions_of, written_format
from qabias.benchmarks.registry import load_benchmark
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError
from qabias.logs import Log, Sample
from qabias.logs.inspect_eval import TOOL as INSPECT
from qabias.scores.facts import ALL

FACTS = "qabias"
"""The key of a sample's metadata that describes its question, see `qabias.inspect_tasks.asking.Asked.facts`."""

KEY = "key"
"""The fact with the key of the question."""

UNTIL = "until"
"""The fact with the conditions of a task that stops early."""

FINISHES = {"max_tokens": "length", "model_length": "length", "unknown": ""}
"""Names in inspect for the ends of a text, if `qabias.answers.outcomes.Written` has others."""

_ANSWERS = "answers"
"""The number of answers that count, among the scores of qabias tasks."""
_NO_PLACE = "this score has no counterpart here"


def read(log: Log) -> External | None:
    """The answers in an inspect log of a qabias task, or None."""
    if log.tool != INSPECT:
        return None
    first = next(iter(log.samples()), None)
    facts = None if first is None else _facts(first)
    if first is None or facts is None or "benchmark" not in facts:
        return None
    benchmark = load_benchmark(facts["benchmark"])
    texts = _texts(log, benchmark)
    answers, prompt_format, n_each, n_in_part = _read(log, benchmark, facts, texts)
    notes = []
    if facts.get(UNTIL):
        notes.append(f"The task stopped early ({facts[UNTIL]}). These CIs ignore the looks: read those in the log.")
    if facts["orders"] > 1:
        notes.append(f"Asked in {facts['orders']} answer orders; the majority counts.")
    if texts.n_more:
        notes.append(f"The first answer to every question counts; {texts.n_more:,} from further epochs are excluded.")
    if n_in_part:
        notes.append(f"{n_in_part:,} examples are excluded because their sets lack answers.")
    return External(
        answers,
        benchmark.name,
        format=prompt_format,
        **{name: facts[name] for name in ("config", "source", "norm", "seed", "fixes", "options")},
        figures=_figures(benchmark, log, facts, len(answers) * n_each, texts.n_epochs),
        notes=tuple(notes),
        failed="their sets are excluded" + (", unless another epoch has an answer" if texts.n_epochs > 1 else ""),
    )


def _facts(sample: Sample) -> Mapping[str, Any] | None:
    """What a qabias task records of a sample, or None."""
    metadata = sample.asked.get("metadata")
    facts = metadata.get(FACTS) if isinstance(metadata, Mapping) else None
    return facts if isinstance(facts, Mapping) else None


@dataclass
class _Found:
    """Texts and failures of a log."""

    texts: dict[str, str] = field(default_factory=dict)
    examples: set[tuple[Any, ...]] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    n_more: int = 0
    n_epochs: int = 1


def _texts(log: Log, benchmark: Benchmark) -> _Found:
    texts = _Found()
    for sample in log.samples():
        key, example = _question(log, benchmark, sample)
        texts.examples.add(example)
        texts.n_epochs = max(texts.n_epochs, sample.run)
        if sample.error or sample.text is None:
            texts.failed.add(key)
        elif key in texts.texts:
            texts.n_more += 1
        else:
            finish = FINISHES.get(sample.finish, sample.finish)
            texts.texts[key] = Written(sample.text, finish, sample.thinking)
    texts.failed -= texts.texts.keys()
    return texts


def _question(log: Log, benchmark: Benchmark, sample: Sample) -> tuple[str, tuple[Any, ...]]:
    """The keys of a sample's question and example."""
    facts, metadata = _facts(sample), sample.asked.get("metadata") or {}
    if facts is None or not isinstance(facts.get(KEY), str) or any(name not in metadata for name in benchmark.key):
        raise QabiasError(f"{log.called}: {sample.where} lacks the key of its question.", "Ask with a qabias task.")
    return facts[KEY], tuple(metadata[name] for name in benchmark.key)


def _read(log: Log, benchmark: Benchmark, facts: Mapping[str, Any], texts: _Found) -> tuple[pa.Table, str, int, int]:
    """The answers in whole sets, their format, the questions per example, and the examples in incomplete sets."""
    seed = 0 if facts["source"] == BUNDLED else facts["seed"]
    origin = make_origin(benchmark, facts["source"], seed, facts["fixes"], facts["options"])
    name = facts["format"].partition("@")[0]
    prompt_format = written_format(benchmark, name, facts["orders"], origin)
    now = {"texts": origin.version, "format": prompt_format.signature}
    for what, version in now.items():
        if facts[what] != version:
            raise QabiasError(
                f"{log.called}: its {what} have changed since ({facts[what]} then, {version} now).",
                f"Score it with the version of qabias that asked: {facts.get('version', 'not in the log')}.",
            )
    table = benchmark.load(facts["config"], origin)
    keys = zip(*(table[name].to_pylist() for name in benchmark.key), strict=True)
    in_log = np.array([key in texts.examples for key in keys], dtype=bool)
    asked = table.filter(pa.array(in_log))
    questions = questions_of(benchmark, asked, prompt_format, facts["norm"]) if asked.num_rows else []
    unknown = (texts.texts.keys() | texts.failed) - {question.key for question in questions}
    if unknown:
        problem = f"{log.called}: no question {min(unknown)!r} in the config {facts['config']}."
        raise QabiasError(problem, "Score it with the version of qabias that asked.")
    answered = np.zeros(table.num_rows, dtype=bool)
    answered[in_log] = is_answered(questions, texts.texts, asked.num_rows)
    kept = in_whole_units(benchmark, table, answered)
    rows = table.filter(pa.array(kept))
    if not rows.num_rows:
        raise QabiasError(f"{log.called}: no set of examples is complete.", "Finish it with `inspect eval-retry`.")
    answers = answers_to(benchmark, rows, texts.texts, prompt_format, facts["norm"])
    names = [name for name in (*benchmark.answer_columns, *benchmark.optional_columns) if name in answers.column_names]
    columns = {name: rows[name] for name in benchmark.key} | {name: answers[name] for name in names}
    n_each = len(questions) // asked.num_rows
    n_begun = len({question.row for question in questions if question.key in texts.texts})
    return pa.table(columns), name, n_each, n_begun - rows.num_rows


def _figures(
    benchmark: Benchmark, log: Log, facts: Mapping[str, Any], n_answers: int, n_epochs: int
) -> tuple[ReportedScore, ...]:
    """The scores in the log (groups: "GROUP/score"), without intervals and counts."""
    # `Log.figures` has the scorer before each name.
    there = {name.partition("/")[2]: value for name, value in log.figures.items()}
    why = _why(benchmark, there.get(_ANSWERS), n_answers, n_epochs)
    names = {measure.name for measure in benchmark.facts.measures}
    figures = []
    for called, value in there.items():
        group, _, name = called.rpartition("/")
        if name not in names:
            continue
        # "" is all examples, which may be the only group: it is called as the configuration.
        path = benchmark.group_path(group or (facts["config"] if benchmark.group_path(ALL) is None else ALL))
        ours, reason = ((*path, name), why) if path is not None else ((), _NO_PLACE)
        figures.append(ReportedScore(called, value, ours, reason))
    return tuple(figures)


def _why(benchmark: Benchmark, n_there: float | None, n_here: int, n_epochs: int) -> str:
    """Why the scores there and here differ, or ""."""
    if n_epochs > 1 and benchmark.averages:
        return f"the mean over {n_epochs} epochs there, the first one here"
    if n_there is not None and n_there != n_here:
        return f"{n_there:,.0f} answers there, {n_here:,} here: sets with failed or invalid samples are excluded"
    return ""
