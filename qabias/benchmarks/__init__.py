"""The benchmarks: one folder each, and what they have in common.

All that the engine knows of a benchmark stands in its folder: where its examples come from, how they are put to a
model, how answers are scored, what its scores are called and how they read. No other room spells a benchmark's name.
"""

from qabias.benchmarks.base import Benchmark, Origin, kept_source, make_origin
from qabias.benchmarks.facts import ALL, Facts, Measure
from qabias.benchmarks.prompt_format import PromptFormat, choose_format
from qabias.benchmarks.registry import benchmark_names, default_name, load_benchmark, loadable_benchmarks

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
    "kept_source",
    "load_benchmark",
    "loadable_benchmarks",
    "make_origin",
]
