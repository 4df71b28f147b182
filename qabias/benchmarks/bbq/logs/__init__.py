"""The questions of BBQ as other tools ask them: one module for each tool, which reads its logs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from qabias.benchmarks.base import Logged
from qabias.logs import Log

_MODULES = {"inspect_ai": "inspect_evals", "lm-eval": "lm_eval"}
"""The module that reads the logs of a tool, by `Log.tool`."""


def logged(log: Log, hints: Mapping[str, str], upstream_dir: str | None) -> Logged | None:
    """The answers in a log of another tool; None where it asked something else."""
    if log.tool not in _MODULES:
        return None
    module = import_module(f"{__name__}.{_MODULES[log.tool]}")
    result: Logged | None = module.logged(log, hints, upstream_dir)
    return result
