"""What follows from how a model is asked: `--ask` chooses format and options, and a scorer which examples are all."""

from __future__ import annotations

from dataclasses import replace

from qabias.benchmarks import Benchmark, choose_format, load_benchmark
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments, check_scorer
from qabias.scorers.kind import ASK_METHODS
from qabias.scorers.registry import load_kind, scorer_of
from qabias.support.suggest import unknown


def asked(arguments: RunArguments, word: str, given: object = None) -> RunArguments:
    """The arguments with what a word chooses; a format that fits it and options that were given go before it."""
    benchmark = load_benchmark(arguments.benchmark)
    if word not in ASK_METHODS:
        raise unknown("way of asking", word, ASK_METHODS)
    scorer = scorer_of(arguments.scorer, arguments.model, arguments.revision, given)
    check_scorer(benchmark, scorer)
    kind = load_kind(scorer)
    for name, has in ((benchmark.name, benchmark.asks), (f"the scorer {scorer}", kind.asks)):
        if word not in has:
            both = [other for other in benchmark.asks if other in kind.asks]
            offer = f"they have {', '.join(both)}" if both else "they have none in common"
            raise QabiasError(f"--ask {word}: {name} cannot be asked so; {benchmark.name} and {scorer}: {offer}")
    _check_format(benchmark, arguments.format, word)
    options = {**kind.asks[word], **arguments.options}
    mode = kind.asks[word].get("mode", kind.default_mode)
    if options.get("mode", mode) != mode:
        raise QabiasError(f"--ask {word} and --option mode={options['mode']} contradict each other; leave one out")
    if mode == kind.default_mode:
        options.pop("mode", None)  # one run has one name
    return replace(
        arguments,
        scorer=arguments.scorer and scorer,
        format=arguments.format or benchmark.asks[word] or None,
        options=options,
    )


def whole_config(arguments: RunArguments, given: object = None) -> RunArguments:
    """The arguments with the configuration of all examples that the model can be asked, where they name none."""
    if arguments.config:
        return arguments
    benchmark = load_benchmark(arguments.benchmark)
    kind = load_kind(scorer_of(arguments.scorer, arguments.model, arguments.revision, given))
    return replace(arguments, config=benchmark.whole_config(kind))


def _check_format(benchmark: Benchmark, name: str | None, word: str) -> None:
    """Refuse a format that is made for other ways of asking, or unknown."""
    if name is None:
        return
    asks = choose_format(benchmark.formats, name).asks
    if asks and word not in asks:
        made = [other.name for other in benchmark.formats.values() if word in other.asks]
        raise QabiasError(
            f"--ask {word} and --format {name} do not go together: the format is for {', '.join(asks)}; leave --format "
            f"out, or choose {' or '.join(made) or 'another'}"
        )
