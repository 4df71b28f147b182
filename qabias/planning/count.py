"""The tokens of a run, all of them or estimated from a random sample of its parts."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.prompt_format import choose
from qabias.errors import QabiasError
from qabias.measuring.run import RunArguments, check_arguments, cut_parts, load_examples
from qabias.planning.counters import Work, make_counter
from qabias.planning.outline import Subject
from qabias.scorers.base import Scorer

# Texts that are tokenised and arranged in less than a minute on two slow cores; more are counted from a sample.
EXACT_TEXTS = 500_000
SAMPLED_TEXTS = 100_000
# Options of a question, or questions about a row: texts that an example makes.
TEXTS_PER_EXAMPLE = {"bbq": 3, "unqover": 8, "bbnli": 3, "bbq_nli": 3}


@dataclass(frozen=True)
class Count:
    """What a run will take.

    Attributes:
        arguments: The run.
        subject: Its model.
        n_examples: Examples of the run.
        work: What the model has to do.
        error: Standard errors of `work`; zeros where everything was counted.
        n_parts: Parts of the run.
        n_counted: Parts among them that were counted.
        on_cpu: Whether batches are those of a CPU.
    """

    arguments: RunArguments
    subject: Subject
    n_examples: int
    work: Work
    error: Work
    n_parts: int
    n_counted: int
    on_cpu: bool

    @property
    def is_exact(self) -> bool:
        """Whether every part was counted."""
        return self.n_counted == self.n_parts


def count_run(
    arguments: RunArguments,
    subject: Subject,
    *,
    exact: bool = False,
    on_cpu: bool = False,
    token_budget: int | None = None,
    upstream_dir: str | None = None,
) -> Count:
    """Count what a run takes, by asking all of its questions to a scorer without a model.

    A run of many texts is estimated from parts drawn at random without replacement: the mean of the parts times their
    number, with the standard error N s / sqrt(n) sqrt(1 - n / N).

    Args:
        arguments: The run.
        subject: Its model.
        exact: Count every part, however long it takes.
        on_cpu: Whether batches are those of a CPU.
        token_budget: Most tokens of a batch; None for the default of the device.
        upstream_dir: Local mirror of the published files.

    Raises:
        QabiasError: If an argument is wrong, the benchmark cannot be asked so, or a text is too long.
    """
    benchmark = load_benchmark(arguments.benchmark)
    check_arguments(benchmark, arguments)
    check_scorer(benchmark, subject)
    table = load_examples(benchmark, arguments, upstream_dir)
    scorer, work = make_counter(subject, arguments.options, token_budget, on_cpu, arguments.seed)
    parts = list(cut_parts(benchmark, table, benchmark.units_per_part(scorer.name)))
    chosen = range(len(parts)) if exact else _draw(benchmark, table, len(parts), arguments.seed)
    counts = np.empty((len(chosen), len(astuple(work))))
    described = f"count {benchmark.name}"
    for row, number in enumerate(tqdm(chosen, unit="part", desc=described, delay=2, leave=False)):
        before = np.array(astuple(work))
        ask(benchmark, parts[number], scorer, arguments)
        counts[row] = np.array(astuple(work)) - before
    n_parts = len(parts)
    total = counts.mean(axis=0) * n_parts
    error = np.zeros_like(total)
    if len(chosen) < n_parts:
        remaining = np.sqrt((1 - len(chosen) / n_parts) / len(chosen))
        error = n_parts * counts.std(axis=0, ddof=1) * remaining
    else:
        total = counts.sum(axis=0)
    return Count(arguments, subject, table.num_rows, Work(*total), Work(*error), n_parts, len(chosen), on_cpu)


def check_scorer(benchmark: Benchmark, subject: Subject) -> None:
    """Refuse a scorer that cannot answer a benchmark.

    Raises:
        QabiasError: If it cannot.
    """
    if subject.scorer not in benchmark.scorers:
        raise QabiasError(
            f"{benchmark.name} cannot be asked by the scorer {subject.scorer}; choose one of "
            f"{', '.join(benchmark.scorers)}"
        )


def ask(benchmark: Benchmark, part: pa.Table, scorer: Scorer, arguments: RunArguments) -> None:
    """Ask the questions of a part as a run does."""
    prompt_format = choose(benchmark.formats, arguments.format or benchmark.default_format(scorer))
    benchmark.answer(part, scorer, prompt_format, arguments.norm)


def _draw(benchmark: Benchmark, table: pa.Table, n_parts: int, seed: int) -> list[int]:
    """Numbers of the parts to count: all of a run that is not too long."""
    n_texts = table.num_rows * TEXTS_PER_EXAMPLE[benchmark.name]
    if n_texts <= EXACT_TEXTS:
        return list(range(n_parts))
    n_drawn = min(n_parts, max(2, round(n_parts * SAMPLED_TEXTS / n_texts)))
    return np.sort(np.random.default_rng(seed).choice(n_parts, n_drawn, replace=False)).tolist()
