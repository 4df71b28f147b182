"""The options that all scripts have."""

import argparse
import os
import sys


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with `--quick`; the description of the script is shown as it is written."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small sample, whose times mean nothing")
    return parser


def add_threads(parser: argparse.ArgumentParser, threads: int | None = None) -> None:
    """Add `--threads`, by default as many as there are cores."""
    parser.add_argument("--threads", type=int, default=threads or os.cpu_count(), help="(default: %(default)s)")


def verdict(*, wrong: bool) -> int:
    """The exit status of a script: 1 where figures differ, which is also said."""
    if wrong:
        print("the figures differ: no time above means anything", file=sys.stderr)
    return int(wrong)
