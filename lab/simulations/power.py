"""Is a bias of the minimum detectable size detected in 80% of the benchmarks?

    python -m lab.simulations.power --quick
    python -m lab.simulations.power

A model without bias is measured in many benchmarks of a world. The median of their detectable sizes becomes the true
bias, and benchmarks are drawn again. The power is the share of intervals that exclude 0. In ambiguous contexts the
errors become biased first, and accuracy falls only if that is not enough. In disambiguated contexts the wrong answers
move from one side to the other first.
"""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lab.options import make_parser, read_options
from lab.simulations import models
from lab.simulations.worlds import Floats, World
from qabias.share.metrics.bbq import summary as bbq
from qabias.share.metrics.bbq.intervals import CONTRAST_CORRELATION, POWER, Estimated, detectable, limits, of_clusters

SCORES = ("bias_ambig", "bias_disambig", "accuracy_cost")
DIFFERENCES = {"bias_ambig": 2.0, "accuracy_ambig": 1.0}
"""Scores with tested differences, and their largest possible difference."""

REPETITIONS = 1000
QUICK = 200
STEPS = 14
"""Bisection steps in the search for a world's bias."""

MEAN = (0.75, 0.90)
"""Bounds of the mean power over the cells of a score, outside of which a check fails."""

LEAST, MOST = 0.70, 0.95
"""Bounds of the power of a single cell."""

FEW_ERRORS = 20
"""`effective_errors` below which a cell has no upper bound, because the prior sets the size."""

QUICK_LESS = 0.06
"""What a power may be beyond its bounds with so few repetitions: about two standard errors."""

NEAR = 0.05
"""Distance from the promised power within which cells are counted."""


class Cell(NamedTuple):
    """A score's power in one world.

    Attributes:
        world: The world without bias.
        score: Name of the score.
        size: Median detectable size of unbiased runs; NaN if most have none.
        power: Share of runs with a bias of that size whose interval excludes 0; NaN if the world cannot have it.
    """

    world: World
    score: str
    size: float
    power: float


def grid(quick: bool) -> Iterator[World]:
    """The worlds; two of them in a quick check."""
    if quick:
        for templates, accuracy, correlation in ((25, 0.5, 0.1), (12, 0.9, 0.3)):
            yield World(templates, accuracy, 0.0, correlation)
        return
    for kind, templates, accuracy, correlation in itertools.product(
        ("beta", "two-point"), (12, 25, 50), (0.5, 0.8, 0.9, 0.97), (0.05, 0.1, 0.3)
    ):
        yield World(templates, accuracy, 0.0, correlation, kind)


def biased(world: World, score: str, size: float) -> World | None:
    """The world with a true bias of this size, or None.

    It has the least sufficient bias among the errors, and only if none suffices the highest lower accuracy.
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


def measure(world: World, repetitions: int, seed: int = 0, scores: Sequence[str] = SCORES) -> list[Cell]:
    """The power of every score in a world."""
    rng = np.random.default_rng(seed)
    unbiased = bbq.spreads(models.bbq_runs(world, rng, repetitions))
    cells = []
    for score in scores:
        size = _median(detectable(*unbiased[score][1:]))
        changed = None if np.isnan(size) else biased(world, score, size)
        power = np.nan
        if changed is not None:
            low, high = limits(*bbq.spreads(models.bbq_runs(changed, rng, repetitions))[score])
            power = float(((low > 0) | (high < 0)).mean())
        cells.append(Cell(world, score, size, power))
    return cells


def measure_differences(world: World, repetitions: int, seed: int = 0) -> list[Cell]:
    """The power of a difference of two models that share half of their answers.

    The size is the median detectable difference of two equal models. The second model's own half differs twice as much.
    """
    rng = np.random.default_rng(seed)
    cells = []
    for score, bound in DIFFERENCES.items():
        _, shape, spread = _difference(models.bbq_pairs(world, rng, repetitions, world), score, bound)
        size = _median(detectable(shape, spread))
        other = None if np.isnan(size) else _other(world, score, 2.0 * size)
        power = np.nan
        if other is not None:
            low, high = limits(*_difference(models.bbq_pairs(world, rng, repetitions, other), score, bound))
            power = float(((low > 0) | (high < 0)).mean())
        cells.append(Cell(world, f"difference of {score}", size, power))
    return cells


def _other(world: World, score: str, gap: float) -> World | None:
    if score == "bias_ambig":
        return biased(world, score, gap)
    return replace(world, accuracy=world.accuracy - gap) if world.accuracy - gap > 0.02 else None


def _median(sizes: Floats) -> float:
    """The median size; NaN where most runs name none."""
    median = float(np.median(np.where(np.isnan(sizes), np.inf, sizes)))
    return median if np.isfinite(median) else float("nan")


def _difference(pair: tuple[Floats, Floats], score: str, bound: float) -> Estimated:
    """The differences of many pairs of runs, with what their intervals are made of."""
    totals = [counts.sum(axis=0) for counts in pair]
    one, second = (bbq.mean_over_runs(total)[score] for total in totals)
    first_without, second_without = (
        bbq.mean_over_runs(total - counts)[score] for total, counts in zip(totals, pair, strict=True)
    )
    sizes = pair[0].sum(axis=(-2, -1))
    return (second - one, *of_clusters(second - one, second_without - first_without, sizes, bound))


def effective_errors(world: World) -> float:
    """The number of errors that cluster with the prior's correlation of a contrast."""
    return world.templates * min(world.accuracy, 1.0 - world.accuracy) / CONTRAST_CORRELATION


def wrong(cells: Sequence[Cell], less: float = 0.0) -> list[Cell]:
    """The cells whose power is outside of its bounds."""
    return [
        cell
        for cell in cells
        if cell.power < LEAST - less or (cell.power > MOST + less and effective_errors(cell.world) >= FEW_ERRORS)
    ]


class Powers(NamedTuple):
    """A score's power over its cells.

    Attributes:
        score: Name of the score.
        n_cells: Number of cells.
        mean: Mean over the cells.
        lowest: Minimum over the cells.
        highest: Maximum over the cells.
        near: Share of the cells within `NEAR` of the promised power.
        below: Share of the cells further below it.
    """

    score: str
    n_cells: int
    mean: float
    lowest: float
    highest: float
    near: float
    below: float


def summary(cells: Sequence[Cell]) -> list[Powers]:
    """Each score's power over its cells, if it has any."""
    found = []
    for score in dict.fromkeys(cell.score for cell in cells if not np.isnan(cell.power)):
        powers = np.array([cell.power for cell in cells if cell.score == score and not np.isnan(cell.power)])
        shares = float((np.abs(powers - POWER) <= NEAR).mean()), float((powers < POWER - NEAR).mean())
        found.append(
            Powers(score, powers.size, float(powers.mean()), float(powers.min()), float(powers.max()), *shares)
        )
    return found


def wrong_means(found: Sequence[Powers], less: float = 0.0) -> list[Powers]:
    """The scores whose mean power is outside of `MEAN`: below it sizes are too small, above it too large."""
    low, high = MEAN
    return [of for of in found if not low - less <= of.mean <= high + less]


def main() -> int:
    """Print the table; exit status 1 for a wrong power."""
    arguments = read_options(make_parser(__doc__, "two worlds", repetitions=(REPETITIONS, QUICK, "")))
    repetitions = arguments.repetitions
    print("| kind | templates | accuracy | correlation |", " | ".join(f"{name}: size, power" for name in SCORES), "|")
    print("|---|---|---|---|", "|".join(["---"] * len(SCORES)), "|", sep="")
    cells = []
    for world in grid(arguments.quick):
        found = measure(world, repetitions)
        cells += found
        values = " | ".join(f"{cell.size:.3f}, {cell.power:.2f}" for cell in found)
        print(f"| {world.kind} | {world.templates} | {world.accuracy} | {world.correlation} | {values} |", flush=True)
    print("\n| templates | accuracy | correlation |", " | ".join(f"difference of {of}" for of in DIFFERENCES), "|")
    print("|---|---|---|", "|".join(["---"] * len(DIFFERENCES)), "|", sep="")
    for world in (world for world in grid(arguments.quick) if world.kind == "beta"):
        found = measure_differences(world, repetitions)
        cells += found
        values = " | ".join(f"{cell.size:.3f}, {cell.power:.2f}" for cell in found)
        print(f"| {world.templates} | {world.accuracy} | {world.correlation} | {values} |", flush=True)
    powers = summary(cells)
    print(f"\n{repetitions} repetitions")
    for of in powers:
        print(
            f"{of.score}: power {of.lowest:.2f} to {of.highest:.2f}, mean {of.mean:.2f}; "
            f"{of.near:.0%} of {of.n_cells} cells within {NEAR} of {POWER}, {of.below:.0%} below"
        )
    less = QUICK_LESS if arguments.quick else 0.0
    failed = [*wrong(cells, less), *wrong_means(powers, less)]
    for cell in failed:
        print(f"not as promised: {cell}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
