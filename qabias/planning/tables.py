"""A plan as tables for the terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from qabias.planning.cost import FORMULA, Hardware
from qabias.planning.plan import (
    FITS,
    Planned,
    fits,
    largest_memory,
    total_cost,
    total_error,
    total_seconds,
    total_seconds_alone,
)

_MIN_WIDTH = 176
_PREFIXES = ((1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def print_plan(
    planned: Sequence[Planned], machines: Sequence[Hardware], dtype: str, price_per_hour: float | None
) -> None:
    """Print what runs take, and what that means on machines.

    Args:
        planned: The runs, at least one.
        machines: Machines; none where speeds were measured or given.
        dtype: Precision, or `auto`.
        price_per_hour: Of the machine, in any currency.
    """
    console = Console()
    console.width = max(console.width, _MIN_WIDTH)
    for subject in {run.count.subject.name: run.count.subject for run in planned}.values():
        console.print(f"{subject.name}: {si(subject.parameters)} parameters, asked as {subject.scorer}", markup=False)
    console.print(_runs(planned))
    if any(run.count.subject.shape is None for run in planned):
        console.print("The term of attention is left out: it needs the model's shape (--model).", markup=False)
    console.print(FORMULA, markup=False)
    if any(run.count.work.decoder_tokens and "mode" in run.count.arguments.options for run in planned):
        console.print("Written tokens are the most that may be written; answers that end sooner take fewer.")
    if machines:
        console.print(_machines(planned, machines, dtype, price_per_hour))
        memory, _ = largest_memory(planned, dtype)
        if any(fits(memory, machine) != FITS for machine in machines):
            console.print(
                "A run has a copy of the model on every device. A larger model is served (the scorer server), and a "
                "server is sent every text by itself: that time is what it costs.",
                markup=False,
            )
        console.print(
            "Shares of peak are assumed, not measured (qabias/planning/hardware.yaml): times are orders of magnitude "
            "until --measure or --tokens-per-second says more.",
            markup=False,
        )
    else:
        _print_known_speed(console, planned, dtype, price_per_hour)


def _runs(planned: Sequence[Planned]) -> Table:
    table = Table(title="What is asked (± standard error where a sample was counted)", box=box.SIMPLE)
    table.add_column("run", no_wrap=True)
    for heading in (
        "examples",
        "distinct\ntexts",
        "tokens run,\npads included",
        "written or\ndecoded",
        "one by one,\nno pads",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("operations", justify="right", no_wrap=True)
    table.add_column("counted", no_wrap=True)
    for run in planned:
        work, error = run.count.work, run.count.error
        sampled = f"{run.count.n_counted:,} of {run.count.n_parts:,} parts"
        table.add_row(
            run.name,
            f"{run.count.n_examples:,}",
            _number(work.requests, error.requests),
            _number(work.tokens, error.tokens),
            _number(work.decoder_tokens, error.decoder_tokens),
            _number(work.tokens_flat, error.tokens_flat),
            f"{si(run.flops)}FLOP",
            "exact" if run.count.is_exact else sampled,
        )
    if len(planned) > 1:
        flops = sum(run.flops for run in planned)
        tokens = sum(run.count.work.tokens for run in planned)
        spread = total_error(planned, lambda run: run.count.work.tokens)
        n_examples = sum(run.count.n_examples for run in planned)
        table.add_section()
        table.add_row("all", f"{n_examples:,}", "", _number(tokens, spread), "", "", f"{si(flops)}FLOP", "")
    return table


def _machines(
    planned: Sequence[Planned], machines: Sequence[Hardware], dtype: str, price_per_hour: float | None
) -> Table:
    table = Table(title="What it takes", box=box.SIMPLE)
    for heading in (
        "machine",
        "speed",
        "weights",
        "a batch\n(estimate)",
        "fits",
        "time",
        "time, every text\nby itself",
        "cost",
    ):
        table.add_column(heading, no_wrap=True)
    for hardware in machines:
        memory, resolved = largest_memory(planned, dtype)
        speed = f"{hardware.devices} x {si(hardware.peak_flops)}FLOP/s x {hardware.share_of_peak}"
        if planned[0].tokens_per_second is not None:
            speed = f"{si(planned[0].tokens_per_second)}tokens/s (given)"
        table.add_row(
            hardware.name,
            speed,
            f"{si(memory.weights)}B {resolved}",
            "unknown" if memory.working is None else f"{si(memory.working)}B",
            fits(memory, hardware),
            duration(total_seconds(planned, hardware)),
            duration(total_seconds_alone(planned, hardware)),
            _money(total_cost(planned, hardware, dtype, price_per_hour)) or "--price-per-hour",
        )
    return table


def _print_known_speed(console: Console, planned: Sequence[Planned], dtype: str, price_per_hour: float | None) -> None:
    for run in planned:
        speed, time = si(run.tokens_per_second or 0), duration(run.seconds(None))
        console.print(f"{run.name}: {time} at {speed}tokens a second", markup=False, highlight=False)
    price = _money(total_cost(planned, None, dtype, price_per_hour))
    cost = price and f", cost {price}"
    memory, resolved = largest_memory(planned, dtype)
    console.print(
        f"in all: {duration(total_seconds(planned, None))}{cost}; weights {si(memory.weights)}B in {resolved}",
        markup=False,
        highlight=False,
    )


def _money(cost: float | None) -> str:
    return "" if cost is None else f"{cost:,.2f}"


def _number(value: float, error: float) -> str:
    return f"{value:,.0f}" if not error else f"{value:,.0f} ±{error:,.0f}"


def si(value: float) -> str:
    """A number with three digits and the prefix of its size, e.g. "70.6 G"."""
    for size, prefix in _PREFIXES:
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"
