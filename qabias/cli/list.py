"""`qabias list`: what there is to choose from."""

import typer


def list_() -> None:
    """List benchmarks with their configurations, sources, options and prompt formats, scorers and baselines."""
    from qabias.benchmarks import loadable_benchmarks
    from qabias.scorers.baseline import KINDS
    from qabias.scorers.registry import kinds, scorers_for
    from qabias.suites import load_suite, suite_names

    for name, benchmark in loadable_benchmarks().items():
        typer.echo(f"{name}: {benchmark.title}")
        typer.echo(f"  configurations: {', '.join(benchmark.configs)}")
        typer.echo(f"  sources:        {', '.join(benchmark.sources)}")
        typer.echo(f"  scorers:        {', '.join(scorers_for(benchmark.ways))}")
        typer.echo(f"  --ask:          {', '.join(benchmark.asks)}")
        typer.echo(f"  norms:          {', '.join(benchmark.norms)}")
        for rule, values in benchmark.rules.items():
            typer.echo(f"  --score {rule}: {', '.join(values)} (the first is the default)")
        for option, values in benchmark.options.items():
            typer.echo(f"  --option {option}: {', '.join(values)} (the first is the default)")
        typer.echo("  formats:")
        for prompt_format in benchmark.formats.values():
            typer.echo(f"    {prompt_format.signature:<27}{prompt_format.description}")
    for name in suite_names():
        suite = load_suite(name)
        typer.echo(f"{name}: {suite.title}")
        typer.echo(f"  models:         {', '.join(model.name for model in suite.models if model.in_paper)}")
        others = [model.name for model in suite.models if not model.in_paper]
        if others:
            typer.echo(f"  if named:       {', '.join(others)}")
    typer.echo("scorers:")
    for kind in kinds().values():
        typer.echo(f"  {kind.name:<16}{kind.about}")
        options = [*kind.options, *(f"{prefix}NAME" for prefix in kind.open_options)]
        if options:
            typer.echo(f"  {'':<16}options: {', '.join(options)}")
        typer.echo(f"  {'':<16}--ask:   {', '.join(kind.asks)}")
    typer.echo(f"models: smollm2, any Hub id or folder, {', '.join(f'baseline:{kind}' for kind in KINDS)}")
