"""Shared code of the scripts in `runners/`: a model mapped over a dataset by `datasets.Dataset.map`.

The scripts use the backends, formats, samples and batches of `qabias run` and get its scores. They have no run folder,
resume or report.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from datasets.fingerprint import generate_random_fingerprint

from qabias.answers.likelihoods import NORMS
from qabias.benchmarks import Benchmark, locate
from qabias.benchmarks.base import is_grouped
from qabias.errors import QabiasError
from qabias.runs.arguments import DEFAULT_PARSER, RunArguments, check_arguments, check_scorer
from qabias.runs.question import fitting_format, sample
from qabias.scorers.registry import kind_of, load_scorer, scorers_for
from qabias.support.files import strict
from qabias.support.options import parse_options
from qabias.support.suggest import first_line

EXIT_USER_ERROR = 2


def make_parser(description: str | None, benchmark: Benchmark, config: str) -> argparse.ArgumentParser:
    """Make a parser with the options of every script."""
    folder = locate.dataset_folder(benchmark.facts.dataset)
    # A config that combines others has no rows in the dataset.
    configs = [name for name in benchmark.configs if not is_grouped(benchmark, name)]
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="smollm2, baseline:KIND, a folder or a Hub id")
    parser.add_argument("--dataset", default=str(folder), help="folder or Hub id")
    parser.add_argument("--config", default=config, choices=configs, metavar="NAME", help=", ".join(configs))
    parser.add_argument(
        "--backend",
        choices=scorers_for(benchmark.interfaces),
        help="how the model is queried; inferred from the model",
    )
    parser.add_argument("--format", help="prompt format; by default what fits the backend")
    parser.add_argument("--length-norm", default=NORMS[0], help="divide log-likelihoods by length: none, token or byte")
    parser.add_argument("--parser", default=DEFAULT_PARSER, help="how written answers are read: default or released")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the backend; repeatable"
    )
    parser.add_argument("--limit", type=int, help="maximum number of examples, in proportion to the templates [all]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample and of random answers")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")
    return parser


@contextmanager
def errors_in_one_line(parser: argparse.ArgumentParser) -> Iterator[None]:
    """Exit with the text of a QabiasError."""
    try:
        yield
    except QabiasError as error:
        parser.exit(EXIT_USER_ERROR, f"{parser.prog}: error: {error}\n")


def _arguments(benchmark: Benchmark, given: argparse.Namespace) -> RunArguments:
    return RunArguments(
        benchmark.name, format=given.format, length_norm=given.length_norm, parser=given.parser, limit=given.limit
    )


def load_rows(benchmark: Benchmark, given: argparse.Namespace) -> datasets.Dataset:
    """The examples of a config or a sample of them, in file order, read as pyarrow tables."""
    check_arguments(benchmark, _arguments(benchmark, given))
    try:
        rows = datasets.load_dataset(given.dataset, given.config, split="test")
    except Exception as error:  # load_dataset raises any error of its readers
        problem = f"dataset {given.dataset}, config {given.config}: {first_line(error)}"
        raise QabiasError(problem, "correct --dataset or --config") from error
    if given.limit is not None:
        rows = datasets.Dataset(sample(benchmark, table_of(rows), given.limit, given.seed))
    return rows.with_format("arrow")


def asking(benchmark: Benchmark, rows: datasets.Dataset, given: argparse.Namespace) -> dict[str, Any]:
    """Load a model, and return the arguments of `datasets.Dataset.map` that compute its answers to `rows`."""
    scorer = load_scorer(
        given.backend,
        given.model,
        scorer_options=parse_options(given.option),
        seed=given.seed,
        device=given.device,
        dtype=given.dtype,
    )
    check_scorer(benchmark, scorer.name)
    prompt_format = fitting_format(benchmark, scorer, given.format)
    if prompt_format.wordings:
        names = ", ".join(wording.name for wording in prompt_format.wordings)
        raise QabiasError(f"{prompt_format.name} is a set of formats", f"use one of {names}, or `qabias run`")

    norm = _arguments(benchmark, given).norm

    def answer(batch: pa.Table) -> pa.Table:
        return pa.table(benchmark.answer(batch, scorer, prompt_format, norm))

    units, _ = benchmark.units(table_of(rows))
    return {
        "function": answer,
        "batched": True,
        # The same parts as in `qabias run`.
        "batch_size": benchmark.units_per_part(kind_of(scorer)) * int(np.bincount(units).max()),
        "remove_columns": rows.column_names,
        "keep_in_memory": True,
        "load_from_cache_file": False,
        # Otherwise the library computes one from all weights of the model.
        "new_fingerprint": generate_random_fingerprint(),
        "desc": given.model,
    }


def scores_as_json(benchmark: Benchmark, rows: datasets.Dataset, answers: datasets.Dataset) -> str:
    """The metric's result for answers parallel to the rows; undefined scores are null."""
    return json.dumps(strict(benchmark.score(table_of(rows), table_of(answers))), indent=2)


def table_of(rows: datasets.Dataset) -> pa.Table:
    """The rows as one table."""
    return rows.with_format("arrow")[:]
