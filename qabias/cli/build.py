"""`qabias build`: a dataset folder from templates or published files."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Benchmark, Config, Fixes, Seed, Source, UpstreamDir, parse_options
from qabias.errors import QabiasError
from qabias.support.suggest import did_you_mean


def build(
    benchmark: Benchmark,
    output: Annotated[Path, typer.Option(help="Dataset folder to write.", show_default=False)],
    config: Config = None,
    source: Source = None,
    fixes: Fixes = False,
    seed: Seed = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE for the benchmark (see `qabias list`); may be repeated.", show_default=False),
    ] = None,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Generate a dataset folder: card and Parquet files that `load_dataset` reads."""
    from qabias.benchmarks import load_benchmark, make_origin

    chosen = load_benchmark(benchmark)
    options = parse_options(option or [])
    for name in options:
        if name not in chosen.options:
            offer = f"it has {', '.join(chosen.options)}" if chosen.options else "it has none"
            raise QabiasError(
                f"the benchmark {benchmark} has no option {name!r}; {offer}{did_you_mean(name, chosen.options)}"
            )
    origin = make_origin(chosen, source or chosen.sources[0], seed, fixes, upstream_dir, options)
    tables = chosen.write_folder(output, config or chosen.configs[-1], origin)
    for name, table in tables.items():
        typer.echo(f"{name:<22}{table.num_rows:>9,} examples")
    typer.echo(f"{'in all':<22}{sum(table.num_rows for table in tables.values()):>9,} examples in {output}")
