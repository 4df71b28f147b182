"""Commands of `qabias` in this process, as a user meets them."""

import contextlib
import io
import sys
import traceback
import warnings
from typing import NamedTuple

from qabias import cli

LONGEST = 2000
"""Letters of one message, however long the value is that it shows."""


class Ended(NamedTuple):
    """How a command ended: exit status (minus the signal that ended it), standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def is_clean(self) -> bool:
        """Whether it went well, or was refused in one line."""
        return self.code == 0 or (self.code == 2 and "Traceback" not in self.err and is_one_line(self.err))


def is_one_line(err: str) -> bool:
    """Whether standard error ends with one refusal and its fix; bars and warnings may stand before it."""
    lines = [line for line in err.splitlines() if not line.startswith("  fix: ")]
    errors = [line for line in lines if line.startswith("qabias: error: ")]
    return len(errors) == 1 and len(errors[0]) <= LONGEST and lines[-1] == errors[0]


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
    """The one line of a command that fails."""
    ended = command(*arguments)
    assert ended.code == cli.EXIT_USER_ERROR, ended
    (line,) = ended.err.splitlines()
    return line
