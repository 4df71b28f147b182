"""The arguments of a run: one field each, which the command line, Python and the callback read."""

# ruff: noqa: RUF009 - `_argument` makes a field

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass, field, fields
from functools import wraps
from inspect import signature
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

from qabias.building.sources import using_mirror
from qabias.errors import QabiasError, arg
from qabias.support.suggest import shortened

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from qabias.api.given_models import Model
    from qabias.runs.arguments import Machine, RunArguments


P = ParamSpec("P")
R = TypeVar("R")
OptionValue: TypeAlias = "str | int | float | bool | list[object] | dict[str, object]"


def option_texts(option: Mapping[str, OptionValue] | None) -> dict[str, str]:
    """Options as command-line texts: texts unchanged, all else as JSON."""
    texts = {}
    for name, value in (option or {}).items():
        try:
            texts[name] = value if isinstance(value, str) else json.dumps(value)
        except TypeError as error:
            raise QabiasError(
                f"option {name!r} is {value!r}.", "Give a text, a number, True, False, or a list of these."
            ) from error
    return texts


def takes_mirror(function: Callable[P, R]) -> Callable[P, R]:
    """Let the argument `mirror` of a function hold within its call."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        with using_mirror(cast("str | Path | None", named.get("mirror"))):
            return function(*args, **named)

    return call


def parse_options(texts: Iterable[str], argument: str = "option", example: str = "span=released") -> dict[str, str]:
    """Options of a backend or a benchmark from `--option NAME=VALUE`."""
    flag, options = arg(argument), {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise QabiasError(f"{flag} {shortened(text)} is not NAME=VALUE.", f"Write {flag} {example}.")
        options[name] = value
    return options


def server_options(
    backend: str | None, base_url: str | None, max_connections: int | None, options: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """The backend and its options if a server has its own argument."""
    own = {"base_url": base_url, "max_connections": max_connections}
    chosen = {name: str(value) for name, value in own.items() if value is not None}
    for name in chosen:
        if name in options:
            raise QabiasError(f"{name} is an option and an argument.", f"Remove the option {name}.")
    return backend or ("server" if base_url is not None else None), {**options, **chosen}


def parse_shard(text: str) -> tuple[int, int]:
    """A shard from "i/n"."""
    index, slash, count = text.partition("/")
    if not (slash and text.isascii() and index.isdecimal() and count.isdecimal() and int(count) > 0):
        raise QabiasError(
            f"{arg('shard')} {shortened(text)} is not INDEX/COUNT.", f"Write {arg('shard')} 0/4 for the first of four."
        )
    return int(index), int(count)


ADVANCED = "Advanced"


def _argument(
    default: Any, panel: str, text: str, metavar: str | None = None, *, python: str = "", typer: Any = None
) -> Any:
    """An argument: its default, panel and text in the help, text for Python, and type on the command line."""
    shown = {"panel": panel, "help": text, "metavar": metavar, "typer": typer, "python": python}
    return field(default=default, metadata=shown)


@dataclass(frozen=True)
class Arguments:
    """What a user may set about a run. Arguments without a panel are Python's only."""

    benchmark: str = field(metadata={"help": "Benchmark or folder of templates.", "panel": "Arguments"})
    _: KW_ONLY
    model: "Model" = _argument(
        *("smollm2", "Main", "Hub id, folder, GGUF file, smollm2 or baseline:KIND.", "NAME"),
        python="Hub id, folder, GGUF file, smollm2 or baseline:KIND; a model of `transformers` in memory, with its "
        "`tokenizer`; a pipeline; a function; or an OpenAI-compatible client.",
        typer=str,
    )
    tokenizer: "PreTrainedTokenizerBase | None" = _argument(None, "", "Tokenizer of a model in memory.")
    name: str | None = _argument(None, "", "Name of the model in results. Required for functions and clients.")
    base_url: str | None = _argument(None, "Main", "Query a server or service at this URL.", "URL")
    config: str | None = _argument(None, "Main", "Part of the benchmark. [all]", "NAME")
    limit: int | None = _argument(None, "Main", "Maximum number of examples, in proportion to the templates.", "N")
    scores: Sequence[str] = _argument(
        *((), ADVANCED, "Ask only what this score needs, e.g. bias_ambig. Repeatable.", "NAME"), typer=list[str]
    )
    until: Sequence[str] = _argument(
        *((), "Main", "Stop as soon as this is decided, e.g. 'bias_ambig<0.1'. Repeatable.", "CONDITION"),
        python='Conditions such as "bias_ambig<0.1". The run stops when all are decided.',
        typer=list[str],
    )
    by: str | None = _argument(None, ADVANCED, "With --until: decide every group, e.g. category.", "NAME")
    subject: str | None = _argument(
        None, ADVANCED, "With --until: decide about these questions, or about the templates behind them.", "NAME"
    )
    whole: bool = _argument(False, ADVANCED, "With --until: continue to the full benchmark.")
    output: str | Path | None = _argument(
        *(None, "Main", "Run folder. [runs/NAME]", "FOLDER"),
        python="Run folder; an interrupted run resumes there. [a temporary folder, deleted with the result]",
        typer=Path,
    )
    ask: str | None = _argument(
        None,
        "Prompt",
        "answer-logprob, letter-logprob, letter, cot, fill-blank, open-ended, json or forced-choice.",
        "METHOD",
    )
    format: str | None = _argument(None, "Prompt", "Prompt format. [set by --ask]", "NAME")
    permutations: int = _argument(1, "Prompt", "Answer orders per question: 1, 3 (cyclic) or 6 (all).", "N")
    device: str = _argument("auto", "Hardware", "auto, cpu, cuda, cuda:1, mps, ...", "NAME")
    dtype: str = _argument("auto", "Hardware", "auto, float32, bfloat16 or float16.", "NAME")
    source: str | None = _argument(None, ADVANCED, "Source of the texts, e.g. bundled or official.", "NAME")
    fixes: bool = _argument(False, ADVANCED, "Correct known defects of published texts.")
    seed: int = _argument(0, ADVANCED, "Seed of every random draw.", "N")
    revision: str | None = _argument(None, ADVANCED, "Branch, tag or commit of a Hub model.", "NAME")
    backend: str | None = _argument(None, ADVANCED, "How the model is queried. [inferred from the model]", "NAME")
    length_norm: str = _argument("none", ADVANCED, "Divide log-likelihoods by length: none, token or byte.", "NAME")
    parser: str = _argument("default", ADVANCED, "How written answers are read: default or released.", "NAME")
    rules: Mapping[str, str] | None = _argument(
        *(None, ADVANCED, "Scoring rule, e.g. delta=released. Repeatable.", "NAME=VALUE"),
        python='Scoring rules by name, such as {"delta": "released"}.',
        typer=list[str],
    )
    option: "Mapping[str, OptionValue] | None" = _argument(
        *(None, ADVANCED, "Option of the backend or benchmark. Repeatable.", "NAME=VALUE"),
        python="Options of the backend or benchmark by name.",
        typer=list[str],
    )
    batch_tokens: int | None = _argument(None, ADVANCED, "Tokens per batch. [set by the device]", "N")
    max_connections: int | None = _argument(None, ADVANCED, "Most requests to a server at once. [8]", "N")
    shard: str = _argument("0/1", ADVANCED, "Compute one shard, as INDEX/COUNT from 0: 0/8.", "INDEX/COUNT")
    mirror: str | Path | None = _argument(None, ADVANCED, "Local mirror of the published files.", "FOLDER", typer=str)
    progress: bool = _argument(True, "", "Show a progress bar.")


FIELDS: Mapping[str, Field[Any]] = {each.name: each for each in fields(Arguments)}


def run_arguments(asked: Arguments) -> "tuple[RunArguments, Machine]":
    """What a run measures, and on which machine."""
    from qabias.benchmarks import load_benchmark
    from qabias.runs.arguments import Machine, RunArguments
    from qabias.runs.conditions import canonical

    if not asked.until and (asked.by or asked.subject or asked.whole):
        lonely = arg("by" if asked.by else "subject" if asked.subject else "whole")
        raise QabiasError(f"{lonely} needs {arg('until')}.", f"Add {arg('until')} 'bias_ambig<0.1'.")
    backend, options = server_options(asked.backend, asked.base_url, asked.max_connections, option_texts(asked.option))
    same = {name: getattr(asked, name) for name in FIELDS.keys() & {each.name for each in fields(RunArguments)}}
    texts = {"config": asked.config or "", "source": asked.source or "", "rules": dict(asked.rules or {})}
    texts["until"] = ""
    if asked.until:
        texts["until"] = canonical(load_benchmark(asked.benchmark), asked.until, asked.by, asked.subject)
    texts["scores"] = ",".join(sorted(asked.scores))
    arguments = RunArguments(**{**same, **texts, "backend": backend, "options": options})
    shard = parse_shard(asked.shard)
    return arguments, Machine(asked.device, asked.batch_tokens, shard, asked.progress)


def takes_arguments(_: Callable[P, Arguments]) -> Callable[[Callable[[Arguments], R]], Callable[P, R]]:
    """Give a function the arguments of a run as its own, with their types and texts."""

    def decorate(function: Callable[[Arguments], R]) -> Callable[P, R]:
        own = signature(Arguments).replace(return_annotation=signature(function).return_annotation)

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            try:
                asked = Arguments(**own.bind(*args, **named).arguments)
            except TypeError as error:
                raise TypeError(f"qabias.{function.__name__}() {error}") from None
            with using_mirror(asked.mirror):
                return function(asked)

        start, end, rest = (function.__doc__ or "").partition("    Returns:")
        texts = {name: each.metadata.get("python") or each.metadata["help"] for name, each in FIELDS.items()}
        lines = (f"{' ' * 8}{name}: {text.replace('--', '')}" for name, text in texts.items())
        described = "\n".join(fill(line, 112, subsequent_indent=" " * 12) for line in lines)
        call.__doc__ = f"{start}    Args:\n{described}\n\n{end}{rest}"
        call.__signature__ = own  # type: ignore[attr-defined]  # `help` reads it
        return call

    return decorate
