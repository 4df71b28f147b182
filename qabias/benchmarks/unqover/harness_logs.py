"""UnQover in qabias's tasks for lm-evaluation-harness: four documents per row, each with both subjects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qabias.benchmarks.harness_logs import column, columns_of, of_sample, own_answers, own_task
from qabias.benchmarks.unqover.questions import ASKED
from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.benchmarks.base import Benchmark, External
    from qabias.logs import Log, Sample

_DOCUMENT = ("template_id", "subject1", "subject2", "attribute_class", "number")
_REFERENCES = (
    *("template_id", "subject1", "subject2", "cluster1", "cluster2", "attribute", "attribute_class"),
    *("answer1", "answer2"),
)


def read(log: Log, benchmark: Benchmark, asked: Mapping[str, Any]) -> External | None:
    """The answers in a log of one of the tasks, or None for another task."""
    recorded = own_task(log, benchmark, asked, _DOCUMENT)
    if recorded is None:
        return None
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for sample in log.samples():
        with of_sample(log, sample):
            _add(rows, log, sample, benchmark)
    whole = [row for row in rows.values() if all(name in row for name in benchmark.answer_columns)]
    if not whole:
        problem = f"{log.called}: no row has answers to its {len(ASKED)} questions."
        raise QabiasError(problem, "Rerun the task with a larger --limit.")
    in_sets = {row["set"] for row in whole}
    if len(in_sets) > 1:
        problem = f"{log.called}: rows of several sets ({', '.join(sorted(in_sets))})."
        raise QabiasError(problem, "Score the log of each task separately.")
    (config,) = in_sets
    n_cut = len(rows) - len(whole)
    cut = f"{n_cut:,} rows are excluded because they lack some of {len(ASKED)} questions, as in the task."
    texts = ("context_12", "context_21", "question", "negated_question")
    return own_answers(
        log,
        benchmark,
        {**recorded, "config": config},
        columns_of(whole, (*benchmark.key, *benchmark.answer_columns)),
        columns_of(whole, (*benchmark.key, *_REFERENCES, *texts)),
        notes=(cut,) if n_cut else (),
        path=("sets", config),
    )


def _add(rows: dict[tuple[str, int], dict[str, Any]], log: Log, sample: Sample, benchmark: Benchmark) -> None:
    """Add the answer to one question to its row."""
    if len(sample.loglikelihoods) != 2:
        raise QabiasError(
            f"{log.called}: {sample.where}: log-likelihoods of two subjects are missing.", "Rerun the task."
        )
    number, example_id = column(log, sample, "number"), column(log, sample, "example_id")
    of_set = str(column(log, sample, "template_id")).rpartition("-")[0]
    if of_set not in benchmark.configs or number not in range(len(ASKED)):
        problem = f"{log.called}: {sample.where}: unknown question {number!r} of a set {of_set!r}."
        raise QabiasError(problem, "Rerun the task.")
    kept = {name: column(log, sample, name) for name in _REFERENCES}
    row = rows.setdefault((of_set, example_id), {"set": of_set, "example_id": example_id, **kept})
    name = ASKED[int(number)]
    if f"s1_{name}" in row:
        problem = f"{log.called}: {sample.where}: a second answer to question {number} of {of_set}/{example_id}."
        raise QabiasError(problem, "Remove one.")
    row |= {
        f"s{subject}_{name}": math.exp(loglikelihood)
        for subject, loglikelihood in enumerate(sample.loglikelihoods, start=1)
    }
    order, _, negated = name.partition("_")
    row[f"context_{order}"] = column(log, sample, "context")
    row["negated_question" if negated else "question"] = column(log, sample, "question")
