"""The options that all scripts have."""

import argparse
import os
import sys


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with `--quick`; the description of the script is shown as it is written."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small sample, whose times mean nothing")
    return parser


def add_threads(parser: argparse.ArgumentParser, usual: int | None = None) -> None:
    """Add `--threads`; see `threads_of`."""
    usual = usual or os.cpu_count() or 1
    parser.add_argument("--threads", type=int, help=f"(default: {usual}; quick: 1)")
    parser.set_defaults(usual_threads=usual)


def threads_of(arguments: argparse.Namespace) -> int:
    """The number of threads; a quick check takes one, because threads that share busy cores wait for each other."""
    chosen: int | None = arguments.threads
    return chosen or (1 if arguments.quick else arguments.usual_threads)


def verdict(*, wrong: bool) -> int:
    """The exit status of a script: 1 where figures differ, which is also said."""
    if wrong:
        print("the figures differ: no time above means anything", file=sys.stderr)
    return int(wrong)
