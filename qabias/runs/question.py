"""What a run asks: benchmark, origin, examples, prompt format and signature in one object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from qabias.benchmarks import Benchmark, Origin, PromptFormat, choose_format, load_benchmark, make_origin
from qabias.benchmarks.base import LOOK, RUN
from qabias.benchmarks.orders import in_orders
from qabias.benchmarks.registry import is_folder
from qabias.benchmarks.scoring import stacked
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError, arg
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import RunFile, cut_parts, read_keys
from qabias.runs.looks import MOST_EARLY, ends_of, read_outcome
from qabias.runs.signature import format_name, make_signature, signature_fields
from qabias.scorers.base import GeneratingScorer, Scorer, TextScorer
from qabias.scorers.registry import kind_of
from qabias.support.version import __version__


@dataclass(frozen=True)
class Examples:
    """The examples of a run, the size of the sample ("" for all examples), and the number of all examples."""

    benchmark: Benchmark
    origin: Origin
    table: pa.Table
    sampled: str = ""
    n_whole: int = 0


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
    def parts(self) -> list[pa.Table]:
        """The examples in parts that are asked and written together."""
        return list(cut_parts(self.benchmark, self.table, self.units_per_part))

    @cached_property
    def part_ends(self) -> list[int]:
        """Number of parts at the end of each look; of all parts, if the run has no looks."""
        if LOOK not in self.table.column_names:
            return [len(self.parts)]
        looks = [part[LOOK][0].as_py() for part in self.parts]
        return [place for place in range(1, len(looks) + 1) if looks[place - 1 : place] != looks[place : place + 1]]


def load_examples(arguments: RunArguments) -> Examples:
    """Load the examples that the arguments name, sampled."""
    benchmark = load_benchmark(arguments.benchmark)
    # The bundled examples are one fixed set; the seed then only draws the sample and random answers.
    seed = 0 if arguments.source == BUNDLED else arguments.seed
    origin = make_origin(benchmark, arguments.source, seed, arguments.fixes, arguments.options)
    whole = benchmark.load(arguments.config, origin)
    table = sample(benchmark, whole, arguments.limit, arguments.seed)
    sampled = _sampled(benchmark, table, whole) if table.num_rows < whole.num_rows else ""
    names = prompt_variants(benchmark, arguments)
    if arguments.until:
        if names:
            raise QabiasError(
                f"{arg('until')} does not work with the prompt set {arguments.format}.", "Choose one format."
            )
        table = order_by_look(benchmark, table, arguments.seed)
    if names:
        table = stacked(table, names)
    return Examples(benchmark, origin, table, sampled, whole.num_rows)


def _sampled(benchmark: Benchmark, table: pa.Table, whole: pa.Table) -> str:
    """Describe the size of a sample."""
    n, n_all = (len(np.unique(benchmark.units(one)[1])) for one in (table, whole))
    return f"Sample: {table.num_rows:,} of {whole.num_rows:,} examples, from {n:,} of {n_all:,} {benchmark.strata}."


def sample(benchmark: Benchmark, table: pa.Table, limit: int | None, seed: int) -> pa.Table:
    """Draw at most `limit` examples (at least one block), each with the same probability, see `draw`."""
    if limit is None or limit >= table.num_rows:
        return table
    turn = draw(benchmark, table, seed)
    n_blocks = max(1, int(np.searchsorted(np.cumsum(np.bincount(turn)), limit, side="right")))
    return table.filter(pa.array(turn < n_blocks))


def order_by_look(benchmark: Benchmark, table: pa.Table, seed: int) -> pa.Table:
    """The examples in the order of the looks, with the column `LOOK`: as many blocks as strata, 2, 4, ... times, all.

    Blocks and their order are those of `sample`, so that every look is a sample of all examples.
    """
    turn, n_strata = draw(benchmark, table, seed), int(benchmark.units(table)[1].max()) + 1
    ends = [end for end in n_strata << np.arange(32) if (turn < end).mean() <= MOST_EARLY]
    look = np.searchsorted(np.array(ends), turn, side="right") + 1
    order = np.argsort(look, kind="stable")
    return table.take(pa.array(order)).append_column(LOOK, pa.array(look[order].astype(np.int16)))


def draw(benchmark: Benchmark, table: pa.Table, seed: int, start: int | None = None) -> np.ndarray:
    """The place of every example's block in the seeded order of the blocks; shape (n_examples,), from 0.

    The first blocks of this order, however many, are a sample in which all blocks are equally likely. Their shares of
    strata are those of all blocks, so their scores estimate the scores of all examples. The order is that of a van der
    Corput sequence on the blocks in the order of strata, from a random `start` (systematic sampling, Cochran 1977).
    """
    block = blocks(benchmark, table, seed)
    n, rng = int(block.max()) + 1, np.random.default_rng(seed)
    if type(benchmark).cells is not Benchmark.cells:
        # Cells that cross strata: a cell of all strata, which are of one size, before the next.
        strata = benchmark.units(table)[1][np.unique(block, return_index=True)[1]]
        rank = np.arange(n) - np.searchsorted(strata, strata)
        keys = rank + rng.random(int(strata.max()) + 1)[strata]
    else:
        n_bits = n.bit_length()
        slots = ((np.arange(n) + (rng.integers(n) if start is None else start)) % n << n_bits) // n
        keys = sum(((slots >> bit) & 1) / 2.0 ** (bit + 1) for bit in range(n_bits))
    return np.argsort(np.argsort(keys))[block]


def blocks(benchmark: Benchmark, table: pa.Table, seed: int) -> np.ndarray:
    """The block of every example, numbered along the strata and in random order within one; shape (n_examples,).

    A block is a unit. If a stratum has units of both sides (see `Benchmark.sides`), its blocks are pairs of them, and
    units without a partner.
    """
    unit_of, stratum_of = benchmark.units(table)
    first = np.unique(unit_of, return_index=True)[1]
    strata, sides = stratum_of[first], np.sign(np.bincount(unit_of, benchmark.sides(table))).astype(np.int8)
    n_pairs = np.minimum(*(np.bincount(strata, sides == side, int(strata.max()) + 1) for side in (1, -1)))[strata]
    queue = 3 * strata + np.where(n_pairs > 0, sides, 0)
    cells = np.unique(benchmark.cells(table)[first], return_inverse=True)[1]
    shuffled = np.lexsort((np.random.default_rng(seed).random(int(cells.max()) + 1)[cells], queue))
    starts = np.flatnonzero(np.diff(queue[shuffled], prepend=-2))
    rank = np.empty(len(first), dtype=np.int64)
    rank[shuffled] = np.arange(len(first)) - np.repeat(starts, np.diff(np.append(starts, len(first))))
    del cells, shuffled, queue  # the largest set has millions of units
    # Both units of a pair have one name.
    kind = np.where((sides != 0) & (rank < n_pairs), 0, np.where(n_pairs > 0, 2 + sides, 0))
    names = (strata * (int(rank.max()) + 1) + rank) * 4 + kind
    return np.unique(names, return_inverse=True)[1][unit_of]


def prompt_variants(benchmark: Benchmark, arguments: RunArguments) -> tuple[str, ...]:
    """Names of the prompt variants, if the format is a set of them."""
    prompt_format = benchmark.formats.get(arguments.format or "")
    return tuple(variant.name for variant in prompt_format.variants) if prompt_format is not None else ()


def load_examples_of(run: RunFile, *, planned: bool = False) -> Examples:
    """Load the examples of an existing run that its scores include, or (`planned`) all that it may ask."""
    examples = load_examples(run.arguments)
    _check_unchanged(run, examples)
    outcome = None if planned else read_outcome(run)
    if outcome is not None:
        return until_look(examples, outcome.look)
    if not run.arguments.answers:
        return examples
    key = examples.benchmark.key
    keys = read_keys(run, examples.benchmark)
    answered = set(zip(*(keys[name].to_pylist() for name in key), strict=True))
    rows = zip(*(examples.table[name].to_pylist() for name in key), strict=True)
    return replace(examples, table=examples.table.filter(pa.array([row in answered for row in rows])))


def until_look(examples: Examples, look: int) -> Examples:
    """The examples until the end of a look."""
    benchmark, whole = examples.benchmark, examples.table
    table = whole.slice(0, ends_of(whole)[look - 1])
    sampled = _sampled(benchmark, table, whole) if table.num_rows < whole.num_rows else examples.sampled
    return replace(examples, table=table, sampled=sampled)


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
