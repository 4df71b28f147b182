"""Commands of `qabias` in processes of their own that have imported everything before they begin (see `warm`)."""

import multiprocessing
import os
import sys
import time
import uuid
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

WARM = "tests.campaign.warm"
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([WARM])
LONGEST = 300
"""Seconds after which a command hangs."""


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        code: Exit status; the negative number of the signal that ended it.
        out: Its standard output.
        err: Its standard error.
    """

    code: int
    out: str
    err: str

    @property
    def is_clean(self) -> bool:
        """Whether it went well, or was refused in one line."""
        return self.code == 0 or (self.code == 2 and "Traceback" not in self.err and is_one_line(self.err))


def is_one_line(err: str) -> bool:
    """Whether standard error ends with one line of refusal; bars and warnings may stand before it."""
    errors = [line for line in err.splitlines() if line.startswith("qabias: error: ")]
    return len(errors) == 1 and err.rstrip().endswith(errors[0])


class Command:
    """A command that runs.

    Args:
        arguments: What stands behind `qabias`.
        folder: Where it runs; its output goes into files beside that folder.
        environment: Variables beside those of this process.
        barrier: Waits here, with all imported, until the others have come.
        wait: Seconds to wait after that.
    """

    def __init__(self, *arguments, folder: Path, environment=None, barrier=None, wait=0.0) -> None:
        self._said = folder.parent / f"said-{uuid.uuid4().hex}"
        self._process: BaseProcess = CONTEXT.Process(
            target=_command,
            args=([str(argument) for argument in arguments], folder, self._said, environment or {}, barrier, wait),
        )
        os.environ["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        )
        self._process.start()

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def kill(self) -> bool:
        """Kill it as `kill -9` does; whether it was killed and had not ended by itself."""
        self._process.kill()
        return self.end().code < 0

    def end(self) -> Ended:
        """Wait until it has ended, and say how."""
        self._process.join(LONGEST)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            raise TimeoutError(f"not ended after {LONGEST} seconds: {self._read('err')}")
        return Ended(self._process.exitcode, self._read("out"), self._read("err"))

    def _read(self, stream: str) -> str:
        path = self._said.with_suffix(f".{stream}")
        return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def call(*arguments, folder: Path, environment=None) -> Ended:
    """Run a command to its end."""
    return Command(*arguments, folder=folder, environment=environment).end()


def _command(arguments, folder, said, environment, barrier, wait):
    if WARM not in sys.modules:
        raise RuntimeError(f"{WARM} was not imported before the fork; is the folder above tests/ on PYTHONPATH?")
    from qabias import cli

    os.chdir(folder)
    os.environ.update(environment)
    for number, stream in ((1, "out"), (2, "err")):
        with open(said.with_suffix(f".{stream}"), "wb") as file:
            os.dup2(file.fileno(), number)
    sys.argv = ["qabias", *arguments]
    if barrier is not None:
        barrier.wait()
    time.sleep(wait)
    cli.main()
