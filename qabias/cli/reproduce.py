"""`qabias reproduce`: the experiment of a paper, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabias.cli.options import given_names, takes
from qabias.errors import QabiasError, flag
from qabias.support.options import parse_shard
from qabias.support.printable import echo

if TYPE_CHECKING:
    from qabias.suites.running import Outcome

_FOR_BOTH = ("benchmark", "models", "output", "published", "mirror")


@takes("config limit output device dtype source fixes seed batch_tokens shard mirror")
def reproduce(
    context: typer.Context,
    benchmark: Annotated[str, typer.Argument(help="Benchmark of the paper (see `qabias list papers`).")],
    models: Annotated[
        list[str] | None, typer.Option(help="Models: names in the paper's table, or as for run.", metavar="NAME,NAME")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Use the answers that the authors published. Runs no model.")
    ] = False,
    config: Annotated[
        str | None, typer.Option(help="Part of the benchmark, with --published only.", metavar="NAME")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the run folders.", metavar="FOLDER")] = Path("runs"),
    *,
    limit: int | None,
    device: str,
    dtype: str,
    source: str | None,
    fixes: bool,
    seed: int,
    batch_tokens: int | None,
    shard: str,
) -> None:
    """Reproduce the experiment of a paper. Rerun the command to resume."""
    from qabias.report.terminal import print_pool
    from qabias.runs.arguments import Machine
    from qabias.runs.distributed import is_first
    from qabias.suites import choose_models, expand, load_suite
    from qabias.suites.running import check_published, compare_all, make_means, run_suite, take_published

    machine = Machine(device, batch_tokens, parse_shard(shard))
    suite = load_suite(benchmark)
    for name in given_names(context):
        if published and name not in (*_FOR_BOTH, "config"):
            raise QabiasError(f"{flag(name)} does not apply to --published.", f"Remove {flag(name)}.")
        if not published and name == "config":
            raise QabiasError("The paper sets --config itself.", "Remove --config, or add --published.")
    names = [name.strip() for text in models or () for name in text.split(",") if name.strip()]
    changes = {"fixes": fixes, "limit": limit, "seed": seed, "dtype": dtype}
    runs = expand(suite, choose_models(suite, names), source=source, config=config, **changes)
    folder = output / f"paper-{suite.name}"
    tell = echo if is_first() else lambda _: None
    if published:
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
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(2)


def _print_outcomes(outcomes: Sequence[Outcome], folder: Path) -> None:
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
