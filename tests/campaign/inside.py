"""Commands of `qabias` in this process: quick, and with their streams caught."""

import contextlib
import io
import sys
import traceback
import warnings

from qabias import cli

from .forked import Ended


def command(*arguments) -> Ended:
    """How a command ends; a traceback stands on its standard error, with code 1."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = _code(*arguments)
    return Ended(code, out.getvalue(), err.getvalue())


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
