"""`qabias.load` and `qabias.read`: the examples of a benchmark, and a run that was made before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from qabias.api.checks import check_optional_paths, check_optional_texts, check_path, check_texts
from qabias.api.result import Result
from qabias.api.running import OptionValue, option_texts, upstream
from qabias.api.words import in_python_words
from qabias.errors import QabiasError

if TYPE_CHECKING:
    import datasets


@in_python_words()
def load(
    benchmark: str,
    config: str | None = None,
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
        config: Configuration of the dataset; None for that of all examples.
        source: Source of the texts, such as bundled, official or release; None for the first one of the benchmark.
        fixes: Correct the known defects of published texts.
        limit: At most so many examples, as whole sets that are spread over all templates, and one set at least; None
            for all.
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

    check_texts(benchmark=benchmark)
    check_optional_texts(config=config, source=source)
    check_optional_paths(upstream_dir=upstream_dir)
    options = option_texts(option)
    chosen = load_benchmark(benchmark)
    config, source = config or chosen.configs[-1], source or chosen.sources[0]
    arguments = RunArguments(
        benchmark, config=config, source=source, fixes=fixes, limit=limit, seed=seed, options=options
    )
    check_arguments(chosen, arguments)
    for name in arguments.scorer_options:
        if not chosen.options:
            raise QabiasError(f"{benchmark} has no option {name!r} that chooses its texts; it has none")
        raise unknown("option", name, chosen.options)
    return as_dataset(load_examples(arguments, upstream(upstream_dir)).table, chosen, arguments)


@in_python_words()
def read(folder: str | Path, *, upstream_dir: str | Path | None = None) -> Result:
    """A run that was made before, by `qabias.run` or by the command line.

    Args:
        folder: A run folder with scores.
        upstream_dir: Local mirror of the published files; by default the environment variable `QABIAS_UPSTREAM`.

    Raises:
        QabiasError: If the folder holds no scored run, or a damaged one.
    """
    check_path("folder", folder)
    check_optional_paths(upstream_dir=upstream_dir)
    return Result(folder, upstream_dir=upstream(upstream_dir))
