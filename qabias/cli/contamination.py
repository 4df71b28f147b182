"""`qabias contamination`: has a model seen the published questions? One run on them, one on parallel ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from qabias.cli import options
from qabias.cli.run import arguments_of, estimate

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
    from qabias.contamination import arguments_of_forms, default_sources, run_forms

    arguments, machine = arguments_of(benchmark=benchmark, **others)
    arguments = replace(arguments, source=source or default_sources(benchmark))
    if dry_run:
        for each in arguments_of_forms(arguments):
            estimate(each, machine, ask)
        return
    print_forms(run_forms(arguments, output, machine, ask=ask), report=report)
