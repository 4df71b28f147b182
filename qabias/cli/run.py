"""`qabias run`: measure a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from qabias.cli import options
from qabias.errors import QabiasError
from qabias.support.options import parse_options, parse_shard, server_options

if TYPE_CHECKING:
    from qabias.runs.arguments import Machine, RunArguments


def run(
    context: typer.Context,
    benchmark: options.Benchmark,
    model: options.Model = "smollm2",
    base_url: options.BaseUrl = None,
    config: options.Config = None,
    limit: options.Limit = None,
    until: options.Until = None,
    by: options.UntilBy = None,
    whole: options.Whole = False,
    output: options.RunFolder = None,
    ask: options.Ask = None,
    prompt_format: options.Format = None,
    permutations: options.Permutations = 1,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    dry_run: options.DryRun = False,
    source: options.Source = None,
    fixes: options.Fixes = False,
    seed: options.Seed = 0,
    revision: options.Revision = None,
    backend: options.Backend = None,
    length_norm: options.LengthNorm = "none",
    parser: options.Parser = "default",
    rule: options.Rules = None,
    option: options.Options = None,
    batch_tokens: options.BatchTokens = None,
    max_connections: options.MaxConnections = None,
    shard: options.Shard = "0/1",
    report: options.Report = True,
    mirror: options.Mirror = None,
) -> None:
    """Measure a model. Rerun the command to resume."""
    from qabias.benchmarks import load_benchmark
    from qabias.cli.printing import print_result
    from qabias.runs.looks import canonical
    from qabias.runs.run import run as run_benchmark

    arguments, machine = arguments_of(context.params)
    if not until and (by or whole):
        raise QabiasError(f"{'--by' if by else '--all'} needs --until.", "Add --until 'bias_ambig<0.1'.")
    if until:
        arguments = replace(arguments, until=canonical(load_benchmark(benchmark), until, by))
    if dry_run:
        estimate(arguments, machine, ask)
        return
    result = run_benchmark(arguments, output, machine, ask=ask, whole=whole)
    print_result(result, report=report)


def arguments_of(chosen: Mapping[str, Any]) -> tuple[RunArguments, Machine]:
    """A run's arguments from the parameters of a command."""
    from qabias.runs.arguments import Machine, RunArguments

    backend, own = server_options(
        chosen["backend"], chosen["base_url"], chosen["max_connections"], parse_options(chosen["option"] or [])
    )
    names = ("benchmark", "model", "fixes", "length_norm", "parser", "limit", "seed", "revision", "dtype")
    arguments = RunArguments(
        **{name: chosen[name] for name in names},
        config=chosen["config"] or "",
        source=chosen["source"] or "",
        format=chosen["prompt_format"],
        backend=backend,
        options=own,
        rules=options.parse_rules(chosen["rule"]),
        permutations=chosen["permutations"],
    )
    return arguments, Machine(chosen["device"], chosen["batch_tokens"], parse_shard(chosen["shard"]), chosen["mirror"])


def estimate(arguments: RunArguments, machine: Machine, ask: str | None) -> None:
    """Print the requests, tokens and cost of a server run."""
    from qabias.planning import estimate_run, print_estimate

    print_estimate(estimate_run(arguments.resolve(machine, ask=ask), machine.mirror))
