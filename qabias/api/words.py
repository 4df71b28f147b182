"""Messages for callers: `allow_mixed` where the command line says `--allow-mixed`, warnings at the line of the call."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from qabias.errors import QabiasError

_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


@contextmanager
def in_python_words() -> Iterator[None]:
    """Name options in the message of a `QabiasError` as functions do; it stays the same error."""
    try:
        yield
    except QabiasError as error:
        error.args = (_FLAG.sub(lambda flag: flag[1].replace("-", "_"), str(error)), *error.args[1:])
        raise


def warn_caller(texts: Iterable[str]) -> None:
    """Warn from a function that `in_python_words` decorates, naming the line that calls it."""
    for text in texts:
        # Above are that function, and the one that decorates it.
        warnings.warn(text, stacklevel=4)
