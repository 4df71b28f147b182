"""Validation by people: `python -m lab.raters export` draws items to rate, `python -m lab.raters score` scores ratings.

`items` draws the items and their key, `ratings` scores the answers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.options import explained
from lab.raters.items import PAIR_SHOWN, PAIRS, SHOWN, draw_items, draw_pairs, write_items
from lab.raters.ratings import (
    are_pairs,
    print_pairs,
    print_questions,
    read_key,
    read_ratings,
    score_pairs,
    score_ratings,
)
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.registry import default_name
from qabias.building.sources import using_mirror
from qabias.errors import QabiasError
from qabias.support.files import write_json
from qabias.support.outputs import check_file, json_like, overwriting
from qabias.support.printable import echo


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of both commands."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.raters", description="Validate the templates with human raters."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="draw items to rate, and write them with their key")
    export.add_argument("--output", type=Path, required=True, help="CSV of the items to show to raters")
    export.add_argument("--key", type=Path, required=True, help="CSV of the right answers, not for raters")
    export.add_argument(
        "--benchmark", default=default_name(), help="questions with three answers, or pairs of sentences"
    )
    export.add_argument("--config", help="config of the dataset [all examples]")
    export.add_argument("--source", help="source of the texts [the first one]")
    export.add_argument("--fixes", action="store_true", help="correct the known defects of published texts")
    export.add_argument("--seed", type=int, default=0, help="seed of every random draw")
    export.add_argument("--mirror", default=os.environ.get("QABIAS_UPSTREAM"), help="mirror of published files")
    export.add_argument(
        "--template", action="append", default=[], help="only this template, subtopic or category (repeatable)"
    )
    export.add_argument("--sample", type=int, help="number of examples [one per condition, or 20%% of the pairs]")
    export.add_argument("--fillers", type=int, help="number of filler items [at least 13%% of all]")
    score = commands.add_parser("score", help="compute template results, agreement and accuracy from ratings")
    score.add_argument("ratings", type=Path, help="CSV with the columns item_id, annotator and answer (0 to 2)")
    score.add_argument("--key", type=Path, required=True, help="the key that `export` wrote")
    score.add_argument("--output", type=Path, help="also write all results as JSON, item by item")
    for command in (export, score):
        command.add_argument("--overwrite", action="store_true", help="overwrite files of other content")
    return parser


def main() -> None:
    """Export items or score ratings."""
    parser = make_parser()
    arguments = parser.parse_args()
    with explained(), using_mirror(getattr(arguments, "mirror", None)), overwriting(arguments.overwrite):
        (_export if arguments.command == "export" else _score)(arguments)


def _export(arguments: argparse.Namespace) -> None:
    benchmark = load_benchmark(arguments.benchmark)
    origin = benchmark.origin(arguments.source or benchmark.sources[0], arguments.seed, arguments.fixes)
    table = benchmark.load(arguments.config or benchmark.configs[-1], origin)
    only, files = arguments.template, (arguments.output, arguments.key)
    if benchmark.name not in PAIRS:
        questions = draw_items(table, arguments.seed, arguments.sample, only, arguments.fillers)
        write_items(questions, *files, SHOWN)
        n_fillers = sum(item.kind == "filler" for item in questions)
        written = f"{len(questions) - n_fillers:,} examples and {n_fillers:,} filler items"
        raters, n = "raters that many items refer", "five answers to"
    elif arguments.fillers:
        raise QabiasError("--fillers does not apply to pairs: test hypotheses are their fillers", "remove --fillers")
    else:
        pairs = PAIRS[benchmark.name](table)
        drawn = draw_pairs(pairs, arguments.seed, arguments.sample, only)
        write_items(drawn, *files, PAIR_SHOWN)
        written = f"{len(drawn):,} of {pairs.num_rows:,} pairs"
        raters, n = "annotators that many pairs refer", "labels by two annotators of"
    echo(f"{written} in {arguments.output}. Key: {arguments.key}")
    echo(f"Warn {raters} to upsetting social stereotypes. Collect {n} every item in a CSV with the columns")
    echo("item_id, annotator, answer (0, 1 or 2). Then run: python -m lab.raters score FILE --key KEY")


def _score(arguments: argparse.Namespace) -> None:
    key = read_key(arguments.key)
    pairs = are_pairs(key)
    ratings = read_ratings(arguments.ratings, key)
    result = score_pairs(ratings, key) if pairs else score_ratings(ratings, key)
    if arguments.output is not None:
        check_file(
            arguments.output,
            json_like(lambda content: _subject(content) == _subject(result)),
            inputs=[arguments.ratings, arguments.key],
        )
        write_json(arguments.output, result)
    (print_pairs if pairs else print_questions)(result)


def _subject(content: Mapping[str, Any]) -> tuple[Any, ...]:
    """Names of the figures of a result, and their items."""
    return sorted(content), sorted(content.get("items", ())), content.get("n_pairs")


if __name__ == "__main__":
    main()
    sys.exit()
