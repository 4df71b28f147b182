"""What a check found: one `Outcome` for every measure of every case, also where nothing could be measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HOLDS, FAILS, MEASURED, NOT_MEASURED = "holds", "fails", "measured", "not measured"
STATES = (HOLDS, FAILS, MEASURED, NOT_MEASURED)

MEASURES = ("equality", "invariance", "speed", "peer", "recovery")
"""What is measured, most important first.

    equality    the figures are those of a reference in a wider type, within a stated bound
    invariance  the figures of two token budgets are equal, within the same bound
    speed       tokens a second, share of what the model and the device can do, share of Python, memory
    peer        the time of a plain loop over `transformers` for the same questions
    recovery    memory that runs out makes batches smaller, and the figures stay
"""


@dataclass(frozen=True)
class Outcome:
    """What one measure found."""

    state: str
    why: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {"state": self.state, "why": self.why, **self.figures}


def not_measured(why: str) -> Outcome:
    """The outcome of a measure that was left out, and why."""
    return Outcome(NOT_MEASURED, why)


def gib(n_bytes: float) -> str:
    """An amount of memory for people."""
    return f"{n_bytes / 2**30:,.1f} GiB"
