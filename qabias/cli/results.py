"""`qabias results`: the scores of a run as files for the repository of its model."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Sample


def results(
    run: Annotated[Path, typer.Argument(help="A run folder with scores.", show_default=False)],
    model_id: Annotated[str, typer.Option(help="Model that was measured, ORG/NAME.", show_default=False)],
    dataset: Annotated[str, typer.Option(help="Dataset on the Hub that was asked, ORG/NAME.", show_default=False)],
    output: Annotated[Path, typer.Option(help="Where to write, e.g. a clone of the model's repository.")] = Path(),
    source_url: Annotated[
        str | None,
        typer.Option(help="Where the evaluation can be looked at; by default the dataset.", show_default=False),
    ] = None,
    model_index: Annotated[
        bool, typer.Option("--model-index", help="Also put the scores into the head of README.md, the older way.")
    ] = False,
    sample: Sample = False,
) -> None:
    """Write the headline scores of a run as the Hub reads them: .eval_results/*.yaml with the run's signature."""
    from qabias.hub.results import headlines, result_files, update_card
    from qabias.hub.results import model_index as index_of
    from qabias.support.files import write_atomically

    files = result_files(run, model_id, dataset, source_url, sample=sample)
    if model_index:
        card = output / "README.md"
        text = card.read_text(encoding="utf-8") if card.exists() else ""
        files["README.md"] = update_card(text, index_of(run, model_id, dataset, sample=sample), model_id).encode()
    for path, content in files.items():
        write_atomically(output / path, partial(Path.write_bytes, data=content))
        typer.echo(str(output / path))
    for score in headlines(run):
        if score.value is None:
            typer.echo(f"{score.config}/{score.name} is left out: {score.reason}")
        elif score.possible is not None:
            typer.echo(f"{score.config}/{score.name}: {score.note}")
