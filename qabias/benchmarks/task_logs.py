"""Logs of qabias's own tasks in lm-evaluation-harness and inspect: questions, answers and scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.answers.likelihoods import NO_ANSWER, NORMS, probability_column
from qabias.answers.outcomes import OUTCOMES, Written
from qabias.benchmarks.base import Benchmark, ExternalAnswers, Logged, OtherFigure, make_origin
from qabias.benchmarks.facts import ALL
from qabias.benchmarks.generated import answers_to, in_whole_units, is_answered, questions_of, written_format
from qabias.benchmarks.registry import load_benchmark
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError
from qabias.logs import Log, Sample
from qabias.logs.inspect_eval import TOOL as INSPECT
from qabias.logs.lm_eval_samples import TOOL
from qabias.logs.model import as_written

_OURS = "qabias"
"""The key of a task's metadata that describes its questions."""

_SAID = ("config", "source", "format", "norm")
"""What a task records of its texts and prompts."""

_PROBABILITIES = "probabilities"


def first_document(log: Log) -> Mapping[str, Any]:
    """The first document of a harness log; empty for another tool, or without a document."""
    sample = next(iter(log.samples()), None) if log.tool == TOOL else None
    return document(sample) if sample is not None else {}


def document(sample: Sample) -> Mapping[str, Any]:
    """The document of a sample: a row of the task's dataset, with additions by the task."""
    row = sample.asked["doc"]
    return row if isinstance(row, Mapping) else {}


def column(log: Log, sample: Sample, name: str) -> Any:
    """A value of a sample's document."""
    if name not in document(sample):
        raise QabiasError(
            f"{log.called}: {sample.where}: its document lacks {name}.", "Ask with a task of integrations/lm_eval."
        )
    value = document(sample)[name]
    if not isinstance(value, str | int | float | None):
        raise QabiasError(
            f"{log.called}: {sample.where}: {name} is {value!r}, not a text or number.", "Repair the sample."
        )
    return value


def of_sample(log: Log, sample: Sample) -> AbstractContextManager[None]:
    """Context that names the sample in errors about its values, see `as_written`."""
    return as_written(f"{log.called}: {sample.where}", TOOL)


def likeliest(loglikelihoods: Sequence[float], answer_of: Sequence[int]) -> int:
    """The answer of the likeliest option, or `NO_ANSWER` for a tie."""
    best = max(loglikelihoods)
    answers = {answer for value, answer in zip(loglikelihoods, answer_of, strict=True) if value == best}
    is_known = len(answers) == 1 and not any(map(math.isnan, loglikelihoods))
    return answers.pop() if is_known else NO_ANSWER


def about_ties(n: int) -> list[str]:
    """A sentence about questions without a likeliest answer, if any."""
    if not n:
        return []
    return [f"{n:,} questions have no answer: two options were equally likely, or NaN."]


def columns_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    """The columns that all rows have."""
    return {name: [row[name] for row in rows] for name in names if all(name in row for row in rows)}


def own_task(
    log: Log, benchmark: Benchmark, hints: Mapping[str, str], document_columns: Iterable[str]
) -> Mapping[str, Any] | None:
    """What a qabias task records of its questions, or None for a log of another task or benchmark."""
    if log.tool != TOOL:
        return None
    asked = ((log.settings.get("config") or {}).get("metadata") or {}).get(_OURS)
    if isinstance(asked, Mapping):
        return _said(log, benchmark, asked, hints) if asked.get("benchmark") == benchmark.name else None
    if not set(document_columns) <= first_document(log).keys():
        return None
    if hints.get("benchmark") == benchmark.name and hints.get("format"):
        return hints
    raise QabiasError(
        f"{log.called}: the benchmark and the prompt format are unknown: no results_*.json with the same date.",
        "Put that file next to the log, or add --benchmark and --format.",
    )


def _said(log: Log, benchmark: Benchmark, asked: Mapping[str, Any], hints: Mapping[str, str]) -> Mapping[str, Any]:
    """A task's metadata, completed by its dataset and the caller's hints."""
    name = (log.settings.get("config") or {}).get("dataset_name")
    of_dataset = {"config": name} if name in benchmark.configs else {}
    said = {name: asked[name] for name in _SAID if asked.get(name)}
    options = asked.get("options") or {}
    values = [*said.values(), *(options.values() if isinstance(options, Mapping) else [options])]
    if not all(isinstance(value, str) for value in values):
        problem = f"{log.called}: its metadata {_OURS!r} has values other than texts: {dict(asked)}."
        raise QabiasError(problem, "Restore the metadata that the task wrote.")
    return {**{name: hints[name] for name in _SAID if hints.get(name)}, **of_dataset, **said, "options": options}


def harness_answers(
    log: Log,
    benchmark: Benchmark,
    hints: Mapping[str, str],
    document_columns: Iterable[str],
    references: Iterable[str],
    of_set: tuple[str, int],
) -> Logged | None:
    """The answers in a harness log of a qabias task with one question per example."""
    asked = own_task(log, benchmark, hints, document_columns)
    if asked is None:
        return None
    names = [*benchmark.key, *references]
    set_column, set_size = of_set
    rows, sets, n_samples = [], [], 0
    counts: Counter[tuple[Any, Any]] = Counter()
    for sample in log.samples():
        n_samples += 1
        if sample.run > 1:
            continue
        with of_sample(log, sample):
            values = sample.loglikelihoods
            answer = sample.text if sample.text is not None else likeliest(values, range(len(values)))
            sets.append((column(log, sample, set_column), document(sample).get("set_size", set_size)))
            counts[sets[-1]] += 1
            kept = {name: column(log, sample, name) for name in names}
        rows.append({**kept, "prediction": answer, _PROBABILITIES: sample.loglikelihoods})
    whole = [row for row, (name, size) in zip(rows, sets, strict=True) if counts[name, size] == size]
    if not whole:
        raise QabiasError(f"{log.called}: no set of examples is complete.", "Rerun the task with a larger --limit.")
    n_cut = len(rows) - len(whole)
    cut = f"{n_cut:,} examples are excluded because their sets are incomplete, as in the task."
    likely = [row[_PROBABILITIES] for row in whole]
    columns = columns_of(whole, (*benchmark.key, "prediction"))
    if all(likely) and _PROBABILITIES in benchmark.optional_columns:
        columns[_PROBABILITIES] = _probabilities(likely)
    return Logged(
        external=given_of(log, benchmark, asked, pa.table(columns)),
        config=str(asked.get("config") or benchmark.configs[-1]),
        options=asked.get("options") or {},
        references=pa.table(columns_of(whole, names)),
        figures=own_figures(log),
        notes=((cut,) if n_cut else ()) + first_of_several(n_samples, len(rows)),
    )


def given_of(log: Log, benchmark: Benchmark, asked: Mapping[str, Any], answers: Any) -> ExternalAnswers:
    """Answers to a qabias task."""
    source = asked.get("source") or benchmark.sources[0]
    return ExternalAnswers(log.model, asked.get("format", ""), asked.get("norm", "none"), source, answers)


def own_figures(log: Log, *path: str) -> tuple[OtherFigure, ...]:
    """The scores that a qabias task printed, with their names here."""
    outcomes = {f"{name}_share" for name in OUTCOMES}
    return tuple(
        OtherFigure(name, value, why="counted under `outcomes` here")
        if name in outcomes
        else OtherFigure(name, value, (*path, name))
        for name, value in log.figures.items()
    )


def first_of_several(n_samples: int, n_examples: int) -> tuple[str, ...]:
    """A sentence if questions were answered several times."""
    if n_samples == n_examples:
        return ()
    return (f"{n_samples:,} answers to {n_examples:,} questions: the first to each is scored, as in the harness.",)


def _probabilities(likely: Sequence[Sequence[float]]) -> Any:
    """The probabilities of the options of every question, as a run keeps them."""
    sizes = pa.array([[1] * len(one) for one in likely])  # read by other norms only
    return probability_column({"loglikelihoods": pa.array(likely), "n_tokens": sizes, "n_bytes": sizes}, NORMS[0])


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


def own_answers(log: Log) -> tuple[str, Logged] | None:
    """The answers in an inspect log of a qabias task, with the name of its benchmark."""
    if log.tool != INSPECT:
        return None
    first = next(iter(log.samples()), None)
    facts = None if first is None else _facts(first)
    if first is None or facts is None or "benchmark" not in facts:
        return None
    benchmark = load_benchmark(facts["benchmark"])
    texts = _texts(log, benchmark)
    external, n_each, n_in_part = _read(log, benchmark, facts, texts)
    notes = []
    if facts.get(UNTIL):
        notes.append(f"The task stopped early ({facts[UNTIL]}). These CIs ignore the looks: read those in the log.")
    if facts["orders"] > 1:
        notes.append(f"Asked in {facts['orders']} answer orders; the majority counts.")
    if texts.n_more:
        notes.append(f"The first answer to every question counts; {texts.n_more:,} from further epochs are excluded.")
    if n_in_part:
        notes.append(f"{n_in_part:,} examples are excluded because their sets lack answers.")
    return benchmark.name, Logged(
        external,
        facts["config"],
        options=facts["options"],
        seed=facts["seed"],
        fixes=facts["fixes"],
        figures=_figures(benchmark, log, facts, len(external.answers) * n_each, texts.n_epochs),
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


def _read(log: Log, benchmark: Benchmark, facts: Mapping[str, Any], texts: _Found) -> tuple[ExternalAnswers, int, int]:
    """The answers in whole sets, the questions per example, and the number of examples in incomplete sets."""
    seed = 0 if facts["source"] == BUNDLED else facts["seed"]
    origin = make_origin(benchmark, facts["source"], seed, facts["fixes"], facts["options"])
    name = facts["format"].partition("@")[0]
    prompt_format = written_format(benchmark, name, facts["orders"])
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
    return ExternalAnswers("", name, facts["norm"], facts["source"], pa.table(columns)), n_each, n_begun - rows.num_rows


def _figures(
    benchmark: Benchmark, log: Log, facts: Mapping[str, Any], n_answers: int, n_epochs: int
) -> tuple[OtherFigure, ...]:
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
        figures.append(OtherFigure(called, value, ours, reason))
    return tuple(figures)


def _why(benchmark: Benchmark, n_there: float | None, n_here: int, n_epochs: int) -> str:
    """Why the scores there and here differ, or ""."""
    if n_epochs > 1 and benchmark.averages:
        return f"the mean over {n_epochs} epochs there, the first one here"
    if n_there is not None and n_there != n_here:
        return f"{n_there:,.0f} answers there, {n_here:,} here: sets with failed or invalid samples are excluded"
    return ""
