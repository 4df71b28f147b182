"""The command line, whose commands are imported on call."""

import os
import sys
from typing import Annotated

import typer

from qabias.benchmarks.registry import default_name
from qabias.cli.commands import Commands
from qabias.cli.failures import EXIT_USER_ERROR as EXIT_USER_ERROR
from qabias.cli.failures import INTERRUPTED, check_readable, fail, log_plainly, say_interrupted, warn_in_one_line
from qabias.errors import command_line
from qabias.support import printable
from qabias.support.printable import echo
from qabias.support.version import __version__

_FIRST = default_name()

app = typer.Typer(
    name="qabias",
    cls=Commands,
    help="Measure social bias of question-answering and inference models.",
    epilog=f"Example: qabias run {_FIRST} --model ORG/NAME --limit 400",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _globally(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="QABIAS_DEBUG", help="Print the traceback of an error.")
    ] = False,
) -> None:
    context.ensure_object(dict)["debug"] = debug
    context.with_resource(command_line())
    if version:
        echo(f"qabias {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line.

    A mistake of the user prints two lines on standard error (exit code 2), a fault of qabias exits with 70.
    """
    # Threads of torch that wait for each other sleep, unless the environment sets how they wait.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    printable.write_plainly()
    warn_in_one_line()
    log_plainly()
    command = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    settings = {"debug": False}
    try:
        try:
            check_readable(sys.argv[1:])
            sys.exit(app(obj=settings, standalone_mode=False, prog_name="qabias") or 0)
        finally:
            printable.flush()
    except SystemExit as stopped:
        if stopped.code == INTERRUPTED:
            say_interrupted(command)
        raise
    except KeyboardInterrupt:
        say_interrupted(command)
        sys.exit(INTERRUPTED)
    except Exception as error:  # the one place that reports any other error
        # Typer brings a click of its own, so neither the class nor its `ctx` can be imported for the type checker.
        if type(error).__name__ == "NoArgsIsHelpError":
            echo(error.ctx.get_help(), err=True)  # type: ignore[attr-defined]
            sys.exit(EXIT_USER_ERROR)
        if type(error).__name__ == "Abort":
            say_interrupted(command)
            sys.exit(INTERRUPTED)
        sys.exit(fail(error, command, debug=settings["debug"]))
