"""The questions of BBQ as other tools ask them: one module for each tool, which reads its logs."""

from __future__ import annotations

from importlib import import_module

from qabias.benchmarks.logged import Logged
from qabias.logs import Log

_MODULES = {"inspect_ai": "inspect_evals"}
"""The module that reads the logs of a tool, by `Log.tool`."""


def logged(log: Log) -> Logged | None:
    """The answers in a log of another tool; None where it asked something else.

    Args:
        log: The log.

    Raises:
        QabiasError: If it asked BBQ and does not keep what scores need; says what.
    """
    if log.tool not in _MODULES:
        return None
    found: Logged | None = import_module(f"{__name__}.{_MODULES[log.tool]}").logged(log)
    return found
