"""Logs of qabias's own tasks in other tools: every sample names its question, so that nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.answers.outcomes import Written
from qabias.benchmarks.base import Benchmark, kept_source, make_origin
from qabias.benchmarks.given import GivenAnswers
from qabias.benchmarks.logged import Logged, OtherFigure
from qabias.benchmarks.registry import load_benchmark
from qabias.benchmarks.texts import answers_to, in_whole_units, is_answered, questions_of, written_format
from qabias.building.origin import is_bundled
from qabias.errors import QabiasError
from qabias.logs import Log, Sample

FACTS = "qabias"
"""What a sample of our tasks has in its metadata: what was asked, see `qabias.inspect_tasks.asking.Asked.facts`."""

KEY = "key"
"""Which of the facts is the key of the question."""

FINISHES = {"max_tokens": "length", "model_length": "length", "unknown": ""}
"""What inspect calls the ends of a text, where `qabias.answers.outcomes.Written` has other names."""

_NEEDED = ("benchmark", "config", "source", "texts", "fixes", "format", "norm", "orders", "seed", "options", KEY)
_TOOL = "inspect_ai"


def own_answers(log: Log, upstream_dir: str | None = None) -> tuple[str, Logged] | None:
    """The answers in a log of one of our own tasks, with the name of its benchmark.

    The texts are read once more, as in a run.

    Args:
        log: The log.
        upstream_dir: Local mirror of the published files.

    Returns:
        None where the log is of another task.

    Raises:
        QabiasError: If a fact is missing, the texts or the prompts of the benchmark have changed since, or a question
            does not exist.
    """
    if log.tool != _TOOL:
        return None
    first = next(iter(log.samples()), None)
    facts = None if first is None else _facts(first)
    if facts is None or "benchmark" not in facts:
        return None
    missing = [name for name in _NEEDED if name not in facts]
    if missing:
        raise QabiasError(f"{log.called}: its samples lack {', '.join(missing)} in their metadata {FACTS!r}")
    benchmark = load_benchmark(facts["benchmark"])
    found = _texts(log, benchmark)
    given, n_in_part = _read(log, benchmark, facts, found, upstream_dir)
    notes = []
    if facts["orders"] > 1:
        notes.append(f"Asked in {facts['orders']} orders of the answers; what most of them say counts.")
    if found.n_more:
        notes.append(f"The first answer to every question counts; {found.n_more:,} of further epochs are left out.")
    if n_in_part:
        notes.append(f"{n_in_part:,} examples are left out, because other questions of their sets have no answer.")
    if found.failed:
        notes.append(f"{len(found.failed):,} questions have no answer, because they failed.")
    return benchmark.name, Logged(
        given,
        facts["config"],
        options=facts["options"],
        seed=facts["seed"],
        fixes=facts["fixes"],
        figures=_figures(benchmark, log),
        notes=tuple(notes),
    )


def _facts(sample: Sample) -> Mapping[str, Any] | None:
    """What our task says of a sample; None where it is of another one."""
    facts = (sample.asked.get("metadata") or {}).get(FACTS)
    return facts if isinstance(facts, Mapping) else None


@dataclass
class _Found:
    """What came back: texts by key of the question, keys of the examples, failed questions, and answers left out."""

    texts: dict[str, str] = field(default_factory=dict)
    examples: set[tuple[Any, ...]] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    n_more: int = 0


def _texts(log: Log, benchmark: Benchmark) -> _Found:
    found = _Found()
    for sample in log.samples():
        facts, example = _facts(sample), sample.asked.get("metadata") or {}
        if facts is None or KEY not in facts or any(name not in example for name in benchmark.key):
            raise QabiasError(f"{log.called}: {sample.where} does not name its question in the metadata")
        key = facts[KEY]
        found.examples.add(tuple(example[name] for name in benchmark.key))
        if sample.error or sample.text is None:
            found.failed.add(key)
        elif key in found.texts:
            found.n_more += 1
        else:
            finish = FINISHES.get(sample.finish, sample.finish)
            found.texts[key] = Written(sample.text, finish, sample.thinking)
    found.failed -= found.texts.keys()
    return found


def _read(
    log: Log, benchmark: Benchmark, facts: Mapping[str, Any], found: _Found, upstream_dir: str | None
) -> tuple[GivenAnswers, int]:
    """The answers in whole sets, and the number of examples that are left out for what their sets lack."""
    seed = 0 if is_bundled(facts["source"]) else facts["seed"]
    source = kept_source(benchmark, facts["source"], facts["texts"])
    origin = make_origin(benchmark, source, seed, facts["fixes"], upstream_dir, facts["options"])
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
    n_begun = len({question.row for question in questions if question.key in found.texts})
    return GivenAnswers(
        "", name, facts["norm"], kept_source(benchmark, facts["source"], facts["texts"]), pa.table(columns)
    ), n_begun - rows.num_rows


def _figures(benchmark: Benchmark, log: Log) -> tuple[OtherFigure, ...]:
    """The scores that the log has, which are the same quantities; `Log.figures` has the scorer before each name."""
    of_name = {name.rpartition("/")[2]: value for name, value in log.figures.items() if name.count("/") == 1}
    names = [measure.name for measure in benchmark.facts.measures]
    return tuple(OtherFigure(name, of_name[name], (name,)) for name in names if name in of_name)
