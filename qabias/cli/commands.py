"""The commands by name, each imported on call, and how their help is written."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from qabias.benchmarks.registry import default_name
from qabias.cli.options import ADVANCED
from qabias.support.printable import echo


class Command(NamedTuple):
    """A command, or a group of commands."""

    function: str
    panel: str
    summary: str
    example: str = ""


COMMANDS: Mapping[str, Command] = {
    "audit": Command(
        "run:audit", "Measure", "Answer whether a model is biased, on all benchmarks.", "audit --model ORG/NAME"
    ),
    "run": Command("run:run", "Measure", "Measure a model.", "run {first} --model ORG/NAME --limit 400"),
    "score": Command(
        "score:score",
        "Measure",
        "Score answers from a file, a log or an existing run.",
        "score answers.csv --benchmark {first} --config Age",
    ),
    "plan": Command("run:plan", "Measure", "Estimate the sample size needed.", "plan {first} --detect 0.02"),
    "show": Command(
        "folders:show", "Look", "Show scores, tables or answers of a run.", "show runs/ONE --template Age-01"
    ),
    "report": Command(
        "folders:report",
        "Look",
        "Write the report of one run or several.",
        "report runs/ONE runs/OTHER --output report.html",
    ),
    "compare": Command(
        "folders:compare",
        "Look",
        "Compare runs: paired differences with confidence intervals.",
        "compare runs/ONE runs/OTHER --output comparison",
    ),
    "check": Command(
        "folders:check",
        "Look",
        "Check scores against thresholds (for CI).",
        "check runs/ONE --max bias_ambig=0.1 --min accuracy_ambig=0.9 --by category",
    ),
    "export": Command(
        "folders:export",
        "Share",
        "Export tables, figures, or drafts of documents.",
        "export runs/ONE --as bias-profile --output profile.html",
    ),
    "verify": Command("folders:verify", ADVANCED, "Recompute every number of a run or a document.", "verify runs/ONE"),
    "push": Command("push:push", "Share", "Push a dataset, metric or results to the Hub."),
    "list": Command("list:list_", "Study", "List benchmarks and their choices.", "list {first}"),
    "contamination": Command(
        "run:contamination",
        "Study",
        "Test whether a model has seen the published questions.",
        "contamination {first} --model ORG/NAME --limit 400",
    ),
    "merge": Command(
        "folders:merge", ADVANCED, "Merge the shards of a run.", "merge shard-0 shard-1 shard-2 --output whole"
    ),
    "pool": Command(
        "folders:pool",
        ADVANCED,
        "Average runs over prompts, formats or seeds.",
        "pool runs/PROMPT-1 runs/PROMPT-2 runs/PROMPT-3 --output runs/mean",
    ),
    "build": Command(
        "run:build",
        ADVANCED,
        "Write a dataset folder: card and Parquet files.",
        "build {first} --source official --mirror MIRROR --output {first}_official",
    ),
}


def _show_all(context: Any, _: Any, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.meta["help_all"] = True
        echo(context.get_help())
        context.exit()


def _with_help_all(params: list[Any]) -> list[Any]:
    own = next((param for param in params if param.name == "help"), None)
    if own is None:
        return params
    added = copy(own)
    added.name, added.opts, added.callback = "help_all", ["--help-all"], _show_all
    added.help = "Show all commands and options."
    return [*params, added]


def _write_groups(context: Any, formatter: Any, rows: list[tuple[str, tuple[str, str]]], what: str) -> int:
    """Write rows by panel, with `ADVANCED` ones only on request; returns the number hidden."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for panel, row in rows:
        groups.setdefault(panel, []).append(row)
    hidden = [] if context.meta.get("help_all") else groups.pop(ADVANCED, [])
    for panel, members in groups.items():
        with formatter.section(panel or what):
            formatter.write_dl(members)
    return len(hidden)


class GroupedCommand(TyperCommand):
    """A command whose help shows its options by panel."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with `--help-all`."""
        return _with_help_all(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options by panel; the panel Advanced only with `--help-all`."""
        rows = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not {"--help", "--help-all"} & set(param.opts):
                own = "Arguments" if param.param_type_name == "argument" else ""
                rows.append((own or getattr(param, "rich_help_panel", None) or "", record))
        hidden = _write_groups(ctx, formatter, rows, "Options")
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} more options: --help-all. Choices: qabias list {default_name()}.")


class _Loaded(dict[str, Any]):
    """The commands by name, each made on lookup."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS))

    def get(self, name: str, default: Any = None) -> Any:
        """A command, or the default."""
        if name in self and self[name] is None:
            self[name] = _load(name)
        return super().get(name, default)


class Group(TyperGroup):
    """A group of commands with `--help-all`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with `--help-all`."""
        return _with_help_all(super().get_params(ctx))


class Commands(Group):
    """The group of all commands, each imported on call."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": _Loaded()})

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by panel, then the options with `--help-all`."""
        rows = [(command.panel, (name, command.summary)) for name, command in COMMANDS.items()]
        hidden = _write_groups(ctx, formatter, rows, "Commands")
        if ctx.meta.get("help_all"):
            records = [param.get_help_record(ctx) for param in self.get_params(ctx)]
            with formatter.section("Options"):
                formatter.write_dl([record for record in records if record is not None])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} more commands and all options: --help-all. Help of one: qabias run --help.")


def example_of(name: str) -> str:
    """An example of a command, without the program's name."""
    return COMMANDS[name].example.format(first=default_name()) if name in COMMANDS else f"{name} --help"


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name].function.partition(":")
    command = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
    if isinstance(command, typer.Typer):
        command.info.cls = Group
        group = typer.main.get_group(command)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    example = example_of(name)
    alone.command(name, cls=GroupedCommand, epilog=f"Example: qabias {example}" if example else None)(command)
    return typer.main.get_command(alone)
