"""Requests and cost of a run on a server, estimated without asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError, arg
from qabias.models.loading import load_pretrained
from qabias.runs.arguments import RunArguments, check_arguments, check_scorer
from qabias.runs.question import load_examples, make_question
from qabias.scorers.journal import request_hash
from qabias.scorers.registry import check_options
from qabias.scorers.server import KIND, make_scorer
from qabias.scorers.server.asking import Asker, Body
from qabias.support.printable import echo, printable

BYTES_PER_TOKEN = 4
_ROUGH = f"{BYTES_PER_TOKEN} bytes per token, a rough guess: add --option tokenizer=NAME_OR_FOLDER"


@dataclass(frozen=True)
class CostEstimate:
    """Distinct requests, tokens and dollars of a run on a server; dollars are None without prices."""

    n_requests: int
    prompt_tokens: int
    generated_tokens: int
    counted_by: str
    cost: float | None


class _Recorder(Asker):
    """Replaces a client: counts the requests, and answers none."""

    def __init__(self, count: Callable[[list[str]], list[int]]) -> None:
        self._count = count
        self._asked: list[np.ndarray] = []

    def ask(self, bodies: Sequence[Body], ask_one: Any) -> list[Any]:
        # Saves memory for millions of requests: 64 bits of the hash and a number each.
        hashes = [int(request_hash(body)[:16], 16) for body in bodies]
        texts = [body["prompt"] if "prompt" in body else body["messages"][0]["content"] for body in bodies]
        self._asked.append(np.array([hashes, self._count(texts)], dtype=np.uint64))
        return [None for _ in bodies]

    def totals(self) -> tuple[int, int]:
        """Distinct requests, and their total count."""
        hashes, counts = np.concatenate(self._asked, axis=1)
        _, first = np.unique(hashes, return_index=True)
        return len(first), int(counts[first].sum())


def estimate_run(arguments: RunArguments) -> CostEstimate:
    """Estimate a run on a server; raises `QabiasError` for another backend, or for the same reasons as a run."""
    if arguments.backend != KIND.name:
        raise QabiasError(
            "A dry run counts the requests to a server, and this run names none.",
            f"Add {arg('base_url')} URL or {arg('backend')} {KIND.name}, or remove {arg('dry_run')}.",
        )
    benchmark = load_benchmark(arguments.benchmark)
    check_arguments(benchmark, arguments)
    check_scorer(benchmark, KIND.name)
    options = check_options(KIND, arguments.scorer_options)
    recorder = _Recorder(_counter(options.tokenizer))
    scorer = make_scorer(arguments.model, recorder, options)
    question = make_question(load_examples(arguments), arguments, scorer)
    for part in tqdm(
        question.parts.values(), unit="part", desc=printable(benchmark.name), delay=2, leave=False, disable=None
    ):
        benchmark.answer(part, scorer, question.format_of(part), arguments.norm)
    n_requests, prompt_tokens = recorder.totals()
    counted_by = f"the tokenizer {options.tokenizer}"
    if options.tokenizer is None:
        prompt_tokens, counted_by = -(-prompt_tokens // BYTES_PER_TOKEN), _ROUGH
    generated_tokens = n_requests * scorer.new_tokens
    cost = None
    if options.price_in is not None and options.price_out is not None:
        cost = (prompt_tokens * options.price_in + generated_tokens * options.price_out) / 1e6
    return CostEstimate(n_requests, prompt_tokens, generated_tokens, counted_by, cost)


def _counter(tokenizer: str | None) -> Callable[[list[str]], list[int]]:
    """Counts the tokens of texts, or their bytes without a tokenizer."""
    if tokenizer is None:
        return lambda texts: [len(text.encode()) for text in texts]
    encode = load_pretrained("AutoTokenizer", tokenizer, what="tokenizer")
    return lambda texts: list(map(len, encode(texts, return_attention_mask=False, verbose=False)["input_ids"]))


def print_estimate(estimate: CostEstimate) -> None:
    """Print an estimate for people."""
    cost = f"add {arg('option')} price_in=DOLLARS and price_out=DOLLARS per million tokens"
    if estimate.cost is not None:
        cost = f"{estimate.cost:>15,.2f}  dollars at most, without chat template and failed requests"
    echo(f"requests:         {estimate.n_requests:>15,}")
    echo(f"prompt tokens:    {estimate.prompt_tokens:>15,}  ({estimate.counted_by})")
    echo(f"generated tokens: {estimate.generated_tokens:>15,}  (at most)")
    echo(f"cost:             {cost}")
