"""Time and memory of generating the four question sets of UnQover, ours and row by row.

Ours is `unqover_dataset`: columns of dictionaries. The peer is written here in the manner of the authors' generator:
a dictionary per example, with context and questions filled by `str.replace` in both orders, and articles set token by
token. Its time excludes filling attributes into questions, which happens before. Every row is checked to have the same
texts. By default the peer makes all of religion and ethnicity and every 20th pair of gender and nationality. The table
marks extrapolated times. The memory covers the rows made.

Each side has its own process, best of `--repeats`; reading lists and importing libraries do not count. Exits with 1 if
the texts differ.

    python -m lab.speed.unqover_generate
    python -m lab.speed.unqover_generate --source official --mirror MIRROR --every 1
    python -m lab.speed.unqover_generate --quick
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lab.options import make_parser, read_options
from qabias.building.templating import repair_articles
from qabias.share.unqover_dataset import columns
from qabias.share.unqover_dataset.design import SETS, Design
from qabias.share.unqover_dataset.origin import SOURCES, Origin

WHOLE = ("ethnicity", "religion")
VOWELS = tuple("aeiouAEIOU")


def main() -> None:
    """Measure both sides and print the table."""
    arguments = _parse_arguments()
    if arguments.side:
        json.dump((_ours if arguments.side == "ours" else _peer)(arguments), sys.stdout)
        return
    ours, peer = (_best_of(arguments, side) for side in ("ours", "peer"))
    print(f"source {arguments.source}, Python {platform.python_version()}, one process, best of {arguments.repeats}\n")
    print("| set | examples | columns, s | row by row, s | ratio | rows the peer made |")
    print("|---|---|---|---|---|---|")
    for name in SETS:
        n, seconds = ours["sets"][name]
        n_made, peer_seconds = peer["sets"][name]
        scaled = peer_seconds * n / n_made
        extrapolated = "" if n_made == n else ", time extrapolated"
        print(f"| {name} | {n:,} | {seconds:.3f} | {scaled:.1f} | {scaled / seconds:.0f} | {n_made:,}{extrapolated} |")
    n, n_made = (sum(made for made, _ in side["sets"].values()) for side in (ours, peer))
    seconds = sum(time for _, time in ours["sets"].values())
    scaled = sum(peer["sets"][name][1] * ours["sets"][name][0] / peer["sets"][name][0] for name in SETS)
    print(f"| all | {n:,} | {seconds:.3f} | {scaled:.1f} | {scaled / seconds:.0f} | {n_made:,} |\n")
    print(f"columns: {ours['plain']:.3f} s more to make plain strings of all dictionaries, batch by batch")
    print(f"peak memory of the process: columns, all {n:,} examples kept: {ours['megabytes']:.0f} MB")
    print(f"                            row by row, {n_made:,} examples kept: {peer['megabytes']:.0f} MB")
    print(f"before generating:          {ours['megabytes_before']:.0f} MB and {peer['megabytes_before']:.0f} MB")


def _parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, every=(20, 500, "the peer takes every n-th pair"), repeats=(3, 1, ""))
    parser.add_argument("--source", choices=SOURCES, default="bundled")
    parser.add_argument("--mirror", help="mirror of the authors' files, for official")
    parser.add_argument("--side", choices=("ours", "peer"), help=argparse.SUPPRESS)
    return read_options(parser)


def _best_of(arguments: argparse.Namespace, side: str) -> dict[str, Any]:
    """Run one side several times in new processes; the fastest run."""
    command = [sys.executable, "-m", "lab.speed.unqover_generate", "--side", side]
    command += ["--source", arguments.source, "--every", str(arguments.every)]
    if arguments.quick:
        command.append("--quick")
    if arguments.mirror:
        os.environ["QABIAS_UPSTREAM"] = arguments.mirror
        command += ["--mirror", arguments.mirror]
    runs = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(arguments.repeats)
    ]
    best: dict[str, Any] = min(runs, key=lambda run: sum(seconds for _, seconds in run["sets"].values()))
    return best


def _designs(arguments: argparse.Namespace) -> dict[str, Design]:
    origin = Origin(arguments.source)
    # Loads the library that knows the articles.
    repair_articles("A owl.")
    return {name: origin.design(name) for name in SETS}


def _megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _ours(arguments: argparse.Namespace) -> dict[str, Any]:
    pa.array([0])  # the first array imports pandas, which is no part of the work
    designs, before, sets, kept = _designs(arguments), _megabytes(), {}, []
    for name, design in designs.items():
        started = time.perf_counter()
        kept.append(columns.cross(design, name, masked=False))
        sets[name] = (kept[-1].num_rows, time.perf_counter() - started)
    megabytes, started = _megabytes(), time.perf_counter()
    for table in kept:
        for batch in columns.batches(table):
            del batch
    plain = time.perf_counter() - started
    return {"sets": sets, "megabytes": megabytes, "megabytes_before": before, "plain": plain}


def _peer(arguments: argparse.Namespace) -> dict[str, Any]:
    designs, before, sets, kept = _designs(arguments), _megabytes(), {}, {}
    for name, design in designs.items():
        started = time.perf_counter()
        every = 1 if name in WHOLE and not arguments.quick else arguments.every
        kept[name] = list(row_by_row(design, name, arguments.source, every))
        sets[name] = (len(kept[name]), time.perf_counter() - started)
    megabytes = _megabytes()
    for name, rows in kept.items():
        _check(rows, designs[name], name)
    return {"sets": sets, "megabytes": megabytes, "megabytes_before": before}


def row_by_row(design: Design, config: str, source: str, every: int) -> Iterator[dict[str, Any]]:
    """The examples of every n-th pair, one by one."""
    n_questions = sum(len(template.questions) for template in design.templates)
    exceptions = ("European",) if source == "bundled" else ()
    for position, (one, two) in enumerate(design.pairs):
        if position % every:
            continue
        example_id = position * n_questions
        for number, template in enumerate(design.templates):
            first, second = one.form(template.form), two.form(template.form)
            for question in template.questions:
                line = f"{template.context}\t{question.text}\t{question.negated}"
                forward = _fill(line, first, second, exceptions).split("\t")
                backward = _fill(line, second, first, exceptions).split("\t")
                yield {
                    "example_id": example_id,
                    "template_id": f"{config}-{number}",
                    "subject1": one.name,
                    "subject2": two.name,
                    "cluster1": one.cluster,
                    "cluster2": two.cluster,
                    "attribute": question.attribute,
                    "attribute_class": question.attribute_class,
                    "context_12": forward[0],
                    "context_21": backward[0],
                    "question": forward[1],
                    "negated_question": forward[2],
                    "answer1": first,
                    "answer2": second,
                }
                example_id += 1


def _fill(line: str, one: str, two: str, exceptions: tuple[str, ...]) -> str:
    tokens = line.replace("{{X1}}", one).replace("{{X2}}", two).split(" ")
    for i in range(len(tokens) - 1):
        if tokens[i] in ("a", "A") and tokens[i + 1].startswith(VOWELS) and not tokens[i + 1].startswith(exceptions):
            tokens[i] += "n"
    return " ".join(tokens)


def _check(rows: list[dict[str, Any]], design: Design, config: str) -> None:
    table = columns.cross(design, config, masked=False).take([row["example_id"] for row in rows])
    made = iter(rows)
    for batch in columns.batches(table):
        if any(row != next(made) for row in batch.to_pylist()):
            raise SystemExit(f"{config}: the two sides differ")


if __name__ == "__main__":
    main()
