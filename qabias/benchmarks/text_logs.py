"""Answers that are texts: results of a service's batch, and logs of qabias's own tasks in inspect."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.answers.outcomes import FILTERED, NO_ANSWER, TRUNCATED, Written, outcome
from qabias.benchmarks.base import Benchmark, External, ReportedScore, make_origin
from qabias.benchmarks.generated import answers_to, in_whole_units, is_answered, questions_of, written_format
from qabias.benchmarks.prompt_format import choose_format
from qabias.benchmarks.registry import load_benchmark
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError, at_place
from qabias.logs import Log, Sample
from qabias.logs.inspect_eval import TOOL as INSPECT
from qabias.scores.facts import ALL
from qabias.support.arrow import rows_near

_OTHERS = re.compile(r"[^0-9a-z]+")
_HASH = re.compile(r"[0-9a-f]{64}")
_AMBIGUOUS = -1
_NAMED = 3


def batched(benchmark: Benchmark, log: Log, asked: Mapping[str, Any]) -> External:
    """The answers of a batch to the examples of a benchmark whose answers are texts."""
    if tuple(benchmark.answer_columns) != ("prediction",):
        raise QabiasError(
            f"{log.path}: {benchmark.name} needs {', '.join(benchmark.answer_columns)}, and batch results have texts.",
            f"Run it with a local model, or score a table with these columns: qabias list {benchmark.name}.",
        )
    stated = {name: asked[name] for name in ("config", "source", "norm", "seed", "fixes", "options") if name in asked}
    external = External(pa.table({}), benchmark.name, config=benchmark.configs[-1], source=benchmark.sources[0])
    external = replace(external, **stated)
    prompt_format = choose_format(benchmark.formats, asked["format"]) if "format" in asked else None
    benchmark.check_config(external.config)
    origin = make_origin(benchmark, external.source, external.seed, external.fixes, external.options)
    table = benchmark.load(external.config, origin)
    by_row, failures = _by_row(log, _rows_by_id(benchmark, table), benchmark.key)
    if not by_row:
        first = next(iter(failures.values()), "it is empty")
        problem = f"{log.path}: all {len(failures):,} requests failed; the first: {first.rstrip('.')}."
        raise QabiasError(problem, "Fix the cause, then send the requests again.")
    rows = sorted(by_row.keys() | failures)
    texts = [by_row.get(row) for row in rows]
    examples = table.take(pa.array(rows, pa.int64()))
    answers = pa.table({"prediction": pa.array(texts, pa.string())})
    if "outcome" in benchmark.optional_columns:
        with at_place(log.path):
            answers = _with_outcomes(benchmark.read_given(examples, answers, prompt_format, external.norm), texts)
    for name in reversed(benchmark.key):
        answers = answers.add_column(0, name, examples[name])
    assumed = f"Results do not name the source of the texts. qabias assumes {external.source} (--source)."
    notes = () if "source" in asked else (assumed,)
    return replace(external, answers=answers, format=prompt_format.name if prompt_format else "", notes=notes)


def _by_row(log: Log, row_of: Mapping[str, int], key: Sequence[str]) -> tuple[dict[int, Written], dict[int, str]]:
    """The texts by the row of their example, and the failures of the other rows."""
    texts: dict[int, Written] = {}
    failures: dict[int, str] = {}
    strangers = []
    for sample in log.samples():
        metadata = sample.asked.get("metadata") or {}
        name = str(sample.asked.get("custom_id") or "/".join(str(metadata.get(part)) for part in key))
        row = row_of.get(_plain(name))
        if row is None:
            strangers.append(name)
        elif row == _AMBIGUOUS:
            problem = f"{log.path}: {sample.where}: the custom_id {name!r} fits several examples."
            raise QabiasError(problem, "Use the full key of the example.")
        elif sample.error:
            failures[row] = sample.error
        elif row in texts:
            problem = f"{log.path}: {sample.where}: a second answer to {name!r}."
            raise QabiasError(problem, "Send each request once, without n.")
        else:
            texts[row] = Written(sample.text or "", FINISHES.get(sample.finish, sample.finish), sample.thinking)
    if strangers:
        raise _unknown_names(log, strangers, row_of)
    return texts, {row: why for row, why in failures.items() if row not in texts}


def _rows_by_id(benchmark: Benchmark, table: pa.Table) -> dict[str, int]:
    """The row of every example by each spelling of its key, `_AMBIGUOUS` if two share one."""
    columns = {name: table[name].to_pylist() for name in benchmark.key}
    # A key may omit a part that all examples share.
    varying = [name for name in benchmark.key if len(set(columns[name])) > 1] or list(benchmark.key)
    row_of: dict[str, int] = {}
    for names in dict.fromkeys((tuple(benchmark.key), tuple(varying))):
        for row, key in enumerate(zip(*(columns[name] for name in names), strict=True)):
            for parts in (key, (benchmark.name, *key)):
                written = _plain("/".join(map(str, parts)))
                row_of[written] = row if row_of.get(written, row) == row else _AMBIGUOUS
    return row_of


def _plain(name: str) -> str:
    """A `custom_id` or key without case and separators."""
    return _OTHERS.sub("/", name.lower()).strip("/")


def _unknown_names(log: Log, strangers: Sequence[str], row_of: Mapping[str, int]) -> QabiasError:
    """The error for names of no example."""
    if all(_HASH.fullmatch(name) for name in strangers):
        return QabiasError(
            f"{log.path}: answers to requests that qabias wrote.",
            f"Rerun the qabias run command that wrote them, with --option batch=read={log.path}.",
        )
    shown = ", ".join(map(repr, strangers[:_NAMED])) + (", ..." if len(strangers) > _NAMED else "")
    return QabiasError(
        f"{log.path}: unknown custom_id in this config and source ({len(strangers):,} in all): {shown}.",
        f"Use the keys of examples, such as {', '.join(map(repr, list(row_of)[:1]))}.",
    )


def _with_outcomes(read: pa.Table, texts: Sequence[Written | None]) -> pa.Table:
    """Parsed answers with the service's reason for those that are missing."""
    became = read["outcome"].to_pylist()
    for row, (text, place) in enumerate(zip(texts, read["prediction"].to_pylist(), strict=True)):
        if text is None:
            became[row] = None
        elif place is None or place == NO_ANSWER:
            ended = outcome(text, NO_ANSWER)
            became[row] = ended if ended in (TRUNCATED, FILTERED) else became[row]
    outputs = [None if text is None else [str(text)] for text in texts]
    read = read.set_column(read.column_names.index("outcome"), "outcome", pa.array(became, pa.string()))
    return read.set_column(read.column_names.index("outputs"), "outputs", pa.array(outputs, pa.list_(pa.string())))


# Logs of qabias's own tasks in inspect

FACTS = "qabias"
"""The key of a sample's metadata that describes its question (`qabias.inspect_tasks.questions.TaskQuestions.facts`)."""

KEY = "key"
"""The fact with the key of the question."""

UNTIL = "until"
"""The fact with the conditions of a task that stops early."""

FINISHES = {"max_tokens": "length", "model_length": "length", "unknown": ""}
"""Names in inspect for the ends of a text, if `qabias.answers.outcomes.Written` has others."""

_ANSWERS = "answers"
"""The number of answers that count, among the scores of qabias tasks."""


def read_inspect(log: Log) -> External | None:
    """The answers in an inspect log of a qabias task, or None."""
    if log.tool != INSPECT:
        return None
    first = next(iter(log.samples()), None)
    facts = None if first is None else _facts(first)
    if facts is None or "benchmark" not in facts:
        return None
    benchmark = load_benchmark(facts["benchmark"])
    texts = _texts(log, benchmark)
    answers, prompt_format, n_each, n_in_part = _answers(log, benchmark, facts, texts)
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
class _Texts:
    """Texts and failures of a log."""

    by_key: dict[str, str] = field(default_factory=dict)
    examples: set[tuple[Any, ...]] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    n_more: int = 0
    n_epochs: int = 1


def _texts(log: Log, benchmark: Benchmark) -> _Texts:
    texts = _Texts()
    for sample in log.samples():
        facts, metadata = _facts(sample), sample.asked.get("metadata") or {}
        if facts is None or not isinstance(facts.get(KEY), str) or any(name not in metadata for name in benchmark.key):
            raise QabiasError(f"{log.called}: {sample.where} lacks the key of its question.", "Ask with a qabias task.")
        key = facts[KEY]
        texts.examples.add(tuple(metadata[name] for name in benchmark.key))
        texts.n_epochs = max(texts.n_epochs, sample.run)
        if sample.error or sample.text is None:
            texts.failed.add(key)
        elif key in texts.by_key:
            texts.n_more += 1
        else:
            finish = FINISHES.get(sample.finish, sample.finish)
            texts.by_key[key] = Written(sample.text, finish, sample.thinking)
    texts.failed -= texts.by_key.keys()
    return texts


def _answers(log: Log, benchmark: Benchmark, facts: Mapping[str, Any], texts: _Texts) -> tuple[pa.Table, str, int, int]:
    """The answers in whole sets, their format, the questions per example, and the examples in incomplete sets."""
    seed = 0 if facts["source"] == BUNDLED else facts["seed"]
    origin = make_origin(benchmark, facts["source"], seed, facts["fixes"], facts["options"])
    name = facts["format"].partition("@")[0]
    prompt_format = written_format(benchmark, name, facts["orders"], origin)
    for what, version in {"texts": origin.version, "format": prompt_format.signature}.items():
        if facts[what] != version:
            raise QabiasError(
                f"{log.called}: its {what} have changed since ({facts[what]} then, {version} now).",
                f"Score it with the version of qabias that asked: {facts.get('version', 'not in the log')}.",
            )
    table = benchmark.load(facts["config"], origin)
    near = rows_near(table, benchmark.key, texts.examples)
    columns_near = table.select(benchmark.key).take(pa.array(near))
    keys = zip(*(columns_near[name].to_pylist() for name in benchmark.key), strict=True)
    in_log = np.zeros(table.num_rows, dtype=bool)
    in_log[near] = [key in texts.examples for key in keys]
    asked = table.filter(pa.array(in_log))
    questions = questions_of(benchmark, asked, prompt_format, facts["norm"]) if asked.num_rows else []
    unknown = (texts.by_key.keys() | texts.failed) - {question.key for question in questions}
    if unknown:
        problem = f"{log.called}: no question {min(unknown)!r} in the config {facts['config']}."
        raise QabiasError(problem, "Score it with the version of qabias that asked.")
    answered = np.zeros(table.num_rows, dtype=bool)
    answered[in_log] = is_answered(questions, texts.by_key, asked.num_rows)
    rows = table.filter(pa.array(in_whole_units(benchmark, table, answered)))
    if not rows.num_rows:
        raise QabiasError(f"{log.called}: no set of examples is complete.", "Finish it with `inspect eval-retry`.")
    answers = answers_to(benchmark, rows, texts.by_key, prompt_format, facts["norm"])
    names = [name for name in (*benchmark.answer_columns, *benchmark.optional_columns) if name in answers.column_names]
    columns = {name: rows[name] for name in benchmark.key} | {name: answers[name] for name in names}
    n_begun = len({question.row for question in questions if question.key in texts.by_key})
    return pa.table(columns), name, len(questions) // asked.num_rows, n_begun - rows.num_rows


def _figures(
    benchmark: Benchmark, log: Log, facts: Mapping[str, Any], n_answers: int, n_epochs: int
) -> tuple[ReportedScore, ...]:
    """The scores in the log (groups: "GROUP/score"), without intervals and counts."""
    # `Log.figures` has the scorer before each name.
    there = {name.partition("/")[2]: value for name, value in log.figures.items()}
    n_there, why = there.get(_ANSWERS), ""
    if n_epochs > 1 and benchmark.averages:
        why = f"the mean over {n_epochs} epochs there, the first one here"
    elif n_there is not None and n_there != n_answers:
        why = f"{n_there:,.0f} answers there, {n_answers:,} here: sets with failed or invalid samples are excluded"
    names = {measure.name for measure in benchmark.facts.measures}
    figures = []
    for called, value in there.items():
        group, _, name = called.rpartition("/")
        if name not in names:
            continue
        # "" is all examples, which may be the only group: it is called as the configuration.
        path = benchmark.group_path(group or (facts["config"] if benchmark.group_path(ALL) is None else ALL))
        has_none = ReportedScore(called, value, (), "this score has no counterpart here")
        figures.append(has_none if path is None else ReportedScore(called, value, (*path, name), why))
    return tuple(figures)
