"""`qabias validate`: what people are asked about the templates, and what their answers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabias.benchmarks.registry import default_name
from qabias.cli.options import Config, Fixes, Overwrite, Seed, Source, UpstreamDir
from qabias.errors import QabiasError
from qabias.support.printable import echo

if TYPE_CHECKING:
    import pyarrow as pa

    from qabias.benchmarks.facts import RatedPairs

validate = typer.Typer(
    help="Let people check the templates: export items to rate, score the ratings.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@validate.command(epilog="Example: qabias validate export --config Age --output items.csv --key key.csv")
def export(
    output: Annotated[Path, typer.Option(help="CSV of the items to show to raters.", show_default=False)],
    key: Annotated[Path, typer.Option(help="CSV of the right answers, not for raters.", show_default=False)],
    config: Config = None,
    source: Source = None,
    fixes: Fixes = False,
    seed: Seed = 0,
    upstream_dir: UpstreamDir = None,
    benchmark: Annotated[
        str, typer.Option(help="A benchmark of questions with three answers, or of premises and hypotheses.")
    ] = default_name(),
    template: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this template (of pairs: this subtopic or category), e.g. Age-07; may be repeated.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Draw so many examples instead of one per condition of every template (of pairs: of 20 %).",
            show_default=False,
        ),
    ] = None,
    fillers: Annotated[
        int | None,
        typer.Option(
            help="Mix in so many filler items; by default at least 13 % of all, and none among pairs.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw items to rate and write them and their key.

    Questions: one for each condition of every template, with filler items mixed in. Pairs of premise and hypothesis: a
    random fifth of them, without fillers.
    """
    from qabias.benchmarks import load_benchmark
    from qabias.validation.items import draw_items, write_items

    chosen = load_benchmark(benchmark)
    table = chosen.load(
        config or chosen.configs[-1], chosen.origin(source or chosen.sources[0], seed, fixes, upstream_dir)
    )
    if chosen.facts.rated is not None:
        _export_pairs(chosen.facts.rated, table, output, key, seed, sample, template or (), fillers, overwrite)
        return
    items = draw_items(table, seed, sample, template or (), fillers)
    write_items(items, output, key, overwrite=overwrite)
    n_fillers = sum(item.kind == "filler" for item in items)
    echo(f"{len(items) - n_fillers:,} examples and {n_fillers:,} filler items in {output}; the key is {key}")
    echo("Warn raters that many items refer to upsetting social stereotypes. Collect five answers to every item in")
    echo("a CSV with the columns item_id, annotator, answer (0, 1 or 2); then: qabias validate score FILE --key KEY")


def _export_pairs(
    rated: RatedPairs,
    table: pa.Table,
    output: Path,
    key: Path,
    seed: int,
    sample: int | None,
    only: Sequence[str],
    fillers: int | None,
    overwrite: bool,
) -> None:
    """Write pairs of premise and hypothesis to be labelled by two annotators."""
    from qabias.validation.items import write_items
    from qabias.validation.pairs import SHOWN, draw_pairs

    if fillers:
        raise QabiasError(
            "pairs have no filler items: those that the premise settles serve as such; leave --fillers out"
        )
    pairs = rated.pairs(table)
    items = draw_pairs(pairs, rated.answers, rated.share, seed, sample, only)
    write_items(items, output, key, SHOWN, overwrite=overwrite)
    echo(f"{len(items):,} of {pairs.num_rows:,} pairs in {output}; the key is {key}")
    echo("Warn annotators that many pairs refer to upsetting social stereotypes. Let two of them label every pair in")
    echo("a CSV with the columns item_id, annotator, answer (0, 1 or 2); then: qabias validate score FILE --key KEY")


@validate.command(epilog="Example: qabias validate score ratings.csv --key key.csv --output validation.json")
def score(
    ratings: Annotated[
        Path, typer.Argument(help="CSV of ratings: columns item_id, annotator and answer (0 to 2).", show_default=False)
    ],
    key: Annotated[Path, typer.Option(help="The key that `validate export` wrote.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(help="Also write everything as JSON, item by item.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Judge templates by the 4-of-5 rule, and give agreement and accuracy of the raters.

    Pairs of premise and hypothesis are not judged by that rule: their annotators are compared with each other and with
    the right labels.
    """
    from qabias.support.files import write_json
    from qabias.support.outputs import check_file, json_like
    from qabias.validation.pairs import are_pairs, score_pairs
    from qabias.validation.ratings import read_key, read_ratings, score_ratings
    from qabias.validation.tables import print_pairs, print_validation

    known = read_key(key)
    pairs = are_pairs(known)
    given = read_ratings(ratings, known)
    result = score_pairs(given, known) if pairs else score_ratings(given, known)
    if output is not None:
        check_file(
            output,
            json_like(lambda content: _rated(content) == _rated(result)),
            overwrite=overwrite,
            inputs=[ratings, key],
        )
        write_json(output, result)
    (print_pairs if pairs else print_validation)(result)


def _rated(content: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a result is about: which figures, of which items."""
    return sorted(content), sorted(content.get("items", ())), content.get("n_pairs")
