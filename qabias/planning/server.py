"""What asking a server about a benchmark would take, without asking it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer
from tqdm import tqdm

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.planning.count import ask
from qabias.runs.arguments import RunArguments, check_arguments, check_scorer
from qabias.runs.folder import cut_parts
from qabias.runs.question import load_examples, put
from qabias.scorers.registry import check_options
from qabias.scorers.server import KIND
from qabias.scorers.server.client import Body
from qabias.scorers.server.journal import request_hash
from qabias.scorers.server.scorer import make_scorer
from qabias.support.suggest import first_line

BYTES_PER_TOKEN = 4
# Parts of a run are small, so that none is asked for long; counting is quicker with more.
PARTS_AT_ONCE = 16


@dataclass(frozen=True)
class CostEstimate:
    """What a run would ask of a server.

    Attributes:
        n_requests: Distinct requests.
        prompt_tokens: Tokens of their texts, without what the server's chat template adds.
        generated_tokens: Most tokens that it would generate.
        counted_by: What the tokens of the prompts were counted by, for people.
        cost: Dollars, at most for what is generated; None without prices.
    """

    n_requests: int
    prompt_tokens: int
    generated_tokens: int
    counted_by: str
    cost: float | None


class _Recorder:
    """Stands in for a client: measures the requests, and answers nothing that counts."""

    def __init__(self, no_answer: Any, count: Callable[[list[str]], list[int]]) -> None:
        self._no_answer = no_answer
        self._count = count
        self._hashes: list[np.ndarray] = []
        self._tokens: list[np.ndarray] = []

    def ask(self, bodies: Sequence[Body], ask_one: Any) -> list[Any]:
        # Of millions of requests, 64 bits of the hash and a number each are kept.
        self._hashes.append(np.array([int(request_hash(body)[:16], 16) for body in bodies], dtype=np.uint64))
        self._tokens.append(np.array(self._count([_text(body) for body in bodies]), dtype=np.int64))
        return [self._no_answer for _ in bodies]

    def post(self, path: str, body: Body) -> dict[str, Any]:
        raise AssertionError("an estimate asks nothing")

    def totals(self) -> tuple[int, int]:
        """Distinct requests, and what was counted of them."""
        _, first = np.unique(np.concatenate(self._hashes), return_index=True)
        return len(first), int(np.concatenate(self._tokens)[first].sum())


def _text(body: Body) -> str:
    text: str = body["prompt"] if "prompt" in body else body["messages"][0]["content"]
    return text


def estimate_run(arguments: RunArguments, upstream_dir: str | None = None) -> CostEstimate:
    """Count what a run would ask of a server; nothing is sent.

    Args:
        arguments: What would be measured, with the scorer `server`.
        upstream_dir: Local mirror of the published files.

    Raises:
        QabiasError: If the scorer is another, or an argument is wrong.
    """
    if arguments.scorer != KIND.name:
        raise QabiasError(
            f"a dry run shows what a server would be asked (--scorer {KIND.name}); for a model on this machine, use "
            "qabias plan"
        )
    benchmark = load_benchmark(arguments.benchmark)
    check_arguments(benchmark, arguments)
    check_scorer(benchmark, KIND.name)
    options = check_options(KIND, arguments.options)
    is_echo = options.mode == "echo"
    recorder = _Recorder({"loglikelihood": 0.0, "n_tokens": 1} if is_echo else "", _counter(options.tokenizer))
    scorer = make_scorer(arguments.model, recorder, options)
    question = put(load_examples(arguments, upstream_dir), arguments, scorer)
    parts = list(cut_parts(benchmark, question.table, PARTS_AT_ONCE * question.units_per_part))
    for part in tqdm(parts, unit="part", desc=f"count {benchmark.name}", delay=2, leave=False):
        ask(question, part, scorer, arguments.norm)
    n_requests, counted = recorder.totals()
    if options.tokenizer is None:
        prompt_tokens = -(-counted // BYTES_PER_TOKEN)
        counted_by = f"{BYTES_PER_TOKEN} bytes to a token, a rough guess: give --option tokenizer=NAME_OR_FOLDER"
    else:
        prompt_tokens = counted
        counted_by = f"the tokenizer {options.tokenizer}"
    generated_tokens = n_requests * (1 if is_echo else options.max_new_tokens)
    cost = None
    if options.price_in is not None and options.price_out is not None:
        cost = (prompt_tokens * options.price_in + generated_tokens * options.price_out) / 1e6
    return CostEstimate(n_requests, prompt_tokens, generated_tokens, counted_by, cost)


def _counter(tokenizer: str | None) -> Callable[[list[str]], list[int]]:
    """Counts the tokens of texts, or where no tokenizer is named their bytes."""
    if tokenizer is None:
        return lambda texts: [len(text.encode()) for text in texts]
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer)
    except Exception as error:  # from_pretrained raises whatever its readers raise
        raise QabiasError(f"server: the tokenizer {tokenizer!r} cannot be loaded: {first_line(error)}") from error
    return lambda texts: [
        len(tokens) for tokens in loaded(texts, return_attention_mask=False, verbose=False)["input_ids"]
    ]


def print_estimate(found: CostEstimate) -> None:
    """Print an estimate for people."""
    typer.echo(f"requests:         {found.n_requests:>15,}")
    typer.echo(f"prompt tokens:    {found.prompt_tokens:>15,}  ({found.counted_by})")
    typer.echo(f"generated tokens: {found.generated_tokens:>15,}  (at most)")
    if found.cost is None:
        typer.echo("cost: give --option price_in=DOLLARS and price_out=DOLLARS per million tokens")
    else:
        typer.echo(
            f"cost:             {found.cost:>15,.2f}  dollars at most, without chat template and failed requests"
        )
