"""The benchmarks by name: of this package, and installed plugins."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from qabias.errors import QabiasError
from qabias.support.suggest import first_line, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from qabias.benchmarks.base import Benchmark

GROUP = "qabias.benchmarks"
BENCHMARK_FILE = "benchmark.yaml"
"""The file that makes a folder a benchmark of templates."""

_FOLDERS = ("bbq", "unqover", "inference", "multilingual")


@cache
def known_addresses() -> Mapping[str, str]:
    """The module of each benchmark, as "module:attribute". Imports nothing heavy."""
    addresses = {
        name: f"{__package__}.{folder}.{where}" if ":" in where else f"{__package__}.{folder}.{where}:BENCHMARK"
        for folder in _FOLDERS
        for name, where in _modules(folder).items()
    }
    return addresses | {entry.name: entry.value for entry in _installed() if entry.name not in addresses}


def _modules(folder: str) -> Mapping[str, str]:
    """The benchmarks in a folder: name to module."""
    modules: Mapping[str, str] = importlib.import_module(f"{__package__}.{folder}").MODULES
    return modules


def _installed() -> Iterator[EntryPoint]:
    from importlib.metadata import entry_points  # slow, and the help of commands needs none

    yield from entry_points(group=GROUP)


def benchmark_names() -> tuple[str, ...]:
    """Names of all benchmarks."""
    return tuple(known_addresses())


def default_name() -> str:
    """The default benchmark of commands."""
    return next(iter(_modules(_FOLDERS[0])))


def address(name: str) -> str:
    """The module of a benchmark, as "module:attribute"."""
    addresses = known_addresses()
    if name not in addresses:
        raise unknown("benchmark", name, addresses, see="qabias list")
    for entry in _installed():
        if entry.name == name and entry.value != addresses[name]:
            package = entry.dist.name if entry.dist else entry.value
            raise QabiasError(
                f"two benchmarks have the name {name!r}: {addresses[name]} and {entry.value}.",
                f"Uninstall the package {package}.",
            )
    return addresses[name]


def is_folder(name: str) -> bool:
    """Whether a name is the path of a folder of templates."""
    if name in known_addresses():
        return False
    return "/" in name or os.sep in name or (Path(name) / BENCHMARK_FILE).is_file()


def load_benchmark(name: str) -> Benchmark:
    """The benchmark of that name, or of the template folder at that path."""
    if not is_folder(name):
        return load_named(name)
    # Imported by its name, because benchmarks import this module.
    folders = importlib.import_module(f"{__package__}.multilingual.template_folder")
    return cast("Benchmark", folders.load(Path(name)))


@cache
def load_named(name: str) -> Benchmark:
    """The benchmark of that name, loaded once."""
    where = address(name)
    module, _, attribute = where.partition(":")
    try:
        benchmark = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        problem = f"the benchmark {name} ({where}) cannot be imported: {first_line(error)}."
        raise QabiasError(problem, "Repair or uninstall its package.") from error
    if getattr(benchmark, "name", None) != name:
        raise QabiasError(
            f"{where} does not have the name {name!r}.", "Uninstall its package, or correct the entry point."
        )
    return cast("Benchmark", benchmark)


def default_source(name: str) -> str:
    """The default source of a benchmark's texts."""
    return load_benchmark(name).sources[0]


def loadable_benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by name. One that cannot be loaded only causes a warning."""
    benchmarks = {}
    for name in benchmark_names():
        try:
            benchmarks[name] = load_benchmark(name)
        except QabiasError as error:
            warnings.warn(str(error), stacklevel=2)
    return benchmarks
