"""Early stopping for inspect_ai: a task ends when its conditions are decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from inspect_ai.scorer import SampleScore
from inspect_ai.util import EarlyStop
from pydantic import JsonValue

from qabias.answers.outcomes import Written
from qabias.benchmarks import Benchmark
from qabias.benchmarks.base import LOOK
from qabias.benchmarks.generated import answers_to
from qabias.inspect_tasks.questions import TaskQuestions
from qabias.runs.looks import ERROR, Outcome, StoppingRule, ends_of, levels_of, sizes_at, verdict_lines
from qabias.runs.question import order_by_look
from qabias.runs.spending import limits_of

_ROW = "row"


def repeated_level(benchmark: Benchmark, table: pa.Table, answered: Sequence[bool], seed: int) -> float:
    """Level of the repeated 95% CI at the last look whose examples all have answers, else at the first."""
    ordered = order_by_look(benchmark, table.append_column(_ROW, pa.array(answered)), seed)
    ends = ends_of(ordered)
    n_complete = sum(all(ordered[_ROW].slice(0, end).to_pylist()) for end in ends)
    return levels_of(limits_of(sizes_at(benchmark, ordered, ends), ERROR))[max(0, n_complete - 1)]


class StopWhenDecided:
    """Looks at the first epoch's answers of a task as `qabias run --until` does.

    Samples of a later look may begin before a look is complete; its verdicts do not use them.
    """

    def __init__(self, asked: TaskQuestions, until: str) -> None:
        benchmark, table = asked.benchmark, asked.table
        numbered = table.append_column(_ROW, pa.array(range(table.num_rows)))
        ordered = order_by_look(benchmark, numbered, asked.arguments.seed)
        looks = dict(zip(ordered[_ROW].to_pylist(), ordered[LOOK].to_pylist(), strict=True))
        self._asked, self._table = asked, ordered.drop_columns([_ROW])
        self._rule = StoppingRule(benchmark, self._table, until, asked.arguments.rules)
        self.look_of = {question.key: looks[question.row] for question in asked.questions}
        self._open: list[set[str]] = [set() for _ in self._rule.ends]
        for key, look in self.look_of.items():
            self._open[look - 1].add(key)
        self._texts: dict[str, str] = {}
        self._outcome: Outcome | None = None

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """Return the name of this manager; it does not wait for samples that inspect leaves out."""
        there = {str(sample.id) for sample in samples}
        for keys in self._open:
            keys &= there
        return "qabias"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Skip a sample if every condition is decided."""
        if self._outcome is None or not self._outcome.is_over:
            return None
        return EarlyStop(id=id, epoch=epoch, reason=" ".join(verdict_lines(self._outcome)))

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:
        """Keep an answer, and take the looks that are complete."""
        if epoch != 1 or str(id) not in self.look_of:
            return
        score = scores["qabias"].score
        metadata = score.metadata or {}
        self._texts[str(id)] = Written(
            score.explanation or "", metadata.get("finish", ""), metadata.get("thinking", "")
        )
        look = self.look_of[str(id)]
        self._open[look - 1].discard(str(id))
        if not self._open[look - 1]:
            self._outcome = self._rule.follow(self._answers, self._outcome)[0]

    async def complete_task(self) -> dict[str, JsonValue]:
        """Return the verdicts with the share of the questions that they took."""
        return {"verdicts": [*verdict_lines(self._outcome)] if self._outcome else []}

    def _answers(self, look: int) -> pa.Table | None:
        """The answers until a look's end; None if it is not complete."""
        if any(self._open[:look]):
            return None
        asked, part = self._asked, self._table.slice(0, self._rule.ends[look - 1]).drop_columns([LOOK])
        return answers_to(asked.benchmark, part, self._texts, asked.prompt_format, asked.arguments.norm)
