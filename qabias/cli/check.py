"""`qabias check`: a run against thresholds, for CI."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabias.cli.options import takes
from qabias.errors import QabiasError
from qabias.support.options import parse_options

if TYPE_CHECKING:
    from qabias.testing import Side

FAILED = 1  # exit code if a check fails
CANNOT_TELL = 3  # exit code if no check fails and one is inconclusive; 2 is a mistake of the user


@takes("output overwrite")
def check(
    folder: Annotated[Path, typer.Argument(help="A run folder with scores.")],
    most: Annotated[
        list[str] | None, typer.Option("--max", help="Upper threshold per score, e.g. bias_ambig=0.1. Repeatable.")
    ] = None,
    least: Annotated[
        list[str] | None, typer.Option("--min", help="Lower threshold per score, e.g. accuracy_ambig=0.9. Repeatable.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Check every group, e.g. category. [all examples together]")] = None,
    allow_undecided: Annotated[
        bool, typer.Option("--allow-undecided", help="Exit with 0 if a check is inconclusive.")
    ] = False,
    require_task: Annotated[
        bool, typer.Option("--require-task", help="Fail a model that does not answer better than by guessing.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Also write the verdicts as JSON.")] = None,
) -> None:
    """Check a run against thresholds (exit 0 pass, 1 fail, 3 inconclusive).

    A check passes or fails if its adjusted 95% CI excludes the threshold.
    """
    from qabias.runs.opened import Run
    from qabias.support.files import write_json
    from qabias.support.outputs import check_file, json_with
    from qabias.testing import Condition, verdicts
    from qabias.testing.messages import explain_verdict, print_verdicts
    from qabias.testing.verdicts import record, task_condition

    options: list[tuple[list[str] | None, str, Side]] = [(most, "max", "below"), (least, "min", "above")]
    conditions = [
        Condition(name, value, side)
        for texts, flag, side in options
        for name, value in _limits(texts or [], flag).items()
    ]
    if not conditions and not require_task:
        raise QabiasError("No threshold.", "Add --max SCORE=0.1 or --min SCORE=0.9.")
    run = Run.scored(folder)
    if output is not None:
        check_file(output, json_with("exit_code", "verdicts", signature=run.signature))
    results = verdicts(run, conditions, by) if conditions else []
    results += verdicts(run, [task_condition(run.benchmark)]) if require_task else []
    print_verdicts(run, results)
    states = {verdict.state for verdict in results}
    code = FAILED if "fail" in states else CANNOT_TELL if "undecided" in states and not allow_undecided else 0
    if output is not None:
        content = [{**record(one), "about": explain_verdict(one)} for one in results]
        write_json(output, {"signature": run.signature, "exit_code": code, "verdicts": content})
    raise typer.Exit(code)


def _limits(texts: list[str], flag: str) -> dict[str, float]:
    """Limits by the name of their score."""
    named = parse_options(texts, flag, "SCORE=0.1")
    if len(named) < len(texts):
        raise QabiasError(f"--{flag} has two thresholds for one score.", "Give one for each.")
    limits = {}
    for name, text in named.items():
        try:
            limits[name] = float(text)
        except ValueError as error:
            fix = f"Write --{flag} {name}=0.1 for 10%."
            raise QabiasError(f"--{flag} {name}={text} is not a number.", fix) from error
    return limits
