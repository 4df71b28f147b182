"""Seconds on the clock and seconds that threads were busy; the latter are less disturbed by neighbours on a machine."""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Seconds(NamedTuple):
    """How long something took.

    Attributes:
        clock: Seconds on the clock.
        busy: Seconds that all threads were busy, of this process and of those that it has waited for.
    """

    clock: float
    busy: float


class Clock:
    """Measures from the moment it is made."""

    def __init__(self) -> None:
        self._started = self._now()

    def read(self) -> Seconds:
        """Seconds since the clock was made."""
        now = self._now()
        return Seconds(now.clock - self._started.clock, now.busy - self._started.busy)

    @staticmethod
    def _now() -> Seconds:
        children = os.times()[2:4]
        return Seconds(time.perf_counter(), time.process_time() + sum(children))


def time_of(run: Callable[[], object]) -> Seconds:
    """How long a call takes."""
    clock = Clock()
    run()
    return clock.read()


def take_turns(ways: Mapping[str, Callable[[], object]], turns: int) -> list[dict[str, Seconds]]:
    """Time every way once in each turn, so that whatever else the machine does meets all of them."""
    return [{name: time_of(run) for name, run in ways.items()} for _ in range(turns)]


def spread(values: Sequence[float]) -> str:
    """Median, and in brackets the least and the largest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
