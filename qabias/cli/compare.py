"""`qabias compare`: several models side by side."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Overwrite, UpstreamDir
from qabias.support.printable import echo


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores, two or more.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for compare.html and analysis.json; by default none.", show_default=False),
    ] = None,
    allow_mixed: Annotated[
        bool,
        typer.Option("--allow-mixed", help="Compare runs of other questions or prompts too; what differs is marked."),
    ] = False,
    overwrite: Overwrite = False,
    upstream_dir: UpstreamDir = None,
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
    comparison = compare_runs(runs, allow_mixed, upstream_dir)
    print_compared(comparison)
    if output is not None:
        echo(f"page: {write_comparison(comparison, output, overwrite=overwrite).resolve()}")
