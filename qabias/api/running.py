"""`qabias.run`, `qabias.load` and `qabias.read`: measure a model, get examples, open an existing run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qabias.api.calls import OptionValue, option_texts, run_folder, upstream, warn_caller
from qabias.api.result import Result
from qabias.errors import QabiasError, arg

if TYPE_CHECKING:
    import datasets
    from transformers import PreTrainedTokenizerBase

    from qabias.api.given_models import Model


def run(
    benchmark: str,
    *,
    model: Model = "smollm2",
    tokenizer: PreTrainedTokenizerBase | None = None,
    name: str | None = None,
    config: str | None = None,
    source: str | None = None,
    fixes: bool = False,
    ask: str | None = None,
    format: str | None = None,
    permutations: int = 1,
    backend: str | None = None,
    base_url: str | None = None,
    max_connections: int | None = None,
    length_norm: str = "none",
    parser: str = "default",
    option: Mapping[str, OptionValue] | None = None,
    rules: Mapping[str, str] | None = None,
    limit: int | None = None,
    until: Sequence[str] = (),
    by: str | None = None,
    whole: bool = False,
    seed: int = 0,
    revision: str | None = None,
    dtype: str = "auto",
    device: str = "auto",
    batch_tokens: int | None = None,
    shard: str = "0/1",
    output: str | Path | None = None,
    mirror: str | Path | None = None,
    progress: bool = True,
) -> Result:
    """Measure a model, as `qabias run` does, with arguments of the same names.

    Args:
        benchmark: Name of the benchmark (see `qabias list`), or the path of a folder of templates.
        model: A name or folder as for `--model`; a model of `transformers` in memory, with its `tokenizer`; a
            pipeline; a function; or an OpenAI-compatible client.
        tokenizer: Tokenizer of a model in memory.
        name: Name of the model in results. Required for functions and clients.
        config: Dataset config; None: all examples that this model type supports.
        source: Source of the texts: bundled, official or release; None: the benchmark's first.
        fixes: Correct the known defects of published texts.
        ask: answer-logprob, letter-logprob, letter, cot, fill-blank, open-ended, json or forced-choice.
        format: Prompt format; None: set by `ask`.
        permutations: Answer orders per question: 1, 3 (cyclic) or 6 (all).
        backend: How the model is queried; None: inferred from the model.
        base_url: Base URL of an OpenAI-compatible server.
        max_connections: Maximum number of simultaneous requests to a server.
        length_norm: Divisor of log-likelihoods: none, token or byte.
        parser: How written answers are read: default or released.
        option: Options of the backend or the benchmark by name.
        rules: Scoring rules by name, such as `{"delta": "released"}`.
        limit: Maximum number of examples, as whole sets in proportion to the templates; None: all.
        until: Conditions such as "bias_ambig<0.1". The run stops when all are decided.
        by: Breakdown whose groups the conditions are for, such as "category"; None: all examples together.
        whole: With `until`: ask all examples.
        seed: Seed of every random draw.
        revision: Branch, tag or commit of a Hub model.
        dtype: auto, float32, bfloat16 or float16.
        device: auto, cpu, cuda, ...
        batch_tokens: Tokens per batch; None: chosen for the device.
        shard: Compute one shard, as "INDEX/COUNT" from 0.
        output: Run folder; an interrupted run resumes there. None: a temporary folder, deleted with the result.
        mirror: Local mirror of the published files; None: the environment variable `QABIAS_UPSTREAM`.
        progress: Show a progress bar.

    Returns:
        The scores, tables, figures and answers.

    Raises:
        QabiasError: If an argument is wrong, the folder contains another run, or answers of other shards are missing.
    """
    from qabias.api.given_models import given_model, ready
    from qabias.benchmarks import load_benchmark
    from qabias.runs.arguments import Machine, RunArguments
    from qabias.runs.distributed import launched_processes
    from qabias.runs.looks import canonical
    from qabias.runs.run import run as run_benchmark
    from qabias.suites.forms import SEPARATOR
    from qabias.support.options import parse_shard, server_options

    if source is not None and SEPARATOR in source:
        raise QabiasError(
            f"source {source!r}: one at a time.", "Run each of them and give both results to qabias.compare."
        )
    chosen = given_model(model, tokenizer, name)
    if chosen.scorer is not None and backend not in (None, chosen.scorer):
        raise QabiasError(f"{name!r} needs the backend {chosen.scorer}, not {backend}.", f"Remove {arg('backend')}.")
    backend, option = server_options(backend, base_url, max_connections, option_texts(option))
    arguments = RunArguments(
        benchmark=benchmark,
        model=chosen.name,
        config=config or "",
        source=source or "",
        fixes=fixes,
        format=format,
        backend=backend or chosen.scorer,
        length_norm=length_norm,
        parser=parser,
        limit=limit,
        seed=seed,
        options=option,
        revision=revision,
        dtype=dtype,
        rules=dict(rules or {}),
        permutations=permutations,
    )
    if until:
        arguments = replace(arguments, until=canonical(load_benchmark(benchmark), until, by))
    elif by:
        raise QabiasError(f"by={by!r} has no condition.", "Add until=['bias_ambig<0.1'].")
    mirror = upstream(mirror)
    machine = Machine(device, batch_tokens, parse_shard(shard), mirror, progress)
    if output is None and (machine.shard[1] > 1 or launched_processes().count > 1):
        raise QabiasError("several processes or shards need a shared folder.", "Give output=...")
    folder, scratch = run_folder(output)
    with ready(chosen):
        finished = run_benchmark(arguments, folder, machine, ask=ask, handed_over=chosen.handed_over, whole=whole)
    if finished.scores is None:
        raise QabiasError(
            f"{finished.note + '; ' if finished.note else ''}{finished.n_missing_parts} parts of {folder} are still "
            "missing.",
            "Rerun when they exist.",
        )
    warn_caller(finished.warned)
    return Result(folder, mirror=mirror, scratch=scratch)


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
    return as_dataset(load_examples(arguments, upstream(mirror)).table, chosen, arguments)


def read(folder: str | Path, *, mirror: str | Path | None = None) -> Result:
    """Open an existing run of `qabias.run` or the command line; `mirror` is as for `qabias.run`.

    Raises:
        QabiasError: If the folder contains no scored run, or a damaged one.
    """
    return Result(folder, mirror=upstream(mirror))
