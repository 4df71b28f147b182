"""What a run measures, and on which machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from qabias.answers.likelihoods import NORMS
from qabias.answers.parsing import PARSE_RULES
from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.base import Rules, whole_config
from qabias.benchmarks.orders import check_orders
from qabias.errors import QabiasError, arg
from qabias.runs.conditions import read_until
from qabias.scorers.kind import ASK_METHODS, FORCED_CHOICE, ScorerKind
from qabias.scorers.registry import is_deterministic, kinds, load_kind, scorer_of, scorers_for
from qabias.scores.judge import QUESTIONS, TEMPLATES
from qabias.support.suggest import choose, closest, unknown


@dataclass(frozen=True)
class Machine:
    """Device and speed of a run. Apart from float rounding, answers do not depend on it.

    Attributes:
        device: auto, cpu, cuda, ...
        batch_tokens: Tokens per batch; None for the scorer's default.
        shard: (i, n): compute only every n-th part, from part i on.
        shows_progress: Whether to show a progress bar.
    """

    device: str = "auto"
    batch_tokens: int | None = None
    shard: tuple[int, int] = (0, 1)
    shows_progress: bool = True


DEFAULT_PARSER = "default"

DEFAULT_MACHINE = Machine()


@dataclass(frozen=True)
class RunArguments:
    """What determines the answers of a run.

    Fields not described here are as in `qabias.api.arguments.Arguments`.

    Attributes:
        model: `smollm2`, `baseline:KIND`, a folder or a Hub id; of a model that was passed, its name.
        format: Prompt format; None for the one that fits benchmark and scorer.
        backend: Name of the scorer that queries the model; None for the model's default.
        options: Options of the scorer and of the benchmark, by name.
        answers: File and number of external answers, such as "answers.csv@1f0c2d3e 400 of 3680"; "" for a model.
        asked_by: Other tool that queried the model, and its task, such as "inspect_ai inspect_evals/bbq"; else "".
        rules: Scoring rules that differ from the benchmark's defaults.
        until: Conditions that may stop the run early, see `qabias.runs.looks.canonical`; "" for a run without looks.
        scores: The only scores whose questions are asked, joined by commas; "" for all.
    """

    benchmark: str
    model: str = "smollm2"
    config: str = "all"
    source: str = "bundled"
    fixes: bool = False
    format: str | None = None
    backend: str | None = None
    length_norm: str = NORMS[0]
    parser: str = DEFAULT_PARSER
    limit: int | None = None
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    dtype: str = "auto"
    rules: Mapping[str, str] = field(default_factory=dict)
    answers: str = ""
    permutations: int = 1
    asked_by: str = ""
    until: str = ""
    scores: str = ""

    @property
    def norm(self) -> str:
        """How outputs become answers, in the signature: the parser if one is chosen, else the length normalization."""
        return self.length_norm if self.parser == DEFAULT_PARSER else self.parser

    @property
    def benchmark_name(self) -> str:
        """Name of the benchmark, also if `benchmark` is a folder of templates."""
        return load_benchmark(self.benchmark).name

    @property
    def scorer_options(self) -> dict[str, str]:
        """The options without the benchmark's own."""
        own = load_benchmark(self.benchmark).options
        return {name: value for name, value in self.options.items() if name not in own}

    def resolve(
        self, machine: Machine = DEFAULT_MACHINE, *, ask: str | None = None, handed_over: object = None
    ) -> RunArguments:
        """Fill in defaults and check everything before anything heavy is loaded."""
        benchmark = load_benchmark(self.benchmark)
        if ask == FORCED_CHOICE:
            if not benchmark.forced_choice:
                raise QabiasError(f"{arg('ask')} {ask} does not work with {benchmark.name}.", f"Remove {arg('ask')}.")
            return replace(self, benchmark=benchmark.forced_choice).resolve(machine, handed_over=handed_over)
        config = ",".join(name.strip() for name in self.config.split(","))
        arguments = replace(self, source=self.source or benchmark.sources[0], config=config)
        if ask is not None or not self.config:
            kind = load_kind(scorer_of(self.backend, self.model, self.revision, handed_over))
            if ask is not None:
                arguments = _ask_by(benchmark, arguments, kind, ask)
            arguments = replace(arguments, config=arguments.config or whole_config(benchmark, kind))
        if arguments.until and not (until := read_until(benchmark, arguments.until)).subject:
            name = scorer_of(self.backend, self.model, self.revision, handed_over)
            subject = QUESTIONS if is_deterministic(name, arguments.scorer_options) else TEMPLATES
            arguments = replace(arguments, until=str(until._replace(subject=subject)))
        return check_arguments(benchmark, arguments, machine)


def _ask_by(benchmark: Benchmark, arguments: RunArguments, kind: ScorerKind, ask: str) -> RunArguments:
    """Apply the format and the options that an `--ask` method sets."""
    if ask not in ASK_METHODS:
        raise unknown("method", ask, (*ASK_METHODS, FORCED_CHOICE), arg("ask"))
    check_scorer(benchmark, kind.name)
    for name, asks in ((benchmark.name, benchmark.asks), (f"the backend {kind.name}", kind.asks)):
        if ask not in asks:
            both = [other for other in benchmark.asks if other in kind.asks]
            offer = f"{arg('ask')} {', '.join(both)}" if both else f"another {arg('backend')}"
            raise QabiasError(f"{arg('ask')} {ask} does not work with {name}.", f"Use {offer}.")
    prompt_format = benchmark.formats.get(arguments.format or "")
    if prompt_format is not None and prompt_format.asks and ask not in prompt_format.asks:
        made = [other.name for other in benchmark.formats.values() if ask in other.asks]
        raise QabiasError(
            f"{arg('ask')} {ask} and {arg('format')} {arguments.format} exclude each other: the format is for "
            f"{', '.join(prompt_format.asks)}.",
            choose(made, (), arg("format")) if made else f"Remove {arg('format')}.",
        )
    options = {**kind.asks[ask], **arguments.options}
    mode = kind.asks[ask].get("mode", kind.default_mode)
    chosen = options.get("mode", mode)
    if kind.variants.get(chosen, chosen) != mode:
        raise QabiasError(
            f"{arg('ask')} {ask} contradicts {arg('option')} mode={options['mode']}.", "Remove one of the two."
        )
    if chosen == mode == kind.default_mode:
        options.pop("mode", None)  # one run has one name
    return replace(
        arguments,
        backend=arguments.backend and kind.name,
        format=arguments.format or benchmark.asks[ask] or None,
        options=options,
    )


def check_arguments(benchmark: Benchmark, arguments: RunArguments, machine: Machine = DEFAULT_MACHINE) -> RunArguments:
    """Refuse invalid arguments before anything heavy is loaded. In the result, `rules` omits defaults."""
    check_orders(benchmark, arguments.permutations)
    _check_names(benchmark, arguments)
    sources = benchmark.formats[arguments.format].sources if arguments.format else ()
    if sources and arguments.source not in sources:
        raise QabiasError(
            f"{benchmark.name}: the texts of the source {arguments.source} lack fields of the format "
            f"{arguments.format}.",
            f"Use {arg('source')} {' or '.join(sources)}, or another format.",
        )
    if arguments.parser != DEFAULT_PARSER and arguments.length_norm != NORMS[0]:
        raise QabiasError(
            f"{arg('length_norm')} {arguments.length_norm} divides likelihoods and {arg('parser')} {arguments.parser} "
            "reads texts.",
            "Remove one of the two.",
        )
    for name in filter(None, arguments.scores.split(",")):
        if name not in (known := [measure.name for measure in benchmark.facts.measures]):
            raise unknown("score", name, known, arg("scores"))
    if arguments.scores and arguments.until:
        raise QabiasError(
            f"{arg('scores')} and {arg('until')} exclude each other: conditions name their scores.",
            f"Remove {arg('scores')}.",
        )
    if arguments.limit is not None:
        check_whole(arg("limit"), arguments.limit, 1)
    check_whole(arg("seed"), arguments.seed, 0)
    if machine.batch_tokens is not None:
        check_whole(arg("batch_tokens"), machine.batch_tokens, 1)
    shard, n_shards = machine.shard
    if not 0 <= shard < n_shards:
        raise QabiasError(f"{arg('shard')} {shard}/{n_shards} does not exist.", f"Count shards from 0/{n_shards} on.")
    return replace(arguments, rules=check_rules(benchmark.rules, arguments.rules, benchmark.name))


def _check_names(benchmark: Benchmark, arguments: RunArguments) -> None:
    """Refuse an unknown format, normalization or parser, and an option that is nearly the benchmark's own."""
    parsers = [name for name in benchmark.norms if name in PARSE_RULES]
    lengths = [name for name in benchmark.norms if name not in PARSE_RULES]
    # Any other unknown option is refused by the scorer, which lists its own.
    near = [
        name
        for name in arguments.scorer_options
        if closest(name, benchmark.options) and not any(name in kind.known_options for kind in kinds().values())
    ]
    for what, name, known, flag in (
        ("format", arguments.format, benchmark.formats, arg("format")),
        ("length normalization", arguments.length_norm, lengths, arg("length_norm")),
        ("parser", arguments.parser, (DEFAULT_PARSER, *parsers), arg("parser")),
        *((f"option of {benchmark.name}", name, benchmark.options, arg("option")) for name in near),
    ):
        if name is not None and name not in known:
            raise unknown(what, name, known, flag)


def check_rules(known: Mapping[str, Sequence[str]], rules: Rules, name: str) -> dict[str, str]:
    """The rules that are not the default."""
    for rule, value in rules.items():
        if rule not in known:
            close = [f"{other}=VALUE" for other in closest(rule, known)]
            fix = choose([f"{other}=VALUE" for other in known], close, arg("rules"), f"qabias list {name}")
            raise QabiasError(unknown(f"rule of {name}", rule, known).args[0], fix)
        if value not in known[rule]:
            raise unknown(f"value of {rule}", value, known[rule], f"{arg('rules')} {rule}=")
    return {rule: value for rule, value in rules.items() if value != known[rule][0]}


def signed_norm(parser: str) -> str:
    """The field `norm` of a signature: how answers are read, unless by the default parser."""
    return NORMS[0] if parser == DEFAULT_PARSER else parser


def norm_arguments(norm: str) -> dict[str, Any]:
    """Arguments of a run from the field `norm` of its signature."""
    if norm in PARSE_RULES:
        return {"length_norm": NORMS[0], "parser": norm}
    return {"length_norm": norm, "parser": DEFAULT_PARSER}


def check_own_options(benchmark: Benchmark, options: Collection[str]) -> None:
    """Refuse options that the benchmark does not have; for answers without a model."""
    for name in options:
        if name not in benchmark.options:
            raise unknown(f"option of {benchmark.name}", name, benchmark.options, arg("option"))


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse a value that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise QabiasError(f"{name} is {value!r}.", f"Give a whole number of at least {least}.")


def check_scorer(benchmark: Benchmark, scorer: str) -> None:
    """Refuse a scorer that cannot answer a benchmark."""
    known = scorers_for(benchmark.interfaces)
    if scorer not in known:
        raise QabiasError(
            f"{benchmark.name} does not work with the backend {scorer}.",
            choose(known, (), arg("backend"), f"qabias list {benchmark.name}"),
        )
