"""Logs that other evaluation tools write, sample by sample.

A reader of a tool knows the form of its files and nothing of a benchmark. What a sample asks, and which answer of an
example it chose, is read by the benchmark (`Benchmark.logged`).
"""

from qabias.logs.model import Log, Sample

__all__ = ["Log", "Sample"]
