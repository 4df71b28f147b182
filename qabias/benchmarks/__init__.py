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

from qabias.errors import QabiasError
from qabias.prompts import PromptFormat
from qabias.scorers.base import Request

BENCHMARKS = ("bbq",)


class Origin(Protocol):
    """Where the texts of a benchmark come from."""

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature, e.g. "bundled@0"."""
        ...


class Benchmark(Protocol):
    """What the engine needs to know of a benchmark.

    Attributes:
        name: Name on the command line.
        title: Name for people.
        configs: Configurations, the default last.
        sources: Sources of the texts, the default first.
        formats: Prompt formats by name, the default first.
        key: Columns that identify an example.
    """

    name: str
    title: str
    configs: Sequence[str]
    sources: Sequence[str]
    formats: Mapping[str, PromptFormat]
    key: Sequence[str]

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

    def units(self, table: pa.Table) -> tuple[Sequence[str], Sequence[str]]:
        """For every example the unit that sampling must not split, and the stratum of that unit."""
        ...

    def request(self, example: Mapping[str, Any], prompt_format: PromptFormat) -> Request:
        """Put an example to a model."""
        ...

    def score(self, table: pa.Table, predictions: Sequence[int] | Sequence[str] | np.ndarray) -> dict[str, Any]:
        """Score one prediction per example (an index, -1 for none, or the answer's text)."""
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
