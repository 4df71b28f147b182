"""What `qabias plan --measure` predicts, against a run: tokens must agree exactly, times within a fifth.

Example: python -m speed.plan_vs_run --benchmark bbq --config Age --limit 400. Run it on a quiet machine.
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any

from qabias.benchmarks import load_benchmark
from qabias.measuring.run import Machine, RunArguments, cut_parts, load_examples
from qabias.planning.count import ask, count_run
from qabias.planning.measure import measure
from qabias.planning.outline import load_subject
from qabias.scorers import load_scorer


@dataclass(frozen=True)
class Comparison:
    """Prediction and fact of one run.

    Attributes:
        predicted_tokens: Tokens by the plan.
        tokens: Tokens that the scorer has run.
        predicted_seconds: Time by the plan, at the speed measured before.
        seconds: Time that asking took, loading of the model and scoring left out.
        tokens_per_second: The speed measured before.
    """

    predicted_tokens: float
    tokens: int
    predicted_seconds: float
    seconds: float
    tokens_per_second: float


def compare(arguments: RunArguments, device: str = "auto") -> Comparison:
    """Plan a run of a causal model or an encoder, then ask all of its questions."""
    machine = Machine(device=device)
    subject = load_subject(arguments.model, scorer=arguments.scorer)
    speed = measure(arguments, subject, machine)
    count = count_run(arguments, subject, exact=True, on_cpu=speed.device.startswith("cpu"))
    benchmark = load_benchmark(arguments.benchmark)
    scorer: Any = load_scorer(arguments.scorer, arguments.model, device=device, scorer_options=arguments.options)
    parts = list(cut_parts(benchmark, load_examples(benchmark, arguments), benchmark.units_per_part(scorer.name)))
    started = time.perf_counter()
    for part in parts:
        ask(benchmark, part, scorer, arguments)
    seconds = time.perf_counter() - started
    tokens = count.work.tokens + count.work.decoder_tokens
    run = scorer.stats.tokens_run  # the scorers that this is for count
    return Comparison(tokens, run, tokens / speed.tokens_per_second, seconds, speed.tokens_per_second)


def main() -> None:
    """Print prediction, fact and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", default="bbq")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--config", default="Age")
    parser.add_argument("--limit", type=int, default=400)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    found = compare(RunArguments(options.benchmark, options.model, options.config, limit=options.limit), options.device)
    print(f"{'':<10}{'predicted':>14}{'actual':>14}{'ratio':>9}")
    for name, predicted, actual in (
        ("tokens", found.predicted_tokens, found.tokens),
        ("seconds", found.predicted_seconds, found.seconds),
    ):
        print(f"{name:<10}{predicted:>14,.1f}{actual:>14,.1f}{predicted / actual:>9.3f}")
    print(f"measured speed: {found.tokens_per_second:,.0f} tokens a second")


if __name__ == "__main__":
    main()
