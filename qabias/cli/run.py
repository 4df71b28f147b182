"""`qabias run`: measure a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabias.api.arguments import Arguments, run_arguments
from qabias.cli import options

if TYPE_CHECKING:
    from qabias.runs.arguments import Machine, RunArguments


@options.takes(
    "benchmark model base_url config limit until by whole output ask format permutations device dtype dry_run source "
    "fixes seed revision backend length_norm parser rules option batch_tokens max_connections shard report mirror"
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
    rules: list[str] | None, option: list[str] | None, until: list[str] | None = None, **others: Any
) -> tuple[RunArguments, Machine]:
    """A run's arguments from the parameters of a command."""
    return run_arguments(
        Arguments(
            rules=options.parse_rules(rules), option=options.parse_options(option or []), until=until or (), **others
        )
    )


def estimate(arguments: RunArguments, machine: Machine, ask: str | None) -> None:
    """Print the requests, tokens and cost of a server run."""
    from qabias.planning import estimate_run, print_estimate

    print_estimate(estimate_run(arguments.resolve(machine, ask=ask)))
