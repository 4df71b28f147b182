"""`qabias validate`: what people are asked about the templates, and what their answers say."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.benchmarks.registry import default_name
from qabias.cli.options import Config, Fixes, Seed, Source, UpstreamDir

validate = typer.Typer(
    help="Let people check the templates: export items to rate, score the ratings.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@validate.command(epilog="Example: qabias validate export --config Age --output items.csv --key key.csv")
def export(
    output: Annotated[Path, typer.Option(help="CSV of the items to show to raters.", show_default=False)],
    key: Annotated[Path, typer.Option(help="CSV of the right answers, not for raters.", show_default=False)],
    config: Config = "all",
    source: Source = "bundled",
    fixes: Fixes = False,
    seed: Seed = 0,
    upstream_dir: UpstreamDir = None,
    benchmark: Annotated[str, typer.Option(help="A benchmark of questions with three answers.")] = default_name(),
    template: Annotated[
        list[str] | None,
        typer.Option(help="Only this template, e.g. Age-07; may be repeated.", show_default=False),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Draw so many examples instead of one per condition of every template.", show_default=False),
    ] = None,
) -> None:
    """Draw one item per condition of every template, mix in filler items, and write items and key."""
    from qabias.benchmarks import load_benchmark
    from qabias.validation.items import draw_items, write_items

    chosen = load_benchmark(benchmark)
    table = chosen.load(config, chosen.origin(source, seed, fixes, upstream_dir))
    items = draw_items(table, seed, sample, template or ())
    write_items(items, output, key)
    n_fillers = sum(item.kind == "filler" for item in items)
    typer.echo(f"{len(items) - n_fillers:,} examples and {n_fillers:,} filler items in {output}; the key is {key}")
    typer.echo(
        "Warn raters that many items refer to upsetting social stereotypes. Collect five answers to every item in"
    )
    typer.echo(
        "a CSV with the columns item_id, annotator, answer (0, 1 or 2); then: qabias validate score FILE --key KEY"
    )


@validate.command(epilog="Example: qabias validate score ratings.csv --key key.csv --output validation.json")
def score(
    ratings: Annotated[
        Path, typer.Argument(help="CSV of ratings: columns item_id, annotator and answer (0 to 2).", show_default=False)
    ],
    key: Annotated[Path, typer.Option(help="The key that `validate export` wrote.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(help="Also write everything as JSON, item by item.", show_default=False)
    ] = None,
) -> None:
    """Judge templates by the 4-of-5 rule, and give agreement and accuracy of the raters."""
    from qabias.support.files import write_json
    from qabias.validation.ratings import read_key, read_ratings, score_ratings
    from qabias.validation.tables import print_validation

    known = read_key(key)
    result = score_ratings(read_ratings(ratings, known), known)
    if output is not None:
        write_json(output, result)
    print_validation(result)
