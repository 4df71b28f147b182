"""Options that several commands share."""

from collections.abc import Collection
from typing import Annotated

import typer

from qabias.benchmarks.registry import benchmark_names
from qabias.errors import QabiasError
from qabias.support.options import parse_options as parse_options

BENCHMARKS = f"{', '.join(benchmark_names()[:-1])} or {benchmark_names()[-1]}"

Benchmark = Annotated[str, typer.Argument(help=f"Benchmark: {BENCHMARKS}; or a folder of templates.")]
Config = Annotated[
    str | None, typer.Option(help="Configuration of the dataset (see `qabias list`); by default that of all examples.")
]
_SOURCE = "Source of the texts, such as bundled, official or release (see `qabias list`); by default the first one."
_BOTH = "A published one and the bundled one with a comma between make two runs and their comparison."
Source = Annotated[str | None, typer.Option(help=_SOURCE)]
Sources = Annotated[str | None, typer.Option(help=f"{_SOURCE} {_BOTH}")]
Fixes = Annotated[bool, typer.Option("--fixes", help="Correct the known defects of official or released texts.")]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.")]
Sample = Annotated[bool, typer.Option("--sample", help="Take the scores of a sample (a run with --limit) too.")]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        help="NAME=VALUE for how answers are counted, e.g. delta=released (see `qabias list`); may be repeated.",
    ),
]
OwnOptions = Annotated[
    list[str] | None,
    typer.Option("--option", help="NAME=VALUE for the benchmark (see `qabias list`); may be repeated."),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files that this command did not write of the same things; never a run, or what it reads.",
    ),
]
UpstreamDir = Annotated[
    str | None, typer.Option(envvar="QABIAS_UPSTREAM", help="Local mirror of the authors' published files.")
]


def flag_of(name: str) -> str:
    """The option of a parameter of a command."""
    return {"prompt_format": "--format"}.get(name, f"--{name.replace('_', '-')}")


def given_names(context: typer.Context) -> list[str]:
    """Names of the parameters of a command that were given, not left to their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]


def refuse_others(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Refuse parameters of a command that were given and would be ignored."""
    for name in given_names(context):
        if name not in allowed:
            raise QabiasError(f"{flag_of(name)} {why}, leave it out")


def parse_rules(texts: list[str] | None) -> dict[str, str]:
    """Rules for counting answers from `--score NAME=VALUE`."""
    return parse_options(texts or [], "score", "delta=released")
