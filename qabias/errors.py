"""The one exception that a user is meant to read."""

from collections.abc import Iterator
from contextlib import contextmanager


def bounded(text: str, most: int = 2000) -> str:
    """A text of a message, cut if its input made it very long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


class QabiasError(ValueError):
    """A mistake in the input or the surroundings that the user can fix.

    Its text has two lines: what happened and where, then the fix.

    Args:
        problem: What happened, with the file, row or option where it happened.
        fix: The one action that helps, with a command if there is one.
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(bounded(problem), bounded(fix))

    def __str__(self) -> str:
        problem, fix = self.args
        return f"{problem}\n  fix: {fix}" if fix else str(problem)


@contextmanager
def at_place(where: object) -> Iterator[None]:
    """Begin the problem of an error with its place."""
    try:
        yield
    except QabiasError as error:
        problem, fix = error.args
        raise QabiasError(f"{where}: {problem}", fix) from error
