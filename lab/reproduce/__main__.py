"""Reproduce the experiment of a paper, run by run. Rerun the command to resume.

Without a benchmark it lists the papers and their models.

python -m lab.reproduce bbq --models unifiedqa-11b
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.options import EXIT_USER_ERROR, explained
from lab.reproduce.running import (
    Outcome,
    check_published,
    comparable,
    compare_all,
    make_means,
    run_suite,
    take_published,
)
from lab.reproduce.suites import choose_models, expand, load_suite, suite_names
from qabias.api.arguments import parse_shard
from qabias.benchmarks import Benchmark, Measure
from qabias.building.sources import using_mirror
from qabias.comparison.comparable import are_question_only, differing_fields, run_names
from qabias.comparison.tables import score_tables
from qabias.errors import QabiasError
from qabias.report.terminal import print_pool, print_scores
from qabias.runs.arguments import Machine
from qabias.runs.distributed import is_first
from qabias.runs.means import measures_of
from qabias.runs.opened import Run
from qabias.support.printable import echo
from qabias.tables.terminal import Console, print_table

_HEADING_WIDTH = 24
_FOR_BOTH = ("benchmark", "models", "output", "published", "mirror")


def make_parser() -> argparse.ArgumentParser:
    """Make the parser."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", nargs="?", help=", ".join(suite_names()))
    parser.add_argument(
        "--models", action="append", default=[], help="names in the paper's table, or as for qabias run"
    )
    parser.add_argument("--published", action="store_true", help="use the authors' published answers, without a model")
    parser.add_argument("--config", help="part of the benchmark, with --published only")
    parser.add_argument("--limit", type=int, help="maximum number of examples, in proportion to the templates")
    parser.add_argument("--output", type=Path, default=Path("runs"), help="folder of the run folders [runs]")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps, ... [auto]")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 [auto]")
    parser.add_argument("--source", help="source of the texts [the paper's]")
    parser.add_argument("--fixes", action="store_true", help="correct known defects of published texts")
    parser.add_argument("--seed", type=int, default=0, help="seed of every random draw [0]")
    parser.add_argument("--batch-tokens", type=int, help="tokens per batch [set by the device]")
    parser.add_argument("--shard", default="0/1", help="compute one shard, as INDEX/COUNT from 0")
    parser.add_argument("--mirror", default=os.environ.get("QABIAS_UPSTREAM"), help="local mirror of published files")
    return parser


def main(given: Sequence[str] | None = None) -> int:
    """Run the experiment, average it as the paper does, and compare its runs."""
    parser = make_parser()
    options = parser.parse_args(given)
    with explained(), using_mirror(options.mirror):
        if options.benchmark is None:
            _list_papers()
            return 0
        changed = [name for name, value in vars(options).items() if value != parser.get_default(name)]
        for name in changed:
            flag = f"--{name.replace('_', '-')}"
            if options.published and name not in (*_FOR_BOTH, "config"):
                raise QabiasError(f"{flag} does not apply to --published.", f"Remove {flag}.")
            if not options.published and name == "config":
                raise QabiasError("The paper sets --config itself.", "Remove --config, or add --published.")
        return _reproduce(options)


def _reproduce(options: argparse.Namespace) -> int:
    suite = load_suite(options.benchmark)
    machine = Machine(options.device, options.batch_tokens, parse_shard(options.shard))
    names = [name.strip() for text in options.models for name in text.split(",") if name.strip()]
    changes = {name: getattr(options, name) for name in ("fixes", "limit", "seed", "dtype")}
    runs = expand(suite, choose_models(suite, names), source=options.source, config=options.config, **changes)
    folder = options.output / f"paper-{suite.name}"
    tell = echo if is_first() else lambda _: None
    if options.published:
        check_published(runs)
        folder = folder.with_name(f"{folder.name}-published")
        outcomes = take_published(runs, folder, tell)
    else:
        outcomes = run_suite(runs, folder, machine, tell)
    if is_first():
        _print_outcomes(outcomes, folder)
        for mean in make_means(outcomes, folder):
            print_pool(mean.pool)
            echo(f"mean:       {mean.page.resolve()}")
        for page in compare_all(outcomes, folder):
            echo(f"comparison: {page.resolve()}")
    return EXIT_USER_ERROR if any(outcome.failure for outcome in outcomes) else 0


def print_side_by_side(
    benchmark: Benchmark,
    measures: Sequence[Measure],
    runs: Sequence[Run],
    names: Sequence[str],
    scores: Sequence[Mapping[str, Any]],
    console: Console | None = None,
) -> None:
    """Print one table per measure, one column per run."""
    console = console or Console()
    for number, fields in enumerate(differing_fields([run.signature for run in runs]), start=1):
        console.print(f"run {number}: {fields}", markup=False)
    titles = [
        "\n".join([f"run {number}", *textwrap.wrap(name, _HEADING_WIDTH)]) for number, name in enumerate(names, start=1)
    ]
    for table in score_tables(benchmark, measures, titles, scores):
        # An undefined score is an estimate without a value.
        rows = tuple(tuple("not asked" if value is None else value for value in row) for row in table.rows)
        print_table(replace(table, title=f"{table.title} [95% CI]", rows=rows), console, whole=True)


def _list_papers() -> None:
    for suite in map(load_suite, suite_names()):
        echo(f"{suite.name}: {suite.title}")
        echo(f"  --models {', '.join(model.name for model in suite.models)}")


def _print_outcomes(outcomes: Sequence[Outcome], folder: Path) -> None:
    for scored in comparable(outcomes):
        benchmark = scored[0].benchmark
        if len(scored) == 1:
            echo(scored[0].signature)
            print_scores(benchmark, scored[0].scores, question_only=scored[0].is_question_only)
        else:
            scores = [run.scores for run in scored]
            measures = measures_of(benchmark, are_question_only(scored), scores)
            print_side_by_side(benchmark, measures, scored, run_names(scored), scores)
    failed = [outcome for outcome in outcomes if outcome.failure]
    echo(f"{len(outcomes) - len(failed)} of {len(outcomes)} runs are finished; run folders: {folder}")
    for outcome in failed:
        echo(f"{outcome.run.name}: not finished: {' '.join(outcome.failure.split())}", err=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as `qabias` does
    sys.exit(main())
