"""`qabias run paper:NAME`: the experiment of a paper, run by run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qabias.cli.options import flag_of, given_names
from qabias.errors import QabiasError
from qabias.support.printable import echo

if TYPE_CHECKING:
    from qabias.runs.arguments import Machine
    from qabias.suites.running import Outcome

SUITE_PREFIX = "paper:"
"""What stands before the name of a benchmark whose paper's experiment is meant."""

# Options of `qabias run` that a suite leaves to its user; all others it sets itself.
_OF_ALL = ("benchmark", "models", "output", "published", "upstream_dir")
_FREE = (*_OF_ALL, "source", "fixes", "limit", "seed", "dtype", "device", "token_budget", "shard")
_FREE_PUBLISHED = (*_OF_ALL, "config")


def split_names(texts: Sequence[str]) -> list[str]:
    """Names given one by one or with commas between."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def run_paper(context: typer.Context, machine: "Machine") -> None:
    """Make the runs of a suite, print their scores side by side and what failed."""
    from qabias.report.terminal import print_pool
    from qabias.runs.distributed import is_first
    from qabias.suites import choose_models, expand, load_suite
    from qabias.suites.running import check_published, compare_all, make_means, run_suite, take_published

    chosen = {name: context.params[name] for name in given_names(context)}
    suite = load_suite(context.params["benchmark"])
    published = context.params["published"]
    for name in chosen:
        if name not in (_FREE_PUBLISHED if published else _FREE):
            if published and name in _FREE:
                raise QabiasError(f"{flag_of(name)} means nothing with --published; leave it out")
            instead = "choose among its models by --models" if name == "model" else "leave it out"
            raise QabiasError(f"{suite.name} sets {flag_of(name)} itself; {instead}")
    changes = {name: context.params[name] for name in ("fixes", "limit", "seed", "dtype")}
    models = choose_models(suite, split_names(chosen.get("models", ())))
    runs = expand(suite, models, source=chosen.get("source"), config=chosen.get("config"), **changes)
    folder = (chosen.get("output") or Path("runs")) / suite.name.replace(":", "-")
    tell = echo if is_first() else lambda _: None
    if published:
        check_published(runs)
        folder = folder.with_name(f"{folder.name}-published")
        outcomes = take_published(runs, folder, machine.upstream_dir, tell)
    else:
        outcomes = run_suite(runs, folder, machine, tell)
    if is_first():
        _print_outcomes(outcomes, folder)
        for mean in make_means(outcomes, folder, machine.upstream_dir):
            print_pool(mean.pool)
            echo(f"mean:       {mean.page.resolve()}")
        for page in compare_all(outcomes, folder, machine.upstream_dir):
            echo(f"comparison: {page.resolve()}")
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(2)


def _print_outcomes(outcomes: "Sequence[Outcome]", folder: Path) -> None:
    from qabias.comparison.comparable import are_question_only, run_names
    from qabias.report.terminal import print_scores, print_side_by_side
    from qabias.runs.means import measures_of
    from qabias.suites.running import comparable

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
