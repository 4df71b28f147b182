"""Lines of the command line."""

import typer

from qabias.support.printable import printable


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line in which nothing steers the terminal.

    Args:
        text: The line, or several.
        err: Whether it goes to standard error.
    """
    typer.echo(printable(text), err=err)
