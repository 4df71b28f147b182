"""A plan as people read it: one table of runs."""

from collections.abc import Sequence

from qabias.planning.plan import PlannedRun
from qabias.tables.model import Column, Table
from qabias.tables.terminal import MIN_WIDTH, Console, print_table

_TITLE = "What it takes (tokens with pads, ± standard error)"
_WORK = {"texts": "texts", "tokens": "tokens run", "written": "decoded, at most", "tokens_alone": "one by one, no pads"}
_HEADINGS = ("run", "examples", *_WORK.values(), "parts counted", "weights", "tokens a second", "hours", "cost")
_NO_SPEED = "For the time, give --tokens-per-second or --measure; for the cost, --price-per-hour too."


def print_plan(runs: Sequence[PlannedRun]) -> None:
    """Print what runs take, and the sums of several runs."""
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    rows = [_row(run.name, [run]) for run in runs]
    if len(rows) > 1:
        rows.append(_row("all", runs))
    columns = tuple(Column(heading, heading, "text") for heading in _HEADINGS)
    print_table(Table(_TITLE, _TITLE, "", "", columns, tuple(rows)), console)
    if runs[0].seconds is None:
        console.print(_NO_SPEED, highlight=False)


def _row(name: str, runs: Sequence[PlannedRun]) -> tuple[str, ...]:
    """Sums of runs; standard error and speed are shown for one run only."""
    is_one, counts, work = len(runs) == 1, [run.count for run in runs], []
    for kind in _WORK:
        error = getattr(counts[0].error, kind) if is_one else 0
        work.append(f"{sum(getattr(count.work, kind) for count in counts):,.0f}" + (f" ±{error:,.0f}" if error else ""))
    parts, counted = sum(count.parts for count in counts), sum(count.parts_counted for count in counts)
    speed, price = runs[0].tokens_per_second, runs[0].cost
    return (
        name,
        f"{sum(count.examples for count in counts):,}",
        *work,
        "all (exact)" if parts == counted else f"{counted:,} of {parts:,}",
        f"{max(run.weights_bytes for run in runs) / 1e9:,.2f} GB",
        f"{speed:,.0f}" if is_one and speed else "",
        f"{sum(run.seconds or 0 for run in runs) / 3600:,.3f}" if speed else "",
        f"{sum(run.cost or 0 for run in runs):,.2f}" if price is not None else "",
    )
