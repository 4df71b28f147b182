"""`qabias plan`: what a run takes, before it is started."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabias.cli.options import Fixes, Seed, UpstreamDir, parse_options
from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.measuring.run import RunArguments
    from qabias.planning.cost import Hardware
    from qabias.planning.outline import Subject


def plan(
    target: Annotated[
        str,
        typer.Argument(
            help="A benchmark, all benchmarks (all), or the experiment of a paper, e.g. paper:bbq.", show_default=False
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="smollm2, a folder (its weights are not needed) or a Hub id; by default smollm2.", show_default=False
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(help="Models of a paper's experiment; may be repeated, or with commas.", show_default=False),
    ] = None,
    parameters: Annotated[
        float | None,
        typer.Option(help="Number of parameters, such as 70e9, in place of the model's own.", show_default=False),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="smollm2, a folder or a Hub id, in place of the model's own; with --parameters no model is needed.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="Configuration of the dataset; by default all of it.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Source of the texts; by default bundled, or that of the paper.", show_default=False),
    ] = None,
    fixes: Fixes = False,
    prompt_format: Annotated[
        str | None, typer.Option("--format", help="Prompt format; by default what fits.", show_default=False)
    ] = None,
    scorer: Annotated[
        str | None, typer.Option(help="Way of asking the model; by default its own.", show_default=False)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE for the scorer, as for run; may be repeated.", show_default=False),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Measure at most so many examples.", show_default=False)] = None,
    seed: Seed = 0,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of a Hub model.", show_default=False)
    ] = None,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    token_budget: Annotated[
        int | None, typer.Option(help="Tokens in a batch; by default what suits the device.", show_default=False)
    ] = None,
    hardware: Annotated[
        list[str] | None,
        typer.Option(
            help="Machine: A100-80GB, H100-80GB, 8xH100, L4, T4 or cpu; may be repeated; by default all but cpu.",
            show_default=False,
        ),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Count every text of a long run instead of a sample.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Ask the model for some seconds on this machine to find its speed.")
    ] = False,
    device: Annotated[str, typer.Option(help="Device of --measure: auto, cpu, cuda, ...")] = "auto",
    tokens_per_second: Annotated[
        float | None, typer.Option(help="Speed, if it is known; pads count.", show_default=False)
    ] = None,
    price_per_hour: Annotated[
        float | None, typer.Option(help="Price of the machine, in any currency.", show_default=False)
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Also write the plan as JSON.", show_default=False)] = None,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Tell tokens, operations, memory, time and cost of a run without starting it."""
    from qabias.cli.suite import split_names
    from qabias.measuring.run import Machine, RunArguments
    from qabias.planning.cost import resolve_dtype
    from qabias.planning.count import count_run
    from qabias.planning.measure import measure as measure_speed
    from qabias.planning.plan import as_dict, complete, make_planned, target_runs
    from qabias.planning.tables import print_plan
    from qabias.support.files import write_json

    machines, on_cpu = _choose_machines(hardware or [], measure, tokens_per_second, device)
    resolve_dtype(dtype, on_cpu)
    for name, value in (("tokens-per-second", tokens_per_second), ("price-per-hour", price_per_hour)):
        if value is not None and not 0 < value < float("inf"):
            raise QabiasError(f"{name} is {value}; it must be above 0")
    if measure and model is None and parameters is not None:
        raise QabiasError("a size cannot be measured; give --model, or leave --measure out")
    is_suite = target.startswith("paper:")
    if is_suite and (model is not None or option):
        raise QabiasError(f"{target} sets --model and --option itself; choose among its models by --models")
    if model is None and parameters is None and not is_suite:
        model = "smollm2"
    base = RunArguments(
        benchmark=target,
        model=model or "",
        fixes=fixes,
        format=prompt_format,
        scorer=scorer,
        limit=limit,
        seed=seed,
        options=parse_options(option or []),
        revision=revision,
        dtype=dtype,
    )
    subjects: dict[tuple[str, str | None], Subject] = {}
    planned, failures = [], []
    for name, meant, missing in target_runs(
        target, base, config=config, source=source, models=split_names(models or [])
    ):
        try:
            if missing:
                raise QabiasError(missing)
            subject = _find_subject(subjects, meant, parameters, tokenizer)
            arguments = complete(meant, subject)
            speed = tokens_per_second
            if measure:
                here = Machine(device, token_budget, (0, 1), upstream_dir)
                speed = measure_speed(arguments, subject, here).tokens_per_second
            count = count_run(
                arguments, subject, exact=exact, on_cpu=on_cpu, token_budget=token_budget, upstream_dir=upstream_dir
            )
            planned.append(make_planned(name, count, speed))
        except QabiasError as error:
            failures.append((name, error))
    if not planned:
        raise failures[0][1]
    print_plan(planned, machines, dtype if machines else resolve_dtype(dtype, on_cpu), price_per_hour)
    if output is not None:
        write_json(output, as_dict(planned, machines, dtype, price_per_hour))
    for name, failure in failures:
        typer.echo(f"{name}: not planned: {failure}", err=True)
    if failures and is_suite:
        raise typer.Exit(2)


def _find_subject(
    subjects: "dict[tuple[str, str | None], Subject]",
    arguments: "RunArguments",
    parameters: float | None,
    tokenizer: str | None,
) -> "Subject":
    """The model of a run, looked up once."""
    from qabias.planning.outline import load_subject

    key = arguments.model, arguments.scorer
    if key not in subjects:
        subjects[key] = load_subject(
            arguments.model or None,
            scorer=arguments.scorer,
            revision=arguments.revision,
            parameters=parameters,
            tokenizer=tokenizer,
        )
    return subjects[key]


def _choose_machines(
    names: list[str], measure: bool, tokens_per_second: float | None, device: str
) -> "tuple[list[Hardware], bool]":
    """The machines to plan for, and whether batches are those of a CPU."""
    from qabias.models.loading import resolve_device
    from qabias.planning.cost import CPU, all_hardware, load_hardware

    machines = [load_hardware(name) for name in names]
    if measure and (names or tokens_per_second is not None):
        raise QabiasError("--measure finds the speed of this machine; leave --hardware and --tokens-per-second out")
    if measure:
        return [], resolve_device(device).type == CPU
    if CPU in names and len(names) > 1:
        raise QabiasError("a CPU takes other batches; plan for it by itself")
    if tokens_per_second is not None:
        return machines, names == [CPU]
    return machines or [machine for name, machine in all_hardware().items() if name != CPU], names == [CPU]
