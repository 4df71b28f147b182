"""What a run decides: conditions on scores, for which groups, about which questions, and how often it may err."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qabias.benchmarks import ALL, Benchmark
from qabias.errors import QabiasError, arg
from qabias.scores.facts import Measure
from qabias.scores.judge import ERROR, QUESTIONS, SUBJECTS, TEMPLATES, Condition, parse_condition
from qabias.support.suggest import unknown


class Until(NamedTuple):
    """The conditions of a run that may stop early.

    Attributes:
        by: The breakdown whose groups are decided; None for all examples.
        subject: A key of `SUBJECTS`; "" for the default of the model.
        error: Probability that any verdict is wrong, at most.
    """

    conditions: tuple[Condition, ...]
    by: str | None = None
    subject: str = ""
    error: float = ERROR

    def __str__(self) -> str:
        """All in one line: "bias_ambig<0.1 accuracy_ambig>0.9 by category about questions"."""
        words = [*map(str, self.conditions), *(["by", self.by] if self.by else [])]
        words += ["about", self.subject] if self.subject else []
        return " ".join([*words, *(["error", f"{self.error:g}"] if self.error != ERROR else [])])

    @property
    def kind(self) -> str:
        """What it is about; unless chosen, questions like these."""
        return self.subject or TEMPLATES

    @property
    def is_finite(self) -> bool:
        """Whether it is about these questions, whose number is finite."""
        return self.subject == QUESTIONS

    def measures(self, benchmark: Benchmark) -> list[Measure]:
        """The scores of the conditions."""
        return [benchmark.facts.measure(condition.name) for condition in self.conditions]

    def groups(self, benchmark: Benchmark, table: pa.Table) -> np.ndarray:
        """The group of every example."""
        if self.by is None:
            return np.full(table.num_rows, ALL)
        row = benchmark.facts.row
        known = {**({row: table[row]} if row in table.column_names else {}), **benchmark.group_columns(table)}
        if self.by not in known:
            raise unknown("breakdown", self.by, known, arg("by"))
        return np.array(known[self.by].to_pylist(), dtype=str)


def canonical(benchmark: Benchmark, conditions: Sequence[str], by: str | None, subject: str | None = None) -> str:
    """Check conditions; they in one line, see `Until`."""
    if benchmark.facts.headline is None or not benchmark.facts.headline.biases:
        raise QabiasError(f"{benchmark.name} has no score for {arg('until')}.", f"Remove {arg('until')}.")
    parsed = tuple(parse_condition(text, benchmark.facts.measures) for text in conditions)
    if len({condition.name for condition in parsed}) < len(parsed):
        raise QabiasError(f"{arg('until')} has two conditions for one score.", "Give one for each score.")
    if subject is not None and subject not in SUBJECTS:
        raise unknown("kind of questions", subject, SUBJECTS, arg("subject"))
    return str(Until(parsed, by, subject or ""))


def read_until(benchmark: Benchmark, text: str) -> Until:
    """What a line of `canonical` says."""
    rest, _, error = text.partition(" error ")
    rest, _, subject = rest.partition(" about ")
    words, _, by = rest.partition(" by ")
    conditions = tuple(parse_condition(word, benchmark.facts.measures) for word in words.split())
    return Until(conditions, by or None, subject, float(error) if error else ERROR)
