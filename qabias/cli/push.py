"""`qabias push`: datasets, metrics and results to the Hugging Face Hub."""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabias.benchmarks.registry import default_name, default_source
from qabias.cli.commands import GroupedCommand
from qabias.cli.options import Sample, takes
from qabias.errors import QabiasError
from qabias.support.printable import echo

if TYPE_CHECKING:
    from qabias.hub.push import Push as Planned

_FIRST = default_name()

push = typer.Typer(
    help="Push a dataset, a metric or results to the Hugging Face Hub.", no_args_is_help=False, rich_markup_mode=None
)

To = Annotated[str, typer.Option(help="Repository on the Hub, ORG/NAME.")]
CreatePr = Annotated[
    bool,
    typer.Option(help="Open a pull request, or commit to main."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan without contacting the Hub.")]
Yes = Annotated[bool, typer.Option("--yes", help="Send without asking first.")]
Private = Annotated[bool, typer.Option("--private", help="Make a new repository private.")]
Name = Annotated[str, typer.Argument(help="A benchmark with a dataset (see `qabias list`).")]


@push.command(cls=GroupedCommand, epilog=f"Example: qabias push dataset {_FIRST} --to my-name/{_FIRST} --dry-run")
@takes("source fixes seed mirror create_pr private as_benchmark dry_run yes")
def dataset(
    benchmark: Name,
    to: To,
    *,
    source: str | None,
    fixes: bool,
    seed: int,
    create_pr: CreatePr = True,
    private: Private = False,
    as_benchmark: Annotated[
        bool, typer.Option("--as-benchmark", help="Add eval.yaml, the task of a benchmark on the Hub.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Push a dataset: card, Parquet files, templates, vocabulary.

    The authors' texts (--source official or release) are pushed only with their licence and attribution in the card.
    """
    from qabias.hub.contents import dataset_push

    _check_asking(dry_run, yes)
    with tempfile.TemporaryDirectory(prefix="qabias-push-") as scratch:
        plan = dataset_push(
            benchmark,
            to,
            Path(scratch),
            source=source or default_source(benchmark),
            seed=seed,
            fixes=fixes,
            as_benchmark=as_benchmark,
        )
        _push(plan, create_pr=create_pr, private=private, dry_run=dry_run, yes=yes)


@push.command(cls=GroupedCommand, epilog=f"Example: qabias push metric {_FIRST} --to my-name/{_FIRST} --dry-run")
def metric(
    benchmark: Name,
    to: To,
    dataset_id: Annotated[
        str | None, typer.Option("--dataset", help="Dataset in the card's example. [as --to]")
    ] = None,
    create_pr: CreatePr = True,
    private: Private = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Push a metric as a Space that `evaluate.load` reads."""
    from qabias.hub.contents import metric_push

    _check_asking(dry_run, yes)
    _push(metric_push(benchmark, to, dataset_id), create_pr=create_pr, private=private, dry_run=dry_run, yes=yes)


@push.command(
    cls=GroupedCommand,
    epilog=f"Example: qabias push results runs/ONE --to my-name/model --dataset my-name/{_FIRST} --dry-run",
)
@takes("overwrite create_pr dry_run yes")
def results(
    run: Annotated[Path, typer.Argument(help="A run folder with scores.")],
    to: Annotated[str, typer.Option(help="Model that was measured, ORG/NAME.")],
    dataset_id: Annotated[str, typer.Option("--dataset", help="Its dataset on the Hub, ORG/NAME or ORG/NAME@COMMIT.")],
    write_to: Annotated[
        Path | None, typer.Option(help="Only write the files here, e.g. a clone.", metavar="FOLDER")
    ] = None,
    model_index: Annotated[
        bool, typer.Option("--model-index", help="With --write-to: also add the scores to README.md.")
    ] = False,
    source_url: Annotated[
        str | None, typer.Option(help="Link to evidence, e.g. the published run folder. [the dataset]", metavar="URL")
    ] = None,
    sample: Sample = False,
    create_pr: CreatePr = True,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Push or write the scores of a run for its model's repository."""
    extra: dict[str, Any] = {"source_url": source_url, "sample": sample}
    if write_to is not None:
        _write_results(run, to, dataset_id, write_to, extra, model_index=model_index, dry_run=dry_run)
        return
    if model_index:
        raise QabiasError(
            "--model-index needs --write-to.", "Add --write-to FOLDER, a clone of the model's repository."
        )
    from qabias.hub.contents import results_push

    _check_asking(dry_run, yes)
    plan = results_push(run, to, dataset_id, **extra)
    _push(plan, create_pr=create_pr, private=False, dry_run=dry_run, yes=yes)


def _write_results(
    run: Path, model_id: str, dataset: str, output: Path, extra: dict[str, Any], *, model_index: bool, dry_run: bool
) -> None:
    from qabias.hub.results import check_replaceable, headlines, result_files, task_score, update_card
    from qabias.hub.results import model_index as index_of
    from qabias.runs.opened import Run
    from qabias.support.files import MOST_BYTES, require_regular_file, write_atomically
    from qabias.support.outputs import check_folder

    check_folder(output, argument="write_to")
    scored = Run.scored(run)
    only_card = model_index and task_score(scored) is None
    files = {} if only_card else result_files(run, model_id, dataset, **extra)
    for path, content in files.items():
        check_replaceable(output / path, content)
    if model_index:
        card = output / "README.md"
        try:
            # Line ends stay as they are.
            text = require_regular_file(card, MOST_BYTES).read_bytes().decode("utf-8-sig") if card.exists() else ""
        except UnicodeDecodeError as error:
            raise QabiasError(f"{card} is not UTF-8.", "Save it as UTF-8, or remove --model-index.") from error
        files["README.md"] = update_card(text, index_of(run, model_id, dataset, **extra), model_id).encode()
    for path, content in files.items():
        if dry_run:
            echo(f"{output / path} would be:\n{content.decode()}")
        else:
            write_atomically(output / path, partial(Path.write_bytes, data=content))
            echo(str(output / path))
    for config, score, _, note in headlines(scored):
        name = f"{config}/{score.measure.name}"
        if score.value is None:
            echo(f"{name} has no value: {score.reason}")
        elif score.possible is not None:
            echo(f"{name}: {note}")


def _check_asking(dry_run: bool, yes: bool) -> None:
    """Require a terminal for the confirmation, or --yes, before any work."""
    if not (dry_run or yes or sys.stdin.isatty()):
        raise QabiasError("Push needs confirmation from a terminal.", "Add --yes, or --dry-run to preview.")


def _push(plan: "Planned", *, create_pr: bool, private: bool, dry_run: bool, yes: bool) -> None:
    """Show the plan; unless on a dry run, compare with the Hub, ask, and send the changes."""
    from qabias.hub.push import Hub, plan_lines

    if dry_run:
        echo("\n".join(plan_lines(plan, create_pr)))
        echo("dry run: the Hub was neither asked nor changed")
        return

    hub = Hub()
    difference = hub.difference(plan, create_pr=create_pr)
    if difference.is_empty:
        echo(f"nothing to do: {difference.url} holds these {len(plan.files)} files already")
        return
    echo("\n".join(plan_lines(plan, create_pr, difference)))
    if not yes and not typer.confirm("Send?"):
        echo("nothing sent")
        return
    echo(f"pushed: {hub.send(plan, difference, private=private)}")
