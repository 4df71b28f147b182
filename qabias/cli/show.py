"""`qabias show`: a run, or a comparison, in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import UpstreamDir


def show(
    folder: Annotated[
        Path, typer.Argument(help="A run folder, or one that `qabias compare` wrote.", show_default=False)
    ],
    template: Annotated[
        str | None,
        typer.Option(help="The answers to this template, e.g. Age-01, and a few of its items.", show_default=False),
    ] = None,
    table: Annotated[str | None, typer.Option(help="All rows of the table of this name.", show_default=False)] = None,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Show what a run found: scores and tables, or the answers to one template."""
    from qabias.errors import QabiasError
    from qabias.report.template import show_template
    from qabias.report.terminal import show_folder, show_table
    from qabias.tables.terminal import Console

    if template is not None and table is not None:
        raise QabiasError("give --template or --table, not both")
    console = Console()
    if template is not None:
        show_template(folder, template, console, upstream_dir)
    elif table is not None:
        show_table(folder, table, console)
    else:
        show_folder(folder, console)
