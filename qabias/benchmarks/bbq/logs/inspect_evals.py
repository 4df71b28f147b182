"""BBQ as the task `bbq` of inspect_evals asks it."""

from __future__ import annotations

from qabias.benchmarks.logged import Logged
from qabias.logs import Log


def logged(log: Log) -> Logged | None:
    """The answers in a log of the task; None where it is of another task."""
    return None
