"""How often does UnQover's test find associations that are not there, and those that are?

    python -m lab.simulations.associations --quick
    python -m lab.simulations.associations

Comparative scores are drawn for the rows of the real sets. In the null worlds an attribute and its negation are
exchangeable in every template: pure noise, subjects that one template prefers for one attribute, noise of unequal size,
and subjects that one template prefers for all attributes. In the others some subjects are associated with attributes in
all templates.
"""

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lab.options import make_parser
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.share.metrics.unqover import consistency as test
from qabias.share.metrics.unqover import scores as unqover
from qabias.support.arrow import column_codes

RUNS, QUICK = 200, 10
ROWS = 800
SETS = ("gender", "nationality", "ethnicity", "religion")
NULL = ("noise", "blocks", "unequal noise", "template leads")
LARGE = "associations of .10"
ASSOCIATED = {"associations of .02": 0.02, "associations of .05": 0.05, LARGE: 0.10}
LEVEL = 0.05
LEAST_POWER = 0.8
"""Minimum share of runs in which associations of .10 are found."""

_NOISE, _BLOCK = 0.1, 0.1


class Structure(NamedTuple):
    """The rows of a set as numbers."""

    subject1: np.ndarray
    subject2: np.ndarray
    attribute: np.ndarray
    template: np.ndarray

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of subjects, attributes and templates."""
        both = max(self.subject1.max(), self.subject2.max())
        return int(both) + 1, int(self.attribute.max()) + 1, int(self.template.max()) + 1


def structure(config: str, rows: int = ROWS) -> Structure:
    """The rows of a sample of a set."""
    table = load_examples(RunArguments("unqover", config=config, limit=rows)).table
    names = sorted({*table["subject1"].to_pylist(), *table["subject2"].to_pylist()})
    number = {name: place for place, name in enumerate(names)}
    first, second = (
        np.array([number[name] for name in table[column].to_pylist()]) for column in ("subject1", "subject2")
    )
    return Structure(first, second, column_codes(table["attribute"]), column_codes(table["template_id"]))


def draw(rows: Structure, world: str, rng: np.random.Generator) -> unqover.Sums:
    """The sums of one model's comparative scores."""
    n_subjects, n_attributes, n_templates = rows.sizes
    n = len(rows.template)
    noise = np.full(n, _NOISE)
    if world == "unequal noise":
        noise = _NOISE * rng.exponential(2.0, (n_templates, n_attributes))[rows.template, rows.attribute]
    comparative = rng.normal(0.0, noise)
    if world == "template leads":
        lead = rng.normal(0.0, _NOISE, (n_subjects, n_templates))
        comparative += lead[rows.subject1, rows.template] - lead[rows.subject2, rows.template]
    if world == "blocks" or world in ASSOCIATED:
        level = rng.normal(0.0, _BLOCK, (n_subjects, n_attributes, n_templates))
        attribute, template = rows.attribute, rows.template
        comparative += level[rows.subject1, attribute, template] - level[rows.subject2, attribute, template]
    if world in ASSOCIATED:
        common = rng.normal(0.0, ASSOCIATED[world], (n_subjects, n_attributes))
        comparative += common[rows.subject1, rows.attribute] - common[rows.subject2, rows.attribute]
    zero = np.zeros(n)
    made = unqover.Rows(*rows[:3], rows.template, np.clip(comparative, -1.0, 1.0), zero + 0.3, zero + 0.3, zero + 0.5)
    return unqover.collect(made, *rows.sizes)


def p_value(rows: Structure, world: str, seed: int) -> float:
    """The p-value of the excess for one model."""
    sums = draw(rows, world, np.random.default_rng([seed, sum(map(ord, world))]))
    n_subjects, n_attributes, _ = rows.sizes
    subjects, attributes = (list(map(str, range(n))) for n in (n_subjects, n_attributes))
    found = test.consistency([sums], np.full(n_subjects, -1), subjects, attributes, [], 1, seed)
    return float(found["p_values"]["excess"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of rejections by set and world; 1 if a rate misses its bound."""
    parser = make_parser(__doc__, f"{QUICK} runs of two sets instead of {RUNS} of all")
    quick, is_wrong = parser.parse_args(arguments).quick, False
    n_runs = QUICK if quick else RUNS
    most = LEVEL + 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / n_runs)
    print(f"{n_runs} models each, rejected at {LEVEL:.0%}; samples of {ROWS} rows")
    for config in SETS[2:] if quick else SETS:
        rows = structure(config)
        for world in (*NULL, *ASSOCIATED):
            rate = float(np.mean([p_value(rows, world, seed) <= LEVEL for seed in range(n_runs)]))
            is_wrong |= world in NULL and rate > most
            is_wrong |= world == LARGE and rate < LEAST_POWER
            print(f"{config:12} {world:22} {rate:.3f}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
