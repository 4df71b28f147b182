"""`qabias export`: tables and figures as files."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Overwrite
from qabias.support.printable import echo


def export(
    folder: Annotated[
        Path, typer.Argument(help="A run folder, or one of `qabias compare` or `qabias pool`.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option(help="Folder for the files; by default export in that folder.", show_default=False)
    ] = None,
    kind: Annotated[str, typer.Option("--format", help="csv, md, latex, svg, all of these, or pdf or png.")] = "all",
    table: Annotated[
        str | None, typer.Option(help="Only the table of this name (see `qabias show`).", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the tables as CSV, Markdown and LaTeX and the figures as SVG, PDF or PNG."""
    from qabias.tables.export import export as export_tables

    for path in export_tables(folder, output, kind, table, overwrite=overwrite):
        echo(str(path))
