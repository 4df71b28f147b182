"""`qabias build`: a dataset folder from templates or published files."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Benchmark, Config, Fixes, Seed, Source, UpstreamDir


def build(
    benchmark: Benchmark,
    output: Annotated[Path, typer.Option(help="Dataset folder to write.", show_default=False)],
    config: Config = "all",
    source: Source = "bundled",
    fixes: Fixes = False,
    seed: Seed = 0,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Generate a dataset folder: card and Parquet files that `load_dataset` reads."""
    from qabias.benchmarks import load_benchmark

    chosen = load_benchmark(benchmark)
    tables = chosen.write_folder(output, config, chosen.origin(source, seed, fixes, upstream_dir))
    for name, table in tables.items():
        typer.echo(f"{name:<22}{table.num_rows:>9,} examples")
    typer.echo(f"{'in all':<22}{sum(table.num_rows for table in tables.values()):>9,} examples in {output}")
