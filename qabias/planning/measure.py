"""How fast this machine asks a model, found out by asking it for a few seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from qabias.benchmarks import load_benchmark
from qabias.measuring.run import Machine, RunArguments, cut_parts, load_examples
from qabias.planning.count import ask
from qabias.planning.counters import make_counter
from qabias.planning.outline import Subject
from qabias.scorers import load_scorer

SECONDS = 8.0
# A piece of a part is long enough for full batches and short enough for a slow machine.
PIECES_PER_PART = 8


@dataclass(frozen=True)
class Speed:
    """What was measured.

    Attributes:
        tokens_per_second: Tokens as a plan counts them, encoder and decoder together, pads included.
        tokens: Tokens that were run.
        seconds: How long it took, encoding of texts included.
        device: Where.
    """

    tokens_per_second: float
    tokens: float
    seconds: float
    device: str


def measure(arguments: RunArguments, subject: Subject, machine: Machine, seconds: float = SECONDS) -> Speed:
    """Ask a model pieces of the run drawn at random, the first of them unmeasured, for some seconds.

    Args:
        arguments: The run.
        subject: Its model, for counting the tokens.
        machine: Where to compute.
        seconds: How long; the piece that is being asked then is finished.

    Raises:
        QabiasError: If the model cannot be had or asked.
    """
    benchmark = load_benchmark(arguments.benchmark)
    table = load_examples(benchmark, arguments, machine.upstream_dir)
    scorer = load_scorer(
        arguments.scorer,
        arguments.model,
        seed=arguments.seed,
        revision=arguments.revision,
        dtype=arguments.dtype,
        device=machine.device,
        token_budget=machine.token_budget,
        scorer_options=arguments.options,
    )
    device = _device(machine.device)
    counter, work = make_counter(
        subject, arguments.options, machine.token_budget, device.startswith("cpu"), arguments.seed
    )
    units = benchmark.units_per_part(scorer.name)
    parts = list(cut_parts(benchmark, table, units))
    rng = np.random.default_rng(arguments.seed)
    elapsed, asked = 0.0, []
    is_warm = False
    while elapsed < seconds:
        pieces = list(cut_parts(benchmark, parts[rng.integers(len(parts))], max(1, units // PIECES_PER_PART)))
        piece = pieces[rng.integers(len(pieces))]
        started = time.perf_counter()
        ask(benchmark, piece, scorer, arguments)
        if is_warm:
            elapsed += time.perf_counter() - started
            asked.append(piece)
        is_warm = True
    for piece in asked:
        ask(benchmark, piece, counter, arguments)
    tokens = work.tokens + work.decoder_tokens
    return Speed(tokens / elapsed, tokens, elapsed, device)


def _device(device: str) -> str:
    from qabias.models.loading import resolve_device

    return str(resolve_device(device))
