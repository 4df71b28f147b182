"""The benchmarks that can be run, found by name.

A benchmark tells the engine where its examples come from, how they are put to a model and how answers are scored;
runs, scorers and the command line know no benchmark.
"""

import difflib
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from qabias.tables.model import Analysis
from qabias.errors import QabiasError
from qabias.benchmarks.prompt_format import PromptFormat
from qabias.scorers.base import Scorer

BENCHMARKS = ("bbq", "unqover", "bbnli", "bbq_nli")


class Origin(Protocol):
    """Where the texts of a benchmark come from."""

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature, e.g. "bundled@1"."""
        ...


class Benchmark(Protocol):
    """What the engine needs to know of a benchmark.

    Attributes:
        name: Name on the command line.
        title: Name for people.
        configs: Configurations, the default last.
        sources: Sources of the texts, the default first.
        formats: Prompt formats by name.
        norms: Ways of making an option's log-likelihood a score, the default first.
        scorers: Names of the scorers that can answer it.
        key: Columns that identify an example.
        answer_columns: Columns of the answers to an example that `score` needs, where others have asked the model.
    """

    name: str
    title: str
    configs: Sequence[str]
    sources: Sequence[str]
    formats: Mapping[str, PromptFormat]
    norms: Sequence[str]
    scorers: Sequence[str]
    key: Sequence[str]
    answer_columns: Sequence[str]

    def origin(self, source: str, seed: int, fixes: bool, upstream_dir: str | None) -> Origin:
        """Check the choice of a source.

        Raises:
            QabiasError: If there is no such source.
        """
        ...

    def load(self, config: str, origin: Origin) -> pa.Table:
        """The examples of a configuration, in file order.

        Raises:
            QabiasError: If there is no such configuration, or its files cannot be had.
        """
        ...

    def write_folder(self, output: Path, config: str, origin: Origin) -> dict[str, pa.Table]:
        """Build a dataset folder; returns its tables by configuration."""
        ...

    def units_per_part(self, scorer: str) -> int:
        """Units of sampling that are asked and written together: about a minute of work on a slow machine."""
        ...

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """For every example the unit that sampling must not split, and the stratum of that unit.

        Returns:
            Two int64 arrays of shape (n_examples,) with numbers from 0; the examples of a unit are neighbours.
        """
        ...

    def default_format(self, scorer: Scorer) -> str:
        """Name of the prompt format that is used with a scorer where none is asked for."""
        ...

    def answer(
        self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str
    ) -> dict[str, pa.Array | pa.ChunkedArray]:
        """Ask the scorer about some examples; the columns that `score` needs, and what else is worth keeping."""
        ...

    def score(self, table: pa.Table, answers: pa.Table) -> dict[str, Any]:
        """Score the answers to examples, parallel to them."""
        ...

    def analyse(
        self, table: pa.Table, answers: pa.Table, scores: Mapping[str, Any], prompt_format: str | None
    ) -> Analysis:
        """The tables of a run, and a selection of its examples.

        Args:
            table: The examples.
            answers: The answers, parallel to them.
            scores: What `score` returned for them.
            prompt_format: Name of the prompt format that was asked for; None for the default.
        """
        ...


def load_benchmark(name: str) -> Benchmark:
    """The benchmark of that name.

    Raises:
        QabiasError: If there is none.
    """
    if name not in BENCHMARKS:
        close = difflib.get_close_matches(name, BENCHMARKS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise QabiasError(f"unknown benchmark {name!r}: choose one of {', '.join(BENCHMARKS)}{hint}")
    benchmark: Benchmark = importlib.import_module(f"{__name__}.{name}").BENCHMARK
    return benchmark


def unknown_config(config: str, configs: Sequence[str]) -> QabiasError:
    """The error of a configuration that a benchmark does not have."""
    close = difflib.get_close_matches(config, configs, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return QabiasError(f"unknown configuration {config!r}: choose one of {', '.join(configs)}{hint}")
