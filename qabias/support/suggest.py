"""Parts of error messages: known names, the closest name, the first line of another error."""

import difflib
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path

from qabias.errors import QabiasError, bounded

MOST = 3

_NEARLY = 0.05
_LONGEST = 200


def closest(name: object, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The known names nearest to a wrong one, closest first."""
    if not isinstance(name, str) or not name:
        return []
    wrong = name[:_LONGEST].lower()
    shares = {
        other: max(0.9 * text.startswith(wrong), difflib.SequenceMatcher(None, text, wrong).ratio())
        for other, text in ((other, other.lower()) for other in known)
    }
    ranked = sorted(shares, key=lambda other: (-shares[other], abs(len(other) - len(name))))
    return [other for other in ranked if shares[other] >= max(cutoff, shares[ranked[0]] - _NEARLY)][:most]


def did_you_mean(name: object, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> str:
    """The end of a problem: ". Did you mean 'Age'?", or "" if nothing is close."""
    close = closest(name, known, most, cutoff)
    return f". Did you mean {' or '.join(map(repr, close))}?" if close else ""


def unknown(
    what: str, name: object, known: Iterable[str], flag: str = "", see: str = "", cutoff: float = 0.6
) -> QabiasError:
    """The error for an unknown name: the closest names, then how to see all."""
    names = list(known)
    close = closest(name, names, MOST, cutoff)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return QabiasError(f"unknown {what} {shortened(name)}.{meant}", choose(names, close[:1], flag, see))


def choose(names: Sequence[str], close: Sequence[str] = (), flag: str = "", see: str = "") -> str:
    """The fix of a wrong choice: at most three names, and the command that lists all."""
    offered = close or names[:MOST]
    if not offered:
        return f"Remove {flag}." if flag else "There is none to choose."
    rest = f", or run '{see}' to list all {len(names)}" if see and len(names) > len(offered) else ""
    few = "" if rest or len(names) <= len(offered) or close else f" ({len(offered)} of {len(names)})"
    listed = " or ".join(filter(None, (", ".join(offered[:-1]), offered[-1])))
    gap = "" if flag[-1:] in ("", ":", "=", "/") else " "
    return f"Use {flag}{gap}{listed}{few}{rest}."


def shortened(value: object) -> str:
    """A value in a message: its Python form, shortened if it is long."""
    return bounded(repr(value), _LONGEST)


def missing(path: Path) -> QabiasError:
    """The error for a missing file or folder, with similar names next to it."""
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    what = "file" if path.suffix else "file or folder"
    close = did_you_mean(path.name, beside, most=2)
    return QabiasError(f"{path}: no such {what}{close or '.'}", "Correct the path.")


def first_line(error: BaseException) -> str:
    """The first line of an error, shortened; its type if it has no text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


_LOCAL = ("torch", "transformers", "accelerate")
EXTRAS = {
    "local": _LOCAL,
    "demo": (*_LOCAL, "gguf"),
}
"""The extras of `setup.cfg` that commands need, with their modules."""


def need(extra: str, what: str) -> None:
    """Refuse a task whose extra is not installed."""
    missing = [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise QabiasError(f"{what} needs {', '.join(missing)}.", install(extra))


def install(extra: str) -> str:
    """The fix for a missing extra: pip takes its requirements from the installed qabias, so any index will do."""
    return f'Run: pip install "qabias[{extra}]"'
