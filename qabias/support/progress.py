"""Progress of a task, from its computation to any listener, and a pause of the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from qabias.errors import setting


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the search for cyclic garbage, which would visit all new objects again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.unfreeze()  # the new objects count as old from now on, and the next search leaves them alone
            gc.enable()


Listener = Callable[[float], None]  # takes the completed share of a task, in [0, 1]
_listener: ContextVar[Listener] = ContextVar("listener", default=lambda share: None)


_reader: ContextVar[Callable[[str], None]] = ContextVar("reader", default=lambda text: None)


def listening(listener: Listener) -> AbstractContextManager[None]:
    """Receive the progress of this thread inside the block."""
    return setting(_listener, listener)


def reading(reader: Callable[[str], None]) -> AbstractContextManager[None]:
    """Receive the remarks on this progress inside the block."""
    return setting(_reader, reader)


def remark(text: str) -> None:
    """Say what the task waits for, to any reader; the next progress ends it."""
    _reader.get()(text)


def tell(share: float) -> None:
    """Report the completed share of the task, in [0, 1], to any listener."""
    _listener.get()(share)


@contextmanager
def within(begin: float, end: float) -> Iterator[None]:
    """Scale the progress inside the block to one step of the task, between two shares."""
    listener = _listener.get()
    with listening(lambda share: listener(begin + share * (end - begin))):
        yield
