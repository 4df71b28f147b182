"""Options of several commands. Only `--help-all` shows the panel `ADVANCED`."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from qabias.benchmarks.registry import benchmark_names
from qabias.errors import QabiasError
from qabias.support.options import parse_options as parse_options

ADVANCED = "Advanced"


def _models() -> list[str]:
    from qabias.scorers.baseline import KINDS

    return ["smollm2", *(f"baseline:{kind}" for kind in KINDS)]


def _asks() -> list[str]:
    from qabias.scorers.kind import ASK_METHODS, FORCED_CHOICE

    return [*ASK_METHODS, FORCED_CHOICE]


def option(panel: str, text: str, metavar: str | None = None, name: str = "", **more: Any) -> Any:
    """An option of a panel of the help."""
    named = (name,) if name else ()
    return typer.Option(*named, help=text, metavar=metavar, rich_help_panel=panel, **more)


Benchmark = Annotated[
    str, typer.Argument(help="Benchmark or folder of templates.", autocompletion=lambda: list(benchmark_names()))
]
Model = Annotated[str, option("Main", "Hub id, folder, smollm2 or baseline:KIND.", "NAME", autocompletion=_models)]
BaseUrl = Annotated[str | None, option("Main", "Query an OpenAI-compatible server at this URL.", "URL")]
Config = Annotated[str | None, option("Main", "Part of the benchmark. [all]", "NAME")]
Limit = Annotated[int | None, option("Main", "Maximum number of examples, in proportion to the templates.", "N")]
Until = Annotated[
    list[str] | None, option("Main", "Stop as soon as this is decided, e.g. 'bias_ambig<0.1'. Repeatable.", "CONDITION")
]
UntilBy = Annotated[str | None, option(ADVANCED, "With --until: decide every group, e.g. category.", "NAME", "--by")]
Whole = Annotated[bool, option(ADVANCED, "With --until: continue to the full benchmark.", name="--all")]
RunFolder = Annotated[Path | None, option("Main", "Run folder. [runs/NAME]", "FOLDER")]
_METHODS = "answer-logprob, letter-logprob, letter, cot, fill-blank, open-ended, json or forced-choice."
Ask = Annotated[str | None, option("Prompt", _METHODS, "METHOD", autocompletion=_asks)]
Format = Annotated[str | None, option("Prompt", "Prompt format. [set by --ask]", "NAME", "--format")]
Permutations = Annotated[int, option("Prompt", "Answer orders per question: 1, 3 (cyclic) or 6 (all).", "N")]
Device = Annotated[str, option("Hardware", "auto, cpu, cuda, cuda:1, mps, ...", "NAME")]
Dtype = Annotated[str, option("Hardware", "auto, float32, bfloat16 or float16.", "NAME")]
DryRun = Annotated[bool, option("Hardware", "Count requests, tokens and cost without sending.", name="--dry-run")]
Source = Annotated[str | None, option(ADVANCED, "Source of the texts, e.g. bundled or official.", "NAME")]
TwoSources = Annotated[str | None, option(ADVANCED, "A published and a parallel source.", "NAME,NAME", "--source")]
Fixes = Annotated[bool, option(ADVANCED, "Correct known defects of published texts.", name="--fixes")]
Seed = Annotated[int, option(ADVANCED, "Seed of every random draw.", "N")]
Revision = Annotated[str | None, option(ADVANCED, "Branch, tag or commit of a Hub model.", "NAME")]
Backend = Annotated[str | None, option(ADVANCED, "How the model is queried. [inferred from the model]", "NAME")]
LengthNorm = Annotated[str, option(ADVANCED, "Divide log-likelihoods by length: none, token or byte.", "NAME")]
Parser = Annotated[str, option(ADVANCED, "How written answers are read: default or released.", "NAME")]
_PAIR = "NAME=VALUE"
Rules = Annotated[list[str] | None, option(ADVANCED, "Scoring rule, e.g. delta=released. Repeatable.", _PAIR, "--rule")]
Options = Annotated[
    list[str] | None, option(ADVANCED, "Option of the backend or benchmark. Repeatable.", _PAIR, "--option")
]
BatchTokens = Annotated[int | None, option(ADVANCED, "Tokens per batch. [set by the device]", "N")]
MaxConnections = Annotated[int | None, option(ADVANCED, "Most requests to a server at once. [8]", "N")]
Shard = Annotated[str, option(ADVANCED, "Compute one shard, as INDEX/COUNT from 0: 0/8.", "INDEX/COUNT")]
Mirror = Annotated[
    str | None, option(ADVANCED, "Local mirror of the published files.", "FOLDER", envvar="QABIAS_UPSTREAM")
]
Report = Annotated[bool, option(ADVANCED, "Write report.html in the run folder.", name="--report/--no-report")]
Sample = Annotated[bool, typer.Option("--sample", help="Accept a run with --limit.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Overwrite existing output. Runs and inputs are never overwritten.")
]


def flag_of(name: str) -> str:
    """The option of a command's parameter."""
    return {"prompt_format": "--format"}.get(name, f"--{name.replace('_', '-')}")


def given_names(context: typer.Context) -> list[str]:
    """Names of the parameters that the user gave."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]


def refuse_others(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Refuse given parameters that would have no effect."""
    for name in given_names(context):
        if name not in allowed:
            raise QabiasError(f"{flag_of(name)} does not apply to {why}.", f"Remove {flag_of(name)}.")


def parse_rules(texts: list[str] | None) -> dict[str, str]:
    """Rules for counting answers from `--rule NAME=VALUE`."""
    return parse_options(texts or [], "rules", "delta=released")
