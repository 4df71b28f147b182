"""`qabias report`: the page of a run, or of several."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Overwrite
from qabias.errors import QabiasError
from qabias.support.printable import echo


def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(help="File to write; by default report.html in the run's folder.", show_default=False)
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
