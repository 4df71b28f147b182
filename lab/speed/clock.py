"""Clock time, and busy time of threads, which depends less on other processes."""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Seconds(NamedTuple):
    """A duration.

    Attributes:
        clock: Seconds on the clock.
        busy: Busy seconds of all threads, of this process and its finished children.
    """

    clock: float
    busy: float


class Clock:
    """Measures from its creation."""

    def __init__(self) -> None:
        self._started = self._now()

    def read(self) -> Seconds:
        """Seconds since its creation."""
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
    """Time every way once per turn, to share the effects of other processes."""
    return [{name: time_of(run) for name, run in ways.items()} for _ in range(turns)]


def spread(values: Sequence[float]) -> str:
    """Median, with the least and the largest in brackets."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
