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
    raised: list[BaseException] = []

    async def finish() -> T | None:
        try:
            return await awaitable
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # raised in the caller: an exit would end the loop and leave it waiting
            raised.append(error)
            return None

    future = asyncio.run_coroutine_threadsafe(finish(), _loop())
    try:
        result = future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise
    if raised:
        raise raised[0]
    return cast(T, result)


def _loop() -> asyncio.AbstractEventLoop:
    """The loop of this process, started on first use; a forked process has its own thread."""
    with _lock:
        process = os.getpid()
        if process not in _loops:
            _loops[process] = asyncio.new_event_loop()
            threading.Thread(target=_loops[process].run_forever, name="qabias-loop", daemon=True).start()
        return _loops[process]
