"""`qabias verify`: recompute the numbers of a run or a document."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import takes
from qabias.support.printable import echo

MOST_SHOWN = 40


@takes("mirror")
def verify(
    path: Annotated[
        Path, typer.Argument(help="A run folder, or a document of `qabias export`.", metavar="FOLDER_OR_DOCUMENT")
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
