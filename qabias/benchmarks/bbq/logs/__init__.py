"""The questions of BBQ as other tools ask them: one module for each tool, which reads its logs."""

from __future__ import annotations

from importlib import import_module

from qabias.benchmarks.logged import Logged
from qabias.logs import Log

_MODULES = {"inspect_ai": "inspect_evals", "helm": "helm"}
"""The module that reads the logs of a tool, by `Log.tool`."""

_LOOKS_UP = ("helm",)
"""Tools that keep no key of an example: it is looked up in the published files by its texts."""


def logged(log: Log, upstream_dir: str | None) -> Logged | None:
    """The answers in a log of another tool; None where it asked something else.

    Args:
        log: The log.
        upstream_dir: Local mirror of the published files.

    Raises:
        QabiasError: If it asked BBQ and does not keep what scores need; says what.
    """
    if log.tool not in _MODULES:
        return None
    module = import_module(f"{__name__}.{_MODULES[log.tool]}")
    found: Logged | None = module.logged(log, upstream_dir) if log.tool in _LOOKS_UP else module.logged(log)
    return found
