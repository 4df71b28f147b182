"""Waiting for coroutines, even inside a running event loop, as in a notebook."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable
from typing import TypeVar, cast

T = TypeVar("T")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def wait_for(awaitable: Awaitable[T]) -> T:
    """The result of an awaitable, from one event loop in a background thread."""
    future = asyncio.run_coroutine_threadsafe(_outcome(awaitable), _loop())
    try:
        result, error = future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise
    if error is not None:
        raise error
    return cast(T, result)


async def _outcome(awaitable: Awaitable[T]) -> tuple[T | None, BaseException | None]:
    try:
        return await awaitable, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # an exit raised here would end the loop, as it ends anyio's portal
        return None, error


def _loop() -> asyncio.AbstractEventLoop:
    """The loop of this process, started on first use; a forked process has its own thread."""
    with _lock:
        process = os.getpid()
        if process not in _loops:
            _loops[process] = asyncio.new_event_loop()
            threading.Thread(target=_loops[process].run_forever, name="qabias-loop", daemon=True).start()
        return _loops[process]
