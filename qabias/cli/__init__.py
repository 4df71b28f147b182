"""The command line: build, run, score, report, show, compare, export, list and validate.

Heavy packages are imported where they are used, so that `--help` answers at once.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabias import __version__
from qabias.cli.compare import compare
from qabias.cli.export import export
from qabias.cli.options import Config, Fixes, Seed, Source, UpstreamDir, parse_options
from qabias.cli.plan import plan
from qabias.cli.push import push
from qabias.cli.results import results
from qabias.cli.show import show
from qabias.cli.suite import run_paper
from qabias.cli.validate import validate
from qabias.runs.distributed import SharedError, is_first
from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.measuring.run import RunResult

EXIT_USER_ERROR = 2

app = typer.Typer(
    name="qabias",
    help="Measure social bias of question-answering and inference models (BBQ, UnQover, BBNLI).",
    epilog="First try: qabias run bbq --model baseline:stereotyped; then: qabias run bbq --model smollm2 --limit 400",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(validate, name="validate")
app.add_typer(push, name="push")
app.command(epilog="Example: qabias results runs/my-run --model-id me/model --dataset me/bbq --output model_clone")(
    results
)
app.command(epilog="Example: qabias plan all --parameters 70e9 --tokenizer smollm2 --hardware 8xH100")(plan)

app.command(epilog="Example: qabias compare runs/ONE runs/OTHER --output comparison")(compare)
app.command(epilog="Example: qabias export runs/ONE --format latex --table bias_by_category")(export)
app.command(epilog="Example: qabias show runs/ONE --template Age-01")(show)

Benchmark = Annotated[str, typer.Argument(help="Benchmark: bbq, unqover, bbnli or bbq_nli.", show_default=False)]


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"qabias {__version__}")
        raise typer.Exit


@app.command(epilog="Example: qabias build bbq --source official --upstream-dir MIRROR --output bbq_official")
def build(
    benchmark: Benchmark,
    output: Annotated[Path, typer.Option(help="Dataset folder to write.", show_default=False)],
    config: Config = "all",
    source: Source = "bundled",
    fixes: Fixes = False,
    seed: Seed = 0,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Generate a dataset folder: card and Parquet files that `load_dataset` reads."""
    from qabias.benchmarks import load_benchmark

    chosen = load_benchmark(benchmark)
    tables = chosen.write_folder(output, config, chosen.origin(source, seed, fixes, upstream_dir))
    for name, table in tables.items():
        typer.echo(f"{name:<22}{table.num_rows:>9,} examples")
    typer.echo(f"{'in all':<22}{sum(table.num_rows for table in tables.values()):>9,} examples in {output}")


@app.command(epilog="Example: qabias run bbq --model smollm2 --limit 400. The same command again continues a run.")
def run(
    context: typer.Context,
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Benchmark: bbq, unqover, bbnli or bbq_nli; or the experiment of a paper: paper:bbq, paper:unqover or "
            "paper:bbnli.",
            show_default=False,
        ),
    ],
    model: Annotated[str, typer.Option(help="smollm2, baseline:KIND, a folder or a Hub id.")] = "smollm2",
    config: Config = "all",
    source: Source = "bundled",
    fixes: Fixes = False,
    prompt_format: Annotated[
        str | None,
        typer.Option("--format", help="Prompt format (see `qabias list`); by default what fits.", show_default=False),
    ] = None,
    scorer: Annotated[
        str | None,
        typer.Option(help="Way of asking the model (see `qabias list`); by default its own.", show_default=False),
    ] = None,
    norm: Annotated[
        str, typer.Option(help="How a log-likelihood becomes a score, or a text an answer (see `qabias list`).")
    ] = "none",
    option: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE for the scorer, e.g. mode=generate; may be repeated.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(help="Measure at most so many examples, whole sets from all templates.", show_default=False),
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
    shard: Annotated[str, typer.Option(help="i/n: compute the i-th of n shares (from 0) of the run.")] = "0/1",
    output: Annotated[
        Path | None, typer.Option(help="Run folder; by default runs/NAME made from the arguments.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what a server would be asked, and its cost; ask nothing.")
    ] = False,
    models: Annotated[
        list[str] | None,
        typer.Option(
            help="Models of a paper's experiment: names in its table (see `qabias list`), or others as for --model; "
            "may be repeated, or with commas between.",
            show_default=False,
        ),
    ] = None,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Measure a model: predictions, scores and a report in a run folder."""
    from qabias.measuring.run import Machine, RunArguments
    from qabias.measuring.run import run as run_benchmark

    machine = Machine(device, token_budget, _parse_shard(shard), upstream_dir)
    if benchmark.startswith("paper:"):
        run_paper(context, machine)
        return
    if models:
        raise QabiasError("--models is for the experiment of a paper, such as paper:bbq; use --model")
    arguments = RunArguments(
        benchmark=benchmark,
        model=model,
        config=config,
        source=source,
        fixes=fixes,
        format=prompt_format,
        scorer=scorer,
        norm=norm,
        limit=limit,
        seed=seed,
        options=parse_options(option or []),
        revision=revision,
        dtype=dtype,
    )
    if dry_run:
        from qabias.planning.server import estimate_run, print_estimate

        print_estimate(estimate_run(arguments, upstream_dir))
        return
    _print_result(run_benchmark(arguments, output, machine))


@app.command(epilog="Example: qabias score answers.csv --benchmark bbq --config Age")
def score(
    path: Annotated[
        Path,
        typer.Argument(help="A run folder, or a CSV, JSON lines or Parquet file of predictions.", show_default=False),
    ],
    benchmark: Annotated[str, typer.Option(help="Benchmark of a predictions file.")] = "bbq",
    config: Config = "all",
    source: Source = "bundled",
    fixes: Fixes = False,
    seed: Seed = 0,
    upstream_dir: UpstreamDir = None,
    output: Annotated[
        Path | None, typer.Option(help="Also write the scores of a predictions file as JSON.", show_default=False)
    ] = None,
) -> None:
    """Score a run again, or somebody's predictions."""
    from qabias.benchmarks import load_benchmark
    from qabias.support.files import write_json
    from qabias.measuring.predictions import join_predictions
    from qabias.benchmarks.undefined import reasons
    from qabias.measuring.run import score_run

    if path.is_dir():
        _print_result(score_run(path, upstream_dir))
        return
    chosen = load_benchmark(benchmark)
    origin = chosen.origin(source, seed, fixes, upstream_dir)
    table, answers = join_predictions(chosen, chosen.load(config, origin), path)
    scores = chosen.score(table, answers)
    signature = f"{benchmark}|source:{origin.version}|config:{config}|predictions:{path.name}|qabias:{__version__}"
    _print_scores(benchmark, scores, signature)
    if output is not None:
        write_json(
            output,
            {
                "benchmark": benchmark,
                "signature": signature,
                "scores": scores,
                "reasons": reasons(benchmark, scores),
            },
        )


@app.command(epilog="Example: qabias merge shard-0 shard-1 shard-2 --output whole")
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of the shards of one run.", show_default=False)],
    output: Annotated[Path, typer.Option(help="Run folder to write.", show_default=False)],
    upstream_dir: UpstreamDir = None,
) -> None:
    """Put shards that were computed into several run folders into one; then score and report it."""
    from qabias.measuring.merging import merge as merge_folders

    _print_result(merge_folders(folders, output, upstream_dir))


@app.command(epilog="Example: qabias report runs/bbq runs/unqover --output report.html")
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with scores.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(help="File to write; by default report.html in the run's folder.", show_default=False)
    ] = None,
) -> None:
    """Write the report of a run again, or one report of several runs."""
    from qabias.report import write_combined_report, write_report

    if len(folders) == 1:
        typer.echo(str(write_report(folders[0], output)))
        return
    if output is None:
        raise QabiasError("several runs need a file for their report: name it by --output")
    typer.echo(str(write_combined_report(folders, output).resolve()))


@app.command("list")
def list_() -> None:
    """List benchmarks with their configurations, sources and prompt formats, scorers and baselines."""
    from qabias.benchmarks import BENCHMARKS, load_benchmark
    from qabias.scorers.baseline import KINDS
    from qabias.suites import load_suite, suite_names

    for name in BENCHMARKS:
        benchmark = load_benchmark(name)
        typer.echo(f"{name}: {benchmark.title}")
        typer.echo(f"  configurations: {', '.join(benchmark.configs)}")
        typer.echo(f"  sources:        {', '.join(benchmark.sources)}")
        typer.echo(f"  scorers:        {', '.join(benchmark.scorers)}")
        typer.echo(f"  norms:          {', '.join(benchmark.norms)}")
        typer.echo("  formats:")
        for prompt_format in benchmark.formats.values():
            typer.echo(f"    {prompt_format.signature:<17}{prompt_format.description}")
    for name in suite_names():
        suite = load_suite(name)
        typer.echo(f"{name}: {suite.title}")
        typer.echo(f"  models:         {', '.join(model.name for model in suite.models if model.in_paper)}")
        others = [model.name for model in suite.models if not model.in_paper]
        if others:
            typer.echo(f"  if named:       {', '.join(others)}")
    typer.echo(f"models: smollm2, any Hub id or folder, {', '.join(f'baseline:{kind}' for kind in KINDS)}")


def _parse_shard(text: str) -> tuple[int, int]:
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(count) > 0):
        raise QabiasError(f"shard {text!r} is not of the form i/n, such as 0/4")
    return int(index), int(count)


def _print_result(result: "RunResult") -> None:
    if not is_first():
        return
    if result.scores is None:
        typer.echo(f"{result.n_missing_parts} parts are still missing; scores come with the last shard.")
        typer.echo(f"run folder: {result.folder}")
        return
    _print_scores(result.benchmark, result.scores, result.signature)
    typer.echo(f"run folder: {result.folder}")
    typer.echo(f"report:     {(result.folder / 'report.html').resolve()}")


def _print_scores(benchmark: str, scores: dict[str, Any], signature: str) -> None:
    from qabias.comparison.comparable import is_question_only
    from qabias.terminal.scores import print_scores

    print_scores(benchmark, scores, question_only=is_question_only(signature))
    typer.echo(signature)


def main() -> None:
    """Run the command line; a mistake of the user is one line on standard error and exit code 2."""
    try:
        app()
    except SharedError as error:
        if not is_first():
            sys.exit(EXIT_USER_ERROR)
        _fail(str(error))
    except QabiasError as error:
        _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}; mend it and run the same command again, a run continues")
    except ValueError as error:
        # The metric modules know no QabiasError; what they find wrong with predictions is the user's to mend as well.
        if not str(error).startswith(("bbq: ", "unqover: ", "bbnli: ")):
            raise
        _fail(str(error))


def _fail(message: str) -> None:
    typer.echo(f"qabias: error: {' '.join(message.split())}", err=True)
    sys.exit(EXIT_USER_ERROR)
