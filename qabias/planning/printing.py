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
_RUNS = ("run", "examples", *_WORK.values(), "operations", "weights", "tokens a second", "parts counted")
_MACHINES = ("machine", "fits", "time", "cost")
_WRITTEN = "Decoded: the most tokens that may be written; answers that end sooner take fewer."
_SPREAD = (
    "A run has a copy of the model on every device. A larger model needs a server, which is sent every text by itself: "
    "time and cost are then those of all texts one by one."
)
_ASSUMED = (
    "Shares of peak are assumed (qabias/planning/hardware.yaml), so that times are orders of magnitude. --measure and "
    "--tokens-per-second give better ones."
)


def print_plan(plan: Plan, console: Console | None = None) -> None:
    """Print what runs take, and what that means on machines."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    print_table(_table("What is asked (tokens with pads, ± standard error)", _RUNS, _runs(plan)), console)
    machines = [
        (of.name, of.fits, duration(of.seconds), "--price-per-hour" if of.cost is None else f"{of.cost:,.2f}")
        for of in plan.machines
    ]
    print_table(_table("What it takes", _MACHINES, machines), console)
    notes = {
        FORMULA: True,
        _WRITTEN: any(run.count.work.written for run in plan.runs),
        _SPREAD: any(machine.fits not in ("", FITS) for machine in plan.machines),
        _ASSUMED: any(run.tokens_per_second is None for run in plan.runs),
    }
    for note in (note for note, holds in notes.items() if holds):
        console.print(note, markup=False, highlight=False)


def _runs(plan: Plan) -> list[tuple[str, ...]]:
    rows = []
    for name, runs in [*((run.name, [run]) for run in plan.runs), ("all", plan.runs)]:
        counts = [run.count for run in runs]
        parts, counted = sum(count.parts for count in counts), sum(count.parts_counted for count in counts)
        speeds = {f"{run.tokens_per_second:,.0f}" if run.tokens_per_second else "by machine" for run in runs}
        work = []
        for kind in _WORK:
            error = math.hypot(*(getattr(count.error, kind) for count in counts))
            total = f"{sum(getattr(count.work, kind) for count in counts):,.0f}"
            work.append(f"{total} ±{error:,.0f}" if error else total)
        rows.append(
            (
                name,
                f"{sum(count.examples for count in counts):,}",
                *work,
                f"{si(sum(run.flops for run in runs))}FLOP",
                f"{si(max(run.weights_bytes for run in runs))}B",
                speeds.pop() if len(speeds) == 1 else "",
                "all (exact)" if parts == counted else f"{counted:,} of {parts:,}",
            )
        )
    return rows if len(plan.runs) > 1 else rows[:1]


def _table(title: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(title, title, "", "", tuple(Column(name, name, "text") for name in headings), tuple(rows))


def si(value: float) -> str:
    """A number with three digits and the prefix of its size, e.g. "70.6 G"."""
    return next((f"{value / size:.3g} {prefix}" for size, prefix in _PREFIXES if value >= size), f"{value:.3g} ")


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    return next((f"{seconds / size:,.1f} {unit}" for size, unit in _UNITS if seconds >= 2 * size), f"{seconds:,.1f} s")
