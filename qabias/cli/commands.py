"""The commands by name, each imported when it is asked for, so that `--help` answers at once."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from qabias.benchmarks.registry import default_name


class Command(NamedTuple):
    """A command, or a group of commands."""

    function: str
    summary: str
    example: str = ""


COMMANDS: Mapping[str, Command] = {
    "run": Command(
        "run:run",
        "Measure a model: answers, scores and report.",
        "run {first} --model smollm2 --limit 400. The same command again continues a run.",
    ),
    "plan": Command("plan:plan", "Templates that show a bias of some size.", "plan {first} --detect 0.02"),
    "score": Command(
        "score:score", "Score a run again, or anybody's answers.", "score answers.csv --benchmark {first} --config Age"
    ),
    "show": Command("folders:show", "Scores, tables or answers of a run.", "show runs/ONE --template Age-01"),
    "report": Command(
        "folders:report", "One page of a run, or of several.", "report runs/ONE runs/OTHER --output report.html"
    ),
    "compare": Command(
        "folders:compare",
        "Runs side by side, and which differences hold.",
        "compare runs/ONE runs/OTHER --output comparison",
    ),
    "check": Command(
        "check:check",
        "Hold scores against limits, for CI.",
        "check runs/ONE --max bias_ambig=0.1 --min accuracy_ambig=0.9 --by category",
    ),
    "check-device": Command(
        "check_device:check_device",
        "Prove that local models compute right and fast here.",
        "check-device --minutes 8 --output device.json",
    ),
    "pool": Command(
        "folders:pool",
        "The mean of runs of the same questions.",
        "pool runs/PROMPT-1 runs/PROMPT-2 runs/PROMPT-3 --output runs/mean",
    ),
    "export": Command(
        "folders:export",
        "Tables as CSV, Markdown and LaTeX, figures as SVG.",
        "export runs/ONE --format latex --table bias_by_category",
    ),
    "merge": Command(
        "folders:merge", "Put the shards of a run together.", "merge shard-0 shard-1 shard-2 --output whole"
    ),
    "results": Command(
        "folders:results",
        "Scores as the Hub reads them, for a model's card.",
        "results runs/my-run --model-id me/model --dataset me/{first} --output model_clone",
    ),
    "build": Command(
        "build:build",
        "Write a dataset: card and Parquet files.",
        "build {first} --source official --upstream-dir MIRROR --output {first}_official",
    ),
    "list": Command("list:list_", "Benchmarks, sources, formats, rules and scorers."),
    "push": Command("push:push", "Datasets, metrics and results to the Hugging Face Hub."),
}


class _Loaded(dict[str, Any]):
    """The commands by name, of which a value is made when it is looked up."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS))

    def get(self, name: str, default: Any = None) -> Any:
        """A command; the default where there is none."""
        if name in self and self[name] is None:
            self[name] = _load(name)
        return super().get(name, default)


class Commands(TyperGroup):
    """The group of all commands, which imports none of them before it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": _Loaded()})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each is about."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name].function.partition(":")
    command = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
    if isinstance(command, typer.Typer):
        group = typer.main.get_group(command)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    example = COMMANDS[name].example.format(first=default_name())
    alone.command(name, epilog=f"Example: qabias {example}" if example else None)(command)
    return typer.main.get_command(alone)
