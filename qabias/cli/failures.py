"""How a command ends that cannot go on: one line that says what to do, an exit code, and with --debug the traceback."""

import re
import traceback
import warnings
from pathlib import Path

from qabias.errors import QabiasError
from qabias.runs.distributed import SharedError, is_first
from qabias.support.printable import echo
from qabias.support.suggest import first_line

EXIT_USER_ERROR, FAULT, INTERRUPTED = 2, 70, 130
"""Exit codes: a mistake that the user can fix, one of this program, and Ctrl-C."""

_PACKAGE = Path(__file__).parents[1]
_LONGEST, _SHOWN = 300, 100
_TEMPORARY = re.compile(r"^\.(.+)\.\w{8}\.unfinished$")
_WHAT_TO_DO = {
    "run": "fix it and run the same command again, which continues the run",
    "merge": "fix it and run the same command again; what has been merged is kept",
    "score": "fix it and score again; the answers are as they were",
    "build": "fix it and build again; the folder may be incomplete until then",
}


def fail(error: BaseException, command: str, *, debug: bool) -> int:
    """Say on standard error why a command cannot go on."""
    if isinstance(error, SharedError) and not is_first():  # the first process says it
        return EXIT_USER_ERROR
    if debug:
        traceback.print_exception(error)
    if isinstance(error, QabiasError | SharedError):
        _say("error", str(error))
    elif isinstance(error, OSError):
        _say("error", _about_os_error(error, command))
    elif isinstance(error, MemoryError):
        _say("error", "there is not enough memory for this; take less at once, such as a --limit or one configuration")
    else:
        _say("fault", _about_fault(error, command))
        return FAULT
    return EXIT_USER_ERROR


def say_interrupted(command: str) -> None:
    """Say on standard error that Ctrl-C has ended a command; only one process of several says it."""
    if is_first():
        after = "; the same command again continues the run" if command == "run" else ""
        echo(f"qabias: stopped{after}", err=True)


def warn_in_one_line() -> None:
    """Let warnings be one line, without the line of source from which they come."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        # Those of deprecation are for the developers of libraries; Python hides them unless it is told otherwise.
        if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning)):
            _say("warning", str(message))

    warnings.showwarning = show


def check_readable(arguments: list[str]) -> None:
    """Refuse names that no file of a run could hold."""
    for argument in arguments:
        if not argument.isascii() and argument != argument.encode(errors="replace").decode():
            raise QabiasError(
                f"the argument {argument!a} is not UTF-8; rename the file or folder, or choose another name"
            )


def _say(kind: str, text: str) -> None:
    # An error has a second line, its fix; all else is one line.
    problem, fix = text.partition("\n  fix: ")[::2]
    echo(f"qabias: {kind}: {_in_one_line(problem)}", err=True)
    if fix:
        echo(f"  fix: {_in_one_line(fix)}", err=True)


def _in_one_line(text: str) -> str:
    return " ".join(map(_shortened, text.split()))


def _shortened(word: str) -> str:
    """A word that fills no screen: a name of a thousand letters would hide what is said of it."""
    return word if len(word) <= _LONGEST else f"{word[:_SHOWN]}...{word[-_SHOWN:]}"


def _about_os_error(error: OSError, command: str) -> str:
    # A copy that fails names its source first; what can be full or forbidden is its target.
    name = error.filename2 or error.filename
    where = f"{_without_random(Path(str(name)))}: " if name else ""
    return f"{where}{error.strerror or first_line(error)}; {_WHAT_TO_DO.get(command, 'fix it and repeat the command')}"


def _without_random(path: Path) -> Path:
    """The file for which a temporary one stands."""
    return path.with_name(_TEMPORARY.sub(r"\1", path.name)) if path.name else path


def _about_fault(error: BaseException, command: str) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    last = (ours or frames)[-1]
    file = Path(last.filename)
    where = file.relative_to(_PACKAGE.parent).as_posix() if ours else file.name
    text = first_line(error)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return (
        f"{text} ({type(error).__name__} in {where}:{last.lineno}); "
        f"`qabias --debug {command} ...` shows the traceback; please report it"
    )
