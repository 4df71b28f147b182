"""`qabias contamination`: has a model seen the published questions? One run on them, one on parallel ones."""

from __future__ import annotations

from dataclasses import replace

import typer

from qabias.cli import options
from qabias.cli.run import arguments_of, estimate


def contamination(
    context: typer.Context,
    benchmark: options.Benchmark,
    model: options.Model = "smollm2",
    base_url: options.BaseUrl = None,
    config: options.Config = None,
    limit: options.Limit = None,
    output: options.RunFolder = None,
    ask: options.Ask = None,
    prompt_format: options.Format = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    dry_run: options.DryRun = False,
    source: options.TwoSources = None,
    fixes: options.Fixes = False,
    seed: options.Seed = 0,
    permutations: options.Permutations = 1,
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
    """Test whether a model has seen the published questions.

    It measures published and parallel texts, and compares the two runs.
    """
    from qabias.cli.printing import print_forms
    from qabias.contamination import arguments_of_forms, default_sources, run_forms

    arguments, machine = arguments_of(context.params)
    arguments = replace(arguments, source=arguments.source or default_sources(benchmark))
    if dry_run:
        for each in arguments_of_forms(arguments):
            estimate(each, machine, ask)
        return
    print_forms(run_forms(arguments, output, machine, ask=ask), report=report)
