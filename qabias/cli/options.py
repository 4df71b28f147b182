"""Options that several commands share."""

from typing import Annotated

import typer

from qabias.benchmarks.registry import benchmark_names
from qabias.support.options import parse_options as parse_options

BENCHMARKS = f"{', '.join(benchmark_names()[:-1])} or {benchmark_names()[-1]}"

Benchmark = Annotated[str, typer.Argument(help=f"Benchmark: {BENCHMARKS}.", show_default=False)]
Config = Annotated[str, typer.Option(help="Configuration of the dataset (see `qabias list`).")]
Source = Annotated[str, typer.Option(help="Source of the texts: bundled, official or release.")]
Fixes = Annotated[bool, typer.Option("--fixes", help="Correct the known defects of official or released texts.")]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.")]
Sample = Annotated[bool, typer.Option("--sample", help="Take the scores of a sample (a run with --limit) too.")]
UpstreamDir = Annotated[
    str | None,
    typer.Option(envvar="QABIAS_UPSTREAM", help="Local mirror of the authors' published files.", show_default=False),
]
