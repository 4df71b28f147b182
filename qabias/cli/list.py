"""`qabias list`: what there is to choose from."""

from qabias.support.printable import echo


def list_() -> None:
    """List benchmarks with their configurations, sources, options and prompt formats, scorers and baselines."""
    from qabias.benchmarks import loadable_benchmarks
    from qabias.scorers.baseline import KINDS
    from qabias.scorers.registry import kinds, scorers_for
    from qabias.suites import load_suite, suite_names

    for name, benchmark in loadable_benchmarks().items():
        echo(f"{name}: {benchmark.title}")
        echo(f"  configurations: {', '.join(benchmark.configs)}")
        echo(f"  sources:        {', '.join(benchmark.sources)}")
        echo(f"  scorers:        {', '.join(scorers_for(benchmark.interfaces))}")
        echo(f"  --ask:          {', '.join(benchmark.asks)}")
        echo(f"  norms:          {', '.join(benchmark.norms)}")
        if len(benchmark.orders) > 1:
            echo(f"  --permutations:       {', '.join(map(str, benchmark.orders))}")
        for rule, values in benchmark.rules.items():
            echo(f"  --score {rule}: {', '.join(values)} (the first is the default)")
        for option, values in benchmark.options.items():
            echo(f"  --option {option}: {', '.join(values)} (the first is the default)")
        echo("  formats:")
        for prompt_format in benchmark.formats.values():
            echo(f"    {prompt_format.signature:<27}{prompt_format.description}")
    for name in suite_names():
        suite = load_suite(name)
        echo(f"{name}: {suite.title}")
        echo(f"  models:         {', '.join(model.name for model in suite.models if model.in_paper)}")
        others = [model.name for model in suite.models if not model.in_paper]
        if others:
            echo(f"  if named:       {', '.join(others)}")
    echo("scorers:")
    for kind in kinds().values():
        echo(f"  {kind.name:<16}{kind.summary}")
        options = [*kind.options, *(f"{prefix}NAME" for prefix in kind.open_options)]
        if options:
            echo(f"  {'':<16}options: {', '.join(options)}")
        echo(f"  {'':<16}--ask:   {', '.join(kind.asks)}")
    echo(f"models: smollm2, any Hub id or folder, {', '.join(f'baseline:{kind}' for kind in KINDS)}")
