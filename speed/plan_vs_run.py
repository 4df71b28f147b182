"""What `qabias plan` predicts against a run: tokens must agree exactly; the ratio of the times is printed.

    python -m speed.plan_vs_run --benchmark bbq --config Age --limit 400
    python -m speed.plan_vs_run --quick

The plan measures the speed of this machine first; `--quick` only plans the tokens. Loading of the model and scoring of
the answers are left out of the time of the run.

Exits with 1 if the numbers of tokens differ.
"""

import sys
from typing import Any, NamedTuple

import torch

from qabias.planning.plan import PlanArguments, make_plan
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.question import load_examples, make_question
from qabias.scorers.registry import load_scorer
from speed.clock import Clock
from speed.options import add_threads, make_parser, threads_of, verdict


class Prediction(NamedTuple):
    """What a plan says.

    Attributes:
        tokens: Tokens that are run or written, pads included.
        seconds: How long it takes at the measured speed; None where none was measured.
    """

    tokens: float
    seconds: float | None


def predict(arguments: RunArguments, device: str, *, measure: bool) -> Prediction:
    """Plan a run, with every text counted.

    Raises:
        QabiasError: If it cannot be planned.
    """
    machine = Machine(device=device)
    (planned,), _ = make_plan(
        PlanArguments(arguments.benchmark, arguments, measures=measure, machine=machine, exact=True)
    )
    work = planned.count.work
    return Prediction(work.tokens + work.written, planned.seconds)


def run(arguments: RunArguments, device: str) -> tuple[int, float]:
    """Ask all questions of a run of a model that is not a text-to-text one; tokens that were run, and seconds."""
    scorer: Any = load_scorer(arguments.scorer, arguments.model, device=device)
    question = make_question(load_examples(arguments), arguments, scorer)
    assert question.prompt_format is not None
    clock = Clock()
    for part in question.parts:
        question.benchmark.answer(part, scorer, question.prompt_format, arguments.norm)
    return scorer.stats.tokens_run, clock.read().clock


def main() -> int:
    """Print prediction, fact and their ratio."""
    parser = make_parser(__doc__)
    parser.add_argument("--benchmark", default="bbq")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--config", default="Age")
    parser.add_argument("--limit", type=int, help="examples (default: 400; quick: 8)")
    parser.add_argument("--device", default="auto", help="of the measured speed and of the run; quick: cpu")
    add_threads(parser)
    options = parser.parse_args()
    torch.set_num_threads(threads_of(options))
    limit, device = (8, "cpu") if options.quick else (400, options.device)
    arguments = RunArguments(options.benchmark, options.model, options.config, limit=options.limit or limit)
    predicted = predict(arguments, device, measure=not options.quick)
    tokens, seconds = run(arguments, device)
    print(f"{'':<10}{'predicted':>14}{'actual':>14}{'ratio':>9}")
    rows = [("tokens", predicted.tokens, float(tokens))]
    if predicted.seconds is not None:
        rows.append(("seconds", predicted.seconds, seconds))
    for name, expected, actual in rows:
        print(f"{name:<10}{expected:>14,.1f}{actual:>14,.1f}{expected / actual:>9.3f}")
    return verdict(wrong=predicted.tokens != tokens)


if __name__ == "__main__":
    sys.exit(main())
