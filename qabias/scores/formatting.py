"""Numbers as text, for pages, terminals and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

UNDEFINED = "—"

_PERCENT = "\u00a0%"
_SMALLEST_P = 0.001


def percent(value: float | None, signed: bool = False) -> str:
    """A fraction as percent with one decimal and a no-break space; a dash for None."""
    if value is None:
        return UNDEFINED
    return _rounded(100 * value, 1, signed) + _PERCENT


def show(value: Any, kind: str) -> str:
    """A number or a `Score` as text by its column's kind, without its interval; a text is returned unchanged."""
    if isinstance(value, str):
        return value
    number = value[0] if isinstance(value, tuple) else value
    return UNDEFINED if number is None else _show_number(number, kind)


def show_interval(value: Any, kind: str) -> str:
    """The interval of a `Score` as text, "[+1.5, +3.0]"; "" without one."""
    _, low, high, *_ = value if isinstance(value, tuple) else (None, None, None)
    if low is None or high is None:
        return ""
    return f"[{', '.join(without_percent(_show_number(end, kind)) for end in (low, high))}]"


def without_percent(text: str) -> str:
    """A number as text without its percent sign."""
    return text.removesuffix(_PERCENT)


def _show_number(number: float, kind: str) -> str:
    if kind == "count":
        return f"{number:,.0f}"
    if kind in ("share", "signed"):
        return percent(number, kind == "signed")
    if kind == "p" and number < _SMALLEST_P:
        return f"<\u00a0{_SMALLEST_P}"
    return _rounded(number, 3, False)


def _rounded(number: float, digits: int, signed: bool) -> str:
    rounded = round(number, digits)
    if rounded == 0:
        return f"{0:.{digits}f}"  # neither +0.0 nor -0.0
    return f"{rounded:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def pluralize(number: int, one: str, many: str | None = None) -> str:
    """A number with the word for what it counts."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def show_p(p: float) -> str:
    """A p-value: "p = .002"."""
    return f"p = {p:.3f}".replace("0.", ".")
