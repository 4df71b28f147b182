"""The tokens of a run: all of them, or estimated from a random sample of its parts."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel, ModelKind, check_kind
from qabias.planning.silent import SilentModel, Work
from qabias.planning.subject import Subject
from qabias.runs.arguments import HERE, Machine, RunArguments, check_arguments, check_scorer
from qabias.runs.question import Question, load_examples, put
from qabias.scorers.base import Scorer
from qabias.scorers.kind import Loading
from qabias.scorers.registry import check_options

EXACT_TEXTS = 500_000
"""Texts that are counted in a minute or two on two slow cores; longer runs are counted from a sample."""

SAMPLED_TEXTS = 100_000


@dataclass(frozen=True)
class Count:
    """What a run will take.

    Attributes:
        examples: Examples of the run.
        work: What the model has to do.
        error: Standard errors of `work`; zeros where everything was counted.
        parts: Parts of the run.
        parts_counted: Parts among them that were counted.
    """

    examples: int
    work: Work
    error: Work
    parts: int
    parts_counted: int


@dataclass(frozen=True)
class _Rehearsal(Loading):
    """Loads a scorer as a run does, but with a silent model."""

    subject: Subject = field(kw_only=True)
    silent: SilentModel = field(kw_only=True)

    def load_model(self, models: ModelKind) -> LoadedModel:
        check_kind(models, self.model, self.subject.model.config)
        model: Any = self.silent
        return LoadedModel(model, self.subject.tokenizer, self.model, "plan", self.device, dtype="float32")


class Counter:
    """Asks the questions of a run with nobody to answer them.

    Args:
        arguments: The run.
        subject: Its model.
        machine: Where its texts are, and its token budget.
        on_cpu: Whether batches are those of a CPU.

    Attributes:
        question: What the run asks.

    Raises:
        QabiasError: If a run would refuse the arguments.
    """

    def __init__(self, arguments: RunArguments, subject: Subject, machine: Machine = HERE, on_cpu: bool = False):
        benchmark = load_benchmark(arguments.benchmark)
        check_arguments(benchmark, arguments, machine)
        check_scorer(benchmark, subject.kind.name)
        check_options(subject.kind, arguments.options)
        self._silent = SilentModel(subject.model)
        loading = _Rehearsal(
            subject.name,
            arguments.options,
            # The second name means the CPU too, but scorers choose the batches of other devices for it.
            device="cpu" if on_cpu else "cpu:0",
            token_budget=machine.token_budget,
            seed=arguments.seed,
            subject=subject,
            silent=self._silent,
        )
        self._scorer: Scorer = subject.kind.load(loading)
        self._norm = arguments.norm
        self.question: Question = put(load_examples(arguments, machine.upstream_dir), arguments, self._scorer)

    def count(self, part: pa.Table) -> Work:
        """What asking some of the examples takes.

        Raises:
            QabiasError: If a text is too long, or nothing reaches the model.
        """
        before = np.array(astuple(self._done()))
        ask(self.question, part, self._scorer, self._norm)
        work = Work(*(np.array(astuple(self._done())) - before).tolist())
        if not work.tokens:
            raise QabiasError(f"the scorer {self._scorer.name} shows a plan nothing to count")
        return work

    def _done(self) -> Work:
        """All work so far; a scorer that runs shared beginnings once counts texts itself."""
        stats = getattr(self._scorer, "stats", None)
        if not hasattr(stats, "tokens_flat"):
            return self._silent.work
        return replace(self._silent.work, texts=stats.texts, tokens_alone=stats.tokens_flat)


def ask(question: Question, part: pa.Table, scorer: Scorer, norm: str) -> None:
    """Ask about some examples as a run does."""
    assert question.prompt_format is not None
    question.benchmark.answer(part, scorer, question.prompt_format, norm)


def count_run(counter: Counter, seed: int = 0, *, exact: bool = False) -> Count:
    """Count what a run takes.

    A run of many texts is estimated from parts drawn at random without replacement: the mean of the parts times their
    number, with the standard error N s / sqrt(n) sqrt(1 - n / N).

    Args:
        counter: Counts its parts.
        seed: Draws them.
        exact: Count every part, however long it takes.

    Raises:
        QabiasError: If a text is too long.
    """
    question = counter.question
    n_parts, n_drawn = len(question.parts), len(question.parts)
    n_texts = question.table.num_rows * question.benchmark.facts.texts_per_example
    if n_texts > EXACT_TEXTS and not exact:
        n_drawn = min(n_parts, max(2, round(n_parts * SAMPLED_TEXTS / n_texts)))
    drawn = np.sort(np.random.default_rng(seed).choice(n_parts, n_drawn, replace=False)).tolist()
    bar = tqdm(drawn, unit="part", desc=f"count {question.benchmark.name}", delay=2, leave=False)
    counts = np.array([astuple(counter.count(question.parts[number])) for number in bar])
    total = counts.sum(axis=0) * (n_parts / n_drawn)
    error = np.zeros_like(total)
    if n_drawn < n_parts:
        error = n_parts * counts.std(axis=0, ddof=1) * np.sqrt((1 - n_drawn / n_parts) / n_drawn)
    return Count(question.table.num_rows, Work(*total.tolist()), Work(*error.tolist()), n_parts, n_drawn)
