"""Measures a device, case by case, until all cases are done or the time is over."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from typing import Any

import psutil
import torch
import transformers

from lab.devices.cases import Case, cases, make_model, make_scorer
from lab.devices.correct import FAILS, LARGE, NOT_MEASURED, SMALL_BUDGET, Correctness, Outcome
from lab.devices.models import BYTES
from lab.devices.speed import speed
from qabias.errors import QabiasError
from qabias.models.loading import LoadedModel, resolve_device
from qabias.scorers.batches import is_out_of_memory
from qabias.support.suggest import first_line
from qabias.support.version import __version__
from qabias.tables.model import Column, Table, Value
from qabias.tables.terminal import MIN_WIDTH, Console, print_table

MEASURES = ("equality", "invariance", "speed")
"""Equality with a reference, equality of two token budgets, and tokens per second in timed cases."""

WORKING_SHARE, LEAST_WORKING = 0.1, 2**29
"""Memory in addition to the weights, as a share of them and a minimum in bytes."""

LARGEST_ON_CPU = 1e9
"""Parameters of the largest model for a CPU: the next one would take an hour."""

_TITLES = ("scorer", "shape", "dtype", "equal to reference", "reference", "equal in other batches", "tokens/s")
_COLUMNS = tuple(Column(title, title, "text") for title in _TITLES)

_NOTE = (
    "Differences of log-likelihoods per scored token, or of logarithms of probabilities. The bound follows the slash. "
    "Other columns: docs/performance.md."
)


@dataclass(frozen=True)
class Row:
    """The outcomes of a case."""

    case: Case
    outcomes: Mapping[str, Outcome]

    def as_json(self) -> dict[str, Any]:
        """The row of the file."""
        case = self.case
        return {
            "scorer": case.way.name,
            "shape": case.shape.name,
            "dtype": case.dtype,
            "measures": {
                name: {"state": one.state, "why": one.why, **one.figures} for name, one in self.outcomes.items()
            },
        }


@dataclass
class Check:
    """The verification of a device."""

    device: torch.device
    n_cases: int
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def outcomes(self) -> list[Outcome]:
        """All outcomes."""
        return [outcome for row in self.rows for outcome in row.outcomes.values()]

    @property
    def is_right(self) -> bool:
        """Whether no measure fails."""
        return all(outcome.state != FAILS for outcome in self.outcomes)

    def as_json(self, sizes: str, minutes: float) -> dict[str, Any]:
        """The content of the file."""
        return {
            "qabias": __version__,
            "torch": str(torch.__version__),
            "transformers": str(transformers.__version__),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "device": describe(self.device),
            "shapes": sizes,
            "minutes": minutes,
            "seconds": self.seconds,
            "is_complete": len(self.rows) == self.n_cases,
            "is_right": self.is_right,
            "rows": [row.as_json() for row in self.rows],
        }


def find_device(name: str) -> torch.device:
    """The device with a name; `auto` is the accelerator that torch finds, otherwise the CPU."""
    if name == "auto":
        backends = {"cuda": torch.cuda, "mps": torch.backends.mps, "xpu": torch.xpu}  # ROCm is called CUDA too
        name = next((kind for kind, backend in backends.items() if backend.is_available()), "cpu")
    device = resolve_device(name)
    if device.index is not None and device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def describe(device: torch.device) -> dict[str, Any]:
    """Type and name of a device."""
    if device.type == "cpu":
        capability = torch.backends.cpu.get_cpu_capability()
        return {"type": "cpu", "name": capability, "threads": torch.get_num_threads(), "cores": os.cpu_count()}
    name = getattr(getattr(torch, device.type), "get_device_name", None)
    kind = "rocm" if torch.version.hip else device.type
    return {"type": kind, "name": name(device) if name else kind, "free_memory_bytes": free_memory(device)}


def free_memory(device: torch.device) -> int | None:
    """Free bytes for models; None if the system does not report them."""
    if device.type != "cpu":
        gc.collect()
        backend = getattr(torch, device.type)
        backend.empty_cache()
        return int(backend.mem_get_info(device)[0]) if hasattr(backend, "mem_get_info") else None
    return int(psutil.virtual_memory().available)


def _obstacle(case: Case, device: torch.device) -> str | None:
    """Why a model is skipped (size, precision or memory), otherwise None."""
    if device.type == "cpu" and case.shape.parameters > LARGEST_ON_CPU:
        return "too large for a CPU"
    try:
        square = torch.ones(8, 8).to(device, getattr(torch, case.dtype))
        square.mm(square)
    except (RuntimeError, TypeError) as error:
        return f"{case.dtype} (the device: {first_line(error)})"
    weights = case.shape.weights_bytes(case.dtype)
    on_device = weights + max(LEAST_WORKING, WORKING_SHARE * weights)
    # A reference is float32 on the device, or float64 on the CPU.
    is_large = case.shape.parameters > LARGE
    on_device += case.shape.parameters * BYTES["float32"] if is_large or device.type == "cpu" else 0
    free = free_memory(device)
    if free is None or on_device <= free:
        return None
    return f"memory (needs {on_device / 2**30:,.1f} GiB, {free / 2**30:,.1f} GiB free)"


def check_device(
    name: str,
    sizes: str,
    seconds: float,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    make: Callable[..., Any] = make_scorer,
    keep: Callable[[Check], None] = lambda check: None,
) -> Check:
    """Measure a device; no case starts after the time limit."""
    device = find_device(name)
    chosen = cases(sizes, "float32" if device.type == "cpu" else "bfloat16")
    check = Check(device, len(chosen))
    started = clock()
    for case in chosen:
        say(case.name)
        why = "time" if clock() - started > seconds else _obstacle(case, device)
        left_out = dict.fromkeys(_measures(case), Outcome(NOT_MEASURED, why or ""))
        check.rows.append(Row(case, left_out) if why else _run(case, device, make))
        check.seconds = clock() - started
        keep(check)
    return check


def _measures(case: Case) -> tuple[str, ...]:
    return MEASURES if case.timed else MEASURES[:2]


def _run(case: Case, device: torch.device, make: Callable[..., Any]) -> Row:
    """Compute all measures of a case, which share its model; an error is the outcome of its measure."""

    @cache
    def model() -> LoadedModel:
        return make_model(case.shape, case.way, case.dtype, device)

    @cache
    def scorer() -> Any:
        return make(case.way, model(), None)

    @cache
    def correctness() -> Correctness:
        return Correctness(case, model(), scorer())

    measures: dict[str, Callable[[], Outcome]] = {
        "equality": lambda: correctness().equality(),
        "invariance": lambda: correctness().invariance(make(case.way, model(), SMALL_BUDGET)),
        "speed": lambda: speed(case, scorer(), model().model),
    }
    return Row(case, {name: _outcome(measures[name]) for name in _measures(case)})


def _outcome(measure: Callable[[], Outcome]) -> Outcome:
    try:
        return measure()
    except QabiasError as error:
        return Outcome(FAILS, first_line(error))
    except RuntimeError as error:  # raised by kernels and for unsupported operations
        if is_out_of_memory(error):
            return Outcome(NOT_MEASURED, f"memory (ran out: {first_line(error)})")
        return Outcome(FAILS, f"{type(error).__name__}: {first_line(error)}")


def print_check(check: Check, console: Console | None = None) -> None:
    """Print the table, the reason of every missing figure, and the result."""
    console = console or Console()
    console.width = max(console.width, MIN_WIDTH)
    device = describe(check.device)
    shown = [row for row in check.rows if any(one.state != NOT_MEASURED for one in row.outcomes.values())]
    title = f"{device['name']} ({device['type']})"
    print_table(Table("device", title, "", "", _COLUMNS, tuple(map(_row, shown))), console)
    n_hidden = len(check.rows) - len(shown)
    n_failed = sum(one.state == FAILS for one in check.outcomes)
    lines = [
        _NOTE,
        *([f"{n_hidden} rows without measurements are hidden. All: --output FILE"] if n_hidden else []),
        *_reasons(check),
        f"{n_failed} of the measures failed" if n_failed else "no measure failed",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _reasons(check: Check) -> list[str]:
    """The reasons of missing figures, with their first measures."""
    reasons: dict[str, list[str]] = {}
    for row in check.rows:
        for name, outcome in row.outcomes.items():
            if outcome.why:
                reasons.setdefault(f"{outcome.state}: {outcome.why}", []).append(f"{row.case.name}: {name}")
    return [f"{why}: {names[0]}" + f"; and {len(names) - 1} more" * (len(names) > 1) for why, names in reasons.items()]


def _row(row: Row) -> tuple[Value, ...]:
    case, outcomes = row.case, row.outcomes
    return (
        case.way.name,
        case.shape.name,
        case.dtype,
        _cell(outcomes["equality"], _judged),
        _cell(outcomes["equality"], lambda one: one.figures.get("reference", "-")),
        _cell(outcomes["invariance"], _judged),
        _cell(outcomes.get("speed"), lambda one: f"{one.figures['tokens_per_second']:,.0f}" if one.figures else "-"),
    )


def _judged(outcome: Outcome) -> str:
    figures = outcome.figures
    shown = f" {figures['difference']:.1e} / {figures['bound']:.1e}" if "difference" in figures else ""
    return f"{outcome.state}{shown}"


def _cell(outcome: Outcome | None, show: Callable[[Outcome], Any]) -> str:
    """A figure, or the first words of the reason for its absence; "" if not measured."""
    if outcome is None:
        return ""
    return f"not: {outcome.why.partition(' (')[0]}" if outcome.state == NOT_MEASURED else str(show(outcome))
