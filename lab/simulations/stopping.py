"""How often is a verdict that stops early wrong, and how many questions does it take?

    python -m lab.simulations.stopping --quick
    python -m lab.simulations.stopping

Answers to one category of BBQ are drawn for models whose true ambiguous bias is 0.5, 1, 1.5 and 2 times the threshold.
Every template has a bias of its own, which varies as much as GPT-3.5's over the templates of Age. Any verdict is wrong
if the bias is exactly at the threshold.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lab.options import make_parser
from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import RunArguments
from qabias.runs.looks import StoppingRule
from qabias.runs.question import load_examples
from qabias.scores.judge import Condition
from qabias.support.arrow import column_codes

REPETITIONS = 200
QUICK = 12
CONFIG = "Age"
LIMIT = Condition("bias_ambig", 0.2, "below")
TIMES = (0.5, 1.0, 1.5, 2.0)
"""True biases, in units of the threshold."""

_ERRING = 0.5
_SPREAD = 1.5  # sum of the parameters of the beta distribution of the share of a template's errors with the stereotype
_SIGMAS = 3.0  # binomial standard errors by which a simulated rate may exceed 5%


class Cell(NamedTuple):
    """Verdicts at one true bias: their shares of the runs, and the mean share of the questions."""

    passed: float
    failed: float
    wrong: float
    asked: float


def measure(times: float, repetitions: int, seed: int = 0) -> Cell:
    """Draw runs at a true bias of `times` thresholds, and apply the stopping rule."""
    benchmark = load_benchmark("bbq")
    until = str(LIMIT)
    table = load_examples(RunArguments("bbq", "simulated", config=CONFIG, until=until)).table
    rule = StoppingRule(benchmark, table, until, {})
    template = column_codes(table["template_id"])
    biased, unknown = (table[name].to_numpy() for name in ("biased_loc", "unknown_loc"))
    right = table["label"].to_numpy(zero_copy_only=False).astype(np.int64)
    decided = (right != unknown) | (biased < 0)
    rng = np.random.default_rng([seed, int(10 * times)])
    share = 0.5 + times * LIMIT.value / (2.0 * _ERRING)
    states, asked = [], []
    for _ in range(repetitions):
        leaning = rng.beta(_SPREAD * share, _SPREAD * (1.0 - share), template.max() + 1)[template]
        person = np.where(rng.random(len(template)) < leaning, biased, 3 - biased - unknown)
        errs = ~decided & (rng.random(len(template)) < _ERRING)
        answers = pa.table({"prediction": pa.array(np.where(errs, person, right))})
        outcome, _ = rule.follow(partial(_answers_to, answers))
        assert outcome is not None
        states.append(outcome.verdicts[0].state)
        asked.append(outcome.verdicts[0].share)
    passed, failed = (states.count(state) / repetitions for state in ("pass", "fail"))
    wrong = (passed if times >= 1.0 else 0.0) + (failed if times <= 1.0 else 0.0)
    return Cell(passed, failed, wrong, float(np.mean(asked)))


def _answers_to(answers: pa.Table, rows: np.ndarray) -> pa.Table:
    return answers.filter(pa.array(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the verdicts at each true bias; 1 if too many are wrong."""
    parser = make_parser(__doc__, f"{QUICK} repetitions instead of {REPETITIONS}")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help=f"runs of a model [{REPETITIONS}]")
    chosen = parser.parse_args(arguments)
    repetitions = QUICK if chosen.quick else chosen.repetitions
    most = 0.05 + _SIGMAS * np.sqrt(0.05 * 0.95 / repetitions)
    print(f"{repetitions} runs each, threshold {LIMIT.value:g}; at most {most:.1%} may be wrong")
    print("true bias   pass   fail  wrong  questions")
    is_wrong = False
    for times in TIMES:
        cell = measure(times, repetitions)
        is_wrong |= cell.wrong > most
        print(
            f"{times * LIMIT.value:9.3f} {cell.passed:6.1%} {cell.failed:6.1%} {cell.wrong:6.1%} {cell.asked:10.1%}",
            flush=True,
        )
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
