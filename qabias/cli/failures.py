"""How a command fails: problem, fix, exit code, and with --debug the traceback."""

import errno
import logging
import re
import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError, bounded
from qabias.runs.distributed import SharedError, is_first
from qabias.support.printable import echo, printable
from qabias.support.suggest import choose, first_line, unknown

EXIT_USER_ERROR, FAULT, INTERRUPTED = 2, 70, 130  # exit codes: a mistake of the user, a fault of qabias, Ctrl-C
_PACKAGE = Path(__file__).parents[1]
_LONGEST, _SHOWN = 300, 100
_TEMPORARY = re.compile(r"^\.(.+)\.\w{8}\.unfinished$")
_NEXT = {
    "run": "rerun the command to resume",
    "merge": "rerun the command. Merged parts are kept",
    "score": "score again. The answers are unchanged",
    "build": "build again. The folder may be incomplete",
}
_HOW = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free space on the disk"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Choose a path that you may read and write"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "Raise the limit of open files (ulimit -n)"),
}


def fail(error: BaseException, command: str, *, debug: bool) -> int:
    """Print why a command stopped: the problem and the fix, a line each."""
    if isinstance(error, SharedError) and not is_first():  # the first process prints it
        return EXIT_USER_ERROR
    if debug:
        echo("".join(traceback.format_exception(error)), err=True)
    if isinstance(error, QabiasError | SharedError):
        problem, _, fix = str(error).partition("\n  fix: ")
        _say("error", problem, fix or f"See 'qabias {command or 'COMMAND'} --help'.")
    elif hasattr(error, "format_message"):
        _say("error", *usage_error(error))
    elif isinstance(error, OSError):
        _say("error", _os_error(error), _how(error, _NEXT.get(command, "rerun the command")))
    elif isinstance(error, MemoryError):
        _say("error", "Out of memory.", "Use --limit, one --config, or a smaller --batch-tokens.")
    else:
        _say("fault", _fault(error), f"Report it with the output of 'qabias --debug {command} ...'.")
        return FAULT
    return EXIT_USER_ERROR


def usage_error(error: Any) -> tuple[str, str]:
    """The problem and the fix of a command-line parser error."""
    context = error.ctx
    path = "qabias" if context is None else context.command_path
    names = [] if context is None else [name for each in context.command.get_params(context) for name in each.opts]
    text = error.format_message()
    if hasattr(error, "option_name") and hasattr(error, "possibilities"):
        wrong = unknown("option", _as_typed(error.option_name), names)
        return wrong.args[0], f"See all options: {path} --help-all"
    if text.startswith("No such command"):
        name = text.split("'")[1]
        known = list(context.command.list_commands(context))
        return unknown("command", name, known, see=f"{path} --help-all").args
    if text.startswith("Missing command"):
        known = list(context.command.list_commands(context))
        return f"'{path}' needs a command.", choose(known, known)
    param = getattr(error, "param", None)
    if param is not None:
        named = param.opts[0] if param.param_type_name == "option" else param.name.upper()
        if type(error).__name__ == "MissingParameter":
            return f"'{path}' needs {named}.", context.command.epilog or f"See '{path} --help'."
        for kind, what in (("valid integer", "a whole number"), ("valid number", "a number")):
            if kind in text:
                return f"{named} is not {what}.", f"Give {what}. {named} takes: {param.help}"
        return f"{named}: {text.split(': ', 1)[-1].rstrip('.')}.", f"{named} takes: {param.help}"
    if "extra argument" in text:
        extra = text.rpartition("(")[2].rstrip(")")
        return f"'{path}' does not take {extra!r}.", f"Remove it, or see '{path} --help'."
    if "requires an argument" in text:
        return text, f"Add a value after {error.option_name}."
    return f"{text.rstrip('.')}.", f"See '{path} --help'."


def _as_typed(name: str) -> str:
    # The parser reads -model as -m.
    return next((each for each in sys.argv[1:] if name[:2] != "--" and each.startswith(name)), name)


def say_interrupted(command: str) -> None:
    """Report Ctrl-C on standard error, from one process only."""
    if is_first():
        kept = ". The answers so far are kept. Rerun the command to resume."
        echo(f"stopped{kept if command == 'run' else ''}", err=True)


def warn_in_one_line() -> None:
    """Print warnings in one line, without their source line."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        # Python hides deprecation warnings by default: they are for library developers.
        if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning)):
            _say("warning", str(message))

    warnings.showwarning = show


def log_plainly() -> None:
    """Free every log record, also those of other packages, from control characters."""
    make = logging.getLogRecordFactory()

    def made(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        with suppress(TypeError, ValueError):  # a wrong format is reported by its handler
            record.msg, record.args = printable(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = printable("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return record

    logging.setLogRecordFactory(made)


def check_readable(arguments: list[str]) -> None:
    """Refuse names that no file of a run can have."""
    for argument in arguments:
        if not argument.isascii() and argument != argument.encode(errors="replace").decode():
            raise QabiasError(
                f"the argument {argument!a} is not UTF-8.", "Rename the file or folder, or choose another name."
            )


def _say(kind: str, problem: str, fix: str = "") -> None:
    echo(f"{kind}: {_in_one_line(problem)}", err=True)
    if fix:
        echo(f"  fix: {_in_one_line(fix)}", err=True)


def _in_one_line(text: str) -> str:
    # Names may have a thousand letters.
    words = (word if len(word) <= _LONGEST else f"{word[:_SHOWN]}...{word[-_SHOWN:]}" for word in text.split())
    return bounded(" ".join(words))


def _os_error(error: OSError) -> str:
    # A copy that fails names its source first; what can be full or forbidden is its target.
    name = error.filename2 or error.filename
    path = Path(str(name or ""))
    target = path.with_name(_TEMPORARY.sub(r"\1", path.name)) if path.name else path
    return f"{f'{target}: ' if name else ''}{error.strerror or first_line(error)}."


def _how(error: OSError, then: str) -> str:
    return f"{_HOW.get(error.errno or 0, 'Choose another path, or check the disk')}, then {then}."


def _fault(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    last = (ours or frames)[-1]
    file = Path(last.filename)
    where = file.relative_to(_PACKAGE.parent).as_posix() if ours else file.name
    return f"{bounded(first_line(error), _LONGEST)} ({type(error).__name__} in {where}:{last.lineno})."
