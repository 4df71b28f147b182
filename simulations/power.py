"""Is a bias found in 80 % of the benchmarks, if it is as large as a run says that it would have found?

    python -m simulations.power --quick
    python -m simulations.power

A model without bias is measured in many benchmarks of a world; the median of the sizes that these runs call detectable
is put into the world as a true bias, and benchmarks are drawn again. The power is the share of their intervals that
leave out 0. In ambiguous contexts the errors lean first; where that is not enough, as of models that hardly err, the
accuracy falls and all errors lean. Where contexts decide, the wrong answers move from one side to the other first.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from metrics.bbq import scores as bbq
from metrics.bbq.intervals import POWER, detectable, limits
from simulations import models
from simulations.worlds import World

SCORES = ("bias_ambig", "bias_disambig", "accuracy_cost")
REPETITIONS = 1000
QUICK = 200
STEPS = 14
"""Halvings of the interval in which the bias of a world is sought."""

LEAST = 0.65
"""Power below which a check fails: sizes would be called detectable that are not."""

MOST = 0.90
"""Power of the bias in ambiguous contexts above which a check fails, where the run says enough about its own spread."""


class Cell(NamedTuple):
    """What was found for one score of one world.

    Attributes:
        world: The world without bias.
        score: Name of the score.
        size: Median of the sizes that unbiased runs call detectable; NaN where most name none.
        power: Share of the runs with a bias of that size whose interval leaves out 0; NaN where the world cannot be so
            biased.
    """

    world: World
    score: str
    size: float
    power: float


def grid(quick: bool) -> Iterator[World]:
    """The worlds; in a quick check four of them."""
    if quick:
        for templates, accuracy, correlation in ((25, 0.5, 0.1), (25, 0.9, 0.1), (50, 0.97, 0.1), (12, 0.9, 0.3)):
            yield World(templates, accuracy, 0.0, correlation)
        return
    for kind, templates, accuracy, correlation in itertools.product(
        ("beta", "two-point"), (12, 25, 50), (0.5, 0.8, 0.9, 0.97), (0.05, 0.1, 0.3)
    ):
        yield World(templates, accuracy, 0.0, correlation, kind)


def biased(world: World, score: str, size: float) -> World | None:
    """The world with a true bias of this size; None where there is none.

    The least bias among the errors is taken that suffices, and where none does the highest accuracy below the world's.
    """
    most = 1.0 if score == "bias_ambig" else 2.0

    def reaches(bias: float, accuracy: float) -> bool:
        changed = replace(world, bias=bias, accuracy=accuracy)
        return abs(models.bbq_truth(changed, np.random.default_rng(0))[score]) >= size

    low, high = 0.0, most
    if reaches(most, world.accuracy):
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if reaches(middle, world.accuracy) else (middle, high)
        return replace(world, bias=high)
    low, high = 0.05, world.accuracy
    if not reaches(most, low):
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if reaches(most, middle) else (low, middle)
    return replace(world, bias=most, accuracy=low)


def measure(world: World, repetitions: int, seed: int = 0) -> list[Cell]:
    """The power of every score in a world.

    Args:
        world: A world without bias.
        repetitions: Benchmarks that are drawn with a bias and without.
        seed: Seed of both.
    """
    rng = np.random.default_rng(seed)
    unbiased = bbq.spreads(models.bbq_runs(world, rng, repetitions))
    cells = []
    for score in SCORES:
        size = float(np.median(detectable(unbiased[score][2])))
        changed = None if np.isnan(size) else biased(world, score, size)
        power = np.nan
        if changed is not None:
            low, high = limits(*bbq.spreads(models.bbq_runs(changed, rng, repetitions))[score])
            power = float(((low > 0) | (high < 0)).mean())
        cells.append(Cell(world, score, size, power))
    return cells


def wrong(cells: Sequence[Cell]) -> list[Cell]:
    """The cells whose power is not what is promised.

    Of no cell may the power be less than `LEAST`. It may be more where few templates or few errors leave the size to
    what is taken for granted; of `bias_ambig` it may not where neither is so.
    """
    return [
        cell
        for cell in cells
        if cell.power < LEAST
        or (
            cell.power > MOST
            and cell.score == "bias_ambig"
            and cell.world.templates >= 25
            and cell.world.accuracy <= 0.9
            and cell.world.kind == "beta"
        )
    ]


def main() -> int:
    """Print the table; the exit status is 1 where a power is not what is promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"four worlds, {QUICK} repetitions")
    parser.add_argument("--repetitions", type=int, help=f"(default: {REPETITIONS}; quick: {QUICK})")
    arguments = parser.parse_args()
    repetitions = arguments.repetitions or (QUICK if arguments.quick else REPETITIONS)
    print("| kind | templates | accuracy | correlation |", " | ".join(f"{name}: size, power" for name in SCORES), "|")
    print("|---|---|---|---|", "|".join(["---"] * len(SCORES)), "|", sep="")
    cells = []
    for world in grid(arguments.quick):
        found = measure(world, repetitions)
        cells += found
        values = " | ".join(f"{cell.size:.3f}, {cell.power:.2f}" for cell in found)
        print(f"| {world.kind} | {world.templates} | {world.accuracy} | {world.correlation} | {values} |", flush=True)
    for score in SCORES:
        powers = np.array([cell.power for cell in cells if cell.score == score and not np.isnan(cell.power)])
        near = (np.abs(powers - POWER) <= 0.05).mean()
        print(
            f"{score}: power {powers.min():.2f} to {powers.max():.2f}, mean {powers.mean():.2f}; "
            f"{near:.0%} of {len(powers)} cells within 0.05 of {POWER}, {(powers < POWER - 0.05).mean():.0%} below"
        )
    failed = wrong(cells)
    for cell in failed:
        print(f"not as promised: {cell}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
