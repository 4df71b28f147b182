"""What benchmarks have in common in reading logs of lm-evaluation-harness: answers, figures, and tasks of this project.

The tasks of `integrations/lm_eval` say in their metadata which benchmark and prompt format they ask. Their documents
have the columns of the benchmark, and their options its order of answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.answers.likelihoods import NO_ANSWER, NORMS, OptionScores, best_option, probability_column
from qabias.answers.outcomes import OUTCOMES
from qabias.benchmarks.given import GivenAnswers
from qabias.benchmarks.logged import Logged, OtherFigure
from qabias.errors import QabiasError
from qabias.logs.lm_eval_samples import TOOL
from qabias.logs.written import as_written

if TYPE_CHECKING:
    from qabias.benchmarks.base import Benchmark
    from qabias.logs import Log, Sample

_OURS = "qabias"
"""Under this name the metadata of a task says what it asks."""

_SAID = ("config", "source", "format", "norm")
"""What a task says of its texts and prompts beside the benchmark."""

_PROBABILITIES = "probabilities"
"""The column of benchmarks that score how likely each answer is."""


def first_document(log: Log) -> Mapping[str, Any]:
    """The first document of a log of the harness; empty in a log of another tool, or without a document."""
    sample = next(iter(log.samples()), None) if log.tool == TOOL else None
    return document(sample) if sample is not None else {}


def document(sample: Sample) -> Mapping[str, Any]:
    """The document of a sample: a row of the task's dataset, and what the task adds to it."""
    found = sample.asked["doc"]
    return found if isinstance(found, Mapping) else {}


def column(log: Log, sample: Sample, name: str) -> Any:
    """A value of the document of a sample."""
    if name not in document(sample):
        raise QabiasError(f"{log.called}: {sample.where}: its document has no {name}, by which its example is found")
    value = document(sample)[name]
    if not isinstance(value, str | int | float | None):
        raise QabiasError(f"{log.called}: {sample.where}: {name} is {value!r}, which is no text and no number")
    return value


def of_sample(log: Log, sample: Sample) -> AbstractContextManager[None]:
    """What names a sample whose values are not of the kind that the harness writes; see `as_written`."""
    return as_written(f"{log.called}: {sample.where}", TOOL)


def of_log(log: Log) -> AbstractContextManager[None]:
    """The same for all samples together, of which one may have a text where the others have a number."""
    return as_written(log.called, TOOL)


def likeliest(loglikelihoods: Sequence[float], answer_of: Sequence[int]) -> int:
    """The answer that the likeliest option gives."""
    best = max(loglikelihoods)
    answers = {answer for value, answer in zip(loglikelihoods, answer_of, strict=True) if value == best}
    is_known = len(answers) == 1 and not any(map(math.isnan, loglikelihoods))
    return answers.pop() if is_known else NO_ANSWER


def about_ties(n: int) -> list[str]:
    """A sentence about questions without a likeliest answer, where there are any."""
    if not n:
        return []
    return [f"{n:,} questions have no answer: options of two answers were equally likely, or no number (NaN)."]


def columns_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    """Some columns of rows, those that all of them have."""
    return {name: [row[name] for row in rows] for name in names if all(name in row for row in rows)}


def own_task(
    log: Log, benchmark: Benchmark, hints: Mapping[str, str], document_columns: Iterable[str]
) -> Mapping[str, Any] | None:
    """What a task of this project says that it asks; None where the log is of another task or benchmark."""
    if log.tool != TOOL:
        return None
    asked = ((log.about.get("config") or {}).get("metadata") or {}).get(_OURS)
    if isinstance(asked, Mapping):
        return _said(log, benchmark, asked, hints) if asked.get("benchmark") == benchmark.name else None
    if not set(document_columns) <= first_document(log).keys():
        return None
    if hints.get("benchmark") == benchmark.name and hints.get("format"):
        return hints
    raise QabiasError(
        f"{log.called}: its documents are examples of qabias, but which benchmark and which prompt format the task "
        "asked is not known: that stands in results_*.json (configs, metadata, qabias), which must be beside it with "
        "the date of its name; tasks of integrations/lm_eval say it. Or name them by --benchmark and --format"
    )


def _said(log: Log, benchmark: Benchmark, asked: Mapping[str, Any], hints: Mapping[str, str]) -> Mapping[str, Any]:
    """What the metadata of a task and its dataset say, and what the caller says of the rest."""
    name = (log.about.get("config") or {}).get("dataset_name")
    of_dataset = {"config": name} if name in benchmark.configs else {}
    said = {name: asked[name] for name in _SAID if asked.get(name)}
    options = asked.get("options") or {}
    values = [*said.values(), *(options.values() if isinstance(options, Mapping) else [options])]
    if not all(isinstance(value, str) for value in values):
        raise QabiasError(f"{log.called}: what its metadata {_OURS!r} say is not as its task writes it: {dict(asked)}")
    return {**{name: hints[name] for name in _SAID if hints.get(name)}, **of_dataset, **said, "options": options}


def own_answers(
    log: Log,
    benchmark: Benchmark,
    hints: Mapping[str, str],
    document_columns: Iterable[str],
    references: Iterable[str],
    of_set: tuple[str, int],
) -> Logged | None:
    """The answers in a log of a task of this project that asks one question about an example."""
    import pyarrow as pa

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
            answer = sample.text if sample.text is not None else _best(sample.loglikelihoods)
            sets.append((column(log, sample, set_column), document(sample).get("set_size", set_size)))
            counts[sets[-1]] += 1
            kept = {name: column(log, sample, name) for name in names}
        rows.append({**kept, "prediction": answer, _PROBABILITIES: sample.loglikelihoods})
    whole = [row for row, (name, size) in zip(rows, sets, strict=True) if counts[name, size] == size]
    if not whole:
        raise QabiasError(f"{log.called}: no set of examples is whole; ask more of them (--limit)")
    likely = [row[_PROBABILITIES] for row in whole]
    with of_log(log):
        references_found = pa.table(columns_of(whole, names))
        given = columns_of(whole, (*benchmark.key, "prediction"))
        if all(likely) and _PROBABILITIES in benchmark.optional_columns:
            given[_PROBABILITIES] = _probabilities(likely)
        answers = pa.table(given)
    return Logged(
        given=given_of(log, benchmark, asked, answers),
        config=str(asked.get("config") or benchmark.configs[-1]),
        options=asked.get("options") or {},
        references=references_found,
        figures=own_figures(log),
        notes=(*about_parts(len(rows) - len(whole)), *first_of_several(n_samples, len(rows))),
    )


def about_parts(n: int) -> list[str]:
    """A sentence about examples whose sets are not whole, where there are any."""
    return [f"{n:,} examples are left out because their sets are not whole, as by the task."] if n else []


def given_of(log: Log, benchmark: Benchmark, asked: Mapping[str, Any], answers: Any) -> GivenAnswers:
    """Answers to a task of this project."""
    source = asked.get("source") or benchmark.sources[0]
    return GivenAnswers(log.model, asked.get("format", ""), asked.get("norm", "none"), source, answers)


def own_figures(log: Log, *path: str) -> tuple[OtherFigure, ...]:
    """The scores that a task of this project printed, beside the same ones here."""
    outcomes = {f"{name}_share" for name in OUTCOMES}
    return tuple(
        OtherFigure(name, value, why="counted under `outcomes` here")
        if name in outcomes
        else OtherFigure(name, value, (*path, name))
        for name, value in log.figures.items()
    )


def first_of_several(n_samples: int, n_examples: int) -> tuple[str, ...]:
    """A sentence where questions were answered several times."""
    if n_samples == n_examples:
        return ()
    return (f"Of {n_samples:,} answers to {n_examples:,} questions the first to each is scored, as by the harness.",)


def _best(loglikelihoods: Sequence[float]) -> int:
    values = np.array(loglikelihoods)
    sizes = np.ones(len(values), dtype=np.int32)  # read by other norms only
    return best_option(OptionScores(values, sizes, sizes), NORMS[0])


def _probabilities(likely: Sequence[Sequence[float]]) -> Any:
    """The probabilities of the options of every question, as a run keeps them."""
    import pyarrow as pa

    sizes = pa.array([[1] * len(of) for of in likely])  # read by other norms only
    return probability_column({"loglikelihoods": pa.array(likely), "n_tokens": sizes, "n_bytes": sizes}, NORMS[0])
