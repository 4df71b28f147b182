"""Questions of a log that have no answer because asking failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

_NAMED = 3
_LENGTH = 120


def about_failures(failures: Collection[str], n: int) -> str:
    """How many questions failed and why, as a sentence; "" where none did.

    Args:
        failures: For every question without an answer why there is none.
        n: All questions of the log.
    """
    if not failures:
        return ""
    counts = Counter(why[:_LENGTH] for why in failures).most_common()
    reasons = [f"{times:,} × {why}" for why, times in counts[:_NAMED]]
    rest = sum(times for _, times in counts[_NAMED:])
    told = "; ".join([*reasons, *([f"{rest:,} × something else"] if rest else [])])
    return f"{len(failures):,} of {n:,} requests ({len(failures) / n:.1%}) failed and count as unparsed: {told}"
