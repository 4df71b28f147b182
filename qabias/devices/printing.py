"""A check of a device as people read it, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from qabias.devices.check import Check, Row
from qabias.devices.outcome import FAILS, NOT_MEASURED, Outcome, gib
from qabias.support.version import __version__
from qabias.tables.model import Column, Table, Value
from qabias.tables.terminal import MIN_WIDTH, Console, print_table

_COLUMNS = (
    Column("scorer", "scorer", "text"),
    Column("shape", "shape", "text"),
    Column("dtype", "dtype", "text"),
    Column("equality", "equal to reference", "text"),
    Column("reference", "reference", "text"),
    Column("invariance", "equal in other batches", "text"),
    Column("tokens", "tokens/s", "text"),
    Column("dense", "of dense", "text"),
    Column("peak", "of peak", "text"),
    Column("outside", "outside model", "text"),
    Column("memory", "peak memory", "text"),
    Column("peer", "times a plain loop", "text"),
    Column("recovery", "memory runs out", "text"),
)
SHOWN = 5
"""Measures that are named with a reason; the file has all."""

_NOTE = (
    "Differences are of log-likelihoods by scored token, or of logarithms of probabilities; behind the slash is the "
    "bound. docs/performance.md says what the other columns are."
)


def as_json(check: Check, sizes: str, minutes: float) -> dict[str, Any]:
    """All that was found, as plain values."""
    import torch
    import transformers

    return {
        "qabias": __version__,
        "torch": str(torch.__version__),
        "transformers": str(transformers.__version__),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "device": check.device.describe(),
        "shapes": sizes,
        "minutes": minutes,
        "seconds": check.seconds,
        "product_operations_per_second": check.rates,
        "product_problems": check.problems,
        "is_complete": check.is_complete,
        "is_right": check.is_right,
        "rows": [row.as_json() for row in check.rows],
    }


def print_check(check: Check, console: Console | None = None) -> None:
    """Print the table, what stands behind every cell without a figure, and whether all is right."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    about = check.device.describe()
    title = f"{about['name']} ({about['type']}), {_rates(check)}"
    shown = [row for row in check.rows if any(of.state != NOT_MEASURED for of in row.outcomes.values())]
    print_table(Table("device", title, "", "", _COLUMNS, tuple(map(_row, shown))), console)
    n_left_out = len(check.rows) - len(shown)
    left_out = [f"{n_left_out} rows of which nothing was measured are left out; --output writes all"]
    lines = [
        _NOTE,
        *(left_out if n_left_out else []),
        *_reasons(check),
        *(f"{row.case.name}: {note}" for row in check.rows for note in row.notes),
    ]
    failed = sum(one.state == FAILS for row in check.rows for one in row.outcomes.values())
    lines.append(f"{failed} of the measures failed" if failed else "no measure failed")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _rates(check: Check) -> str:
    known = [f"{rate / 1e12:.3g} TFLOP/s in {dtype}" for dtype, rate in check.rates.items()]
    return ", ".join([*known, *(f"no {dtype}: {why}" for dtype, why in check.problems.items())])


def _reasons(check: Check) -> list[str]:
    """Why cells have no figures: what fails and what has no room one by one, other reasons with how often."""
    found: dict[str, list[str]] = {}
    for row in check.rows:
        for name, outcome in row.outcomes.items():
            if outcome.why:
                is_common = outcome.state == NOT_MEASURED and not outcome.why.startswith("memory")
                why = outcome.why.partition(" (")[0] if is_common else outcome.why
                found.setdefault(f"{outcome.state}: {why}", []).append(f"{row.case.name}: {name}")
    return [f"{why}: {_some(names)}" for why, names in found.items()]


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - SHOWN
    return "; ".join(names[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _row(row: Row) -> tuple[Value, ...]:
    case, of = row.case, row.outcomes
    speed = of.get("speed")
    return (
        case.way.name,
        case.shape.name,
        case.dtype,
        _judged(of.get("equality")),
        _figure(of.get("equality"), "reference", str),
        _judged(of.get("invariance")),
        _figure(speed, "tokens_per_second", lambda value: f"{value:,.0f}"),
        _figure(speed, "share_of_dense", _percent),
        _figure(speed, "share_of_peak", _percent),
        _figure(speed, "share_outside_model", _percent),
        _figure(speed, "peak_memory_bytes", gib),
        _figure(of.get("peer"), "ratio", lambda value: f"{value:.2f}"),
        _judged(of.get("recovery")),
    )


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _judged(outcome: Outcome | None) -> str:
    """A verdict with its difference and bound; "" for what was not asked."""
    if outcome is None:
        return ""
    if outcome.state == NOT_MEASURED:
        return _short(outcome)
    figures = outcome.figures
    shown = f" {figures['difference']:.1e} / {figures['bound']:.1e}" if "difference" in figures else ""
    return f"{outcome.state}{shown}"


def _figure(outcome: Outcome | None, name: str, show: Any) -> str:
    if outcome is None:
        return ""
    if outcome.state == NOT_MEASURED:
        return _short(outcome)
    value = outcome.figures.get(name)
    return "-" if value is None else str(show(value))


def _short(outcome: Outcome) -> str:
    """What was not measured, in the first words of why."""
    return f"not: {outcome.why.partition(' (')[0]}"
