"""The questions of a task, and the log facts that identify them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias.answers import NO_ANSWER
from qabias.answers.outcomes import ANSWERED
from qabias.benchmarks import Benchmark, PromptFormat, load_benchmark
from qabias.benchmarks.base import whole_config
from qabias.benchmarks.generated import AskedText, answers_to, questions_of, written_format
from qabias.benchmarks.orders import PREDICTIONS
from qabias.benchmarks.registry import default_source
from qabias.benchmarks.text_logs import FACTS, KEY, UNTIL
from qabias.building.sources import mirror_folder, using_mirror
from qabias.runs.arguments import DEFAULT_PARSER, RunArguments, check_arguments, check_own_options, norm_arguments
from qabias.runs.question import Examples, load_examples
from qabias.scorers.registry import FUNCTION, load_kind
from qabias.scorers.server.modes import ROOM_TO_THINK
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
