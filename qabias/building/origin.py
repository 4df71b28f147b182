"""The checks that every choice of a source makes."""

from collections.abc import Sequence

from qabias.errors import QabiasError
from qabias.support.suggest import unknown

BUNDLED = "bundled"
"""The source of this project's own texts."""


def check_source(source: str, sources: Sequence[str], fixes: bool) -> None:
    """Check that a dataset has a source, and that there is something to fix in it."""
    if source not in sources:
        raise unknown("source", source, sources)
    if fixes and source == BUNDLED:
        published = " or ".join(name for name in sources if name != BUNDLED)
        raise QabiasError(f"the bundled texts have no known defects to fix: use fixes with the source {published}")
