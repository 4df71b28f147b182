"""How often do the metrics' 95% intervals contain the true score?

    python -m lab.simulations.coverage            the whole grid, 1,000 repetitions a cell (about half an hour)
    python -m lab.simulations.coverage --quick    a part of it with bounds, for CI
    python -m lab.simulations.coverage --write    the whole grid, into docs/intervals.md

A cell is a world (see `lab.simulations.worlds`) and a score. Its coverage is the share of simulated benchmarks whose
interval contains the true score. For comparison, each cell also has the usual t interval with the same leave-one-out
variance.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from lab.options import make_parser
from lab.simulations import models, unqover
from lab.simulations.worlds import Floats, World
from qabias.share.metrics.bbnli import intervals as bbnli_intervals
from qabias.share.metrics.bbnli import summary as bbnli
from qabias.share.metrics.bbq import intervals as bbq_intervals
from qabias.share.metrics.bbq import scores as bbq
from qabias.share.metrics.bbq import summary as bbq_summary
from qabias.share.metrics.shared.intervals import Interval, limits, of_clusters, student
from qabias.share.metrics.unqover import scores as unqover_scores

TEMPLATES = (4, 7, 12, 25, 50)
ACCURACIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99)
CORRELATIONS = (0.05, 0.1, 0.2, 0.4)
KINDS = ("beta", "two-point")
SHAPES = (("equal", "both", 0.6), ("unequal", "both", 0.02), ("equal", "one", 0.0))
"""Template sizes, with their polarities and the share of wrong persons among wrong answers."""

HARD = (("heavy", "equal"), ("two-sided", "equal"), ("beta", "harder"), ("extreme", "equal"))
"""Kinds and sizes of the worlds that are harder than those of `KINDS`; the last has no bound."""

RARE = ("bias_ambig_among_errors",)
"""Scores that are undefined without errors, or with errors in one template only."""

BIAS = 0.5
SEED = 35
"""First part of the seed of every cell; no constant of the intervals was chosen by these draws."""

REPETITIONS = 1000
FEW = 7
"""Minimum number of templates for the bounds of every cell; with fewer an interval promises less."""

MORE = 4
"""Factor of repetitions for cells with fewer templates, which are cheap and close to their bound."""

LEAST, LEAST_OF_FEW, LEAST_OF_HARD = 0.90, 0.85, 0.87
MEAN = (0.94, 0.985)
MOST_WIDTH = 1.5
"""Largest mean width, relative to a t interval with coverage of at least `T_COVERS`."""

T_COVERS = 0.94
DEGENERATE = 0.005
"""Share of t intervals of width 0 above which widths are not compared."""

QUICK_REPETITIONS = 300
QUICK_MOST = 0.99
"""Bound of the mean of the quick part, in which more cells are of models that are nearly always right."""

LESS = 0.01
"""What a cell may be below its bound with all repetitions: a standard error, because there are many cells."""

QUICK_LESS = 0.03
"""What a cell may be below its bound with so few repetitions: about two standard errors."""


class Drawn(NamedTuple):
    """Repetitions of one world, by name of the score.

    Attributes:
        values: the scores, shape (repetitions,).
        replicates: the scores without each cluster, shape (clusters, repetitions).
        ends: the intervals.
        truth: the true scores.
        bounds: the least and the largest value of a score.
    """

    values: Mapping[str, Floats]
    replicates: Mapping[str, Floats]
    ends: Mapping[str, Interval]
    truth: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Cell:
    """A score in a world, and how often its interval contains the truth."""

    kind: str
    score: str
    world: World
    coverage: float
    width: float
    t_coverage: float
    t_width: float
    t_degenerate: float
    undefined: float
    no_width: float

    @property
    def comparable(self) -> bool:
        """Whether the t interval's width is a fair comparison."""
        return self.t_coverage >= T_COVERS and self.t_degenerate < DEGENERATE


BBQ_SCORES = (
    *("accuracy_ambig", "bias_ambig", "bias_ambig_among_errors", "accuracy_disambig", "bias_disambig", "accuracy_cost"),
    "accuracy",
)
BBNLI_SCORES = ("bias_score", "bias_score_mean_subtopics", "accuracy_pro", "accuracy_anti", "accuracy_gap")
DIFFERENCES = ("accuracy_ambig", "bias_ambig", "accuracy_disambig", "bias_disambig")


def of_bbq(world: World, rng: np.random.Generator, repetitions: int) -> Drawn:
    """Runs of BBQ."""
    counts = models.bbq_runs(world, rng, repetitions)
    total = counts.sum(axis=0)
    of_scores = bbq_intervals.ends(bbq_summary.spreads(counts))
    return Drawn(
        bbq.mean_over_runs(total),
        bbq.mean_over_runs(total - counts),
        {name: of_scores[name] for name in BBQ_SCORES},
        models.bbq_truth(world, rng),
        {name: (-1.0 if _is_signed(name) else 0.0, 1.0) for name in BBQ_SCORES},
    )


def of_probabilities(world: World, rng: np.random.Generator, repetitions: int) -> Drawn:
    """Runs of BBQ by a model with known probabilities."""
    counts = models.probability_runs(world, rng, repetitions)
    total, of_scores, truth = (
        counts.sum(axis=0),
        bbq_intervals.ends(bbq_summary.spreads(counts)),
        models.probability_truth(world, rng),
    )
    return Drawn(
        bbq.mean_over_runs(total),
        bbq.mean_over_runs(total - counts),
        {name: of_scores[name] for name in truth},
        truth,
        dict.fromkeys(truth, (-1.0, 1.0)),
    )


def of_bbnli(world: World, rng: np.random.Generator, repetitions: int) -> Drawn:
    """Runs of BBNLI; premises in four subtopics."""
    counts = models.bbnli_runs(world, rng, repetitions)
    total = counts.sum(axis=0)
    of_scores = bbnli_intervals.ends(bbnli.spreads("bbnli", counts))
    return Drawn(
        bbnli.mean_over_runs("bbnli", total),
        bbnli.mean_over_runs("bbnli", total - counts),
        {name: of_scores[name] for name in BBNLI_SCORES},
        models.bbnli_truth(world, rng),
        {name: (-1.0 if _is_signed(name) else 0.0, 1.0) for name in BBNLI_SCORES},
    )


def of_unqover(world: World, rng: np.random.Generator, repetitions: int) -> Drawn:
    """Runs of UnQover. The truth of mu and eta is their mean over draws of as many templates, by their definition."""
    preferences = np.random.default_rng(0).normal(0.0, unqover.PREFERENCE, (unqover.SUBJECTS, unqover.ATTRIBUTES))
    names, n = unqover_scores.HEADLINES, world.templates
    values, replicates, intervals = [], [], []
    for _ in range(repetitions):
        sums = [unqover.run(world, rng, preferences)]
        values.append(unqover_scores.mean_over_runs(sums, np.ones((1, n))))
        replicates.append(unqover_scores.mean_over_runs(sums, 1.0 - np.eye(n)))
        intervals.append(unqover_scores.intervals(sums))
    found = {name: np.array([of[name][0] for of in values]) for name in names}
    return Drawn(
        found,
        {name: np.stack([of[name] for of in replicates], axis=1) for name in names},
        {
            name: (np.array([of[name][0] for of in intervals]), np.array([of[name][1] for of in intervals]))
            for name in names
        },
        {name: float(each.mean()) for name, each in found.items()}
        | {name: 1.0 - world.accuracy for name in ("delta", "epsilon")},
        dict.fromkeys(names, (0.0, 1.0)),
    )


def of_differences(world: World, rng: np.random.Generator, repetitions: int) -> Drawn:
    """Two runs of BBQ: the second shares half of the first run's answers, and errs more often in the rest."""
    counts = models.bbq_pairs(world, rng, repetitions)
    first, second = (
        (bbq.mean_over_runs(each.sum(axis=0)), bbq.mean_over_runs(each.sum(axis=0) - each)) for each in counts
    )
    values, replicates = ({name: second[k][name] - first[k][name] for name in DIFFERENCES} for k in (0, 1))
    sizes = counts[0].sum(axis=(-2, -1))
    bounds = {name: 2.0 if _is_signed(name) else 1.0 for name in DIFFERENCES}
    return Drawn(
        values,
        replicates,
        {
            name: limits(values[name], *of_clusters(values[name], replicates[name], sizes, bounds[name]))
            for name in DIFFERENCES
        },
        models.bbq_true_differences(world, rng),
        {name: (-bound, bound) for name, bound in bounds.items()},
    )


BENCHMARKS: Mapping[str, Callable[[World, np.random.Generator, int], Drawn]] = {
    "BBQ": of_bbq,
    "BBQ probabilities": of_probabilities,
    "BBNLI": of_bbnli,
    "UnQover": of_unqover,
    "two models": of_differences,
}


def worlds(quick: bool = False, chosen: Sequence[float] = ()) -> Iterator[World]:
    """The grid; of the quick one every fourth world or so, with the hardest among them."""
    templates, accuracies = (TEMPLATES, ACCURACIES) if not quick else ((4, 7, 25), (0.5, 0.97))
    correlations = chosen or (CORRELATIONS if not quick else (0.4,))
    for n, accuracy, correlation, kind, (sizes, polarity, persons) in itertools.product(
        templates, accuracies, correlations, KINDS, SHAPES
    ):
        yield World(n, accuracy, BIAS, correlation, kind, sizes, polarity, persons)
    axes = ((7, 25), (0.9,), (0.4,)) if quick else (TEMPLATES, (0.5, 0.9, 0.97), (0.1, 0.4))
    for n, accuracy, correlation, (kind, sizes) in itertools.product(*axes, HARD):
        yield World(n, accuracy, BIAS, correlation, kind, sizes)


def differs(kind: str, world: World) -> bool:
    """Whether a world is another one for a benchmark than those before; some are simulated with equal templates."""
    if hardness(world):
        return kind in ("BBQ", "two models") or (kind, world.kind) in (("BBNLI", "two-sided"), ("UnQover", "heavy"))
    shape = world.sizes, world.polarity, world.persons
    if kind in ("UnQover", "BBQ probabilities"):
        return shape == SHAPES[0]
    return kind != "BBNLI" or world.polarity == "both"


def cells(kind: str, world: World, repetitions: int, method: str = "qabias") -> Iterator[Cell]:
    """The scores of a benchmark in a world; the method "t" judges the t interval by the same bounds."""
    seed = [
        SEED,
        list(BENCHMARKS).index(kind),
        *(int(1000 * x) for x in (world.templates, world.accuracy, world.correlation)),
    ]
    drawn = BENCHMARKS[kind](world, np.random.default_rng(seed), repetitions)
    for name, interval in drawn.ends.items():
        low, high = drawn.bounds[name]
        usual = t_interval(drawn.values[name], drawn.replicates[name])
        ours = interval if method == "qabias" else usual
        defined = ~np.isnan(ours[0])
        covered, width = _covered(ours, drawn.truth[name], low, high, defined)
        t_covered, t_width = _covered(usual, drawn.truth[name], low, high, ~np.isnan(usual[0]))
        yield Cell(
            *(kind, name, world, covered, width, t_covered, t_width),
            t_degenerate=float((usual[1] - usual[0] <= 0).mean()),
            undefined=float((~defined).mean()),
            no_width=float((ours[1] - ours[0] <= 0)[defined].mean()) if defined.any() else 0.0,
        )


def t_interval(values: Floats, replicates: Floats) -> Interval:
    """The usual interval: a t quantile with C - 1 degrees of freedom times the jackknife's error."""
    n = len(replicates)
    variance = (n - 1) / n * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)
    half = student(n - 1.0, 0.95) * np.sqrt(variance)
    return values - half, values + half


def _covered(ends: Interval, truth: float, low: float, high: float, defined: np.ndarray) -> tuple[float, float]:
    if not defined.any():
        return float("nan"), float("nan")
    lower, upper = (end[defined] for end in ends)
    inside = (lower <= truth + 1e-12) & (truth - 1e-12 <= upper)
    return float(inside.mean()), float((np.clip(upper, low, high) - np.clip(lower, low, high)).mean())


def _is_signed(name: str) -> bool:
    return name.startswith("bias") or name in ("accuracy_cost", "accuracy_gap", "abstention_gap")


class Summary(NamedTuple):
    """Summary of a score's cells.

    Attributes:
        least: Smallest coverage with at least `FEW` templates.
        least_of_few: Smallest coverage with fewer.
        mean: Mean coverage of all cells.
        t_least: Smallest coverage of the t interval with at least `FEW` templates.
        wider: Mean width relative to the t interval's, over comparable cells.
        cells: Number of cells.
        compared: Number of comparable cells.
    """

    least: float
    least_of_few: float
    mean: float
    t_least: float
    wider: float
    cells: int
    compared: int


def summary(found: Sequence[Cell]) -> Summary:
    """The summary of some cells."""
    many, few = ([cell for cell in found if (cell.world.templates >= FEW) is side] for side in (True, False))
    wider = [cell.width / cell.t_width for cell in found if cell.comparable]
    return Summary(
        _least([cell.coverage for cell in many]),
        _least([cell.coverage for cell in few]),
        float(np.nanmean([cell.coverage for cell in found])),
        _least([cell.t_coverage for cell in many]),
        float(np.mean(wider)) if wider else float("nan"),
        len(found),
        len(wider),
    )


def _least(coverages: Sequence[float]) -> float:
    return min((each for each in coverages if each == each), default=float("nan"))


def failures(found: Sequence[Cell], less: float = 0.0, most: float = MEAN[1]) -> list[str]:
    """What does not keep the promise, in words; a wrong method is in here."""
    told = []
    for cell in found:
        bound = least_of(cell.world) - less
        if cell.coverage < bound:
            told.append(f"{cell.kind} {cell.score} covers {cell.coverage:.3f}, below {bound}: {cell.world}")
        if cell.undefined and cell.score not in RARE and cell.world.templates >= FEW:
            told.append(f"{cell.kind} {cell.score} is without interval in {cell.undefined:.3f}: {cell.world}")
        if cell.no_width:
            told.append(f"{cell.kind} {cell.score} has intervals of width 0 ({cell.no_width:.3f}): {cell.world}")
    of_all = summary([cell for cell in found if hardness(cell.world) != "extreme"])
    if not MEAN[0] <= of_all.mean <= most:
        told.append(f"mean coverage {of_all.mean:.3f} is not between {MEAN[0]} and {most}")
    if of_all.wider > MOST_WIDTH:
        told.append(f"mean width is {of_all.wider:.2f} of the t interval's, above {MOST_WIDTH}")
    return told


def least_of(world: World) -> float:
    """The least coverage of a cell; -inf without a bound."""
    if hardness(world) == "extreme":
        return -np.inf
    least = LEAST_OF_HARD if hardness(world) else LEAST
    return least if world.templates >= FEW else LEAST_OF_FEW


def hardness(world: World) -> str:
    """The name of a world of `HARD`, "" for the others."""
    return (world.sizes if world.kind == "beta" else world.kind) if (world.kind, world.sizes) in HARD else ""


def measure(
    quick: bool,
    repetitions: int,
    method: str = "qabias",
    kinds: Sequence[str] = tuple(BENCHMARKS),
    jobs: int = 1,
    correlations: Sequence[float] = (),
) -> list[Cell]:
    """All cells of the grid, with a progress bar.

    Args:
        quick: Whether only the quick part is measured.
        repetitions: Simulated benchmarks of a cell; of the whole grid `MORE` times as many with fewer than
            `FEW` templates.
        method: See `cells`.
        kinds: Some of `BENCHMARKS`.
        jobs: Number of processes; the results do not depend on it.
        correlations: Those of the grid; () for its own.
    """
    todo = [
        (kind, world, repetitions * (1 if quick or world.templates >= FEW else MORE), method)
        for kind in kinds
        for world in worlds(quick, correlations)
        if differs(kind, world)
    ]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found = pool.map(_cells, *zip(*todo, strict=True))
        return [cell for of in tqdm(found, total=len(todo), unit="world", disable=None) for cell in of]


def _cells(kind: str, world: World, repetitions: int, method: str) -> list[Cell]:
    return list(cells(kind, world, repetitions, method))


def table(found: Sequence[Cell]) -> str:
    """The figures of every score as a table in Markdown."""
    lines = [
        f"| score | lowest, {FEW} templates or more | mean | lowest, 4 templates | t, lowest | width | cells |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        world = hardness(cell.world)
        groups.setdefault(f"world: {world}" if world else f"{cell.kind}: {cell.score}", []).append(cell)
    groups = dict(sorted(groups.items(), key=lambda item: item[0].startswith("world")))
    bounded = [cell for cell in found if hardness(cell.world) != "extreme"]
    for title, of in {**groups, "**all but extreme**": bounded}.items():
        figures = summary(of)
        coverages = figures.least, figures.mean, figures.least_of_few, figures.t_least
        shown = [title, *(f"{each:.3f}" for each in coverages), f"{figures.wider:.2f}", f"{figures.cells}"]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and the failures; 1 if there are any."""
    parser = make_parser(__doc__, "a part of the grid, with bounds for few repetitions")
    parser.add_argument("--repetitions", type=int, help=f"simulated benchmarks of a cell, {REPETITIONS} by default")
    parser.add_argument("--method", choices=("qabias", "t"), default="qabias", help="the intervals that are judged")
    parser.add_argument(
        "--benchmark", choices=tuple(BENCHMARKS), nargs="+", default=tuple(BENCHMARKS), help="only these"
    )
    parser.add_argument("--correlations", type=float, nargs="+", default=(), help="of a template's rows, e.g. 0.6")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, one for each core by default")
    parser.add_argument("--write", action="store_true", help="write the table into docs/")
    given = parser.parse_args(arguments)
    if given.write and (given.quick or given.correlations or given.method != "qabias"):
        parser.error("--write is for the whole grid and our intervals; leave --quick and --method out")
    if given.repetitions is not None and given.repetitions < 1:
        parser.error("--repetitions is 1 or more")
    if given.jobs < 1:
        parser.error("--jobs is 1 or more")
    repetitions = given.repetitions or (QUICK_REPETITIONS if given.quick else REPETITIONS)
    found = measure(given.quick, repetitions, given.method, given.benchmark, given.jobs, given.correlations)
    print(table(found))
    if given.write:
        from lab.simulations.page import write

        write(found, repetitions, Path(__file__).parents[2] / "docs")
    failing = failures(found, QUICK_LESS, QUICK_MOST) if given.quick else failures(found, LESS)
    for line in failing[:20]:
        print(f"FAILS: {line}", file=sys.stderr)
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
