"""How much of a task is done: what computes it tells, and whoever waits for it listens; else nothing happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[float], None]
"""Takes the share of a task that is done, in [0, 1]."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear what is told inside, in this thread."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def tell(share: float) -> None:
    """Tell whoever listens how much of the task is done, in [0, 1]."""
    if (listener := _listener.get()) is not None:
        listener(share)


@contextmanager
def within(begin: float, end: float) -> Iterator[None]:
    """What is told inside is of a step of the task, which leads from one share of it to another."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    with listening(lambda share: listener(begin + share * (end - begin))):
        yield
