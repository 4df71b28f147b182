"""How often does each model get each headline, and an unbiased model one that reports a bias?

    python -m lab.simulations.headlines --quick
    python -m lab.simulations.headlines

Answers to a sample of BBQ are drawn for models with known bias. Templates differ in difficulty and direction, but over
all possible templates an unbiased model has no bias.
"""

import math
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lab.options import make_parser
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.headline import headline
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.scores.judge import ERROR
from qabias.support.arrow import column_codes

REPETITIONS = 400
QUICK = 20
EXAMPLES = 4000
CATEGORY = "Age"
BIAS = 0.8
"""Share of the biased models' errors with the stereotype, minus the share against it."""

MODELS = ("unbiased", "biased in one category", "biased everywhere", "guessing", "always UNKNOWN", "refusing")
EXPECTED = {
    "biased in one category": "detected",
    "biased everywhere": "detected",
    "guessing": "not interpretable",
    "always UNKNOWN": "not interpretable",
    "refusing": "inconclusive",
}
LEAST = 0.8
"""Minimum share of a model's runs with its expected verdict."""

_ERRING = {"ambiguous": 0.5, "disambiguated": 0.15}
_ALIKE = 4.0  # sum of the parameters of the beta distribution of what templates do
_REFUSED = 0.1


def answers(model: str, table: pa.Table, rng: np.random.Generator) -> np.ndarray:
    """Positions of a model's answers, int64 of shape (n,); -1 for a refusal."""
    biased, unknown = (table[name].to_numpy() for name in ("biased_loc", "unknown_loc"))
    right = table["label"].to_numpy(zero_copy_only=False).astype(np.int64)
    if model == "guessing":
        return rng.integers(0, 3, len(right))
    if model == "always UNKNOWN":
        return unknown
    template = column_codes(table["template_id"])
    in_category = np.asarray(table["category"].to_pylist()) == CATEGORY
    bias = {"biased in one category": BIAS * in_category, "biased everywhere": BIAS}.get(model, 0.0)
    toward = np.broadcast_to((1.0 + np.asarray(bias)) / 2.0, right.shape)
    of_template = rng.beta(_ALIKE * 0.5, _ALIKE * 0.5, template.max() + 1)[template]
    leaning = np.clip(of_template + toward - 0.5, 0.0, 1.0)
    is_open = right == unknown
    mean = np.where(is_open, _ERRING["ambiguous"], _ERRING["disambiguated"])
    # The wrong person is the stereotype's if the right one is not.
    against = np.where(right == biased, 1.0 - leaning, leaning)
    errs = rng.random(len(right)) < np.where(is_open, mean, 2.0 * mean * against)
    stereotyped = np.where(rng.random(len(right)) < leaning, biased, 3 - biased - unknown)
    wrong = np.where(is_open, stereotyped, 3 - right - unknown)
    given = np.where(errs & (biased >= 0), wrong, right)
    return np.where(rng.random(len(right)) < _REFUSED, -1, given) if model == "refusing" else given


def measure(
    repetitions: int, seed: int = 0, examples: int = EXAMPLES, models: Sequence[str] = MODELS
) -> dict[str, Counter[str]]:
    """Draw runs and count their verdicts, by model."""
    benchmark = load_benchmark("bbq")
    table = load_examples(RunArguments("bbq", "simulated", limit=examples)).table
    rng = np.random.default_rng(seed)
    counts: dict[str, Counter[str]] = {}
    for model in models:
        counts[model] = Counter()
        for _ in range(repetitions):
            given = pa.table({"prediction": pa.array(answers(model, table, rng))})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = benchmark.score(table, given)
            result = headline(benchmark, scores, "it")
            assert result is not None
            counts[model][result.verdict] += 1
    return counts


def most(repetitions: int) -> float:
    """Share of runs that may err by chance: `ERROR`, and three binomial standard errors."""
    return ERROR + 3.0 * math.sqrt(ERROR * (1.0 - ERROR) / repetitions)


def faults(counts: Mapping[str, Counter[str]]) -> list[str]:
    """The models with too many wrong verdicts."""
    result = []
    for model, verdicts in counts.items():
        n = verdicts.total()
        if model == "unbiased" and verdicts["detected"] > n * most(n):
            result.append(model)
        if model in EXPECTED and verdicts[EXPECTED[model]] < LEAST * n:
            result.append(model)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of each verdict by model; 1 if unbiased models are called biased too often."""
    parser = make_parser(__doc__, f"{QUICK} runs of each model instead of {REPETITIONS}")
    repetitions = QUICK if parser.parse_args(arguments).quick else REPETITIONS
    counts = measure(repetitions)
    for model, verdicts in counts.items():
        shares = ", ".join(f"{name} {n / repetitions:.1%}" for name, n in verdicts.most_common())
        print(f"{model:<24}{shares}")
    print(f"{repetitions} runs each; an unbiased model may be called biased in at most {most(repetitions):.1%}")
    return int(bool(faults(counts)))


if __name__ == "__main__":
    sys.exit(main())
