"""Options that several commands share. Those of the panel `ADVANCED` are shown by `--help-all` only."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from qabias.benchmarks.registry import benchmark_names
from qabias.errors import QabiasError
from qabias.support.options import parse_options as parse_options

ADVANCED = "Advanced"


def _named() -> list[str]:
    """Names for the completion of a shell."""
    return list(benchmark_names())


def _models() -> list[str]:
    from qabias.scorers.baseline import KINDS

    return ["smollm2", *(f"baseline:{kind}" for kind in KINDS)]


def _asks() -> list[str]:
    from qabias.scorers.kind import ASK_METHODS

    return list(ASK_METHODS)


Benchmark = Annotated[
    str, typer.Argument(help="Benchmark (see `qabias list`) or folder of templates.", autocompletion=_named)
]
Model = Annotated[
    str,
    typer.Option(
        help="Hub id, folder, smollm2 or baseline:KIND.", rich_help_panel="Main", metavar="NAME", autocompletion=_models
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Query an OpenAI-compatible server at this URL.", rich_help_panel="Main", metavar="URL"),
]
Config = Annotated[
    str | None, typer.Option(help="Part of the benchmark. [all]", rich_help_panel="Main", metavar="NAME")
]
Limit = Annotated[
    int | None,
    typer.Option(help="Maximum number of examples, spread over all templates.", rich_help_panel="Main", metavar="N"),
]
RunFolder = Annotated[
    Path | None, typer.Option(help="Run folder. [runs/NAME]", rich_help_panel="Main", metavar="FOLDER")
]
Ask = Annotated[
    str | None,
    typer.Option(
        help="answer-logprob, letter-logprob, letter, cot, fill-blank or open-ended.",
        rich_help_panel="Prompt",
        metavar="METHOD",
        autocompletion=_asks,
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="Prompt format. [set by --ask]", rich_help_panel="Prompt", metavar="NAME"),
]
Permutations = Annotated[
    int,
    typer.Option(help="Answer orders per question: 1, 3 (cyclic) or 6 (all).", rich_help_panel="Prompt", metavar="N"),
]
Device = Annotated[
    str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, ...", rich_help_panel="Hardware", metavar="NAME")
]
Dtype = Annotated[
    str, typer.Option(help="auto, float32, bfloat16 or float16.", rich_help_panel="Hardware", metavar="NAME")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Count requests, tokens and cost without sending.", rich_help_panel="Hardware"),
]
Source = Annotated[
    str | None,
    typer.Option(help="Source of the texts, e.g. bundled or official.", rich_help_panel=ADVANCED, metavar="NAME"),
]
TwoSources = Annotated[
    str | None,
    typer.Option("--source", help="A published and a parallel source.", rich_help_panel=ADVANCED, metavar="NAME,NAME"),
]
Fixes = Annotated[
    bool, typer.Option("--fixes", help="Correct known defects of published texts.", rich_help_panel=ADVANCED)
]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.", rich_help_panel=ADVANCED, metavar="N")]
Revision = Annotated[
    str | None,
    typer.Option(help="Branch, tag or commit of a Hub model.", rich_help_panel=ADVANCED, metavar="NAME"),
]
Backend = Annotated[
    str | None,
    typer.Option(help="How the model is queried. [inferred from the model]", rich_help_panel=ADVANCED, metavar="NAME"),
]
LengthNorm = Annotated[
    str,
    typer.Option(
        help="Divide log-likelihoods by length: none, token or byte.", rich_help_panel=ADVANCED, metavar="NAME"
    ),
]
Parser = Annotated[
    str,
    typer.Option(help="How written answers are read: default or released.", rich_help_panel=ADVANCED, metavar="NAME"),
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="Scoring rule, e.g. delta=released. Repeatable.",
        rich_help_panel=ADVANCED,
        metavar="NAME=VALUE",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="Option of the backend or benchmark. Repeatable.",
        rich_help_panel=ADVANCED,
        metavar="NAME=VALUE",
    ),
]
BatchTokens = Annotated[
    int | None,
    typer.Option(help="Tokens per batch. [set by the device]", rich_help_panel=ADVANCED, metavar="N"),
]
MaxConnections = Annotated[
    int | None, typer.Option(help="Most requests to a server at once. [8]", rich_help_panel=ADVANCED, metavar="N")
]
Shard = Annotated[
    str,
    typer.Option(
        help="Compute one shard, as INDEX/COUNT from 0: 0/8.", rich_help_panel=ADVANCED, metavar="INDEX/COUNT"
    ),
]
Mirror = Annotated[
    str | None,
    typer.Option(
        envvar="QABIAS_UPSTREAM",
        help="Local mirror of the published files.",
        rich_help_panel=ADVANCED,
        metavar="FOLDER",
    ),
]
Report = Annotated[
    bool,
    typer.Option("--report/--no-report", help="Write report.html in the run folder.", rich_help_panel=ADVANCED),
]
Sample = Annotated[bool, typer.Option("--sample", help="Accept a run with --limit.")]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Overwrite existing output. Runs and inputs are never overwritten."),
]


def flag_of(name: str) -> str:
    """The option of a parameter of a command."""
    return {"prompt_format": "--format", "fixes": "--fixes"}.get(name, f"--{name.replace('_', '-')}")


def given_names(context: typer.Context) -> list[str]:
    """Names of the parameters of a command that were given, not left to their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]


def refuse_others(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Refuse parameters of a command that were given and would be ignored."""
    for name in given_names(context):
        if name not in allowed:
            raise QabiasError(f"{flag_of(name)} does not apply to {why}.", f"Remove {flag_of(name)}.")


def parse_rules(texts: list[str] | None) -> dict[str, str]:
    """Rules for counting answers from `--rule NAME=VALUE`."""
    return parse_options(texts or [], "--rule", "delta=released")
