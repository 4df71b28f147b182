"""A plan: the runs that are meant, counted, and their time and cost where a speed is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from qabias.benchmarks import choose_format, load_benchmark, loadable_benchmarks
from qabias.errors import QabiasError
from qabias.models.loading import resolve_device, resolve_dtype
from qabias.planning.count import Count, Counter, count_run, measure_speed
from qabias.planning.subject import load_subject
from qabias.runs.arguments import HERE, Machine, RunArguments
from qabias.suites import PREFIX, choose_models, expand, load_suite
from qabias.support.suggest import unknown

ALL = "all"


@dataclass(frozen=True)
class PlanArguments:
    """What is to be planned: a benchmark, `"all"` benchmarks or a suite, and what else `qabias plan` takes."""

    target: str
    run: RunArguments
    models: Sequence[str] = ()
    parameters: float | None = None
    tokenizer: str | None = None
    tokens_per_second: float | None = None
    price_per_hour: float | None = None
    measures: bool = False
    machine: Machine = HERE
    exact: bool = False
    ask: str | None = None


@dataclass(frozen=True)
class PlannedRun:
    """A run that was counted; without a speed, measured or given, it has no time, and without a price no cost."""

    name: str
    arguments: RunArguments
    model: str
    weights_bytes: int
    count: Count
    tokens_per_second: float | None
    seconds: float | None
    cost: float | None


def make_plan(arguments: PlanArguments) -> tuple[list[PlannedRun], list[tuple[str, QabiasError]]]:
    """The runs that are meant, counted, and the names of those that cannot be planned, with the reasons."""
    for name in ("parameters", "tokens_per_second", "price_per_hour"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < math.inf:
            raise QabiasError(f"{name.replace('_', '-')} is {value}; it must be above 0")
    is_size = arguments.parameters is not None and not arguments.run.model
    if arguments.measures and (is_size or arguments.tokens_per_second):
        raise QabiasError("--measure asks a --model on this machine; leave --tokens-per-second out")
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
    return runs, failures


def _target_runs(arguments: PlanArguments) -> list[tuple[str, RunArguments, str]]:
    """The runs that are meant: the name of each, its arguments, and why it cannot be planned, "" if it can."""
    target, run = arguments.target, arguments.run
    if target.startswith(PREFIX):
        if run.model or run.config or run.format or run.scorer or run.options or arguments.ask or run.orders > 1:
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
        sources = {name: benchmark.sources for name, benchmark in loadable_benchmarks().items()}
        names = [name for name, has in sources.items() if not run.source or run.source in has]
        if not names:
            raise unknown("source", run.source, sorted({source for has in sources.values() for source in has}))
    for name in names:  # before a model, which takes longer
        _check_names(name, run)
    return [(name, replace(run, benchmark=name), "") for name in names]


def _check_names(name: str, run: RunArguments) -> None:
    """Refuse names that a benchmark has not."""
    benchmark = load_benchmark(name)
    if run.config:
        benchmark.check_config(run.config)
    if run.source and "," not in run.source and run.source not in benchmark.sources:
        raise unknown("source", run.source, benchmark.sources)
    if run.format is not None:
        choose_format(benchmark.formats, run.format)


def _plan_run(name: str, run: RunArguments, arguments: PlanArguments) -> PlannedRun:
    subject = load_subject(run.model, run.scorer, arguments.parameters, arguments.tokenizer)
    benchmark = load_benchmark(run.benchmark)
    config, source = run.config or benchmark.whole_config(subject.kind), run.source or benchmark.sources[0]
    run = replace(run, config=config, source=source, scorer=subject.kind.name)
    run = run if arguments.ask is None else run.resolve(ask=arguments.ask)
    device = arguments.machine.device
    # Where nothing is measured, the plan is for a GPU unless the CPU is named.
    on_cpu = (resolve_device(device).type if arguments.measures else device) == "cpu"
    dtype = "bfloat16" if run.dtype == "auto" and not on_cpu else run.dtype
    weights_bytes = resolve_dtype(dtype, resolve_device("cpu")).itemsize * subject.parameters
    counter = Counter(run, subject, arguments.machine, on_cpu)
    count = count_run(counter, run.seed, exact=arguments.exact)
    speed = measure_speed(run, counter, arguments.machine) if arguments.measures else arguments.tokens_per_second
    seconds = None if speed is None else (count.work.tokens + count.work.written) / speed
    cost = seconds / 3600 * arguments.price_per_hour if seconds and arguments.price_per_hour else None
    return PlannedRun(name, run, subject.name, weights_bytes, count, speed, seconds, cost)
