"""`qabias.run`, `qabias.load` and `qabias.read`: measure a model, get examples, open an existing run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qabias.api.arguments import Arguments, run_arguments, takes_arguments
from qabias.api.calls import OptionValue, option_texts, run_folder, takes_mirror, warn_caller
from qabias.api.result import Result
from qabias.errors import QabiasError

if TYPE_CHECKING:
    import datasets


@takes_arguments(Arguments)
def run(asked: Arguments) -> Result:
    """Measure a model, as `qabias run` does, with arguments of the same names.

    Returns:
        The scores, tables, figures and answers.

    Raises:
        QabiasError: If an argument is wrong, the folder contains another run, or answers of other shards are missing.
    """
    from qabias.api.given_models import given_model, ready
    from qabias.contamination import SEPARATOR
    from qabias.runs.distributed import launched_processes
    from qabias.runs.run import run as run_benchmark

    if asked.source is not None and SEPARATOR in asked.source:
        raise QabiasError(
            f"source {asked.source!r}: one at a time.", "Run each of them and give both results to qabias.compare."
        )
    chosen = given_model(asked.model, asked.tokenizer, asked.name)
    backend = asked.backend or chosen.scorer
    if chosen.scorer is not None and backend != chosen.scorer:
        raise QabiasError(f"{asked.name!r} needs the backend {chosen.scorer}, not {backend}.", "Remove backend.")
    arguments, machine = run_arguments(replace(asked, model=chosen.name, backend=backend))
    if asked.output is None and (machine.shard[1] > 1 or launched_processes().count > 1):
        raise QabiasError("several processes or shards need a shared folder.", "Give output=...")
    folder, scratch = run_folder(asked.output)
    with ready(chosen):
        finished = run_benchmark(
            arguments, folder, machine, ask=asked.ask, handed_over=chosen.handed_over, whole=asked.whole
        )
    if finished.n_missing_parts:
        raise QabiasError(
            f"{finished.note + '; ' if finished.note else ''}{finished.n_missing_parts} parts of {folder} are still "
            "missing.",
            "Rerun when they exist.",
        )
    warn_caller(finished.warned)
    return Result(folder, scratch=scratch)


@takes_mirror
def load(
    benchmark: str,
    config: str | None = None,
    *,
    source: str | None = None,
    fixes: bool = False,
    limit: int | None = None,
    seed: int = 0,
    option: Mapping[str, OptionValue] | None = None,
    mirror: str | Path | None = None,
) -> datasets.Dataset:
    """Load the examples of a benchmark, as `qabias run` asks them.

    Args:
        benchmark: Name of the benchmark (see `qabias list`), or the path of a folder of templates.
        config: Dataset config; None: all examples.
        source: As for `qabias.run`.
        fixes: As for `qabias.run`.
        limit: As for `qabias.run`.
        seed: Seed of generation and of the sample.
        option: Options of the benchmark by name.
        mirror: As for `qabias.run`.

    Returns:
        One row per example, with the columns and features of the dataset card and the other keys (UnQover's `set`).
        Class numbers are `ClassLabel`s. `info` has benchmark, config, citation and origin, which `qabias.score` reads.

    Raises:
        QabiasError: If an argument is wrong or the files are unavailable.
    """
    from qabias.api.rows import as_dataset
    from qabias.benchmarks import load_benchmark
    from qabias.runs.arguments import RunArguments, check_arguments, check_own_options
    from qabias.runs.question import load_examples

    options = option_texts(option)
    chosen = load_benchmark(benchmark)
    config, source = config or chosen.configs[-1], source or chosen.sources[0]
    arguments = RunArguments(
        benchmark, config=config, source=source, fixes=fixes, limit=limit, seed=seed, options=options
    )
    check_arguments(chosen, arguments)
    check_own_options(chosen, options)
    return as_dataset(load_examples(arguments).table, chosen, arguments)


@takes_mirror
def read(folder: str | Path, *, mirror: str | Path | None = None) -> Result:
    """Open an existing run of `qabias.run` or the command line; `mirror` is as for `qabias.run`.

    Raises:
        QabiasError: If the folder contains no scored run, or a damaged one.
    """
    return Result(folder)
