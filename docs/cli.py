"""The reference of the command line, written from the commands.

`python -m docs.cli` prints the page, `python -m docs.cli --write` writes docs/cli.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from qabias.cli import app
from qabias.cli.commands import COMMANDS

PAGE = Path(__file__).parent / "cli.md"
HEAD = """# Command line

Generated from the commands by `python -m docs.cli --write`. `qabias --help` lists them, and each has `--help`.
"""


def page() -> str:
    """The page: for every command its summary, arguments and options."""
    group = typer.main.get_command(app)
    context = group.make_context("qabias", [], resilient_parsing=True)
    return HEAD + "".join(_section(group.get_command(context, name), name, context) for name in COMMANDS)


def _section(command: Any, name: str, parent: Any) -> str:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    if hasattr(command, "commands"):
        return "".join(_section(one, f"{name} {part}", parent) for part, one in sorted(command.commands.items()))
    usage = " ".join(["qabias", name, *command.collect_usage_pieces(context)])
    rows = "".join(f"| {words} | {text} |\n" for words, text in _rows(command, context))
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    return f"\n## {name}\n\n`{usage}`\n\n{text}\n\n| option | meaning |\n|---|---|\n{rows}"


def _rows(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    """Words and meaning of every parameter but --help, the rarer ones included."""
    for parameter in command.params:
        hidden, parameter.hidden = getattr(parameter, "hidden", False), False
        record = parameter.get_help_record(context)
        parameter.hidden = hidden
        if record and not {"--help", "--help-all"} & set(parameter.opts):
            yield f"`{record[0]}`", " ".join(record[1].split()).replace("|", "\\|")


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
