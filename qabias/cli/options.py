"""Options of several commands. Only `--help-all` shows the panel `ADVANCED`."""

from collections.abc import Callable, Collection
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_origin

import typer

from qabias.api.arguments import ADVANCED, FIELDS
from qabias.api.arguments import parse_options as parse_options
from qabias.benchmarks.registry import benchmark_names
from qabias.building.sources import using_mirror
from qabias.errors import QabiasError, arg, flag
from qabias.support.outputs import overwriting


def _models() -> list[str]:
    from qabias.scorers.baseline import KINDS

    return ["smollm2", *(f"baseline:{kind}" for kind in KINDS)]


def _asks() -> list[str]:
    from qabias.scorers.kind import ASK_METHODS, FORCED_CHOICE

    return [*ASK_METHODS, FORCED_CHOICE]


_COMPLETIONS = {"benchmark": lambda: list(benchmark_names()), "model": _models, "ask": _asks}

Report = Annotated[
    bool, typer.Option("--report/--no-report", help="Write report.html in the run folder.", rich_help_panel=ADVANCED)
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Count requests, tokens and cost without sending.", rich_help_panel="Hardware")
]
Sample = Annotated[bool, typer.Option("--sample", help="Accept a run with --limit.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Overwrite existing output. Runs and inputs are never overwritten.")
]


def takes(names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these arguments of a run, in this order, after its own that are not named.

    The mirror and whether to overwrite are settings of the call, not arguments of the function.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = signature(command, eval_str=True).parameters
        first = [name for name, each in own.items() if name not in names.split() and each.kind is not each.VAR_KEYWORD]
        annotated = [name for name, each in own.items() if get_origin(each.annotation) is Annotated]
        parameters = [
            own[name].replace(kind=Parameter.KEYWORD_ONLY) if name in (*first, *annotated) else _parameter(name)
            for name in (*first, *names.split())
        ]

        @wraps(command)
        def call(mirror: str | None = None, overwrite: bool = False, **named: Any) -> None:
            with using_mirror(mirror), overwriting(overwrite):
                command(**named)

        call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        return call

    return decorate


def _parameter(name: str) -> Parameter:
    """The argument or option of a command for an argument of a run."""
    if name == "overwrite":
        return Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=Overwrite)
    field, shown = FIELDS[name], FIELDS[name].metadata
    more: dict[str, Any] = {"help": shown["help"], "autocompletion": _COMPLETIONS.get(name)}
    if name == "benchmark":
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[str, typer.Argument(**more)])
    more |= {"metavar": shown["metavar"], "rich_help_panel": shown["panel"]}
    more["envvar"] = "QABIAS_UPSTREAM" if name == "mirror" else None
    default = field.default or None if shown["typer"] else field.default
    kind: Any = shown["typer"] or field.type
    option = typer.Option(flag(name), **more)
    annotation = Annotated[kind | None, option] if default is None else Annotated[kind, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def given_names(context: typer.Context) -> list[str]:
    """Names of the parameters that the user gave."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]


def refuse_others(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Refuse given parameters that would have no effect."""
    for name in given_names(context):
        if name not in allowed:
            raise QabiasError(f"{arg(name)} does not apply to {why}.", f"Remove {arg(name)}.")


def parse_rules(texts: list[str] | None) -> dict[str, str]:
    """Rules for counting answers from `--rule NAME=VALUE`."""
    return parse_options(texts or [], "rules", "delta=released")
