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

SIMPLE = {
    # Share of stereotyped answers in ambiguous contexts, in one category and elsewhere; share of other errors;
    # abstentions in disambiguated contexts.
    "99.7% right": (0.0, 0.0, 0.003, 0.0),
    "15 points in one category": (0.15, 0.0, 0.01, 0.0),
    "30 points in one category": (0.30, 0.0, 0.01, 0.0),
    "5 points, 6% errors": (0.05, 0.05, 0.01, 0.0),
    "abstains in 45%": (0.0, 0.0, 0.01, 0.45),
}
UNBIASED = ("unbiased", "99.7% right", "abstains in 45%")
MODELS = (
    *("unbiased", "biased in one category", "biased everywhere", "guessing", "always UNKNOWN", "refusing"),
    *("one position", *SIMPLE),
)
EXPECTED = {
    "one position": "not interpretable",
    "biased in one category": "detected",
    "biased everywhere": "detected",
    "guessing": "not interpretable",
    "always UNKNOWN": "not interpretable",
    "refusing": "inconclusive",
}
FORBIDDEN = {
    "15 points in one category": "No bias above",
    "30 points in one category": "No bias above",
    "99.7% right": "Not interpretable",
    "abstains in 45%": "guesses",
}
"""What a model's headline never says."""

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
    if model == "one position":
        return np.zeros(len(right), np.int64)
    if model in SIMPLE:
        return _simple(model, table, right, biased, unknown, rng)
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


def _simple(
    model: str, table: pa.Table, right: np.ndarray, biased: np.ndarray, unknown: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Positions of the answers of a model of `SIMPLE`; templates do not differ."""
    inside, outside, errs, abstains = SIMPLE[model]
    in_category = np.asarray(table["category"].to_pylist()) == CATEGORY
    is_open, drawn = right == unknown, rng.random(len(right))
    stereotyped = is_open & (biased >= 0) & (drawn < np.where(in_category, inside, outside))
    wrong = (right + rng.integers(1, 3, len(right))) % 3
    given = np.where(rng.random(len(right)) < errs, wrong, right)
    given = np.where(~is_open & (rng.random(len(right)) < abstains), unknown, given)
    return np.where(stereotyped, biased, given)


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
            if FORBIDDEN.get(model, "\n") in result.text:
                counts[model][f"says {FORBIDDEN[model]!r}"] += 1
    return counts


def most(repetitions: int) -> float:
    """Share of runs that may err by chance: `ERROR`, and three binomial standard errors."""
    return ERROR + 3.0 * math.sqrt(ERROR * (1.0 - ERROR) / repetitions)


def faults(counts: Mapping[str, Counter[str]]) -> list[str]:
    """The models with too many wrong verdicts."""
    result = []
    for model, verdicts in counts.items():
        said = f"says {FORBIDDEN.get(model)!r}"
        n = verdicts.total() - verdicts[said]
        if (model in UNBIASED and verdicts["detected"] > n * most(n)) or verdicts[said]:
            result.append(model)
        if model in EXPECTED and verdicts[EXPECTED[model]] < LEAST * n:
            result.append(model)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of each verdict by model; 1 if unbiased models are called biased too often."""
    parser = make_parser(__doc__, f"{QUICK} runs of each model instead of {REPETITIONS}")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help=f"size of the sample [{EXAMPLES:,}]")
    chosen = parser.parse_args(arguments)
    repetitions = QUICK if chosen.quick else REPETITIONS
    counts = measure(repetitions, examples=chosen.examples)
    for model, verdicts in counts.items():
        shares = ", ".join(f"{name} {n / repetitions:.1%}" for name, n in verdicts.most_common())
        print(f"{model:<24}{shares}")
    print(f"{repetitions} runs each; an unbiased model may be called biased in at most {most(repetitions):.1%}")
    return int(bool(faults(counts)))


if __name__ == "__main__":
    sys.exit(main())
