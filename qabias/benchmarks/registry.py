"""The benchmarks that can be run, found by name: those of this package, and those that others install.

A benchmark of this package is a folder beside this file; its `__init__.py` names the modules that hold a `BENCHMARK`. A
benchmark of somebody else's is found through the entry-point group `qabias.benchmarks`, whose value names the object.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, cast

from qabias.errors import QabiasError
from qabias.support.suggest import first_line, unknown

if TYPE_CHECKING:
    from qabias.benchmarks.base import Benchmark

GROUP = "qabias.benchmarks"
_FOLDERS = ("bbq", "unqover", "inference")


@cache
def _addresses() -> Mapping[str, str]:
    """Where the benchmark of each name is, as "module:attribute"; nothing heavy is imported for it."""
    found = {}
    for folder in _FOLDERS:
        package = f"{__package__}.{folder}"
        for name, module in importlib.import_module(package).MODULES.items():
            found[name] = f"{package}.{module}:BENCHMARK"
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name in found:
            raise QabiasError(f"two benchmarks have the name {entry.name!r}; {entry.value} is one of them")
        found[entry.name] = entry.value
    return found


def benchmark_names() -> tuple[str, ...]:
    """Names of all benchmarks."""
    return tuple(_addresses())


def default_name() -> str:
    """The benchmark that a command means where none is named: the first one."""
    return benchmark_names()[0]


def address(name: str) -> str:
    """Where a benchmark is, as "module:attribute".

    Raises:
        QabiasError: If there is none of that name.
    """
    addresses = _addresses()
    if name not in addresses:
        raise unknown("benchmark", name, addresses)
    return addresses[name]


@cache
def load_benchmark(name: str) -> Benchmark:
    """The benchmark of that name.

    Raises:
        QabiasError: If there is none, or the installed one cannot be imported or has another name.
    """
    where = address(name)
    module, _, attribute = where.partition(":")
    try:
        benchmark = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise QabiasError(f"the benchmark {name} ({where}) cannot be imported: {first_line(error)}") from error
    if getattr(benchmark, "name", None) != name:
        raise QabiasError(f"{where} is no benchmark with the name {name!r}")
    return cast("Benchmark", benchmark)
