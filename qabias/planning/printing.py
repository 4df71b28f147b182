"""A plan as people read it: one table of runs and one of machines."""

import math
from collections.abc import Sequence

from rich.console import Console

from qabias.planning.hardware import FITS
from qabias.planning.plan import FORMULA, Plan
from qabias.tables.model import Column, Table
from qabias.terminal.table import MIN_WIDTH, print_table

_PREFIXES = ((1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_UNITS = ((86400, "days"), (3600, "h"), (60, "min"))
_WORK = {"texts": "texts", "tokens": "tokens run", "written": "decoded", "tokens_alone": "one by one, no pads"}


def print_plan(plan: Plan, console: Console | None = None) -> None:
    """Print what runs take, and what that means on machines."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    headings = ["run", "examples", *_WORK.values(), "operations", "weights", "tokens a second", "counted"]
    print_table(_table("What is asked (tokens with pads, ± standard error)", headings, _runs(plan)), console)
    headings = ["machine", "fits", "time", "cost"]
    machines = [(of.name, of.fits, duration(of.seconds), _money(of.cost)) for of in plan.machines]
    print_table(_table("What it takes", headings, machines), console)
    for note in _notes(plan):
        console.print(note, markup=False, highlight=False)


def _runs(plan: Plan) -> list[tuple[str, ...]]:
    rows = []
    for run in plan.runs:
        count, speed = run.count, run.tokens_per_second
        sampled = f"{count.parts_counted:,} of {count.parts:,} parts"
        rows.append(
            (
                run.name,
                f"{count.examples:,}",
                *(_number(getattr(count.work, name), getattr(count.error, name)) for name in _WORK),
                f"{si(run.flops)}FLOP",
                f"{si(run.weights_bytes)}B",
                f"{speed:,.0f}" if speed else "by machine",
                "exact" if count.parts == count.parts_counted else sampled,
            )
        )
    if len(rows) > 1:
        counts = [run.count for run in plan.runs]
        sums = [
            _number(
                sum(getattr(count.work, name) for count in counts),
                math.hypot(*(getattr(count.error, name) for count in counts)),
            )
            for name in _WORK
        ]
        flops = si(sum(run.flops for run in plan.runs))
        rows.append(("all", f"{sum(count.examples for count in counts):,}", *sums, f"{flops}FLOP", "", "", ""))
    return rows


def _notes(plan: Plan) -> list[str]:
    notes = [FORMULA]
    if any(run.count.work.written for run in plan.runs):
        notes.append("Decoded: the most tokens that may be written; answers that end sooner take fewer.")
    if any(machine.fits not in ("", FITS) for machine in plan.machines):
        notes.append(
            "A run has a copy of the model on every device. A larger model needs a server, which is sent every text by "
            "itself; time and cost are then those of all texts one by one."
        )
    if any(run.tokens_per_second is None for run in plan.runs):
        notes.append(
            "Shares of peak are assumed (qabias/planning/hardware.yaml), so that times are orders of magnitude. "
            "--measure and --tokens-per-second give better ones."
        )
    return notes


def _table(title: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(title, title, "", "", tuple(Column(name, name, "text") for name in headings), tuple(rows))


def _money(cost: float | None) -> str:
    return "--price-per-hour" if cost is None else f"{cost:,.2f}"


def _number(value: float, error: float) -> str:
    return f"{value:,.0f} ±{error:,.0f}" if error else f"{value:,.0f}"


def si(value: float) -> str:
    """A number with three digits and the prefix of its size, e.g. "70.6 G"."""
    return next((f"{value / size:.3g} {prefix}" for size, prefix in _PREFIXES if value >= size), f"{value:.3g} ")


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    return next((f"{seconds / size:,.1f} {unit}" for size, unit in _UNITS if seconds >= 2 * size), f"{seconds:,.1f} s")
