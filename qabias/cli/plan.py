"""`qabias plan`: what a run takes, before it is started."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from qabias.cli.options import Overwrite, UpstreamDir, parse_options, refuse_others
from qabias.cli.suite import SUITE_PREFIX, split_names
from qabias.support.printable import echo


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, show_default=False)


_FOR_DETECT = ("target", "config", "source", "option", "limit", "detect", "like", "upstream_dir")
Text = str | None
Number = float | None


def plan(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help=f"A benchmark, all, or a paper's experiment: {SUITE_PREFIX}BENCHMARK.")],
    model: Annotated[Text, _option("smollm2 (default), a folder (no weights needed) or a Hub id.")] = None,
    models: Annotated[list[str] | None, _option("Models of a paper's experiment, as for run.")] = None,
    parameters: Annotated[Number, _option("Number of parameters, such as 70e9, in place of the model's own.")] = None,
    tokenizer: Annotated[Text, _option("A tokenizer in place of the model's own; size and tokenizer suffice.")] = None,
    config: Annotated[str, _option("Configuration of the dataset; by default all of it.")] = "",
    source: Annotated[str, _option("Source of the texts; by default bundled, or that of the paper.")] = "",
    ask: Annotated[Text, _option("How the model is asked, in one word, as for run.")] = None,
    orders: Annotated[int, _option("Orders of the answers in which every question is asked, as for run.")] = 1,
    prompt_format: Annotated[Text, _option("Prompt format; by default what fits.", "--format")] = None,
    scorer: Annotated[Text, _option("Way of asking the model; by default its own.")] = None,
    option: Annotated[list[str] | None, _option("NAME=VALUE, as for run; may be repeated.")] = None,
    limit: Annotated[int | None, _option("Measure at most so many examples, as for run.")] = None,
    dtype: Annotated[str, _option("auto (default), float32, bfloat16 or float16.")] = "auto",
    token_budget: Annotated[int | None, _option("Tokens in a batch; by default what suits the device.")] = None,
    exact: Annotated[bool, _option("Count every text of a long run instead of a sample.", "--exact")] = False,
    measure: Annotated[bool, _option("Find the speed by asking the model here for some seconds.", "--measure")] = False,
    device: Annotated[str, _option("Device of --measure, or cpu to count its batches instead of a GPU's.")] = "auto",
    tokens_per_second: Annotated[Number, _option("Speed, if it is known; pads count.")] = None,
    price_per_hour: Annotated[Number, _option("Price of the machine, in any currency.")] = None,
    output: Annotated[Path | None, _option("Also write the plan as JSON.")] = None,
    detect: Annotated[Text, _option("Instead: templates that show a bias of this size, e.g. 0.02.")] = None,
    like: Annotated[Path | None, _option("A run whose accuracy and correlation --detect assumes.")] = None,
    overwrite: Overwrite = False,
    upstream_dir: UpstreamDir = None,
) -> None:
    """Show the tokens of a run, its time and cost at a known speed, or what a bias takes, without starting it."""
    from qabias.report.needed import print_needed
    from qabias.runs.arguments import Machine, RunArguments
    from qabias.support.extras import need
    from qabias.support.files import strict, write_json
    from qabias.support.outputs import check_file, json_like

    is_suite = target.startswith(SUITE_PREFIX)
    named = model or ("" if is_suite or parameters else "smollm2")
    run = RunArguments(target, named, config, source, format=prompt_format, scorer=scorer, limit=limit, dtype=dtype)
    run = replace(run, options=parse_options(option or []), orders=orders)
    if detect is not None or like is not None:
        refuse_others(context, _FOR_DETECT, "is not for --detect, which counts templates and asks no model")
        return print_needed(run, detect, like, upstream_dir)
    need("local", "a plan")
    from qabias.planning.plan import PlanArguments, make_plan
    from qabias.planning.printing import print_plan

    machine, names = Machine(device, token_budget, upstream_dir=upstream_dir), split_names(models or [])
    arguments = PlanArguments(
        target, run, names, parameters, tokenizer, tokens_per_second, price_per_hour, measure, machine, exact, ask
    )
    if output is not None:
        check_file(output, json_like(lambda content: {*content} == {"runs"}), overwrite=overwrite)
    runs, failures = make_plan(arguments)
    print_plan(runs)
    if output is not None:
        found = strict({"runs": [asdict(run) for run in runs]})
        check_file(output, json_like(lambda content: _planned(content) == _planned(found)), overwrite=overwrite)
        write_json(output, found)
    for name, failure in failures:
        echo(f"{name}: not planned: {failure}", err=True)
    if failures and is_suite:
        raise typer.Exit(2)


def _planned(content: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What was planned, whatever was found of it."""
    return [(run["name"], run["arguments"]) for run in content["runs"]]
