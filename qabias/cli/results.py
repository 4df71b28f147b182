"""`qabias results`: the scores of a run as files for the repository of its model."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Overwrite, Sample
from qabias.errors import QabiasError
from qabias.support.printable import echo


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
    overwrite: Overwrite = False,
) -> None:
    """Write the headline scores of a run as the Hub reads them: .eval_results/*.yaml with the run's signature."""
    from qabias.hub.results import check_replaceable, headlines, result_files, update_card
    from qabias.hub.results import model_index as index_of
    from qabias.support.files import write_atomically
    from qabias.support.outputs import check_folder

    check_folder(output)
    files = result_files(run, model_id, dataset, source_url, sample=sample)
    for path, content in files.items():
        check_replaceable(output / path, content, overwrite=overwrite)
    if model_index:
        card = output / "README.md"
        text = _card_text(card)
        files["README.md"] = update_card(text, index_of(run, model_id, dataset, sample=sample), model_id).encode()
    for path, content in files.items():
        write_atomically(output / path, partial(Path.write_bytes, data=content))
        echo(str(output / path))
    for score in headlines(run):
        if score.value is None:
            echo(f"{score.config}/{score.name} is left out: {score.reason}")
        elif score.possible is not None:
            echo(f"{score.config}/{score.name}: {score.note}")


def _card_text(card: Path) -> str:
    """The text of a model card; "" where there is none yet."""
    try:
        return card.read_text(encoding="utf-8") if card.exists() else ""
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1:,} is {error.object[error.start]:#04x}"
        raise QabiasError(f"{card}: is not UTF-8 ({place}); save it as UTF-8, or leave --model-index out") from error
