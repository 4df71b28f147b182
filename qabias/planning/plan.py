"""A plan: the runs that are meant, counted, and what they take on named machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from qabias.benchmarks import BENCHMARKS, Benchmark, load_benchmark
from qabias.errors import QabiasError
from qabias.measuring.run import RunArguments
from qabias.planning.cost import (
    FORMULA,
    Hardware,
    Memory,
    count_flops,
    estimate_memory,
    resolve_dtype,
)
from qabias.planning.count import Count, check_scorer
from qabias.planning.outline import Subject
from qabias.suites import PREFIX, choose_models, expand, load_suite

ALL = "all"
FITS = "yes"


@dataclass(frozen=True)
class Planned:
    """A run that was counted.

    Attributes:
        name: What to call it.
        count: Its tokens.
        flops: Operations, by `qabias.planning.cost.FORMULA`.
        tokens_per_second: Measured or given speed; None for that of a machine.
    """

    name: str
    count: Count
    flops: float
    tokens_per_second: float | None = None

    @property
    def tokens(self) -> float:
        """Tokens run and written."""
        return self.count.work.tokens + self.count.work.decoder_tokens

    @property
    def relative_error(self) -> float:
        """Standard error of the tokens as a share of them; 0 where all were counted."""
        return (self.count.error.tokens + self.count.error.decoder_tokens) / max(self.tokens, 1)

    def seconds(self, hardware: Hardware | None) -> float:
        """How long it takes, at its own speed if that is known.

        Raises:
            QabiasError: If neither a speed nor a machine is known.
        """
        if self.tokens_per_second is not None:
            return self.tokens / self.tokens_per_second
        if hardware is None:
            raise QabiasError("a time needs a machine or a speed: give --hardware, --tokens-per-second or --measure")
        return self.flops / hardware.flops

    def seconds_alone(self, hardware: Hardware | None) -> float:
        """How long it takes without sharing the beginnings of texts and without pads, as a server without a cache."""
        work = self.count.work
        return self.seconds(hardware) * (work.tokens_flat + work.decoder_tokens) / max(self.tokens, 1)

    def paid_seconds(self, hardware: Hardware | None, dtype: str) -> float:
        """The time that costs: with every text by itself where only a server can hold the model."""
        if hardware is None or fits(largest_memory([self], dtype)[0], hardware) == FITS:
            return self.seconds(hardware)
        return self.seconds_alone(hardware)


class Meant(NamedTuple):
    """A run that is to be planned.

    Attributes:
        name: What to call it.
        arguments: The run; without a configuration all of the benchmark is meant.
        missing: Why it cannot be planned; empty if it can.
    """

    name: str
    arguments: RunArguments
    missing: str = ""


def target_runs(
    target: str, base: RunArguments, *, config: str | None, source: str | None, models: Sequence[str]
) -> list[Meant]:
    """The runs that a name means.

    Args:
        target: A benchmark, `"all"` benchmarks, or a suite.
        base: Everything else that determines a run.
        config: Configuration; None for the whole benchmark.
        source: Source of the texts; None for `bundled`, or for that of a suite.
        models: Models of a suite.

    Raises:
        QabiasError: If there is no such benchmark or suite, or an argument is one that it sets itself.
    """
    if target.startswith(PREFIX):
        if config is not None or base.format is not None:
            raise QabiasError(f"{target} sets --config and --format itself; leave them out")
        suite = load_suite(target)
        changes = {name: getattr(base, name) for name in ("fixes", "limit", "seed", "dtype")}
        runs = expand(suite, choose_models(suite, models), source=source, **changes)
        return [Meant(run.name, run.arguments, run.missing) for run in runs]
    if models:
        raise QabiasError("--models is for the experiment of a paper, such as paper:bbq; use --model")
    if target != ALL:
        load_benchmark(target)  # before the model, which takes longer
        return [Meant(target, replace(base, benchmark=target, config=config or "", source=source or "bundled"))]
    if config is not None or base.format is not None:
        raise QabiasError("configurations and formats differ between benchmarks; plan one benchmark by its name")
    return [
        Meant(name, replace(base, benchmark=name, config="", source=source or "bundled"))
        for name in BENCHMARKS
        if source is None or source in load_benchmark(name).sources
    ]


def complete(arguments: RunArguments, subject: Subject) -> RunArguments:
    """Fill in the configuration that stands for the whole benchmark.

    Raises:
        QabiasError: If the benchmark cannot be asked so.
    """
    benchmark = load_benchmark(arguments.benchmark)
    check_scorer(benchmark, subject)
    config = arguments.config or whole_config(benchmark, subject.scorer)
    return replace(arguments, config=config, scorer=subject.scorer)


def whole_config(benchmark: Benchmark, scorer: str) -> str:
    """The configuration of all examples that a scorer can answer: the last one, or its masked form."""
    last = benchmark.configs[-1]
    masked = f"{last}_mlm"
    return masked if scorer == "masked_lm" and masked in benchmark.configs else last


def make_planned(name: str, count: Count, tokens_per_second: float | None) -> Planned:
    """Add the operations to a count."""
    return Planned(name, count, count_flops(count.subject, count.work), tokens_per_second)


def largest_memory(planned: Sequence[Planned], dtype: str) -> tuple[Memory, str]:
    """Memory of the run that takes most, and the precision that it is for."""
    resolved = resolve_dtype(dtype, planned[0].count.on_cpu)

    def memory(run: Planned) -> Memory:
        work = run.count.work
        generates = run.count.arguments.options.get("mode") == "generate"
        return estimate_memory(run.count.subject, resolved, work.tokens / max(work.batches, 1), generates=generates)

    return max((memory(run) for run in planned), key=lambda found: found.total), resolved


def fits(memory: Memory, hardware: Hardware) -> str:
    """Whether a machine holds the model, in words."""
    if memory.total <= hardware.memory_bytes:
        return FITS
    if memory.total <= hardware.devices * hardware.memory_bytes:
        # A run has a whole copy on every device.
        return f"only spread over {hardware.devices} devices: behind a server"
    return f"no: {math.ceil(memory.total / hardware.memory_bytes)} devices' worth"


def total_seconds(planned: Sequence[Planned], hardware: Hardware | None) -> float:
    """Time of all runs, one after the other."""
    return sum(run.seconds(hardware) for run in planned)


def total_seconds_alone(planned: Sequence[Planned], hardware: Hardware | None) -> float:
    """Time of all runs with every text by itself."""
    return sum(run.seconds_alone(hardware) for run in planned)


def total_cost(
    planned: Sequence[Planned], hardware: Hardware | None, dtype: str, price_per_hour: float | None
) -> float | None:
    """Cost of all runs, each in the way that its model can be asked there; None without a price."""
    return _price(sum(run.paid_seconds(hardware, dtype) for run in planned), price_per_hour)


def _price(seconds: float, price_per_hour: float | None) -> float | None:
    return None if price_per_hour is None else seconds / 3600 * price_per_hour


def total_error(planned: Sequence[Planned], of: Callable[[Planned], float]) -> float:
    """Standard error of a sum over runs that were sampled independently."""
    return math.sqrt(sum((of(run) * run.relative_error) ** 2 for run in planned))


def as_dict(
    planned: Sequence[Planned], machines: Sequence[Hardware], dtype: str, price_per_hour: float | None
) -> dict[str, Any]:
    """Everything as numbers, for a file.

    Args:
        planned: The runs, at least one.
        machines: Machines; none where speeds were measured or given, which then stand with the runs.
        dtype: Precision, or `auto`.
        price_per_hour: Of the machine, in any currency; None leaves costs null.
    """
    runs = [
        {
            "name": run.name,
            "arguments": asdict(run.count.arguments),
            "model": run.count.subject.name,
            "parameters": run.count.subject.parameters,
            "examples": run.count.n_examples,
            "exact": run.count.is_exact,
            "parts": run.count.n_parts,
            "parts_counted": run.count.n_counted,
            "work": {name: float(value) for name, value in asdict(run.count.work).items()},
            "standard_error": {name: float(value) for name, value in asdict(run.count.error).items()},
            "flops": float(run.flops),
            "has_attention_term": run.count.subject.shape is not None,
            "tokens_per_second": run.tokens_per_second,
            **({} if machines else _takes([run], None, dtype, price_per_hour)),
        }
        for run in planned
    ]
    rows = {
        hardware.name: {
            **asdict(hardware),
            "fits": fits(largest_memory(planned, dtype)[0], hardware),
            **_takes(planned, hardware, dtype, price_per_hour),
        }
        for hardware in machines
    }
    return {"formula": FORMULA, "runs": runs, "hardware": rows}


def _takes(
    planned: Sequence[Planned], hardware: Hardware | None, dtype: str, price_per_hour: float | None
) -> dict[str, Any]:
    """Memory, time and cost of runs on a machine, or at their own speeds."""
    memory, resolved = largest_memory(planned, dtype)
    seconds_alone = total_seconds_alone(planned, hardware)
    return {
        "dtype": resolved,
        "weights_bytes": memory.weights,
        "working_bytes_estimate": memory.working,
        "seconds": total_seconds(planned, hardware),
        "seconds_alone": seconds_alone,
        "cost": total_cost(planned, hardware, dtype, price_per_hour),
        "cost_alone": _price(seconds_alone, price_per_hour),
    }
