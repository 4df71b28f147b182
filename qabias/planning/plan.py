"""A plan: the runs that are meant, counted, and what they take on machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from qabias.benchmarks import benchmark_names, load_benchmark
from qabias.errors import QabiasError
from qabias.models.loading import resolve_device, resolve_dtype
from qabias.planning.count import Count, Counter, count_run, measure_speed
from qabias.planning.hardware import CPU, Hardware, choose_hardware
from qabias.planning.silent import Work
from qabias.planning.subject import Subject, load_subject
from qabias.runs.arguments import HERE, Machine, RunArguments
from qabias.suites import PREFIX, choose_models, expand, load_suite

ALL = "all"
FORMULA = (
    "operations = 2 * parameters * tokens + 4 * layers * attention width * pairs of tokens within a row (second term "
    "only with --model; encoder and decoder of a text-to-text model each with their own parameters and tokens)"
)


@dataclass(frozen=True)
class PlanArguments:
    """What is to be planned: a benchmark, `"all"` benchmarks or a suite, and what else `qabias plan` takes.

    `model`, `config` and `source` of `run` are "" where they are not given. `machine` says where to measure, where
    texts are, and the token budget.
    """

    target: str
    run: RunArguments
    models: Sequence[str] = ()
    parameters: float | None = None
    tokenizer: str | None = None
    hardware: Sequence[str] = ()
    tokens_per_second: float | None = None
    price_per_hour: float | None = None
    measures: bool = False
    machine: Machine = HERE
    exact: bool = False

    @property
    def on_cpu(self) -> bool:
        """Whether batches and precision are those of a CPU."""
        return resolve_device(self.machine.device).type == CPU if self.measures else list(self.hardware) == [CPU]


@dataclass(frozen=True)
class PlannedRun:
    """A run that was counted; `tokens_per_second` is a measured or given speed, None for that of a machine."""

    name: str
    arguments: RunArguments
    model: str
    weights_bytes: int
    count: Count
    flops: float
    tokens_per_second: float | None = None

    def seconds(self, machine: Hardware | None) -> float:
        """How long it takes; where a device cannot hold the model, as a server that is sent every text by itself."""
        work = self.count.work
        tokens = work.tokens + work.written
        alone = machine is not None and self.weights_bytes > machine.memory_bytes
        share = (work.tokens_alone + work.written) / tokens if alone else 1.0
        if self.tokens_per_second is not None:
            return share * tokens / self.tokens_per_second
        assert machine is not None
        return share * self.flops / machine.flops


class MachinePlan(NamedTuple):
    """What all runs take on a machine, and whether it holds the largest model (see `Hardware.fits`; "" if unknown)."""

    name: str
    fits: str
    seconds: float
    cost: float | None


class Plan(NamedTuple):
    """Runs, at least one; what they take on machines; and names of runs that cannot be planned, with the reasons."""

    runs: Sequence[PlannedRun]
    machines: Sequence[MachinePlan]
    failures: Sequence[tuple[str, QabiasError]]

    def as_dict(self) -> dict[str, Any]:
        """Everything as numbers, for a file."""
        machines = [machine._asdict() for machine in self.machines]
        return {"formula": FORMULA, "runs": [asdict(run) for run in self.runs], "machines": machines}


def make_plan(arguments: PlanArguments) -> Plan:
    """Count runs, and compute what they take; raises `QabiasError` if an argument is wrong or no run can be planned."""
    for name in ("parameters", "tokens_per_second", "price_per_hour"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < math.inf:
            raise QabiasError(f"{name.replace('_', '-')} is {value}; it must be above 0")
    is_size = arguments.parameters is not None and not arguments.run.model
    if arguments.measures and (is_size or arguments.hardware or arguments.tokens_per_second):
        raise QabiasError("--measure asks a --model on this machine; leave --hardware and --tokens-per-second out")
    machines: Sequence[Hardware | None] = choose_hardware(arguments.hardware)
    if arguments.measures or (arguments.tokens_per_second and not arguments.hardware):
        machines = [None]
    runs, failures = [], []
    for name, run, missing in _target_runs(arguments):
        try:
            if missing:
                raise QabiasError(missing)
            runs.append(_plan_run(name, run, arguments))
        except QabiasError as error:
            failures.append((name, error))
    if not runs:
        raise failures[0][1]
    return Plan(runs, [_on_machine(runs, machine, arguments) for machine in machines], failures)


def _target_runs(arguments: PlanArguments) -> list[tuple[str, RunArguments, str]]:
    """The runs that are meant: the name of each, its arguments, and why it cannot be planned, "" if it can."""
    target, run = arguments.target, arguments.run
    if target.startswith(PREFIX):
        if run.model or run.config or run.format or run.scorer or run.options:
            raise QabiasError(f"{target} sets model, config, format, scorer and options itself; choose by --models")
        suite = load_suite(target)
        models = choose_models(suite, arguments.models)
        expanded = expand(suite, models, source=run.source or None, limit=run.limit, dtype=run.dtype)
        return [(of.name, of.arguments, of.missing) for of in expanded]
    if arguments.models:
        raise QabiasError(f"--models is for the experiment of a paper, such as {PREFIX}{target}; use --model")
    if target == ALL and (run.config or run.format):
        raise QabiasError("configurations and formats differ between benchmarks; plan one benchmark by its name")
    names = [target]
    if target == ALL:
        names = [name for name in benchmark_names() if not run.source or run.source in load_benchmark(name).sources]
    load_benchmark(names[0])  # before a model, which takes longer
    return [(name, replace(run, benchmark=name), "") for name in names]


def _plan_run(name: str, run: RunArguments, arguments: PlanArguments) -> PlannedRun:
    subject = load_subject(run.model, run.scorer, arguments.parameters, arguments.tokenizer)
    benchmark = load_benchmark(run.benchmark)
    config, source = run.config or benchmark.whole_config(subject.kind), run.source or benchmark.sources[0]
    run = replace(run, config=config, source=source, scorer=subject.kind.name)
    on_gpu = run.dtype == "auto" and not arguments.on_cpu
    size = resolve_dtype("bfloat16" if on_gpu else run.dtype, resolve_device(CPU)).itemsize
    counter = Counter(run, subject, arguments.machine, arguments.on_cpu)
    count = count_run(counter, run.seed, exact=arguments.exact)
    speed = measure_speed(run, counter, arguments.machine) if arguments.measures else arguments.tokens_per_second
    flops = count_flops(subject, count.work)
    return PlannedRun(name, run, subject.name, size * subject.parameters, count, flops, speed)


def count_flops(subject: Subject, work: Work) -> float:
    """Operations of a run by `FORMULA`."""
    first = subject.encoder_parameters or subject.parameters
    second = subject.parameters - subject.encoder_parameters
    return 2 * (first * work.tokens + second * work.written) + 4 * subject.attention_size * work.pairs


def _on_machine(runs: Sequence[PlannedRun], machine: Hardware | None, arguments: PlanArguments) -> MachinePlan:
    seconds = sum(run.seconds(machine) for run in runs)
    cost = None if arguments.price_per_hour is None else seconds / 3600 * arguments.price_per_hour
    if machine is None:
        return MachinePlan("this machine" if arguments.measures else "given speed", "", seconds, cost)
    return MachinePlan(machine.name, machine.fits(max(run.weights_bytes for run in runs)), seconds, cost)
