"""What the command lines of `lab/` share."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from qabias.errors import QabiasError, command_line

EXIT_USER_ERROR = 2
Number = tuple[int | None, int, str]
"""What a number is by default (None: all), with `--quick`, and its help."""

THREADS: Number = (os.cpu_count() or 1, 1, "of torch")  # on busy cores, threads of a quick check wait for each other


@contextmanager
def explained() -> Iterator[None]:
    """End a user's mistake with its problem and its fix, and exit status 2."""
    try:
        with command_line():
            yield
    except QabiasError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(EXIT_USER_ERROR)


def make_parser(
    description: str | None, quick: str = "a small sample, whose times mean nothing", **numbers: Number
) -> argparse.ArgumentParser:
    """A parser with `--quick` and some numbers, which keeps the lines of the description; see `read_options`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    for name, (usual, small, text) in numbers.items():
        default = f"(default: {'all' if usual is None else usual}; quick: {small})"
        parser.add_argument(f"--{name}", type=int, help=f"{text} {default}".lstrip())
    parser.set_defaults(numbers=numbers)
    return parser


def read_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments, with the numbers that were not given."""
    options = parser.parse_args()
    for name, (usual, small, _) in options.numbers.items():
        if getattr(options, name) is None:
            setattr(options, name, small if options.quick else usual)
    return options


def verdict(*, wrong: bool) -> int:
    """Print whether results differ; the exit status, 1 if they do."""
    if wrong:
        print("the figures differ: no time above means anything", file=sys.stderr)
    return int(wrong)
