"""Several processes that share one run, started by `accelerate launch` or `torchrun`."""

import atexit
import datetime
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from qabias.errors import QabiasError
from qabias.support.suggest import need

T = TypeVar("T")

_LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK")  # what a launcher tells each of its processes
# How long to wait for the slowest process. The launcher ends the waiting ones much sooner if another one fails.
_PATIENCE = datetime.timedelta(days=30)
_SECONDS_BETWEEN_LOOKS = 0.5


class SharedError(QabiasError):
    """An error that all processes raise together; the first process prints it."""


@dataclass(frozen=True)
class Processes:
    """This process among all of a run."""

    rank: int = 0
    count: int = 1
    device: str | None = None
    survives: bool = False  # a failure of one must not end the others

    def share(self, shard: int, n_shards: int) -> tuple[int, int]:
        """Share (i, n) of a shard for this process: every n-th part, from part i on."""
        return shard + n_shards * self.rank, n_shards * self.count

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run a block in all processes at once; if one fails, all raise its error."""
        if self.count == 1:
            yield
            return
        try:
            yield
        except Exception as error:
            failure = str(error) if isinstance(error, QabiasError) else f"{type(error).__name__}: {error}"
            self._share_failure(failure)
            if isinstance(error, QabiasError):
                raise SharedError(failure) from error
            raise
        self._share_failure(None)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Run a block in every process, then wait for all of them."""
        if self.count == 1 or self.survives:
            with self.together():
                yield
            return
        try:
            yield
        except (QabiasError, OSError) as error:
            raise SystemExit(f"error: rank {self.rank} of {self.count}: {error}") from error
        self._share_failure(None)

    def on_first(self, function: Callable[[], T]) -> T:
        """Call a function in process 0 only; all processes return its result."""
        result: Any = None
        with self.together():
            if self.rank == 0:
                result = function()
        return result if self.count == 1 else self._gather(result)[0]

    def _share_failure(self, failure: str | None) -> None:
        """Share whether this process failed, and raise another one's first failure."""
        for rank, theirs in enumerate(self._gather(failure)):
            if theirs is not None and failure is None:
                where = "" if rank == 0 else f"rank {rank} of {self.count}: "
                raise SharedError(f"{where}{theirs}")

    def _gather(self, content: Any) -> list[Any]:
        import torch.distributed

        contents = [None] * self.count
        try:
            torch.distributed.all_gather_object(contents, content)
        except RuntimeError as error:
            raise SharedError("another process has ended; see its own message") from error
        return contents


def is_first() -> bool:
    """Return whether this process prints: the first one, or the only one."""
    return not _is_launched() or os.environ["RANK"] == "0"


@cache
def launched_processes() -> Processes:
    """The processes of a run; the first call connects them."""
    if not _is_launched():
        return Processes()
    need("local", "a run that several processes share out")
    import torch
    from accelerate import PartialState

    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    on_cpu = not torch.cuda.is_available() or os.environ.get("ACCELERATE_USE_CPU", "false").lower() == "true"
    try:
        state = PartialState(cpu=on_cpu, backend="gloo", timeout=_PATIENCE)
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise QabiasError(f"the launched processes cannot be connected: {error}.", "Check the launcher.") from error
    atexit.register(_disconnect)
    return Processes(state.process_index, state.num_processes, str(state.device))


def _disconnect() -> None:
    """End the connection's threads: a thread that outlives the interpreter aborts a finished process."""
    import torch.distributed

    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _is_launched() -> bool:
    return all(name in os.environ for name in _LAUNCHED) and int(os.environ["WORLD_SIZE"]) > 1


def _end_with_parent(parent: int) -> None:
    """End this process when its launcher is gone, or it would write into a restarted run."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)
