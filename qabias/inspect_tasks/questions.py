"""The questions of a task with the log facts that identify them, and the scores of all its texts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import ANSWERED
from qabias.benchmarks import ALL, Benchmark, Measure, PromptFormat, load_benchmark
from qabias.benchmarks.base import whole_config
from qabias.benchmarks.generated import (
    AskedText,
    answers_to,
    in_whole_units,
    is_answered,
    outcome_counts,
    questions_of,
    written_format,
)
from qabias.benchmarks.orders import PREDICTIONS
from qabias.benchmarks.registry import default_source
from qabias.benchmarks.scoring import scores_of, stacked
from qabias.benchmarks.text_logs import FACTS, KEY, UNTIL
from qabias.building.sources import mirror_folder, using_mirror
from qabias.runs.arguments import DEFAULT_PARSER, RunArguments, check_arguments, check_own_options, norm_arguments
from qabias.runs.conditions import read_until
from qabias.runs.looks import StoppingRule, order_by_look
from qabias.runs.question import Examples, Question, load_examples
from qabias.scorers.registry import FUNCTION, load_kind
from qabias.scorers.server.modes import ROOM_TO_THINK
from qabias.scores.score import limited
from qabias.support.version import __version__

_MOST_KEPT = 4
"""Most tasks with cached questions, for evaluations that alternate between a few."""


@dataclass(frozen=True)
class TaskQuestions:
    """The questions of a task."""

    arguments: RunArguments
    examples: Examples
    prompt_format: PromptFormat
    questions: list[AskedText]

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return self.examples.benchmark

    @property
    def table(self) -> pa.Table:
        """The examples."""
        return self.examples.table

    @property
    def most_tokens(self) -> int:
        """Most tokens of an answer, as for servers: the model may emit hidden reasoning."""
        return ROOM_TO_THINK * self.prompt_format.new_tokens

    @cached_property
    def by_key(self) -> Mapping[str, AskedText]:
        """The questions by their keys."""
        return {question.key: question for question in self.questions}

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The examples as dictionaries."""
        return list(self.table.to_pylist())

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The log facts that identify the questions, as JSON values."""
        arguments = self.arguments
        return {
            "benchmark": arguments.benchmark_name,
            "config": arguments.config,
            "source": arguments.source,
            "texts": self.examples.origin.version,
            "fixes": arguments.fixes,
            "format": self.prompt_format.signature,
            "norm": arguments.norm,
            "orders": arguments.permutations,
            "limit": arguments.limit,
            "seed": arguments.seed,
            "options": dict(arguments.options),
            "version": __version__,
        }

    def metadata(self, question: AskedText, until: str = "") -> dict[str, Any]:
        """The log entry of a question: its example, and the facts with the question's key and any conditions."""
        conditions = {UNTIL: until} if until else {}
        return {**self.rows[question.row], FACTS: {**self.facts, **conditions, KEY: question.key}}

    def right(self, question: AskedText) -> str:
        """The right answer as `answer_text` has it; "" without one."""
        return self.answer_text(question.key, self.rows[question.row].get("label")) or ""

    def read(self, key: str, text: str) -> tuple[int | None, str]:
        """Parse one text: the predicted answer and its outcome."""
        question = self.by_key[key]
        # Used for all questions about its example, because the other answers are unknown here.
        same = {other.key: text for other in self.siblings(question)}
        row = self.table.slice(question.row, 1)
        (answers,) = answers_to(self.benchmark, row, same, self.prompt_format, self.arguments.norm).to_pylist()
        if "outcomes" in answers:
            return None, str(answers["outcomes"][question.number])
        if PREDICTIONS in answers:
            place = answers[PREDICTIONS][question.number]
            return place, ANSWERED if place != NO_ANSWER else str(answers["outcome"])
        return answers["prediction"], str(answers["outcome"])

    def siblings(self, question: AskedText) -> list[AskedText]:
        """All questions about the same example."""
        n_each = len(self.questions) // self.table.num_rows
        return self.questions[question.row * n_each : (question.row + 1) * n_each]

    def answer_text(self, key: str, place: int | None) -> str | None:
        """The text of an answer in the example, otherwise its name or number; None for no answer."""
        if place is None or place == NO_ANSWER:
            return None
        names = self.benchmark.class_labels.get("label", ())
        name = names[place] if place < len(names) else str(place)
        return str(self.rows[self.by_key[key].row].get(name, name))


def load_questions(
    benchmark: str,
    *,
    config: str | None = None,
    source: str | None = None,
    fixes: bool = False,
    format: str | None = None,
    parser: str = DEFAULT_PARSER,
    permutations: int = 1,
    limit: int | None = None,
    seed: int = 0,
    options: Mapping[str, str] | None = None,
    mirror: str | None = None,
) -> TaskQuestions:
    """The questions of `qabias run` for a model that writes, with the same arguments."""
    chosen_benchmark = load_benchmark(benchmark)
    chosen = config or whole_config(chosen_benchmark, load_kind(FUNCTION))
    chosen_benchmark.check_config(chosen)
    arguments = RunArguments(
        benchmark,
        model="",
        config=chosen,
        source=source or default_source(benchmark),
        fixes=fixes,
        format=written_format(chosen_benchmark, format, permutations).name,
        parser=parser,
        permutations=permutations,
        limit=limit,
        seed=seed,
        options=dict(options or {}),
    )
    check_own_options(chosen_benchmark, arguments.options)
    check_arguments(chosen_benchmark, arguments)
    with using_mirror(mirror):
        return _load(json.dumps(asdict(arguments), sort_keys=True), mirror_folder())


_CHOSEN = ("benchmark", "config", "source", "fixes", "limit", "seed", "options")
"""Facts that choose the questions and are named as the arguments are."""


def find_questions(facts: Mapping[str, Any], mirror: str | None) -> TaskQuestions:
    """The questions of the task of a sample, by the facts that the sample has."""
    chosen = {name: facts[name] for name in _CHOSEN}
    chosen |= {"format": facts["format"].partition("@")[0], "permutations": facts["orders"]}
    chosen |= {"parser": norm_arguments(facts["norm"])["parser"]}
    return _find(json.dumps(chosen, sort_keys=True), mirror)


@lru_cache(maxsize=_MOST_KEPT)
def _find(chosen: str, mirror: str | None) -> TaskQuestions:
    return load_questions(**json.loads(chosen), mirror=mirror)


@lru_cache(maxsize=_MOST_KEPT)
def _load(arguments: str, mirror: Path | None) -> TaskQuestions:
    """The questions of a task, loaded once per mirror for its samples, scorer and metrics."""
    asked = RunArguments(**json.loads(arguments))
    examples = load_examples(asked)
    prompt_format = written_format(examples.benchmark, asked.format, asked.permutations, examples.origin)
    questions = questions_of(examples.benchmark, examples.table, prompt_format, asked.norm)
    return TaskQuestions(asked, examples, prompt_format, questions)


ENDS = ("low", "high")
"""Suffixes of a score's name for the ends of its 95% interval."""
POSSIBLE = ("lowest", "highest")
"""Suffixes for its possible range if answers are missing."""


@dataclass(frozen=True)
class TaskScores:
    """The scores of a task."""

    overall: Mapping[str, float]
    by_group: Mapping[str, float]


def score_texts(asked: TaskQuestions, epochs: Sequence[Mapping[str, str]], until: str = "") -> TaskScores:
    """The scores of written texts; with repeated CIs if the task stops early."""
    benchmark, table = asked.benchmark, asked.table
    n_received, n_asked = sum(map(len, epochs)), len(asked.questions) * len(epochs)
    if not benchmark.averages:
        epochs = epochs[:1]
    answered = np.all([is_answered(asked.questions, texts, table.num_rows) for texts in epochs], axis=0)
    if until:  # which asks only the examples that its conditions need
        needed = benchmark.rows_for(read_until(benchmark, until).measures(benchmark), table)
        kept = needed & in_whole_units(benchmark, table, answered | ~needed)
    else:
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
    if until:
        rules = {**rules, "confidence": repeated_level(benchmark, table, kept.tolist(), until, asked.arguments.seed)}
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


ROW = "row"  # column that marks examples while their order changes


def repeated_level(benchmark: Benchmark, table: pa.Table, answered: Sequence[bool], until: str, seed: int) -> float:
    """Level of the repeated 95% CI at the last look whose examples all have answers, else at the first."""
    marked = table.append_column(ROW, pa.array(answered))
    ordered = order_by_look(benchmark, marked, read_until(benchmark, until), seed)
    return StoppingRule(benchmark, ordered, until, {}).level_at(ordered[ROW].to_numpy(zero_copy_only=False))
