"""What a tool should have written, and the one error where it is something else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from qabias.errors import QabiasError

NOT_AS_WRITTEN = (
    *(ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError),
    re.error,
)
"""What reading values of another kind than a tool writes raises, in Python and in pyarrow."""


@contextmanager
def as_written(where: object, tool: str) -> Iterator[None]:
    """Name the place of values that are not of the kind that a tool writes."""
    try:
        yield
    except QabiasError:
        raise
    except NOT_AS_WRITTEN as error:
        raise QabiasError(f"{where} is not as {tool} writes it: {error!r}") from error
