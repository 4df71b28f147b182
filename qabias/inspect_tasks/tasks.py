"""Tasks, scorer and metrics of inspect_ai for every benchmark with text answers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from rich.markup import escape

from qabias.answers.outcomes import ANSWERED, OUTCOMES, Written
from qabias.benchmarks import benchmark_names
from qabias.benchmarks.base import LOOK_COLUMNS, LOOK_GROUP, is_grouped
from qabias.benchmarks.generated import answers_to
from qabias.benchmarks.text_logs import FACTS, FINISHES, KEY, UNTIL
from qabias.errors import QabiasError
from qabias.inspect_tasks.questions import ROW, TaskQuestions, TaskScores, find_questions, load_questions, score_texts
from qabias.runs.conditions import canonical, read_until
from qabias.runs.looks import Outcome, StoppingRule, order_by_look, verdict_lines
from qabias.support.suggest import install, unknown

try:
    from inspect_ai import Task, task
    from inspect_ai._util.error import PrerequisiteError  # printed as one line, without a traceback
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import HeadlineMetric
    from inspect_ai.model import ContentReasoning, GenerateConfig, ModelOutput
    from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
    from inspect_ai.solver import TaskState, generate
    from inspect_ai.util import EarlyStop
    from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesView, ViewerConfig
except ImportError as error:
    raise QabiasError("qabias.inspect_tasks needs inspect_ai and Python 3.11.", install("inspect")) from error

_EPOCH, _FINISH, _THINKING = "epoch", "finish", "thinking"
_MISSING = "missing"
"""Outcome of a question without a sample, e.g. if it failed and `score_on_error` scores it."""


_COLUMNS = ("sampleStatus", "sampleId", "input", "target", "answer")
_COLORS: Mapping[str, Literal["warn"]] = {one: "warn" for one in (*OUTCOMES, _MISSING) if one != ANSWERED}
_VIEW = ViewerConfig(
    task_samples_view=TaskSamplesView(
        name="qabias",
        columns=[*(TaskSamplesColumn(id=name) for name in _COLUMNS), TaskSamplesColumn.score("qabias")],
        score_color_scales={"qabias": _COLORS},
    )
)


class StopWhenDecided:
    """Looks at the first epoch's answers of a task as `qabias run --until` does.

    Samples of a later look may begin before a look is complete; its verdicts do not use them.
    """

    def __init__(self, asked: TaskQuestions, until: str) -> None:
        benchmark, table = asked.benchmark, asked.table
        numbered = table.append_column(ROW, pa.array(range(table.num_rows)))
        ordered = order_by_look(benchmark, numbered, read_until(benchmark, until), asked.arguments.seed)
        place_of = {row: place for place, row in enumerate(ordered[ROW].to_pylist())}
        self._asked, self._table = asked, ordered.drop_columns([ROW])
        self._rule = StoppingRule(benchmark, self._table, until, asked.arguments.rules)
        self.place_of = {
            question.key: place_of[question.row] for question in asked.questions if question.row in place_of
        }
        self._keys: list[set[str]] = [set() for _ in place_of]
        for key, place in self.place_of.items():
            self._keys[place].add(key)
        self._there = set(self.place_of)
        self._texts: dict[str, str] = {}
        self._outcome: Outcome | None = None
        self._missing = self._missing_answers()

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """Return the name of this manager; it does not wait for samples that inspect leaves out."""
        self._there &= {str(sample.id) for sample in samples}
        self._missing = self._missing_answers()
        return "qabias"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Skip a sample if every condition on its group is decided."""
        if self._outcome is None:
            return None
        group = self._table[LOOK_GROUP][self.place_of[str(id)]].as_py()
        if any(one.is_open for one in self._outcome.verdicts if one.score.group == group):
            return None
        return EarlyStop(id=id, epoch=epoch, reason=" ".join(verdict_lines(self._outcome)))

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:
        """Keep an answer, and take the looks that are complete."""
        if epoch != 1 or str(id) not in self.place_of:
            return
        score = scores["qabias"].score
        metadata = score.metadata or {}
        self._texts[str(id)] = Written(
            score.explanation or "", metadata.get("finish", ""), metadata.get("thinking", "")
        )
        self._missing.discard(str(id))
        if not self._missing:
            self._outcome = self._rule.follow(self._answers, self._outcome)[0]
            self._missing = self._missing_answers()

    async def complete_task(self) -> dict[str, Any]:
        """Return the verdicts with the share of the questions that they took."""
        return {"verdicts": [*verdict_lines(self._outcome)] if self._outcome else []}

    def _missing_answers(self, rows: np.ndarray | None = None) -> set[str]:
        """Keys of the questions without an answer, among some or those until the next look."""
        rows = self._rule.rows_at(self._outcome) if rows is None else rows
        places = () if rows is None else np.flatnonzero(rows)
        return set().union(*(self._keys[place] for place in places)) & self._there - self._texts.keys()

    def _answers(self, rows: np.ndarray) -> pa.Table | None:
        """The answers to some examples; None if some are missing."""
        if self._missing_answers(rows):
            return None
        asked, part = self._asked, self._table.filter(pa.array(rows)).drop_columns(list(LOOK_COLUMNS))
        return answers_to(asked.benchmark, part, self._texts, asked.prompt_format, asked.arguments.norm)


_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("config", "source", "format", "parser", "mirror"), str | None),
    **{"fixes": bool | None, "options": dict | None},
}
"""The task parameters that are not numbers, with their types."""


def make_task(benchmark: str, arguments: Mapping[str, Any]) -> Task:
    """The task with qabias' prompts and scores for a benchmark."""
    own = {name: value for name, value in arguments.items() if name not in ("until", "by", "about")}
    try:
        asked = load_questions(benchmark, **_checked(own))
        until = _conditions(asked, *map(arguments.get, ("until", "by", "about")))
        stopping = StopWhenDecided(asked, until) if until else None
    except QabiasError as error:
        raise PrerequisiteError(escape(f"qabias: {error}")) from error
    mirror = arguments.get("mirror")
    samples = [
        Sample(question.prompt, target=asked.right(question), id=question.key, metadata=asked.metadata(question, until))
        for question in asked.questions
        if stopping is None or question.key in stopping.place_of
    ]
    if stopping is not None:
        samples.sort(key=lambda sample: stopping.place_of[str(sample.id)])
    return Task(
        dataset=MemoryDataset(samples, name=asked.arguments.config, location=f"{benchmark} {asked.facts['texts']}"),
        solver=generate(),
        scorer=answers(mirror),
        metrics=[scores(mirror), by_group(mirror)],
        config=GenerateConfig(temperature=0.0, max_tokens=asked.most_tokens),
        version=asked.facts["version"],
        early_stopping=stopping,
        viewer=_VIEW,
        headline_metric=None
        if is_grouped(asked.benchmark, asked.arguments.config)
        else HeadlineMetric(scorer="qabias", metric=asked.benchmark.facts.compared[0]),
    )


def _conditions(asked: TaskQuestions, until: str | None, by: str | None, subject: str | None) -> str:
    """The conditions of early stopping, joined by commas in `until`; "" without any."""
    if not until:
        if by:
            raise QabiasError(f"by={by} has no condition.", "Add -T until='bias_ambig<0.1'.")
        return ""
    return canonical(asked.benchmark, str(until).split(","), by, subject)


def _checked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with a list of configs as one text, because inspect reads `-T config=Age,SES` as a list."""
    known = [name for name in signature(load_questions).parameters if name != "benchmark"]
    for name in arguments:
        if name not in known:
            raise unknown("task parameter", name, known)
    config = arguments.get("config")
    if isinstance(config, list) and all(isinstance(name, str) for name in config):
        config = ",".join(config)
    checked = {**arguments, "config": config}
    for name, kind in _KINDS.items():
        if not isinstance(checked.get(name), kind):
            raise QabiasError(f"{name} is {checked[name]!r}", f"pass {kind}")
    if not all(isinstance(text, str) for text in (checked.get("options") or {}).values()):
        raise QabiasError(f"options is {checked['options']!r}", "pass texts as values")
    return checked


def make_tasks() -> dict[str, Callable[..., Task]]:
    """A registered task for every installed benchmark, by name."""

    def registered(name: str) -> Callable[..., Task]:
        def of_benchmark(**arguments: Any) -> Task:
            return make_task(name, arguments)

        made: Callable[..., Task] = task(name=name)(of_benchmark)
        return made

    return {name: registered(name) for name in benchmark_names()}


@metric(scores="unreduced")
def scores(mirror: str | None = None) -> Metric:
    """Scores of all answers with 95% confidence intervals, and numbers of refused, truncated or unparseable answers."""

    def compute(samples: list[SampleScore]) -> dict[str, float]:
        return dict(_scored(samples, mirror).overall)

    return compute


@metric(scores="unreduced")
def by_group(mirror: str | None = None) -> Metric:
    """The headline scores of every category or set, with 95% confidence intervals."""

    def compute(samples: list[SampleScore]) -> dict[str, float]:
        return dict(_scored(samples, mirror).by_group)

    return compute


@scorer(metrics=[scores(), by_group()], name="qabias")
def answers(mirror: str | None = None) -> Scorer:
    """The answer in every text; its value is an outcome of `qabias.answers.outcomes.OUTCOMES`."""

    async def score(state: TaskState, target: Target) -> Score:
        facts = state.metadata[FACTS]
        if not state.output.choices:
            return Score(value=_MISSING, metadata={"outcome": _MISSING, _EPOCH: state.epoch})
        asked = find_questions(facts, mirror)
        text = written(state.output)
        place, outcome = asked.read(facts[KEY], text)
        return Score(
            value=outcome,
            answer=asked.answer_text(facts[KEY], place),
            explanation=str(text),
            metadata={
                "outcome": outcome,
                "prediction": place,
                _FINISH: text.finish,
                _THINKING: text.thinking,
                _EPOCH: state.epoch,
            },
        )

    return score


def written(output: ModelOutput) -> Written:
    """A model's text, why it ended, and its separate reasoning if inspect stores it."""
    message, finish = output.choices[0].message, str(output.choices[0].stop_reason)
    parts = [] if isinstance(message.content, str) else message.content
    thoughts = [part.reasoning for part in parts if isinstance(part, ContentReasoning)]
    return Written(message.text, FINISHES.get(finish, finish), "\n".join(thoughts))


_last: list[tuple[list[SampleScore], TaskScores]] = []


def _scored(samples: list[SampleScore], mirror: str | None) -> TaskScores:
    """The scores of a log, computed once for both metrics."""
    if not samples:
        return TaskScores({}, {})
    if not (_last and len(_last[0][0]) == len(samples) and all(map(operator.is_, _last[0][0], samples))):
        _last[:] = [(list(samples), _score_all(samples, mirror))]
    return _last[0][1]


def _score_all(samples: list[SampleScore], mirror: str | None) -> TaskScores:
    epochs: dict[int, dict[str, str]] = {}
    for one in samples:
        metadata: Mapping[str, Any] = one.score.metadata or {}
        texts = epochs.setdefault(metadata[_EPOCH], {})
        if metadata["outcome"] != _MISSING:
            texts[_facts(one)[KEY]] = Written(one.score.explanation or "", metadata[_FINISH], metadata[_THINKING])
    facts = _facts(samples[0])
    return score_texts(
        find_questions(facts, mirror), [epochs[number] for number in sorted(epochs)], facts.get(UNTIL, "")
    )


def _facts(one: SampleScore) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = (one.sample_metadata or {})[FACTS]
    return facts
