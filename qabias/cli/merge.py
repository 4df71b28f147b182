"""`qabias merge`: shards of one run from several folders."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import UpstreamDir


def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of the shards of one run.", show_default=False)],
    output: Annotated[Path, typer.Option(help="Run folder to write.", show_default=False)],
    upstream_dir: UpstreamDir = None,
) -> None:
    """Put shards that were computed into several run folders into one; then score and report it."""
    from qabias.cli.printing import print_result
    from qabias.runs.merging import merge as merge_folders

    print_result(merge_folders(folders, output, upstream_dir))
