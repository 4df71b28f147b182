"""Scores of all texts at once, because a benchmark's scores are not means over questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark, Measure
from qabias.benchmarks.generated import answers_to, in_whole_units, is_answered, outcome_counts
from qabias.benchmarks.scoring import scores_of, stacked
from qabias.inspect_tasks.questions import TaskQuestions
from qabias.runs.question import Question
from qabias.scores.score import limited

ENDS = ("low", "high")
"""Suffixes of a score's name for the ends of its 95% interval."""
POSSIBLE = ("lowest", "highest")
"""Suffixes for its possible range if answers are missing."""


@dataclass(frozen=True)
class TaskScores:
    """The scores of a task."""

    overall: Mapping[str, float]
    by_group: Mapping[str, float]


def score_texts(asked: TaskQuestions, epochs: Sequence[Mapping[str, str]], stops: bool = False) -> TaskScores:
    """The scores of written texts; with repeated CIs if the task stops early."""
    benchmark, table = asked.benchmark, asked.table
    n_received, n_asked = sum(map(len, epochs)), len(asked.questions) * len(epochs)
    if not benchmark.averages:
        epochs = epochs[:1]
    answered = np.all([is_answered(asked.questions, texts, table.num_rows) for texts in epochs], axis=0)
    kept = in_whole_units(benchmark, table, answered)
    n_each = len(asked.questions) // table.num_rows
    n_counted = int(kept.sum()) * n_each * len(epochs)
    missing = {"left_out": n_received - n_counted, "missing": n_asked - n_received}
    if not n_counted:
        nothing = {measure.name: math.nan for measure in _compared(benchmark)}
        return TaskScores(nothing | _floats({"answers": 0, **missing}), {})
    part = table.filter(pa.array(kept))
    answers = pa.concat_tables(
        [answers_to(benchmark, part, texts, asked.prompt_format, asked.arguments.norm) for texts in epochs],
        promote_options="default",
    )
    if len(epochs) > 1:
        part = stacked(part, [str(number + 1) for number in range(len(epochs))])
    question = Question(replace(asked.examples, table=part), asked.prompt_format, "", 1)
    rules: Mapping[str, Any] = asked.arguments.rules
    if stops:
        from qabias.inspect_tasks.stopping import repeated_level

        rules = {**rules, "confidence": repeated_level(benchmark, table, kept.tolist(), asked.arguments.seed)}
    scores, _ = scores_of(question.benchmark, question.table, answers, rules)
    groups = benchmark.groups(scores)
    whole = groups.pop(ALL, None) or (next(iter(groups.values())) if len(groups) == 1 else None)
    overall = {} if whole is None else _numbers(whole, _compared(benchmark))
    counts = {"answers": n_counted, **outcome_counts(answers).get("outcomes", {}), **missing}
    by_group = {
        f"{group}/{name}": value
        for group, group_scores in (groups if len(groups) > 1 else {}).items()
        for name, value in _numbers(group_scores, benchmark.facts.chosen(benchmark.facts.tiles)).items()
    }
    return TaskScores(overall | _floats(counts), by_group)


def _compared(benchmark: Benchmark) -> tuple[Measure, ...]:
    """The scores of a comparison, and the number of missing answers."""
    names = (*benchmark.facts.compared, "unparsed_share")
    return tuple(measure for measure in benchmark.facts.measures if measure.name in names)


def _numbers(scores: Mapping[str, Any], measures: Sequence[Measure]) -> dict[str, float]:
    """Scores with two ends each; NaN if undefined."""
    numbers = {}
    for measure in measures:
        name = measure.name
        if name not in scores:
            continue
        score = limited(scores, measure)
        numbers[name] = math.nan if score.value is None else score.value
        names, ends = (ENDS, (score.low, score.high)) if score.possible is None else (POSSIBLE, score.possible)
        numbers |= {f"{name}_{which}": end for which, end in zip(names, ends, strict=True) if end is not None}
    return numbers


def _floats(counts: Mapping[str, int]) -> dict[str, float]:
    return {name: float(number) for name, number in counts.items()}
