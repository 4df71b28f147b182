"""`qabias score`: score a run again, or answers that others have collected."""

from pathlib import Path
from typing import Annotated

import typer

from qabias import __version__
from qabias.benchmarks.registry import default_name
from qabias.cli.options import Config, Fixes, Seed, Source, UpstreamDir
from qabias.errors import QabiasError


def score(
    path: Annotated[
        Path,
        typer.Argument(help="A run folder, or a CSV, JSON lines or Parquet file of predictions.", show_default=False),
    ],
    benchmark: Annotated[str, typer.Option(help="Benchmark of a predictions file.")] = default_name(),
    config: Config = "all",
    source: Source = "bundled",
    fixes: Fixes = False,
    seed: Seed = 0,
    upstream_dir: UpstreamDir = None,
    output: Annotated[
        Path | None, typer.Option(help="Also write the scores of a predictions file as JSON.", show_default=False)
    ] = None,
) -> None:
    """Score a run again, or somebody's predictions."""
    from qabias.benchmarks import load_benchmark
    from qabias.cli.printing import print_result, print_with_signature
    from qabias.measuring.predictions import join_predictions
    from qabias.measuring.run import score_run
    from qabias.runs.scored import scores_content
    from qabias.support.files import write_json

    if path.is_dir():
        print_result(score_run(path, upstream_dir))
        return
    chosen = load_benchmark(benchmark)
    origin = chosen.origin(source, seed, fixes, upstream_dir)
    table, answers = join_predictions(chosen, chosen.load(config, origin), path)
    try:
        scores = chosen.score(table, answers)
    except QabiasError as error:
        raise QabiasError(f"{path}: {error}; rows are counted from 0 in the order of the dataset") from error
    signature = f"{benchmark}|source:{origin.version}|config:{config}|predictions:{path.name}|qabias:{__version__}"
    print_with_signature(chosen, scores, signature)
    if output is not None:
        write_json(output, scores_content(chosen, signature, scores))
