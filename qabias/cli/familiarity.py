"""`qabias familiarity`: does a language model know the published texts?"""

from pathlib import Path
from typing import Annotated

import typer

from qabias.cli.options import Config, Fixes, Overwrite, Seed, UpstreamDir
from qabias.support.printable import echo


def familiarity(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Benchmark with a published and a parallel form of its texts; any other is refused, and those that "
            "have one are named.",
            show_default=False,
        ),
    ],
    model: Annotated[str, typer.Option(help="smollm2, a folder or a Hub id of a causal language model.")] = "smollm2",
    reference_model: Annotated[
        str | None,
        typer.Option(
            help="A model that cannot have seen the texts; its own difference is taken off.", show_default=False
        ),
    ] = None,
    config: Config = None,
    source: Annotated[str, typer.Option(help="A published and the parallel source, with a comma between.")] = (
        "official,bundled"
    ),
    fixes: Fixes = False,
    texts: Annotated[int, typer.Option(help="Distinct texts of a stereotype and form that are scored at most.")] = 20,
    limit: Annotated[
        int | None, typer.Option(help="Take texts of at most so many examples, as for run.", show_default=False)
    ] = None,
    seed: Seed = 0,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of a Hub model.", show_default=False)
    ] = None,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")] = "auto",
    token_budget: Annotated[
        int | None, typer.Option(help="Tokens in a batch; by default what suits the device.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of both runs, whose comparison then shows it; by default that of a run with these arguments.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Measure how much likelier a causal language model finds published texts than parallel ones."""
    from qabias.benchmarks import load_benchmark
    from qabias.report.compared import print_familiarity
    from qabias.runs.arguments import Machine, RunArguments
    from qabias.suites.familiarity import measure_familiarity

    arguments = RunArguments(
        benchmark=benchmark,
        model=model,
        config=config or load_benchmark(benchmark).configs[-1],
        source=source,
        fixes=fixes,
        limit=limit,
        seed=seed,
        revision=revision,
        dtype=dtype,
    )
    machine = Machine(device, token_budget, upstream_dir=upstream_dir)
    found, path = measure_familiarity(arguments, reference_model, texts, output, machine, overwrite=overwrite)
    print_familiarity(found)
    echo(f"familiarity: {path.resolve()}")
