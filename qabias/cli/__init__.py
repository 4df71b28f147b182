"""The command line: one file for each command.

Heavy packages are imported where they are used, so that `--help` answers at once.
"""

import sys
from typing import Annotated

import typer

from qabias.benchmarks.registry import default_name
from qabias.cli.build import build
from qabias.cli.check import check
from qabias.cli.compare import compare
from qabias.cli.export import export
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
from qabias.errors import QabiasError
from qabias.runs.distributed import SharedError, is_first
from qabias.support.version import __version__

EXIT_USER_ERROR = 2
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
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"qabias {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a mistake of the user is one line on standard error and exit code 2."""
    try:
        app()
    except SharedError as error:
        if not is_first():
            sys.exit(EXIT_USER_ERROR)
        _fail(str(error))
    except QabiasError as error:
        _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}; fix it and run the same command again, a run continues")


def _fail(message: str) -> None:
    typer.echo(f"qabias: error: {' '.join(message.split())}", err=True)
    sys.exit(EXIT_USER_ERROR)
