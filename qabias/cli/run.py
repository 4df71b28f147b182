"""The commands that ask: run, contamination, plan; and `build`, which writes their datasets."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabias.api.arguments import Arguments, run_arguments
from qabias.benchmarks.registry import default_name
from qabias.cli import options
from qabias.errors import QabiasError
from qabias.support.printable import echo

if TYPE_CHECKING:
    from qabias.comparison.sample_size import Assumed
    from qabias.runs.arguments import Machine, RunArguments


@options.takes(
    "benchmark model base_url config limit scores until by subject whole output ask format permutations device dtype "
    "dry_run source fixes seed revision backend length_norm parser rules option batch_tokens max_connections shard "
    "report mirror"
)
def run(
    *,
    ask: str | None,
    whole: bool,
    output: Path | None,
    dry_run: options.DryRun = False,
    report: options.Report = True,
    **others: Any,
) -> None:
    """Measure a model. Rerun the command to resume."""
    from qabias.cli.printing import print_result
    from qabias.runs.run import run as run_benchmark

    arguments, machine = arguments_of(whole=whole, **others)
    if dry_run:
        estimate(arguments, machine, ask)
        return
    result = run_benchmark(arguments, output, machine, ask=ask, whole=whole)
    print_result(result, report=report)


def arguments_of(
    rules: list[str] | None,
    option: list[str] | None,
    until: list[str] | None = None,
    scores: list[str] | None = None,
    **others: Any,
) -> tuple[RunArguments, Machine]:
    """A run's arguments from the parameters of a command."""
    return run_arguments(
        Arguments(
            rules=options.parse_rules(rules),
            option=options.parse_options(option or []),
            until=until or (),
            scores=scores or (),
            **others,
        )
    )


def estimate(arguments: RunArguments, machine: Machine, ask: str | None) -> None:
    """Print the requests, tokens and cost of a server run."""
    from qabias.planning import estimate_run, print_estimate

    print_estimate(estimate_run(arguments.resolve(machine, ask=ask)))


@options.takes(
    "model base_url output ask device dtype revision backend option batch_tokens max_connections seed mirror"
)
def audit(
    *,
    ask: str | None,
    output: Path | None,
    budget: Annotated[int, typer.Option(help="Maximum number of questions.", rich_help_panel="Main")] = 2000,
    threshold: Annotated[float, typer.Option(help="Smallest bias that counts.", rich_help_panel="Main")] = 0.1,
    **others: Any,
) -> None:
    """Audit a model for bias (exit 0 no, 1 yes, 3 undecided).

    Rerun the command to resume.
    """
    from qabias.cli.folders import CANNOT_TELL, FAILED
    from qabias.runs.distributed import is_first
    from qabias.studies.audit import audit as audit_model

    arguments, machine = arguments_of(benchmark=default_name(), rules=None, **others)
    result = audit_model(arguments, output, machine, budget=budget, threshold=threshold, ask=ask)
    if is_first():
        echo(f"{result}\n{'Page':<10}{result.page}")
    open_states = dict.fromkeys(("undecided", "not interpretable"), CANNOT_TELL)
    raise typer.Exit({"yes": FAILED, **open_states}.get(result.state, 0))


_TEXT = "A published and a parallel source."
Sources = Annotated[str | None, typer.Option(metavar="NAME,NAME", help=_TEXT, rich_help_panel=options.ADVANCED)]


@options.takes(
    "benchmark model base_url config limit output ask format device dtype dry_run source fixes seed permutations "
    "revision backend length_norm parser rules option batch_tokens max_connections shard report mirror"
)
def contamination(
    *,
    benchmark: str,
    ask: str | None,
    output: Path | None,
    source: Sources = None,
    dry_run: options.DryRun = False,
    report: options.Report = True,
    **others: Any,
) -> None:
    """Test whether a model has seen the published questions.

    It measures published and parallel texts, and compares the two runs.
    """
    from qabias.cli.printing import print_forms
    from qabias.studies.contamination import arguments_of_forms, default_sources, run_forms

    arguments, machine = arguments_of(benchmark=benchmark, **others)
    arguments = replace(arguments, source=source or default_sources(benchmark))
    if dry_run:
        for each in arguments_of_forms(arguments):
            estimate(each, machine, ask)
        return
    print_forms(run_forms(arguments, output, machine, ask=ask), report=report)


@options.takes("config source option limit mirror")
def plan(
    benchmark: Annotated[str, typer.Argument(help="Benchmark or folder of templates.")],
    *,
    detect: Annotated[float, typer.Option(help="Bias to detect, e.g. 0.02 for 2 points.")],
    config: str | None,
    source: Annotated[str | None, typer.Option(help="Source of the texts. [the first]")] = None,
    option: list[str] | None,
    limit: Annotated[int | None, typer.Option(help="Maximum number of examples, as for run.")] = None,
) -> None:
    """Estimate the sample size that detects a bias."""
    from qabias.benchmarks import ALL
    from qabias.benchmarks.registry import load_benchmark
    from qabias.comparison.sample_size import IN_COMMON, assumed, needed, planned_measure, templates_of
    from qabias.runs.arguments import RunArguments, check_own_options
    from qabias.runs.question import load_examples
    from qabias.tables.model import Column, Table
    from qabias.tables.terminal import MIN_WIDTH, Console, print_table

    chosen = load_benchmark(benchmark)
    config, source = config or chosen.configs[-1], source or chosen.sources[0]
    arguments = RunArguments(benchmark, "", config, source, limit=limit, options=options.parse_options(option or []))
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


@options.takes("benchmark output config source fixes seed option overwrite mirror")
def build(
    *,
    benchmark: str,
    output: Annotated[Path, typer.Option(help="Dataset folder to write.")],
    config: str | None,
    source: str | None,
    fixes: bool,
    seed: int,
    option: list[str] | None,
) -> None:
    """Generate a dataset folder: card and Parquet files that `load_dataset` reads."""
    from qabias.benchmarks import load_benchmark, make_origin
    from qabias.benchmarks.registry import is_folder
    from qabias.building.folder import claimed, is_built
    from qabias.building.sources import mirror_folder
    from qabias.runs.arguments import check_own_options
    from qabias.support.outputs import check_new_folder

    chosen = load_benchmark(benchmark)
    own = options.parse_options(option or [])
    check_own_options(chosen, own)
    read = [Path(name) for name in (benchmark if is_folder(benchmark) else None, mirror_folder()) if name]
    name = config or chosen.configs[-1]
    check_new_folder(output, is_built(chosen.name, name), inputs=read)
    origin = make_origin(chosen, source or chosen.sources[0], seed, fixes, own)
    with claimed(output, chosen.name, name) as others:
        tables = chosen.write_folder(output, name, origin)
    if others:
        echo(f"data of another build: {', '.join(others)}")
    for name, table in tables.items():
        echo(f"{name:<22}{table.num_rows:>9,} examples")
    echo(f"{'in all':<22}{sum(table.num_rows for table in tables.values()):>9,} examples in {output}")
