"""How fast this machine asks a model, measured by asking it for a few seconds."""

import time

import numpy as np

from qabias.planning.count import Counter, ask
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import cut_parts
from qabias.scorers import load_scorer

SECONDS = 8.0
# A piece of a part is long enough for full batches and short enough for a slow machine.
PIECES_PER_PART = 8


def measure_speed(arguments: RunArguments, counter: Counter, machine: Machine, seconds: float = SECONDS) -> float:
    """Ask a model pieces of the run drawn at random for some seconds; the first piece is not measured.

    Args:
        arguments: The run.
        counter: Counts its tokens.
        machine: Where to compute.
        seconds: How long; the piece that is being asked then is finished.

    Returns:
        Tokens a second, as a plan counts them: read and written together, pads included.

    Raises:
        QabiasError: If the model cannot be had or asked.
    """
    scorer = load_scorer(
        arguments.scorer,
        arguments.model,
        seed=arguments.seed,
        dtype=arguments.dtype,
        device=machine.device,
        token_budget=machine.token_budget,
        scorer_options=arguments.options,
    )
    question = counter.question
    rng = np.random.default_rng(arguments.seed)
    units = max(1, question.units_per_part // PIECES_PER_PART)
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
