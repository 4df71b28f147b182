"""`qabias build`: a dataset folder from templates or published files."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import parse_options, takes
from qabias.support.printable import echo


@takes("benchmark output config source fixes seed option overwrite mirror")
def build(
    *,
    benchmark: str,
    output: Annotated[Path, typer.Option(help="Dataset folder to write.")],
    config: str | None,
    source: str | None,
    fixes: bool,
    seed: int,
    option: list[str] | None,
) -> None:
    """Generate a dataset folder: card and Parquet files that `load_dataset` reads."""
    from qabias.benchmarks import load_benchmark, make_origin
    from qabias.benchmarks.registry import is_folder
    from qabias.building.folder import claimed, is_built
    from qabias.building.sources import mirror_folder
    from qabias.runs.arguments import check_own_options
    from qabias.support.outputs import check_new_folder

    chosen = load_benchmark(benchmark)
    options = parse_options(option or [])
    check_own_options(chosen, options)
    read = [Path(name) for name in (benchmark if is_folder(benchmark) else None, mirror_folder()) if name]
    name = config or chosen.configs[-1]
    check_new_folder(output, is_built(chosen.name, name), inputs=read)
    origin = make_origin(chosen, source or chosen.sources[0], seed, fixes, options)
    with claimed(output, chosen.name, name) as others:
        tables = chosen.write_folder(output, name, origin)
    if others:
        echo(f"data of another build: {', '.join(others)}")
    for name, table in tables.items():
        echo(f"{name:<22}{table.num_rows:>9,} examples")
    echo(f"{'in all':<22}{sum(table.num_rows for table in tables.values()):>9,} examples in {output}")
