"""One command at a time in a run folder: a second one for the same share of a run waits until the first has ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from qabias.runs.distributed import Processes
from qabias.support.locks import hold

_log = logging.getLogger(__name__)


@contextmanager
def turn(folder: Path, shard: tuple[int, int], processes: Processes) -> Iterator[None]:
    """Compute a shard of a run while nobody else does; other shards are computed beside it."""
    name = ".lock" if shard[1] == 1 else f".lock-{shard[0]}-of-{shard[1]}"

    def tell() -> None:
        _log.warning("%s: another process computes this run; this one waits until it has ended", folder)

    with ExitStack() as held:
        processes.on_first(lambda: held.enter_context(hold(folder / name, tell)))
        yield
