"""`qabias list`: benchmarks, and the choices of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from qabias.support.printable import echo
from qabias.support.suggest import unknown

if TYPE_CHECKING:
    from qabias.benchmarks import Benchmark

WIDTH = 100
_LABEL = 16


def _topics() -> list[str]:
    from qabias.benchmarks.registry import benchmark_names

    return [*benchmark_names(), *_TOPICS]


def list_(
    topic: Annotated[
        str | None,
        typer.Argument(help="Benchmark, languages, backends, baselines or published.", autocompletion=_topics),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show every name, with what it means.")] = False,
) -> None:
    """List the benchmarks, or the choices of one."""
    from qabias.benchmarks.registry import is_folder, known_addresses, load_benchmark

    if topic is None:
        _print_benchmarks(full)
    elif topic in known_addresses() or is_folder(topic):
        _print_choices(load_benchmark(topic), full)
    elif topic in _TOPICS:
        _TOPICS[topic](full)
    else:
        raise unknown("topic", topic, _topics(), see="qabias list")


def _print_benchmarks(full: bool) -> None:
    from qabias.benchmarks import loadable_benchmarks

    benchmarks = loadable_benchmarks()
    others = [name for name, one in benchmarks.items() if one.family not in ("", name) and not full]
    for name, benchmark in benchmarks.items():
        if name not in others:
            echo(f"{name:<{_LABEL}}{benchmark.title}")
    if others:
        echo(f"{' '.join(others)}: BBQ in other languages. See: qabias list languages")
    echo(f"Choices of one: qabias list {next(iter(benchmarks))}.  Also: qabias list {' | '.join(_TOPICS)}")


def _print_choices(benchmark: Benchmark, full: bool) -> None:
    from qabias.answers.parsing import PARSE_RULES
    from qabias.benchmarks.base import whole_config
    from qabias.scorers.kind import FORCED_CHOICE
    from qabias.scorers.registry import load_kind, scorers_for

    backends = scorers_for(benchmark.interfaces)
    whole = whole_config(benchmark, load_kind(backends[0]))
    lengths = [norm for norm in benchmark.norms if norm not in PARSE_RULES]
    parsers = ["default", *(norm for norm in benchmark.norms if norm in PARSE_RULES)]
    echo(benchmark.title)
    _print_row("--config", [whole, *(name for name in benchmark.configs if name != whole)], full)
    _print_row("--source", benchmark.sources, full)
    _print_row("--ask", (*benchmark.asks, *([FORCED_CHOICE] if benchmark.forced_choice else [])), full)
    if full:
        echo("--format")
        for prompt_format in benchmark.formats.values():
            echo(f"    {prompt_format.signature:<27}{prompt_format.description}")
    else:
        _print_row("--format", tuple(benchmark.formats), full, default=False)
    _print_row("--permutations", tuple(map(str, benchmark.orders)), full)
    _print_row("--length-norm", lengths, full)
    _print_row("--parser", parsers, full)
    _print_row("--rule", _settings(benchmark.rules), full, default=False)
    _print_row("--option", _settings(benchmark.options), full, default=False)
    _print_row("--backend", backends, full, default=False)
    _print_row("Scores", [measure.name for measure in benchmark.facts.measures], full, default=False)
    echo("[default]. Formats with their meaning, and every name: --full" if not full else "[default]")


def _settings(values: Mapping[str, Iterable[str]]) -> list[str]:
    return [f"{name}={'|'.join(choices)}" for name, choices in values.items()]


def _print_row(label: str, names: Sequence[str], full: bool, *, default: bool = True) -> None:
    """Print names in one line, a default in brackets; without `full` as many as fit."""
    shown = [f"[{name}]" if default and place == 0 else name for place, name in enumerate(names)]
    if not shown:
        return
    text, room = "  ".join(shown), WIDTH - _LABEL
    if not full and len(text) > room:
        n_kept = len(shown)
        while len(text := f"{'  '.join(shown[:n_kept])}  {len(shown) - n_kept} more") > room:
            n_kept -= 1
    echo(f"{label:<{_LABEL}}{text}")


def _print_languages(full: bool) -> None:
    from qabias.benchmarks import loadable_benchmarks

    for name, benchmark in loadable_benchmarks().items():
        if benchmark.family not in ("", name):
            echo(f"{name:<{_LABEL}}{benchmark.title}")


def _print_backends(full: bool) -> None:
    from qabias.scorers.registry import kinds

    for kind in kinds().values():
        echo(f"{kind.name:<{_LABEL}}{kind.summary}")
        if full:
            echo(f"{'':<{_LABEL}}--ask: {', '.join(kind.asks)}")
            for name, shown in kind.known_options.items():
                echo(f"{'':<{_LABEL}}--option {name}: {shown['help']}")


def _print_baselines(full: bool) -> None:
    from qabias.scorers.baseline import KINDS

    for kind in KINDS:
        echo(f"--model baseline:{kind}")


def _print_published(full: bool) -> None:
    from qabias.benchmarks import loadable_benchmarks

    for benchmark in loadable_benchmarks().values():
        for maker, text in benchmark.list_published():
            echo(f"{maker:<{_LABEL}}{text}")
    echo("Next to a run: qabias compare RUN --published [NAME ...], with names of rows or makers.")


_TOPICS = {
    "languages": _print_languages,
    "backends": _print_backends,
    "baselines": _print_baselines,
    "published": _print_published,
}
