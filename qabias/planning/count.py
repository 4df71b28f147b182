"""The tokens of a run, all of them or estimated from a random sample of its parts; and the speed of this machine."""

from __future__ import annotations

import time
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
from qabias.runs.folder import cut_parts
from qabias.runs.question import Question, load_examples, put
from qabias.scorers.base import Scorer
from qabias.scorers.kind import Loading
from qabias.scorers.registry import check_options, load_scorer

EXACT_TEXTS = 500_000
"""Texts that are counted in a minute or two on two slow cores; longer runs are counted from a sample."""

SAMPLED_TEXTS = 100_000
# A piece of a part is long enough for full batches and short enough for a slow machine.
_PIECES_PER_PART = 8


@dataclass(frozen=True)
class Count:
    """What a model has to do in a run, with standard errors, which are zeros where all parts were counted."""

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
        arguments: The run; `QabiasError` is raised where a run would refuse it.
        subject: Its model.
        machine: Where its texts are, and its token budget.
        on_cpu: Whether batches are those of a CPU.

    Attributes:
        question: What the run asks.
    """

    def __init__(self, arguments: RunArguments, subject: Subject, machine: Machine = HERE, on_cpu: bool = False):
        benchmark = load_benchmark(arguments.benchmark)
        check_arguments(benchmark, arguments, machine)
        check_scorer(benchmark, subject.kind.name)
        check_options(subject.kind, arguments.options)
        self._silent = SilentModel(subject.model)
        # The second name means the CPU too, but scorers choose the batches of other devices for it.
        device = "cpu" if on_cpu else "cpu:0"
        loading = _Rehearsal(
            subject.name,
            arguments.options,
            device=device,
            token_budget=machine.token_budget,
            seed=arguments.seed,
            subject=subject,
            silent=self._silent,
        )
        self._scorer: Scorer = subject.kind.load(loading)
        self._norm = arguments.norm
        self.question: Question = put(load_examples(arguments, machine.upstream_dir), arguments, self._scorer)

    def count(self, part: pa.Table) -> Work:
        """What asking some examples takes; raises `QabiasError` for a text that is too long."""
        before = self._done()
        ask(self.question, part, self._scorer, self._norm)
        return Work(*(after - earlier for after, earlier in zip(self._done(), before, strict=True)))

    def _done(self) -> tuple[float, ...]:
        """All work so far; a scorer that runs shared beginnings once counts texts itself."""
        stats: Any = getattr(self._scorer, "stats", None)
        if hasattr(stats, "tokens_flat"):
            return astuple(replace(self._silent.work, texts=stats.texts, tokens_alone=stats.tokens_flat))
        return astuple(self._silent.work)


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
        QabiasError: If a text is too long, or nothing reaches the model.
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
    if not Work(*total).tokens:
        raise QabiasError("the scorer gives its model nothing to count; it cannot be planned")
    error = np.zeros_like(total)
    if n_drawn < n_parts:
        error = n_parts * counts.std(axis=0, ddof=1) * np.sqrt((1 - n_drawn / n_parts) / n_drawn)
    return Count(question.table.num_rows, Work(*total.tolist()), Work(*error.tolist()), n_parts, n_drawn)


def measure_speed(arguments: RunArguments, counter: Counter, machine: Machine, seconds: float = 8.0) -> float:
    """Ask a model pieces of its run drawn at random for some seconds; the first piece warms it up.

    Returns:
        Tokens a second, as the counter counts them: read and written together, pads included.
    """
    options: dict[str, Any] = {"seed": arguments.seed, "dtype": arguments.dtype, "scorer_options": arguments.options}
    options |= {"device": machine.device, "token_budget": machine.token_budget}
    scorer = load_scorer(arguments.scorer, arguments.model, **options)
    question = counter.question
    units = max(1, question.units_per_part // _PIECES_PER_PART)
    rng = np.random.default_rng(arguments.seed)
    elapsed, tokens, is_warm = 0.0, 0.0, False
    while elapsed < seconds:
        part = question.parts[rng.integers(len(question.parts))]
        pieces = list(cut_parts(question.benchmark, part, units))
        piece = pieces[rng.integers(len(pieces))]
        started = time.perf_counter()
        ask(question, piece, scorer, arguments.norm)
        if is_warm:
            elapsed += time.perf_counter() - started
            work = counter.count(piece)
            tokens += work.tokens + work.written
        is_warm = True
    return tokens / elapsed
