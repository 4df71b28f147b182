"""`qabias run`: measure a model."""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import BENCHMARKS, Config, Fixes, Rules, Seed, Sources, UpstreamDir, parse_options, parse_rules
from qabias.cli.suite import SUITE_PREFIX, run_paper
from qabias.errors import QabiasError
from qabias.support.options import parse_shard


def run(
    context: typer.Context,
    benchmark: Annotated[
        str,
        typer.Argument(
            help=f"Benchmark: {BENCHMARKS}; a folder of templates; or the experiment of a benchmark's paper: "
            f"{SUITE_PREFIX}BENCHMARK."
        ),
    ],
    model: Annotated[str, typer.Option(help="smollm2, baseline:KIND, a folder or a Hub id.")] = "smollm2",
    config: Config = None,
    source: Sources = None,
    fixes: Fixes = False,
    ask: Annotated[
        str | None,
        typer.Option(
            help="How the model is asked, in one word: options (likelihood of each answer), letter, write, reason, "
            "fill, open or json (see `qabias list`); chooses --format and --option."
        ),
    ] = None,
    prompt_format: Annotated[
        str | None, typer.Option("--format", help="Prompt format (see `qabias list`); by default what fits.")
    ] = None,
    orders: Annotated[
        int, typer.Option(help="Ask every question in so many orders of its answers: 1, 3 (circulant) or 6 (all).")
    ] = 1,
    scorer: Annotated[
        str | None, typer.Option(help="Way of asking the model (see `qabias list`); by default its own.")
    ] = None,
    norm: Annotated[
        str, typer.Option(help="How a log-likelihood becomes a score, or a text an answer (see `qabias list`).")
    ] = "none",
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE for the scorer or the benchmark (see `qabias list`), e.g. mode=generate; may be repeated."
        ),
    ] = None,
    score: Rules = None,
    limit: Annotated[
        int | None, typer.Option(help="Measure at most so many examples: whole sets from all templates, one at least.")
    ] = None,
    seed: Seed = 0,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a Hub model.")] = None,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")] = "auto",
    token_budget: Annotated[
        int | None, typer.Option(help="Tokens in a batch; by default what suits the device.")
    ] = None,
    shard: Annotated[str, typer.Option(help="i/n: compute the i-th of n shares (from 0) of the run.")] = "0/1",
    output: Annotated[
        Path | None, typer.Option(help="Run folder; by default runs/NAME made from the arguments.")
    ] = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html in the run folder.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what a server would be asked, and the cost; send nothing.")
    ] = False,
    models: Annotated[
        list[str] | None,
        typer.Option(
            help="Models of a paper's experiment: names in its table (see `qabias list`), or others as for --model; "
            "may be repeated, or with commas between."
        ),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="A paper's experiment from the answers that its authors published; asks no model."
        ),
    ] = False,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Measure a model: predictions, scores and a report in a run folder."""
    from qabias.cli.printing import print_forms, print_result
    from qabias.runs.arguments import Machine, RunArguments
    from qabias.runs.run import run as run_benchmark

    machine = Machine(device, token_budget, parse_shard(shard), upstream_dir)
    if benchmark.startswith(SUITE_PREFIX):
        run_paper(context, machine)
        return
    if published:
        raise QabiasError(f"--published is for the experiment of a paper, such as {SUITE_PREFIX}{benchmark}")
    if models:
        raise QabiasError(f"--models is for the experiment of a paper, such as {SUITE_PREFIX}{benchmark}; use --model")
    arguments = RunArguments(
        benchmark=benchmark,
        model=model,
        config=config or "",
        source=source or "",
        fixes=fixes,
        format=prompt_format,
        scorer=scorer,
        norm=norm,
        limit=limit,
        seed=seed,
        options=parse_options(option or []),
        revision=revision,
        dtype=dtype,
        rules=parse_rules(score),
        orders=orders,
    )
    in_two_forms = "," in arguments.source
    if in_two_forms:
        from qabias.suites.forms import arguments_of_forms, run_forms
    if dry_run:
        from qabias.planning import estimate_run, print_estimate

        for each in arguments_of_forms(arguments) if in_two_forms else (arguments,):
            print_estimate(estimate_run(each.resolve(machine, ask=ask), upstream_dir))
        return
    if in_two_forms:
        print_forms(run_forms(arguments, output, machine, ask=ask), report=report)
        return
    print_result(run_benchmark(arguments, output, machine, ask=ask), report=report)
