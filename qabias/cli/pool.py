"""`qabias pool`: the mean of several runs."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Overwrite, UpstreamDir
from qabias.support.printable import echo


def pool(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores, two or more.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for pool.html, analysis.json and scores.json; by default none.", show_default=False),
    ] = None,
    allow_mixed: Annotated[
        bool, typer.Option("--allow-mixed", help="Pool runs of several models too; what differs is marked.")
    ] = False,
    claim: Annotated[
        str, typer.Option(help="The cell of a paper that the mean answers to, for the page.", show_default=False)
    ] = "",
    overwrite: Overwrite = False,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Take the mean of several runs of the same questions: prompts, formats or seeds, with their spread."""
    from qabias.pooling import pool as pool_runs
    from qabias.report.terminal import print_pool
    from qabias.report.writing import write_pool
    from qabias.support.outputs import check_folder

    if output is not None:
        check_folder(output)
    found = pool_runs(folders, allow_mixed, upstream_dir, claim)
    print_pool(found)
    if output is not None:
        echo(f"page: {write_pool(found, output, overwrite=overwrite).resolve()}")
