"""Values of a table as text, for pages and figures."""

from __future__ import annotations

from collections.abc import Sequence

from qabias.tables.model import Column, Estimate, Table, Value

UNDEFINED = "—"

_PERCENT = "\u00a0%"
_SMALLEST_P = 0.001


def as_estimate(value: Value) -> Estimate:
    """A number with its interval; None for missing ends, or for a non-number."""
    if isinstance(value, Estimate):
        return value
    return Estimate(None if value is None or isinstance(value, str) else value)


def percent(value: float | None, signed: bool = False) -> str:
    """A fraction as percent with one decimal and a no-break space; a dash for None."""
    if value is None:
        return UNDEFINED
    return _rounded(100 * value, 1, signed) + _PERCENT


def show(value: Value, kind: str) -> str:
    """A value as text by its column's kind, without its interval."""
    if isinstance(value, str):
        return value
    number = as_estimate(value).value
    if number is None:
        return UNDEFINED
    return _show_number(number, kind)


def show_interval(value: Value, kind: str) -> str:
    """The interval as text, "[+1.5, +3.0]"; "" without one."""
    _, low, high = as_estimate(value)
    if low is None or high is None:
        return ""
    return f"[{', '.join(_show_number(end, kind).removesuffix(_PERCENT) for end in (low, high))}]"


def cells(table: Table, row: Sequence[Value]) -> list[str]:
    """The values of a row as text, with their intervals."""
    return [cell(value, column) for value, column in zip(row, table.columns, strict=True)]


def cell(value: Value, column: Column) -> str:
    """A value as text, with its interval."""
    interval = show_interval(value, column.kind)
    return f"{show(value, column.kind)} {interval}".strip()


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
