"""A limit of time that nothing is begun against."""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """Tells whether there is time for one more measure."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self.seconds = seconds

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._started

    @property
    def left(self) -> float:
        """Seconds that are left, 0 at least."""
        return max(0.0, self.seconds - self.spent)

    def refusal(self, seconds: float) -> str | None:
        """Why a measure of about so many seconds is not begun; None where there is time for it."""
        left = self.left
        if seconds <= left and left > 0:
            return None
        return f"time (needs about {seconds:.0f} s, {left:.0f} s left)"
