"""`qabias score`: score a run again, or answers that others have collected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from qabias.benchmarks.registry import default_name
from qabias.cli.options import (
    Config,
    Fixes,
    Overwrite,
    OwnOptions,
    Rules,
    Seed,
    UpstreamDir,
    given_names,
    parse_options,
    parse_rules,
    refuse_others,
)
from qabias.errors import QabiasError
from qabias.support.printable import echo
from qabias.support.suggest import missing

# What a run folder leaves open; all else stands in its run.json.
_FOR_RUNS = ("path", "rule", "output", "report", "overwrite", "upstream_dir")
# What the log of another tool may leave open.
_HINTS = ("benchmark", "config", "source", "prompt_format", "norm")
_FOR_LOGS = (*_FOR_RUNS, "model", *_HINTS)
# What the results of a batch do not say either: which texts were drawn.
_FOR_BATCHES = (*_FOR_LOGS, "fixes", "seed", "option")


def score(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            help="A run folder; a CSV, JSON lines or Parquet file of predictions; a log of another tool (inspect, "
            "lm-evaluation-harness, an OpenAI batch), or a folder of logs.",
            show_default=False,
        ),
    ],
    benchmark: Annotated[str, typer.Option(help="Benchmark of a predictions file.")] = default_name(),
    config: Config = None,
    source: Annotated[
        str | None,
        typer.Option(help="Source of the texts that were asked; by default the first one.", show_default=False),
    ] = None,
    fixes: Fixes = False,
    seed: Seed = 0,
    option: OwnOptions = None,
    answers: Annotated[
        str | None,
        typer.Option(help="Which answers, where a file of the authors holds several models'.", show_default=False),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of the model that gave the predictions.", show_default=False)
    ] = None,
    prompt_format: Annotated[
        str | None,
        typer.Option(
            "--format", help="Prompt format in which they were asked, such as a question-only one.", show_default=False
        ),
    ] = None,
    norm: Annotated[
        str | None, typer.Option(help="How a text is read (see `qabias list`); none by default.", show_default=False)
    ] = None,
    rule: Rules = None,
    upstream_dir: UpstreamDir = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Run folder for the predictions, with tables; or a file NAME.json for the scores alone. "
            "Of a folder of logs the folder of their run folders.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Write report.html in the run folder too.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Score a run again, or by other rules, or somebody's predictions, or logs of another tool."""
    from qabias.benchmarks import load_benchmark
    from qabias.cli.printing import print_result, print_with_signature, write_scores_file
    from qabias.runs.arguments import RunArguments
    from qabias.runs.collected import choose_answers, collect, refused, score_otherwise, write_collected
    from qabias.runs.run import score_run, scores_of

    rules = parse_rules(rule)
    chosen = load_benchmark(benchmark)
    if not path.exists():
        raise missing(path)
    _check_target(path, output, overwrite)
    if report and not path.is_dir() and (output is None or output.suffix == ".json"):
        raise QabiasError("--report is for a run folder; name one by --output")
    if _score_logs(context, path, output, upstream_dir, model, rules, overwrite):
        return
    if path.is_dir():
        refuse_others(context, _FOR_RUNS, "is for a file of predictions; a run folder says it itself")
        if not rules and output is None:
            print_result(score_run(path, upstream_dir), report=report)
            return
        if output is None or not rules:
            raise QabiasError(f"{path}: other rules make another run; give --score and a new folder by --output")
        print_result(score_otherwise(path, rules, output, upstream_dir), report=report)
        return
    given = choose_answers(chosen, path, answers)
    arguments = RunArguments(
        benchmark,
        model=model or given.model or path.stem,
        config=config or chosen.configs[-1],
        source=source or given.source or chosen.sources[0],
        fixes=fixes,
        format=prompt_format,
        norm=norm or given.norm or "none",
        seed=seed,
        options=parse_options(option or [], example="answers=released"),
        rules=rules,
    )
    found = collect(given, arguments, str(path), upstream_dir)
    if found.coverage:
        echo(found.coverage)
    if output is not None and output.suffix != ".json":
        print_result(write_collected(found, output), report=report)
        return
    try:
        scores, _ = scores_of(found.question, found.answers, found.arguments.rules)
    except QabiasError as error:
        raise refused(path, error) from error
    print_with_signature(chosen, scores, found.question.signature)
    if output is not None:
        write_scores_file(output, chosen, found.question.signature, scores, overwrite=overwrite, inputs=[path])


def _check_target(path: Path, output: Path | None, overwrite: bool) -> None:
    """Refuse a place for scores or a run where there is something else, before anything is read."""
    from qabias.support.outputs import check_file, json_with

    if output is None:
        return
    if output.suffix == ".json":
        check_file(output, json_with("benchmark", "signature", "scores"), overwrite=overwrite, inputs=[path])
    elif overwrite:
        raise QabiasError("--overwrite is for a file of scores (NAME.json); a run folder is never replaced: remove it")


def _score_logs(
    context: typer.Context,
    path: Path,
    output: Path | None,
    upstream_dir: str | None,
    model: str | None,
    rules: Mapping[str, str],
    overwrite: bool,
) -> bool:
    """Score what other tools wrote; False where the path holds something else."""
    from qabias.runs.logged import is_run, log_at

    is_folder = path.is_dir() and not is_run(path)
    log = None if path.is_dir() else log_at(path)
    if log is None and not is_folder:
        return False
    from qabias.cli.score_logs import LogOptions, score_folder, score_log
    from qabias.logs import openai_batch

    is_batch = log is not None and log.tool == openai_batch.TOOL
    allowed = _FOR_BATCHES if is_batch else _FOR_LOGS
    refuse_others(context, allowed, "is for a table of predictions; a log says it itself")
    options = LogOptions(upstream_dir, model, rules, _hints(context), overwrite, context.params["report"])
    if log is not None:
        score_log(log, output, options)
    else:
        score_folder(path, output, options)
    return True


def _hints(context: typer.Context) -> dict[str, str]:
    """What the command line says of what was asked, by the names of `qabias.benchmarks.base.Benchmark.logged`."""
    given = given_names(context)
    values = context.params
    hints = {{"prompt_format": "format"}.get(name, name): str(values[name]) for name in _HINTS if name in given}
    if "seed" in given:
        hints["seed"] = str(values["seed"])
    if values["fixes"]:
        hints["fixes"] = "yes"
    own = parse_options(values["option"] or [], example="answers=released")
    return hints | {f"option.{name}": value for name, value in own.items()}
