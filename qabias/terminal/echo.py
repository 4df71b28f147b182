"""Lines of the command line."""

import typer

from qabias.support.printable import printable


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line in which nothing steers the terminal."""
    typer.echo(printable(text), err=err)
