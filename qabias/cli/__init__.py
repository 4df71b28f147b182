"""The command line: one file for each command.

Heavy packages are imported where they are used, so that `--help` answers at once.
"""

import sys
from typing import Annotated

import typer

from qabias.benchmarks.registry import default_name
from qabias.cli.build import build
from qabias.cli.check import check
from qabias.cli.check_device import check_device
from qabias.cli.compare import compare
from qabias.cli.export import export
from qabias.cli.failures import EXIT_USER_ERROR as EXIT_USER_ERROR
from qabias.cli.failures import INTERRUPTED, check_readable, fail, say_interrupted, warn_in_one_line
from qabias.cli.familiarity import familiarity
from qabias.cli.list import list_
from qabias.cli.merge import merge
from qabias.cli.plan import plan
from qabias.cli.pool import pool
from qabias.cli.push import push
from qabias.cli.report import report
from qabias.cli.results import results
from qabias.cli.run import run
from qabias.cli.score import score
from qabias.cli.show import show
from qabias.cli.validate import validate
from qabias.support import streams
from qabias.support.processor import wait_passively
from qabias.support.version import __version__
from qabias.terminal.echo import echo

_FIRST = default_name()

app = typer.Typer(
    name="qabias",
    help="Measure social bias of question-answering and inference models.",
    epilog=f"First try: qabias run {_FIRST} --model baseline:stereotyped; "
    f"then: qabias run {_FIRST} --model smollm2 --limit 400",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(validate, name="validate")
app.add_typer(push, name="push")
for _command, _name, _example in (
    (run, "run", f"run {_FIRST} --model smollm2 --limit 400. The same command again continues a run."),
    (plan, "plan", "plan all --parameters 70e9 --tokenizer smollm2 --tokens-per-second 40e3"),
    (score, "score", f"score answers.csv --benchmark {_FIRST} --config Age"),
    (show, "show", "show runs/ONE --template Age-01"),
    (report, "report", "report runs/ONE runs/OTHER --output report.html"),
    (compare, "compare", "compare runs/ONE runs/OTHER --output comparison"),
    (check, "check", "check runs/ONE --max bias_ambig=0.1 --min accuracy_ambig=0.9 --by category"),
    (check_device, "check-device", "check-device --minutes 8 --output device.json"),
    (familiarity, "familiarity", f"familiarity {_FIRST} --model smollm2 --config Religion"),
    (pool, "pool", "pool runs/PROMPT-1 runs/PROMPT-2 runs/PROMPT-3 --output runs/mean"),
    (export, "export", "export runs/ONE --format latex --table bias_by_category"),
    (merge, "merge", "merge shard-0 shard-1 shard-2 --output whole"),
    (results, "results", f"results runs/my-run --model-id me/model --dataset me/{_FIRST} --output model_clone"),
    (build, "build", f"build {_FIRST} --source official --upstream-dir MIRROR --output {_FIRST}_official"),
):
    app.command(_name, epilog=f"Example: qabias {_example}")(_command)
app.command("list")(list_)


@app.callback(invoke_without_command=True)
def _globally(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="QABIAS_DEBUG", help="Print the traceback of what a command ends with."),
    ] = False,
) -> None:
    context.ensure_object(dict)["debug"] = debug
    if version:
        echo(f"qabias {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line.

    A mistake of the user is one line on standard error and exit code 2, a fault of qabias exit code 70.
    """
    wait_passively()
    streams.write_plainly()
    warn_in_one_line()
    command = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    settings = {"debug": False}
    try:
        try:
            check_readable(sys.argv[1:])
            app(obj=settings)
        finally:
            streams.flush()
    except SystemExit as stopped:
        if stopped.code == INTERRUPTED:
            say_interrupted(command)
        raise
    except KeyboardInterrupt:
        say_interrupted(command)
        sys.exit(INTERRUPTED)
    except Exception as error:  # the one place where whatever else comes is said
        sys.exit(fail(error, command, debug=settings["debug"]))
