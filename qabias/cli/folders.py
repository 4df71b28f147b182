"""The commands that read run folders: show, report, export, merge, compare, pool, verify, check."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabias.api.arguments import parse_options
from qabias.cli.options import takes
from qabias.errors import QabiasError
from qabias.support.printable import echo

if TYPE_CHECKING:
    from qabias.testing import Side


def _check_folder(folder: Path) -> None:
    """Refuse folders other than a run, a comparison or an average."""
    from qabias.runs.folder import is_run, no_run

    if not folder.is_dir() or not (is_run(folder) or (folder / "analysis.json").exists()):
        raise no_run(folder)


@takes("mirror")
def show(
    folder: Annotated[Path, typer.Argument(help="A run folder, or one that `qabias compare` wrote.")],
    template: Annotated[str | None, typer.Option(help="Show the answers to this template, e.g. Age-01.")] = None,
    table: Annotated[str | None, typer.Option(help="Show all rows of this table.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Print the scores of all groups and every table.")] = False,
    both_intervals: Annotated[
        bool, typer.Option("--both-intervals", help="CIs for questions like these, and for these questions only.")
    ] = False,
) -> None:
    """Show scores, tables or answers of a run."""
    from qabias.report.terminal import show_both_intervals, show_folder, show_table, show_template
    from qabias.tables.terminal import Console

    _check_folder(folder)
    if template is not None and table is not None:
        raise QabiasError("--template and --table exclude each other.", "Remove one of the two.")
    console = Console()
    if template is not None:
        show_template(folder, template, console)
    elif table is not None:
        show_table(folder, table, console)
    elif both_intervals:
        show_both_intervals(folder, console)
    else:
        show_folder(folder, console, full=full)


@takes("overwrite")
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores.")],
    output: Annotated[Path | None, typer.Option(help="File to write. [report.html in the run folder]")] = None,
) -> None:
    """Write the report of one run or several."""
    from qabias.report.writing import write_combined_report, write_report_of

    if len(folders) == 1:
        echo(str(write_report_of(folders[0], output)))
        return
    if output is None:
        raise QabiasError("A report of several runs needs a file.", "Add --output report.html.")
    echo(str(write_combined_report(folders, output).resolve()))


@takes("mirror overwrite")
def export(
    folder: Annotated[Path, typer.Argument(help="A run folder, or one of `qabias compare` or `qabias pool`.")],
    output: Annotated[Path | None, typer.Option(help="Folder for the files. [export in that folder]")] = None,
    kind: Annotated[str | None, typer.Option("--format", help="csv, md, latex, svg, pdf, png, or all. [csv]")] = None,
    table: Annotated[str | None, typer.Option(help="Export only this table.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="Draft of a document: every-eval-ever, nvidia-bias-md, model-card or bias-profile.",
            metavar="FORM",
        ),
    ] = None,
    dataset: Annotated[str, typer.Option(help="With --as model-card: dataset on the Hub, ORG/NAME.")] = "",
) -> None:
    """Export tables and figures, or the draft of a document (--as)."""
    from qabias.tables.export import export as export_tables

    _check_folder(folder)
    if form is not None:
        from qabias.evidence.writing import export as export_documents

        if kind is not None or table is not None:
            raise QabiasError("--format and --table do not apply to --as.", "Remove --as, or the other option.")
        paths = export_documents(folder, form, output, dataset=dataset)
        for path in paths:
            echo(str(path))
        return
    if dataset:
        raise QabiasError("--dataset needs --as model-card.", "Add --as model-card.")
    for path in export_tables(folder, output, kind or "csv", table):
        echo(str(path))


@takes("mirror")
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of the shards of one run.")],
    output: Annotated[Path, typer.Option(help="Run folder to write.")],
) -> None:
    """Merge the shards of a run into one folder and score it."""
    from qabias.cli.printing import print_result
    from qabias.runs.run import merge as merge_folders

    print_result(merge_folders(folders, output))


@takes("overwrite mirror")
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores, two or more.")],
    output: Annotated[Path | None, typer.Option(help="Folder for compare.html and analysis.json. [none]")] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Compare one run with published rows, named after it. [newest]")
    ] = False,
    allow_mixed: Annotated[
        bool, typer.Option("--allow-mixed", help="Compare runs that differ in more than the model.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every table.")] = False,
    until: Annotated[
        list[str] | None,
        typer.Option(help="Decide a difference look by look, e.g. 'difference<0.02'. Repeatable.", metavar="CONDITION"),
    ] = None,
) -> None:
    """Compare runs, by paired differences with confidence intervals, or audits."""
    from qabias.comparison import compare_published, compare_runs, read_runs
    from qabias.comparison.until import compare_until
    from qabias.report.terminal import print_compared
    from qabias.report.writing import check_comparison_output, write_comparison
    from qabias.runs.opened import Run
    from qabias.scores.judge import sentence
    from qabias.studies.audit import compared, read_audit
    from qabias.tables.terminal import Console, print_table

    if len({folder.resolve() for folder in folders}) < len(folders):
        raise QabiasError("One run folder is given twice.", "Compare different runs.")
    audits = [audit for audit in map(read_audit, folders) if audit is not None]
    if len(audits) == len(folders):
        if len(audits) < 2:
            raise QabiasError(f"{folders[0]} is one audit.", "Give two or more.")
        print_table(compared(audits), Console(), whole=True)
        return
    run, *names = folders
    runs = [Run.scored(run)] if published else read_runs(folders)
    if output is not None:
        check_comparison_output(output, runs)
    for verdict in compare_until(runs, until) if until else ():
        echo(sentence(verdict, f"the difference in {verdict.measure.title}"))
    comparison = compare_published(runs[0], list(map(str, names))) if published else compare_runs(runs, allow_mixed)
    print_compared(comparison, full=full)
    if output is not None:
        echo(f"page: {write_comparison(comparison, output).resolve()}")


@takes("overwrite mirror")
def pool(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores, two or more.")],
    output: Annotated[
        Path | None, typer.Option(help="Folder for pool.html, analysis.json and scores.json. [none]")
    ] = None,
    allow_mixed: Annotated[bool, typer.Option("--allow-mixed", help="Average runs of several models.")] = False,
    claim: Annotated[str, typer.Option(help="Cell of a paper that this average reproduces.")] = "",
) -> None:
    """Average runs over prompts, formats or seeds, with their standard deviation."""
    from qabias.pooling import pool as pool_runs
    from qabias.report.terminal import print_pool
    from qabias.report.writing import write_pool
    from qabias.support.outputs import check_folder

    if output is not None:
        check_folder(output)
    mean = pool_runs(folders, allow_mixed, claim)
    print_pool(mean)
    if output is not None:
        echo(f"page: {write_pool(mean, output).resolve()}")


MOST_SHOWN = 40


@takes("mirror")
def verify(
    path: Annotated[
        Path, typer.Argument(help="A run folder, or what `qabias export` wrote.", metavar="FOLDER_OR_DOCUMENT")
    ],
    run: Annotated[Path | None, typer.Option(help="Run folder of the document. [found by its digest]")] = None,
) -> None:
    """Recompute every number from stored answers and pinned texts.

    Exit code 0: verified. 1: a number or a file differs.
    """
    from qabias.evidence.verification import CANNOT_PROVE
    from qabias.evidence.verification import verify as verify_path

    result = verify_path(path, run)
    n = len(result.differences)
    echo(f"differs: {n:,} place{'s' * (n != 1)}" if n else f"verified: {result.n_numbers:,} numbers recomputed")
    for place, what in result.differences[:MOST_SHOWN]:
        echo(f"  {place}: {what}")
    if n > MOST_SHOWN:
        echo(f"  {n - MOST_SHOWN:,} more")
    for note in (*result.notes, CANNOT_PROVE):
        echo(note)
    if result.differences:
        raise typer.Exit(1)


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
    from qabias.testing.verdicts import explain_verdict, print_verdicts, record, task_condition

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
