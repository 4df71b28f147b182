"""`qabias plan`: how many templates and examples show a bias of some size."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from qabias.cli.options import parse_options, takes
from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.comparison.sample_size import Assumed
    from qabias.runs.arguments import RunArguments


@takes("config source option limit mirror")
def plan(
    benchmark: Annotated[str, typer.Argument(help="Benchmark or folder of templates.")],
    detect: Annotated[float | None, typer.Option(help="Bias to detect, e.g. 0.02 for 2 points.")] = None,
    until: Annotated[str | None, typer.Option(help="Condition that stops a run early, e.g. 'bias_ambig<0.1'.")] = None,
    *,
    config: str | None,
    source: Annotated[str | None, typer.Option(help="Source of the texts. [the first]")] = None,
    option: list[str] | None,
    limit: Annotated[int | None, typer.Option(help="Maximum number of examples, as for run.")] = None,
) -> None:
    """Estimate the sample size that detects a bias or decides a condition."""
    from qabias.benchmarks import ALL
    from qabias.benchmarks.registry import load_benchmark
    from qabias.comparison.sample_size import IN_COMMON, assumed, needed, planned_measure, templates_of
    from qabias.runs.arguments import RunArguments, check_own_options
    from qabias.runs.looks import canonical
    from qabias.runs.question import load_examples
    from qabias.tables.model import Column, Table
    from qabias.tables.terminal import MIN_WIDTH, Console, print_table

    if (detect is None) == (until is None):
        raise QabiasError("plan needs one of --detect and --until.", "Add --detect 0.02.")
    chosen = load_benchmark(benchmark)
    config, source = config or chosen.configs[-1], source or chosen.sources[0]
    arguments = RunArguments(benchmark, "", config, source, limit=limit, options=parse_options(option or []))
    if until is not None:
        _plan_until(replace(arguments, until=canonical(chosen, [until], None)))
        return
    assert detect is not None
    if not 0.0 < detect < 1.0:
        raise QabiasError(f"--detect is {detect:g}.", "Give a number above 0 and below 1, such as 0.02 for 2 points.")
    measure = planned_measure(chosen)
    check_own_options(chosen, arguments.options)
    table = load_examples(arguments).table
    groups = templates_of(chosen, table)
    assumption = assumed(chosen, groups, table)
    clusters, count = chosen.facts.clusters
    there = groups[ALL][count]
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    console.print(
        f"{measure.title}, 80 % power, 5 % two-sided. Assumed: {100 * (1 - assumption.erring):.1f} % of the answers "
        f"take no side, a correlation of {assumption.correlation:.2f} of the answers to one of the {clusters}, "
        f"{assumption.rows:.1f} examples of each for this score ({assumption.examples:.1f} in all). "
        f"As they are not equally large, 100 {clusters} weigh as {100 * assumption.evenness:.0f}. Of two models, "
        f"that {IN_COMMON:.0%} of the variance of their scores is common to both, which pairing saves.",
        markup=False,
        highlight=False,
    )
    effects = {
        f"a bias of {100 * detect:g} points": assumption.bias,
        f"a difference of {100 * detect:g} points between two models": assumption.difference,
    }
    rows = tuple(
        _row(name, needed(detect, smallest), smallest(there), assumption, there) for name, smallest in effects.items()
    )
    headings = ("to show", clusters, "examples", "enough here", "shown here from")
    title = f"{arguments.benchmark} {arguments.config} has {there:,} {clusters}"
    print_table(Table("needed", title, "", "", tuple(Column(text, text, "text") for text in headings), rows), console)
    smaller = {name: scores[count] for name, scores in groups.items() if name != ALL and scores[count] < there}
    able = [name for name, number in smaller.items() if assumption.bias(number) <= detect]
    if smaller:
        console.print(
            f"{len(able) or 'None'} of its {len(smaller)} parts would show the bias without the others. They have "
            f"{min(smaller.values())} to {max(smaller.values())} {clusters}.",
            markup=False,
            highlight=False,
        )


def _row(name: str, templates: int | None, from_here: float, assumption: Assumed, there: int) -> tuple[str, ...]:
    from qabias.comparison.sample_size import MOST

    if templates is None:
        counts = f"more than {MOST:,}", f"more than {MOST * assumption.examples:,.0f}"
    else:
        counts = f"{templates:,}", f"{math.ceil(templates * assumption.examples):,}"
    enough = "yes" if templates is not None and templates <= there else "no, too few"
    return name, *counts, enough, "no size" if math.isinf(from_here) else f"{100 * from_here:.1f} points"


def _plan_until(arguments: RunArguments) -> None:
    from qabias.planning.looks import expected_questions
    from qabias.tables.model import Column, Table
    from qabias.tables.terminal import Console, print_table

    headings = ("true value", "questions", "share", "pass", "fail")
    rows = tuple(
        (f"{one.truth:.3f}", f"{one.questions:,.0f}", f"{one.share:.0%}", f"{one.passed:.0%}", f"{one.failed:.0%}")
        for one in expected_questions(arguments)
    )
    columns = tuple(Column(text, text, "text") for text in headings)
    print_table(Table("expected", f"Expected questions until {arguments.until}", "", "", columns, rows), Console())
