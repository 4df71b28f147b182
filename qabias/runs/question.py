"""What a run asks: benchmark, origin, examples, prompt format and signature in one object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from qabias.benchmarks import Benchmark, Origin, PromptFormat, choose_format, load_benchmark, make_origin
from qabias.benchmarks.base import RUN
from qabias.benchmarks.orders import in_orders
from qabias.benchmarks.registry import is_folder
from qabias.benchmarks.scoring import stacked
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError, arg
from qabias.runs.arguments import RunArguments
from qabias.runs.conditions import read_until
from qabias.runs.folder import RunFile, cut_parts, read_keys
from qabias.runs.looks import order_by_look, read_outcome
from qabias.runs.sampling import sample
from qabias.runs.signature import format_name, make_signature, signature_fields
from qabias.scorers.base import GeneratingScorer, Scorer, TextScorer
from qabias.scorers.registry import kind_of
from qabias.support.version import __version__


@dataclass(frozen=True)
class Examples:
    """The examples of a run.

    Attributes:
        table: The examples that scores include.
        sampled: The size of the sample, "" for all examples.
        n_whole: Number of all examples.
        planned: The examples that a run may ask, in the order of its looks; None if `table` has them.
        asked: Which of the planned ones `table` has, as a mask.
    """

    benchmark: Benchmark
    origin: Origin
    table: pa.Table
    sampled: str = ""
    n_whole: int = 0
    planned: pa.Table | None = None
    asked: np.ndarray | None = None


@dataclass(frozen=True)
class Question:
    """What a run asks."""

    examples: Examples
    prompt_format: PromptFormat | None
    signature: str
    units_per_part: int
    model_digest: str = ""

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return self.examples.benchmark

    @property
    def table(self) -> pa.Table:
        """The examples."""
        return self.examples.table

    def format_of(self, part: pa.Table) -> PromptFormat:
        """Prompt format of a part: for a set of prompt variants, the part's own."""
        assert self.prompt_format is not None
        if not self.prompt_format.variants:
            return self.prompt_format
        name = part[RUN][0].as_py()
        return next(variant for variant in self.prompt_format.variants if variant.name == name)

    @cached_property
    def parts(self) -> dict[int, pa.Table]:
        """The examples in parts that are asked and written together, by number."""
        examples, parts, start = self.examples, {}, 0
        planned = self.table if examples.planned is None else examples.planned
        for number, part in enumerate(cut_parts(self.benchmark, planned, self.units_per_part)):
            if examples.asked is None or examples.asked[start]:
                parts[number] = part
            start += part.num_rows
        return parts


def load_examples(arguments: RunArguments) -> Examples:
    """Load the examples that the arguments name, sampled."""
    benchmark = load_benchmark(arguments.benchmark)
    # The bundled examples are one fixed set; the seed then only draws the sample and random answers.
    seed = 0 if arguments.source == BUNDLED else arguments.seed
    origin = make_origin(benchmark, arguments.source, seed, arguments.fixes, arguments.options)
    whole = benchmark.load(arguments.config, origin)
    if arguments.scores:
        measures = [benchmark.facts.measure(name) for name in arguments.scores.split(",")]
        whole = whole.filter(pa.array(benchmark.rows_for(measures, whole)))
    until = read_until(benchmark, arguments.until) if arguments.until else None
    is_finite = until is not None and until.is_finite  # the limit then ends the looks
    table = whole if is_finite else sample(benchmark, whole, arguments.limit, arguments.seed)
    sampled = _sampled(benchmark, table, whole) if table.num_rows < whole.num_rows else ""
    names = prompt_variants(benchmark, arguments)
    if until is not None:
        if names:
            raise QabiasError(
                f"{arg('until')} does not work with the prompt set {arguments.format}.", "Choose one format."
            )
        table = order_by_look(benchmark, table, until, arguments.seed)
        whole = whole.filter(pa.array(benchmark.rows_for(until.measures(benchmark), whole)))
    if names:
        table = stacked(table, names)
    return Examples(benchmark, origin, table, sampled, whole.num_rows)


def _sampled(benchmark: Benchmark, table: pa.Table, whole: pa.Table) -> str:
    """Describe the size of a sample."""
    n, n_all = (len(np.unique(benchmark.units(one)[1])) for one in (table, whole))
    return f"Sample: {table.num_rows:,} of {whole.num_rows:,} examples, from {n:,} of {n_all:,} {benchmark.strata}."


def prompt_variants(benchmark: Benchmark, arguments: RunArguments) -> tuple[str, ...]:
    """Names of the prompt variants, if the format is a set of them."""
    prompt_format = benchmark.formats.get(arguments.format or "")
    return tuple(variant.name for variant in prompt_format.variants) if prompt_format is not None else ()


def load_examples_of(run: RunFile, *, planned: bool = False) -> Examples:
    """Load the examples of an existing run that its scores include, or (`planned`) all that it may ask."""
    if run.arguments.until and " about " not in run.arguments.until:
        raise QabiasError(
            f"{run.folder}: its looks are those of qabias {run.qabias_version}, before verdicts had a subject.",
            f"Run again into another folder with {arg('until')}.",
        )
    examples = load_examples(run.arguments)
    _check_unchanged(run, examples)
    outcome = None if planned else read_outcome(run)
    if outcome is not None:
        return only_asked(examples, outcome.asked(examples.table))
    if not run.arguments.answers:
        return examples
    key = examples.benchmark.key
    keys = read_keys(run, examples.benchmark)
    answered = set(zip(*(keys[name].to_pylist() for name in key), strict=True))
    rows = zip(*(examples.table[name].to_pylist() for name in key), strict=True)
    return replace(examples, table=examples.table.filter(pa.array([row in answered for row in rows])))


def only_asked(examples: Examples, asked: np.ndarray) -> Examples:
    """The planned examples that were asked."""
    if asked.all():
        return examples
    table = examples.table.filter(pa.array(asked))
    sampled = _sampled(examples.benchmark, table, examples.table)
    return replace(examples, table=table, sampled=sampled, planned=examples.table, asked=asked)


def _check_unchanged(run: RunFile, examples: Examples) -> None:
    """Refuse answers to templates whose texts have changed."""
    then, now = signature_fields(run.signature).get("source"), examples.origin.version
    if then == now:
        return
    if is_folder(run.arguments.benchmark):
        raise QabiasError(
            f"{run.folder}: the templates in {run.arguments.benchmark} have changed since this run ({then} then, "
            f"{now} now).",
            "Restore them, or run again into another folder.",
        )
    if run.arguments.source == BUNDLED:
        raise QabiasError(
            f"{run.folder}: its answers are to texts {then}, but qabias {__version__} has {now}.",
            f"Read it with qabias {run.qabias_version}, or run again into another folder.",
        )


def fitting_format(
    benchmark: Benchmark, scorer: Scorer, name: str | None, orders: int = 1, origin: Origin | None = None
) -> PromptFormat:
    """The prompt format for a scorer; sets the scorer's answer length."""
    formats = benchmark.formats_from(origin) if origin else benchmark.formats
    prompt_format = choose_format(formats, name or benchmark.default_format(scorer))
    prompt_format = in_orders(benchmark, prompt_format, orders)
    if prompt_format.written and not isinstance(scorer, TextScorer):
        raise QabiasError(
            f"{benchmark.name}: the format {prompt_format.name} asks for a written answer.",
            f"Use {arg('ask')} letter, cot, fill-blank or open-ended, or choose another format.",
        )
    if isinstance(scorer, GeneratingScorer):
        scorer.limit_new_tokens(prompt_format.new_tokens)
    return prompt_format


def make_question(examples: Examples, arguments: RunArguments, scorer: Scorer) -> Question:
    """Prepare the question to a scorer."""
    benchmark = examples.benchmark
    prompt_format = fitting_format(benchmark, scorer, arguments.format, arguments.permutations, examples.origin)
    signature = make_signature(arguments, examples.origin, prompt_format, scorer)
    return Question(examples, prompt_format, signature, benchmark.units_per_part(kind_of(scorer)))


def read_question(run: RunFile, *, planned: bool = False) -> Question:
    """Read the question of an existing run: what its scores include, or (`planned`) all that it may ask."""
    examples = load_examples_of(run, planned=planned)
    prompt_format = examples.benchmark.formats.get(format_name(run.signature))
    return Question(examples, prompt_format, run.signature, run.units_per_part)
