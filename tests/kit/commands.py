"""Commands of `qabias` as a user meets them: in this process, or in one of their own."""

import contextlib
import io
import os
import subprocess
import sys
import traceback
import warnings
from typing import NamedTuple

from qabias import cli

from ..conftest import ROOT

LONGEST = 2000
"""Letters of one message, however long the value is that it shows."""


class Ended(NamedTuple):
    """How a command ended: exit status (minus the signal that ended it), standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def is_clean(self) -> bool:
        """Whether it went well, or was refused in two lines."""
        return self.code == 0 or (self.code == 2 and "Traceback" not in self.err and is_two_lines(self.err))


def is_two_lines(err: str) -> bool:
    """Whether standard error ends with a problem and its fix; bars and warnings may precede them."""
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    last = err.splitlines()[-2:]
    return (
        len(errors) == 1 and last[0] == errors[0] and last[1].startswith("  fix: ") and max(map(len, last)) <= LONGEST
    )


def command(*arguments) -> Ended:
    """How a command ends in this process; a traceback stands on its standard error, with code 1."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        code = _code(*arguments)
    return Ended(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())


def _code(*arguments):
    before = sys.argv
    sys.argv = ["qabias", *map(str, arguments)]
    try:
        cli.main()
    except SystemExit as stopped:
        return stopped.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.argv = before
    return 0


def called(*arguments) -> str:
    """What a command printed that went well, with single spaces, because titles are wrapped."""
    ended = command(*arguments)
    assert ended.code == 0, ended
    return " ".join(ended.out.split())


def refused(*arguments) -> str:
    """The problem and the fix of a command that fails, in one line."""
    ended = command(*arguments)
    assert ended.code == cli.EXIT_USER_ERROR, ended
    assert is_two_lines(ended.err), ended
    return " ".join(ended.err.split())


def python(*words, cwd=None, given=None, **environment) -> subprocess.CompletedProcess:
    """Python in a process of its own with the package of this checkout; `-m qabias ...` is the command line."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", **environment},
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
