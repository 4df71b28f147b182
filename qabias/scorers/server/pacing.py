"""Waiting before a service's rate limit is reached, by the headers of its answers."""

from __future__ import annotations

import datetime
import math
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

MOST_SECONDS = 60.0  # the longest wait for one limit

_PAUSE = "retry-after"  # name of the limit that a server sets for all requests

# Headers of what is left of a limit, and of its reset.
_HEADERS = {
    **{f"x-ratelimit-remaining-{what}": f"x-ratelimit-reset-{what}" for what in ("requests", "tokens")},
    **{
        f"anthropic-ratelimit-{what}-remaining": f"anthropic-ratelimit-{what}-reset"
        for what in ("requests", "tokens", "input-tokens", "output-tokens")
    },
}
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[hms]))+")


def seconds_until(reset: str, now: float) -> float:
    """The seconds until a reset: a duration such as 6m0s, seconds, a Unix time or a date; 0 if it is none."""
    if _DURATION.fullmatch(reset):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|[hms])", reset))
    with suppress(ValueError):
        seconds = float(reset)
        if math.isfinite(seconds):
            return max(0.0, seconds - now if seconds > 1e9 else seconds)
    with suppress(ValueError, OverflowError):
        moment = datetime.datetime.fromisoformat(reset.replace("Z", "+00:00"))
        return max(0.0, moment.timestamp() - now)
    return 0.0


class Pace:
    """Lets requests begin as long as the limits allow, from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: dict[str, tuple[float, float]] = {}  # what is left, and until when
        self._underway = 0
        self._tokens = 1  # the most tokens of an answer so far

    def begin(self, *, again: bool = False) -> float:
        """Begin a request and return 0, or return the seconds to wait; one sent again has had its own pause."""
        with self._lock:
            now = time.monotonic()
            self._limits = {name: limit for name, limit in self._limits.items() if limit[1] > now}
            ends = [
                end
                for name, (left, end) in self._limits.items()
                if left // (self._tokens if "tokens" in name else 1) <= self._underway
                if not (again and name == _PAUSE)
            ]
            self._underway += not ends
            return max(ends) - now if ends else 0.0

    def end(self, headers: Mapping[str, str], tokens: int = 0) -> None:
        """End a request, whose answer has these headers and used so many tokens."""
        with self._lock:
            self._underway -= 1
            self._tokens = max(self._tokens, tokens)
            for remaining, reset in _HEADERS.items():
                with suppress(KeyError, ValueError):
                    left, seconds = float(headers[remaining]), seconds_until(headers[reset], time.time())
                    end = time.monotonic() + min(MOST_SECONDS, seconds)
                    before = self._limits.get(remaining, (left, end))
                    # Answers of one window may arrive in another order than the server counted them.
                    self._limits[remaining] = (min(left, before[0]) if abs(before[1] - end) < 1 else left, end)

    def pause(self, seconds: float) -> None:
        """Let no further request begin for some seconds."""
        with self._lock:
            self._limits[_PAUSE] = (0.0, time.monotonic() + seconds)
