"""The benchmarks: one folder each, and what they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qabias.benchmarks.base import Benchmark as Benchmark
    from qabias.benchmarks.base import Origin as Origin
    from qabias.benchmarks.base import make_origin as make_origin
    from qabias.benchmarks.facts import ALL as ALL
    from qabias.benchmarks.facts import Facts as Facts
    from qabias.benchmarks.facts import Measure as Measure
    from qabias.benchmarks.prompt_format import PromptFormat as PromptFormat
    from qabias.benchmarks.prompt_format import choose_format as choose_format
    from qabias.benchmarks.registry import benchmark_names as benchmark_names
    from qabias.benchmarks.registry import default_name as default_name
    from qabias.benchmarks.registry import load_benchmark as load_benchmark
    from qabias.benchmarks.registry import loadable_benchmarks as loadable_benchmarks

# Where each name is defined. What takes long to import is imported when it is used, so that help answers at once.
_HOMES = {
    "Benchmark": "base",
    "Origin": "base",
    "make_origin": "base",
    "ALL": "facts",
    "Facts": "facts",
    "Measure": "facts",
    "PromptFormat": "prompt_format",
    "choose_format": "prompt_format",
    "benchmark_names": "registry",
    "default_name": "registry",
    "load_benchmark": "registry",
    "loadable_benchmarks": "registry",
}
__all__ = [
    "ALL",
    "Benchmark",
    "Facts",
    "Measure",
    "Origin",
    "PromptFormat",
    "benchmark_names",
    "choose_format",
    "default_name",
    "load_benchmark",
    "loadable_benchmarks",
    "make_origin",
]


# Hidden from type checkers, so that they find a name that is not there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
