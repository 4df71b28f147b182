"""How often does a model without bias fail in one of many groups by chance?

    python -m lab.simulations.checks --quick
    python -m lab.simulations.checks

Answers to a sample of BBQ are drawn for a model that is wrong in half of the ambiguous contexts. Every template is
biased in one direction or the other, with a mean bias of 0 over all possible templates. Each run is checked against a
small threshold by category, as by `qabias check --by category`: once with Bonferroni-adjusted intervals, once without.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lab.options import make_parser
from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.scores.judge import judged
from qabias.support.arrow import column_codes
from qabias.testing import Condition, verdicts

REPETITIONS = 1000
QUICK = 40
EXAMPLES = 4000
LIMIT = Condition("bias_ambig", 0.002, "below")
"""A small threshold near the truth, 0, which chance violates often."""
MOST = 0.07
"""Share of the runs that may fail in a category: 0.05, and the error of 1,000 repetitions."""

_ERRING = 0.5
_LEANING = 2.0  # both parameters of the beta distribution of the share of a template's errors with the stereotype


class Failures(NamedTuple):
    """How often runs fail in at least one category.

    Attributes:
        together: Share of the runs, with Bonferroni-adjusted intervals.
        alone: Share of the runs, with unadjusted intervals.
        groups: Number of categories.
    """

    together: float
    alone: float
    groups: int


def measure(repetitions: int, seed: int = 0, examples: int = EXAMPLES) -> Failures:
    """Draw runs and check them against the threshold."""
    benchmark = load_benchmark("bbq")
    arguments = RunArguments("bbq", "simulated", limit=examples)
    table = load_examples(arguments).table
    template = column_codes(table["template_id"])
    biased, unknown = (table[name].to_numpy() for name in ("biased_loc", "unknown_loc"))
    right = table["label"].to_numpy(zero_copy_only=False).astype(np.int64)
    decided = (right != unknown) | (biased < 0)
    rng = np.random.default_rng(seed)
    file = Run(arguments, "", "", "", {}, 1, "", Path("simulated"), "")
    together = alone = groups = 0
    for _ in range(repetitions):
        leaning = rng.beta(_LEANING, _LEANING, template.max() + 1)[template]
        person = np.where(rng.random(len(template)) < leaning, biased, 3 - biased - unknown)
        given = np.where(decided | (rng.random(len(template)) >= _ERRING), right, person)
        scores = benchmark.score(table, pa.table({"prediction": pa.array(given)}))
        found = verdicts(Run.from_file(file, {"scores": scores}), [LIMIT], "category")
        groups = len(found)
        together += any(one.state == "fail" for one in found)
        ends = [of["ci"][LIMIT.name] for of in scores["by"]["category"].values()]
        alone += any(judged((low, high), (-LIMIT.value, LIMIT.value)) == "fail" for low, high in ends)
    return Failures(together / repetitions, alone / repetitions, groups)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how often runs fail; 1 if too often."""
    parser = make_parser(__doc__, f"{QUICK} repetitions instead of {REPETITIONS:,}")
    repetitions = QUICK if parser.parse_args(arguments).quick else REPETITIONS
    found = measure(repetitions)
    print(
        f"{repetitions:,} runs of a model without a bias: {found.together:.1%} fail in one of {found.groups} "
        f"categories or more; without adjustment, {found.alone:.1%}"
    )
    too_often = repetitions == REPETITIONS and found.together > MOST
    return int(too_often)


if __name__ == "__main__":
    sys.exit(main())
