"""The one exception that a user is meant to read, and how it names an argument."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_is_command = ContextVar("is_command", default=False)
# Options of the command line with another name than the argument's.
FLAGS = {"rules": "rule", "subject": "about", "whole": "all"}


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable within a call."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def command_line() -> AbstractContextManager[None]:
    """Errors name options within a call, not arguments of Python."""
    return setting(_is_command, True)


def flag(name: str) -> str:
    """The option of the command line for an argument."""
    return f"--{FLAGS.get(name, name).replace('_', '-')}"


def arg(name: str) -> str:
    """An argument in a message: `--limit` on the command line, `limit` in Python."""
    return flag(name) if _is_command.get() else name


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
