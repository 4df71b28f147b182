"""`qabias.load` and `qabias.read`: the examples of a benchmark, and a run that was made before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from qabias.api.result import Result
from qabias.api.running import OptionValue, option_text, upstream
from qabias.errors import QabiasError

if TYPE_CHECKING:
    import datasets


def load(
    benchmark: str,
    config: str = "all",
    *,
    source: str | None = None,
    fixes: bool = False,
    limit: int | None = None,
    seed: int = 0,
    option: Mapping[str, OptionValue] | None = None,
    upstream_dir: str | Path | None = None,
) -> datasets.Dataset:
    """The examples of a benchmark, as `qabias run` would ask them.

    Args:
        benchmark: Name of the benchmark (see `qabias list`), or the path of a folder of templates.
        config: Configuration of the dataset.
        source: Source of the texts, such as bundled, official or release; None for the first one of the benchmark.
        fixes: Correct the known defects of published texts.
        limit: At most so many examples, whole sets from all templates; None for all.
        seed: Seed of generation and of the sample.
        option: Options of the benchmark by name.
        upstream_dir: Local mirror of the published files; by default the environment variable `QABIAS_UPSTREAM`.

    Returns:
        One row for each example, with the columns and features of the benchmark's dataset card, and what else its
        examples are identified by (UnQover's `set`). Numbers of classes are `ClassLabel`s. `info` has the name of the
        benchmark, the configuration, whom to cite, and what the rows were loaded by, which `qabias.score` reads.

    Raises:
        QabiasError: If an argument is wrong or the files cannot be had.
    """
    from qabias.api.rows import as_dataset
    from qabias.benchmarks import load_benchmark
    from qabias.runs.arguments import RunArguments, check_arguments
    from qabias.runs.question import load_examples
    from qabias.support.suggest import unknown

    chosen = load_benchmark(benchmark)
    options = {name: option_text(value) for name, value in (option or {}).items()}
    arguments = RunArguments(
        benchmark,
        config=config,
        source=source or chosen.sources[0],
        fixes=fixes,
        limit=limit,
        seed=seed,
        options=options,
    )
    check_arguments(chosen, arguments)
    for name in arguments.scorer_options:
        raise unknown("option", name, chosen.options)
    return as_dataset(load_examples(arguments, upstream(upstream_dir)).table, chosen, arguments)


def read(folder: str | Path, *, upstream_dir: str | Path | None = None) -> Result:
    """A run that was made before, by `qabias.run` or by the command line.

    Args:
        folder: A run folder with scores.
        upstream_dir: Local mirror of the published files; by default the environment variable `QABIAS_UPSTREAM`.

    Raises:
        QabiasError: If the folder holds no scored run, or a damaged one.
    """
    _refuse_other_folders(Path(folder))
    return Result(folder, upstream_dir=upstream(upstream_dir))


def _refuse_other_folders(folder: Path) -> None:
    from qabias.runs.folder import RUN_FILE

    if (folder / RUN_FILE).exists():
        return
    from qabias.report import COMPARISON_FILE, POOL_FILE

    for name, what in ((COMPARISON_FILE, "a comparison"), (POOL_FILE, "a mean of several runs")):
        if (folder / name).exists():
            raise QabiasError(
                f"{folder}: holds {what}, not a run; give the folders of its runs to qabias.compare, or see its tables "
                f"by `qabias show {folder}`"
            )
