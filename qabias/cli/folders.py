"""The commands that read run folders: show, report, export, merge, compare and pool."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Mirror, Overwrite
from qabias.errors import QabiasError
from qabias.support.printable import echo


def show(
    folder: Annotated[Path, typer.Argument(help="A run folder, or one that `qabias compare` wrote.")],
    template: Annotated[
        str | None, typer.Option(help="The answers to this template, e.g. Age-01, and a few of its items.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="All rows of the table of this name.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Print the scores of all groups and every table.")] = False,
    mirror: Mirror = None,
) -> None:
    """Show what a run found: scores and tables, or the answers to one template."""
    from qabias.report.template import show_template
    from qabias.report.terminal import show_folder, show_table
    from qabias.tables.terminal import Console

    if template is not None and table is not None:
        raise QabiasError("give --template or --table, not both")
    console = Console()
    if template is not None:
        show_template(folder, template, console, mirror)
    elif table is not None:
        show_table(folder, table, console)
    else:
        show_folder(folder, console, full=full)


def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores.")],
    output: Annotated[
        Path | None, typer.Option(help="File to write; by default report.html in the run's folder.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the report of a run again, or one report of several runs."""
    from qabias.report.writing import write_combined_report, write_report_of

    if len(folders) == 1:
        echo(str(write_report_of(folders[0], output, overwrite=overwrite)))
        return
    if output is None:
        raise QabiasError("several runs need a file for their report: name it by --output")
    echo(str(write_combined_report(folders, output, overwrite=overwrite).resolve()))


def export(
    folder: Annotated[Path, typer.Argument(help="A run folder, or one of `qabias compare` or `qabias pool`.")],
    output: Annotated[Path | None, typer.Option(help="Folder for the files; by default export in that folder.")] = None,
    kind: Annotated[str, typer.Option("--format", help="csv, md, latex, svg, all of these, or pdf or png.")] = "all",
    table: Annotated[str | None, typer.Option(help="Only the table of this name (see `qabias show`).")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the tables as CSV, Markdown and LaTeX and the figures as SVG, PDF or PNG."""
    from qabias.tables.export import export as export_tables

    for path in export_tables(folder, output, kind, table, overwrite=overwrite):
        echo(str(path))


def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of the shards of one run.")],
    output: Annotated[Path, typer.Option(help="Run folder to write.")],
    mirror: Mirror = None,
) -> None:
    """Put shards that were computed into several run folders into one; then score and report it."""
    from qabias.cli.printing import print_result
    from qabias.runs.merging import merge as merge_folders

    print_result(merge_folders(folders, output, mirror))


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores, two or more.")],
    output: Annotated[
        Path | None, typer.Option(help="Folder for compare.html and analysis.json; by default none.")
    ] = None,
    allow_mixed: Annotated[
        bool,
        typer.Option("--allow-mixed", help="Compare runs of other questions or prompts too; what differs is marked."),
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every table.")] = False,
    overwrite: Overwrite = False,
    mirror: Mirror = None,
) -> None:
    """Show the scores of several runs side by side, and which differences are more than chance.

    Two runs of one model on published and on parallel texts are shown as published minus parallel form, and runs of
    one model on sets of one form in several languages, such as BBQ's, by language. More than 30 runs stand below each
    other, ranked, without figures and paired differences.
    """
    from qabias.comparison import compare_runs, read_runs
    from qabias.report.terminal import print_compared
    from qabias.report.writing import check_comparison_output, write_comparison

    runs = read_runs(folders)
    if output is not None:
        check_comparison_output(output, runs, overwrite=overwrite)
    comparison = compare_runs(runs, allow_mixed, mirror)
    print_compared(comparison, full=full)
    if output is not None:
        echo(f"page: {write_comparison(comparison, output, overwrite=overwrite).resolve()}")


def pool(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores, two or more.")],
    output: Annotated[
        Path | None, typer.Option(help="Folder for pool.html, analysis.json and scores.json; by default none.")
    ] = None,
    allow_mixed: Annotated[
        bool, typer.Option("--allow-mixed", help="Pool runs of several models too; what differs is marked.")
    ] = False,
    claim: Annotated[str, typer.Option(help="The cell of a paper that the mean answers to, for the page.")] = "",
    overwrite: Overwrite = False,
    mirror: Mirror = None,
) -> None:
    """Take the mean of several runs of the same questions: prompts, formats or seeds, with their spread."""
    from qabias.pooling import pool as pool_runs
    from qabias.report.terminal import print_pool
    from qabias.report.writing import write_pool
    from qabias.support.outputs import check_folder

    if output is not None:
        check_folder(output)
    mean = pool_runs(folders, allow_mixed, mirror, claim)
    print_pool(mean)
    if output is not None:
        echo(f"page: {write_pool(mean, output, overwrite=overwrite).resolve()}")
