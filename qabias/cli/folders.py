"""The commands that read run folders."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import takes
from qabias.errors import QabiasError
from qabias.support.printable import echo


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
    kind: Annotated[str, typer.Option("--format", help="csv, md, latex, svg, pdf, png, or all.")] = "all",
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
    from qabias.tables.export import ALL
    from qabias.tables.export import export as export_tables

    _check_folder(folder)
    if form is not None:
        from qabias.evidence.writing import export as export_documents

        if kind != ALL or table is not None:
            raise QabiasError("--format and --table do not apply to --as.", "Remove --as, or the other option.")
        paths = export_documents(folder, form, output, dataset=dataset)
        for path in paths:
            echo(str(path))
        return
    if dataset:
        raise QabiasError("--dataset needs --as model-card.", "Add --as model-card.")
    for path in export_tables(folder, output, kind, table):
        echo(str(path))


@takes("mirror")
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of the shards of one run.")],
    output: Annotated[Path, typer.Option(help="Run folder to write.")],
) -> None:
    """Merge the shards of a run into one folder and score it."""
    from qabias.cli.printing import print_result
    from qabias.runs.merging import merge as merge_folders

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
    """Compare runs: paired differences with confidence intervals."""
    from qabias.comparison import compare_published, compare_runs, read_runs
    from qabias.comparison.until import compare_until
    from qabias.report.terminal import print_compared
    from qabias.report.writing import check_comparison_output, write_comparison
    from qabias.runs.opened import Run
    from qabias.scores.judge import sentence

    if len({folder.resolve() for folder in folders}) < len(folders):
        raise QabiasError("One run folder is given twice.", "Compare different runs.")
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
