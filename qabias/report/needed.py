"""How many templates and examples a bias takes, in the terminal."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from qabias.benchmarks import ALL, load_benchmark
from qabias.comparison.needed import IN_COMMON, MOST, Assumed, assumed, needed, planned_measure, templates_of
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.scored import read_scored
from qabias.tables.model import Column, Table
from qabias.tables.terminal import MIN_WIDTH, Console, print_table


def print_needed(
    arguments: RunArguments, detect: str | None, like: Path | None, upstream_dir: str | None = None
) -> None:
    """Print how many templates and examples show a bias of some size, and such a difference of two models."""
    size = _size(detect)
    benchmark = load_benchmark(arguments.benchmark)
    measure = planned_measure(benchmark)
    run = read_scored(like) if like is not None else None
    strange = [name for name in arguments.options if name not in benchmark.options]
    if strange:
        raise QabiasError(
            f"--option {strange[0]} chooses no texts of {benchmark.name}, which --detect counts; leave it out"
        )
    if run is not None and run.benchmark is not benchmark:
        raise QabiasError(f"--like {like}: a run of {run.benchmark.name}, not of {benchmark.name}")
    config, source = arguments.config or benchmark.configs[-1], arguments.source or benchmark.sources[0]
    arguments = replace(arguments, config=config, source=source)
    groups = templates_of(benchmark, load_examples(arguments, upstream_dir).table)
    what = assumed(benchmark, groups, run.scores) if run is not None else assumed(benchmark, groups)
    clusters, count = benchmark.facts.clusters
    there = groups[ALL][count]
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    console.print(
        f"{measure.title}, 80 % power, 5 % two-sided. Assumed, {what.origin}: {100 * (1 - what.erring):.1f} % of the "
        f"answers take no side, a correlation of {what.correlation:.2f} of the answers to one of the {clusters}, "
        f"{what.rows:.1f} examples of each for this score ({what.examples:.1f} in all). Of two models, that "
        f"{IN_COMMON:.0%} of the variance of their scores is common to both, which pairing saves.",
        markup=False,
        highlight=False,
    )
    for remark in what.remarks:
        console.print(remark, markup=False, highlight=False)
    ways = {
        f"a bias of {100 * size:g} points": what.bias,
        f"a difference of {100 * size:g} points between two models": what.difference,
    }
    rows = tuple(_row(name, needed(size, way), way(there), what, there) for name, way in ways.items())
    title = f"{arguments.benchmark} {arguments.config} has {there:,} {clusters}"
    headings = ("to show", clusters, "examples", "enough here", "shown here from")
    print_table(Table("needed", title, "", "", tuple(Column(text, text, "text") for text in headings), rows), console)
    smaller = {name: of[count] for name, of in groups.items() if name != ALL and of[count] < there}
    able = [name for name, number in smaller.items() if what.bias(number) <= size]
    if smaller:
        console.print(
            f"Of its {len(smaller)} parts {len(able) or 'none'} alone would show the bias; the smallest has "
            f"{min(smaller.values())} {clusters}, the largest {max(smaller.values())}.",
            markup=False,
            highlight=False,
        )


def _row(name: str, templates: int | None, from_here: float, what: Assumed, there: int) -> tuple[str, ...]:
    if templates is None:
        counts = f"more than {MOST:,}", f"more than {MOST * what.examples:,.0f}"
    else:
        counts = f"{templates:,}", f"{math.ceil(templates * what.examples):,}"
    enough = "yes" if templates is not None and templates <= there else "no, too few"
    return name, *counts, enough, "no size" if math.isinf(from_here) else f"{100 * from_here:.1f} points"


def _size(text: str | None) -> float:
    if text is None:
        raise QabiasError("--like says what --detect assumes; give --detect too, such as --detect 0.02 for 2 points")
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0.0 < size < 1.0:
        raise QabiasError(f"--detect {text!r} is no number above 0 and below 1, such as 0.02 for a bias of 2 points")
    return size
