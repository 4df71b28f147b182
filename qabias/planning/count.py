"""The tokens of a run, all of them or estimated from a random sample of its parts; and the speed of this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import pairwise
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
from qabias.runs.question import Question, load_examples, make_question
from qabias.scorers.base import Scorer
from qabias.scorers.kind import Loading, ScorerKind
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


def check_run(arguments: RunArguments, kind: ScorerKind, machine: Machine = HERE) -> Any:
    """The options of a scorer as it reads them; raises `QabiasError` where a run would refuse its arguments."""
    benchmark = load_benchmark(arguments.benchmark)
    check_arguments(benchmark, arguments, machine)
    check_scorer(benchmark, kind.name)
    return check_options(kind, arguments.scorer_options)


def ask(question: Question, parts: Sequence[pa.Table], scorer: Scorer, norm: str) -> Iterator[None]:
    """Ask about one part after the other as a run does, with a bar if it takes long; stops after each of them."""
    for part in tqdm(parts, unit="part", desc=question.benchmark.name, delay=2, leave=False, disable=None):
        question.benchmark.answer(part, scorer, question.format_of(part), norm)
        yield


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
    """Asks `question`, that of a run, with nobody to answer it; `QabiasError` is raised where a run would refuse it."""

    def __init__(self, arguments: RunArguments, subject: Subject, machine: Machine = HERE, on_cpu: bool = False):
        check_run(arguments, subject.kind, machine)
        self._silent = SilentModel(subject.model)
        loading = _Rehearsal(
            subject.name,
            arguments.scorer_options,
            # The second name means the CPU too, but scorers choose the batches of other devices for it.
            device="cpu" if on_cpu else "cpu:0",
            token_budget=machine.token_budget,
            seed=arguments.seed,
            subject=subject,
            silent=self._silent,
        )
        self._scorer: Scorer = subject.kind.load(loading)
        self._norm = arguments.norm
        self.question: Question = make_question(load_examples(arguments, machine.upstream_dir), arguments, self._scorer)

    def count(self, parts: Sequence[pa.Table]) -> list[Work]:
        """What asking about each of some parts takes; raises `QabiasError` for a text that is too long."""
        done = [self._done(), *(self._done() for _ in ask(self.question, parts, self._scorer, self._norm))]
        return [Work(*np.subtract(after, before).tolist()) for before, after in pairwise(done)]

    def _done(self) -> tuple[float, ...]:
        """All work so far; a scorer that runs shared beginnings once counts texts itself."""
        stats: Any = getattr(self._scorer, "stats", None)
        if hasattr(stats, "tokens_flat"):
            return astuple(replace(self._silent.work, texts=stats.texts, tokens_alone=stats.tokens_flat))
        return astuple(self._silent.work)


def count_run(counter: Counter, seed: int = 0, *, exact: bool = False) -> Count:
    """Count what a run takes; raises `QabiasError` if a text is too long, or nothing reaches the model."""
    question = counter.question
    n_parts, n_drawn = len(question.parts), len(question.parts)
    n_texts = question.table.num_rows * question.benchmark.facts.texts_per_example
    if n_texts > EXACT_TEXTS and not exact:
        n_drawn = min(n_parts, max(2, round(n_parts * SAMPLED_TEXTS / n_texts)))
    drawn = np.sort(np.random.default_rng(seed).choice(n_parts, n_drawn, replace=False))
    counts = np.array([astuple(work) for work in counter.count([question.parts[number] for number in drawn])])
    total = counts.sum(axis=0) * (n_parts / n_drawn)
    if not Work(*total).tokens:
        raise QabiasError("the scorer gives its model nothing to count; it cannot be planned")
    error = n_parts * counts.std(axis=0, ddof=min(1, n_parts - 1)) * np.sqrt((1 - n_drawn / n_parts) / n_drawn)
    return Count(question.table.num_rows, Work(*total.tolist()), Work(*error.tolist()), n_parts, n_drawn)


def measure_speed(arguments: RunArguments, counter: Counter, machine: Machine, seconds: float = 8.0) -> float:
    """Tokens a second, read and written together, of a model that is asked pieces of its run for some seconds."""
    options: dict[str, Any] = {"seed": arguments.seed, "dtype": arguments.dtype, "device": machine.device}
    options |= {"token_budget": machine.token_budget, "scorer_options": arguments.scorer_options}
    scorer = load_scorer(arguments.scorer, arguments.model, **options)
    question = counter.question
    pieces = list(cut_parts(question.benchmark, question.table, max(1, question.units_per_part // _PIECES_PER_PART)))
    rng = np.random.default_rng(arguments.seed)
    list(ask(question, [pieces[rng.integers(len(pieces))]], scorer, arguments.norm))
    elapsed, tokens = 0.0, 0.0
    while elapsed < seconds:
        piece = pieces[rng.integers(len(pieces))]
        started = time.perf_counter()
        list(ask(question, [piece], scorer, arguments.norm))
        elapsed += time.perf_counter() - started
        (work,) = counter.count([piece])
        tokens += work.tokens + work.written
    return tokens / elapsed
