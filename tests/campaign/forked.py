"""Commands of `qabias` in processes of their own that have imported everything before they begin (see `warm`)."""

import multiprocessing
import os
import resource
import sys
import time
import uuid
from pathlib import Path

from tests.conftest import ROOT

from .helpers import Ended

WARM = "tests.campaign.warm"
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([WARM])
SECONDS = 300
"""After which a command hangs."""


class Command:
    """A command that runs in a folder; its output goes into files beside that folder.

    Args:
        arguments: What stands behind `qabias`.
        folder: Where it runs.
        environment: Variables beside those of this process.
        barrier: Waits here, with all imported, until the others have come.
        wait: Seconds to wait after that.
        memory: Bytes that it may take beside what it begins with; None for any number.
    """

    def __init__(self, *arguments, folder: Path, environment=None, barrier=None, wait=0.0, memory=None) -> None:
        self._streams = folder.parent / f"said-{uuid.uuid4().hex}"
        target = (
            [str(argument) for argument in arguments],
            folder,
            self._streams,
            environment or {},
            barrier,
            wait,
            memory,
        )
        self._process = CONTEXT.Process(target=_command, args=target)
        paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *paths])
        self._process.start()

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def kill(self) -> bool:
        """Kill it as `kill -9` does; whether it was killed and had not ended by itself."""
        self._process.kill()
        return self.end().code < 0

    def end(self, seconds: float = SECONDS) -> Ended:
        """Wait until it has ended, and say how."""
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            raise TimeoutError(f"not ended after {seconds} seconds: {self._read('err')}")
        return Ended(self._process.exitcode, self._read("out"), self._read("err"))

    def _read(self, stream: str) -> str:
        path = self._streams.with_suffix(f".{stream}")
        return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def call(*arguments, folder: Path, environment=None, seconds=SECONDS, memory=None) -> Ended:
    """Run a command to its end."""
    return Command(*arguments, folder=folder, environment=environment, memory=memory).end(seconds)


def _command(arguments, folder, streams, environment, barrier, wait, memory):
    if WARM not in sys.modules:
        raise RuntimeError(f"{WARM} was not imported before the fork; is the folder above tests/ on PYTHONPATH?")
    from qabias import cli

    os.chdir(folder)
    os.environ.update(environment)
    if memory is not None:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory, resource.RLIM_INFINITY))
    for number, stream in ((1, "out"), (2, "err")):
        with open(streams.with_suffix(f".{stream}"), "wb") as file:
            os.dup2(file.fileno(), number)
    sys.argv = ["qabias", *arguments]
    if barrier is not None:
        barrier.wait()
    time.sleep(wait)
    cli.main()
