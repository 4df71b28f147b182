"""What the command lines of `lab/` share."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from qabias.errors import QabiasError

EXIT_USER_ERROR = 2


@contextmanager
def explained() -> Iterator[None]:
    """End a user's mistake with its problem and its fix, and exit status 2."""
    try:
        yield
    except QabiasError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(EXIT_USER_ERROR)


def make_parser(
    description: str | None, quick: str = "a small sample, whose times mean nothing"
) -> argparse.ArgumentParser:
    """A parser with `--quick`, which keeps the lines of the description."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def add_threads(parser: argparse.ArgumentParser, usual: int | None = None) -> None:
    """Add `--threads`; see `threads_of`."""
    usual = usual or os.cpu_count() or 1
    parser.add_argument("--threads", type=int, help=f"(default: {usual}; quick: 1)")
    parser.set_defaults(usual_threads=usual)


def threads_of(arguments: argparse.Namespace) -> int:
    """The number of threads; one for a quick check, because threads on busy cores wait for each other."""
    chosen: int | None = arguments.threads
    return chosen or (1 if arguments.quick else arguments.usual_threads)


def verdict(*, wrong: bool) -> int:
    """Print whether results differ; the exit status, 1 if they do."""
    if wrong:
        print("the figures differ: no time above means anything", file=sys.stderr)
    return int(wrong)
