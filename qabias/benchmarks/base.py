"""What the engine needs to know of a benchmark.

A benchmark tells the engine where its examples come from, how they are put to a model, how answers are scored, and what
the scores are called and mean. Runs, scorers, reports and the command line know no benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from qabias.benchmarks.caveats import tiles
from qabias.benchmarks.facts import ALL, Facts, Measure, ParallelForms, Scores, Tile
from qabias.errors import QabiasError
from qabias.support.suggest import unknown
from qabias.tables.model import Analysis, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from qabias.benchmarks.multilingual.card import Card
    from qabias.benchmarks.pairs import Form, Pair
    from qabias.benchmarks.prompt_format import PromptFormat
    from qabias.logs import Log
    from qabias.scorers.base import Scorer
    from qabias.scorers.kind import ScorerKind

Rules = Mapping[str, str]
"""Options of a metric that say how answers are counted, by name; those that are left out have their defaults."""

NO_RULES: Rules = MappingProxyType({})

Rescoring: TypeAlias = "Callable[[pa.Table, pa.Table], dict[str, Any]]"
"""Scores of the examples and answers of another benchmark."""

RUN = "run"
"""The column that tells the runs of a pool apart; the scores of a table that has it are means over the runs."""


@dataclass(frozen=True)
class ExternalAnswers:
    """The answers of one model, asked in one way."""

    model: str
    format: str
    norm: str
    source: str
    answers: pa.Table

    @property
    def name(self) -> str:
        """What tells it apart from the others of a file."""
        return "-".join(filter(None, (self.model, self.format)))


@dataclass(frozen=True)
class OtherFigure:
    """A score as the other tool printed it."""

    name: str
    value: float | None
    ours: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Logged:
    """The answers of a log, as a benchmark reads them."""

    external: ExternalAnswers
    config: str
    seed: int = 0
    fixes: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    references: pa.Table | None = None
    figures: tuple[OtherFigure, ...] = ()
    notes: tuple[str, ...] = ()
    failed: str = "count as no answer"


class Scored(NamedTuple):
    """A run: examples, parallel answers and what `Benchmark.score` returned; the format is None if it is not known."""

    table: pa.Table
    answers: pa.Table
    scores: Mapping[str, Any]
    prompt_format: PromptFormat | None = None
    rules: Rules = NO_RULES


class Origin(Protocol):
    """Where the texts of a benchmark come from."""

    @property
    def version(self) -> str:
        """Name, version, fixes and options that are not the default for the signature, e.g. "bundled@1"."""
        ...


class Benchmark(Protocol):
    """A benchmark; subclass it to have the methods below that are not abstract.

    Attributes:
        name: Name on the command line.
        title: Name for people.
        configs: Configurations, the default last.
        default_configs: Defaults of scorers with an interface (see `qabias.scorers.kind.INTERFACES`), by its name.
        sources: Sources of the texts, the default first.
        formats: Prompt formats by name.
        norms: Ways of making an option's log-likelihood a score or a text an answer, the default first.
        interfaces: Ways of asking that it has (see `qabias.scorers.kind.INTERFACES`); scorers that have one fit.
        key: Columns that identify an example.
        answer_columns: Columns of the answers to an example that `score` needs, where others have asked the model.
        optional_columns: Columns that such answers may have beside these.
        stored_columns: Further columns of its stored answers that `score` and `pair_up` read.
        rules: How answers may be counted: the values of every rule by its name, the default first.
        class_labels: Names of the classes of columns that hold their numbers, by column.
        pools: Whether `score` and `analyse` take the answers of several runs at once.
        asks: How it can be asked (`qabias.scorers.kind.ASK_METHODS`): the format of each, "" for the one that fits.
        orders: In how many orders of their answers its questions can be asked, see `qabias.benchmarks.orders`.
        options: Options that choose its texts, each with its values, the default first. `origin` takes each of them as
            a further argument of that name, which may be left out.
        strata: What the strata of `units` are, in the plural.
        facts: What it says of itself as data.
        card: What the card of its dataset says, where its texts are their authors' alone; None where the benchmark has
            a dataset folder with a card.
    """

    name: str
    title: str
    configs: Sequence[str]
    sources: Sequence[str]
    formats: Mapping[str, PromptFormat]
    norms: Sequence[str]
    interfaces: Sequence[str]
    key: Sequence[str]
    answer_columns: Sequence[str]
    optional_columns: Sequence[str] = ()
    stored_columns: Sequence[str] = ()
    rules: Mapping[str, Sequence[str]] = MappingProxyType({})
    class_labels: Mapping[str, Sequence[str]] = MappingProxyType({})
    pools: bool = False
    asks: Mapping[str, str] = MappingProxyType({"answer-logprob": ""})
    orders: Sequence[int] = (1,)
    options: Mapping[str, Sequence[str]] = {}
    default_configs: Mapping[str, str] = MappingProxyType({})
    strata: str = "templates"
    facts: Facts
    card: Card | None = None

    def origin(self, source: str, seed: int, fixes: bool, mirror: str | None) -> Origin:
        """Check the choice of a source; a `QabiasError` says that there is no such one."""
        ...

    def load(self, config: str, origin: Origin) -> pa.Table:
        """The examples of a configuration, in file order; a `QabiasError` without it or its files."""
        ...

    def write_folder(self, output: Path, config: str, origin: Origin) -> dict[str, pa.Table]:
        """Build a dataset folder; returns its tables by configuration."""
        ...

    def units_per_part(self, kind: ScorerKind) -> int:
        """Units of sampling that are asked and written together: about a minute of work on a slow machine."""
        ...

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """For every example the unit that sampling must not split, and the stratum of that unit.

        Both are int64, of shape (n_examples,), with numbers from 0; the examples of a unit are neighbours.
        """
        ...

    def sides(self, table: pa.Table) -> np.ndarray:
        """For every example 1 if its right answer agrees with the stereotype, -1 if it disagrees, else 0.

        Samples have as many units of the one side as of the other in every stratum that has both; shape (n_examples,).
        """
        import numpy as np

        return np.zeros(table.num_rows, dtype=np.int64)

    def cells(self, table: pa.Table) -> np.ndarray:
        """For every example the cell of its unit, by default one for each row; shape (n_examples,).

        A sample takes the units of a cell from all strata before those of another cell.
        """
        import numpy as np

        return np.arange(table.num_rows)

    def default_format(self, scorer: Scorer) -> str:
        """Name of the prompt format that is used with a scorer where none is asked for."""
        ...

    def answer(
        self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str
    ) -> dict[str, pa.Array | pa.ChunkedArray]:
        """Ask the scorer about some examples; the columns that `score` needs, and what else is worth keeping."""
        ...

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """Score the answers to examples, parallel to them.

        A benchmark that `pools` gives examples of several runs, one run after the other and told apart by the column
        `RUN`, the means over the runs. A `QabiasError` says what the metric finds wrong with them.
        """
        ...

    def analyse(self, run: Scored) -> Analysis:
        """The tables of a run, and a selection of its examples."""
        ...

    def groups(self, scores: Mapping[str, Any], measure: Measure | None = None) -> dict[str, Scores]:
        """The scores by group, of all or those with a measure; `ALL` examples last if they have common scores."""
        ...

    def group_path(self, group: str) -> tuple[str, ...] | None:
        """The keys that lead to a group of `groups` in what `score` returns: () for `ALL`, None where nothing does."""
        return () if group == ALL else None

    def pair_up(self, table: pa.Table, first: pa.Table, second: pa.Table, rules: Rules = NO_RULES) -> dict[str, Pair]:
        """The answers of two runs, parallel to the examples, counted by cluster, for every name of `groups`."""
        ...

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """What a report says first: the size of the sample, and what is missing from it; label to text."""
        ...

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """The answers that others collected, as the columns that a run keeps: what is a text is read, by `norm`.

        They are the `answer_columns`, and those of the `optional_columns` that there are, parallel to the examples.
        The format is that in which they were asked, None where it is not known.
        """
        return answers

    def check_config(self, config: str) -> None:
        """Refuse a configuration that there is not, by a `QabiasError`."""
        if config not in self.configs:
            raise unknown("config", config, self.configs, "--config", f"qabias list {self.name} --full")


# What only some benchmarks have. A benchmark has such a capability by having its members.


@runtime_checkable
class LogReader(Protocol):
    """A benchmark that finds its questions in logs of other tools."""

    def logged(self, log: Log, hints: Mapping[str, str], mirror: str | None) -> Logged | None:
        """The answers in a log of another tool; None where it asked something else.

        Args:
            log: The log. What is missing in it must not be guessed.
            hints: What the caller says of what was asked, for logs that do not say it themselves: `benchmark`,
                `config`, `source`, `format` and `norm`.
            mirror: Local mirror of the published files.

        Raises:
            QabiasError: If it asked this benchmark's questions and does not keep what scores need; says what.
        """
        ...


@runtime_checkable
class AuthorsAnswers(Protocol):
    """A benchmark whose authors published answers of the models of their paper."""

    def recognise(self, table: pa.Table) -> list[ExternalAnswers]:
        """The answers in a table of a form that the authors use; none in any other table."""
        ...

    def published(self, model: str, config: str, mirror: str | None) -> list[ExternalAnswers]:
        """The published answers of a model of the paper, if any; a `QabiasError` if a file is not as published."""
        ...


@runtime_checkable
class BalancedSets(Protocol):
    """A benchmark whose scores balance the kinds of questions in sets; parts need the rule `allow_incomplete`."""

    def incomplete_sets(self, table: pa.Table) -> tuple[int, int]:
        """The number of sets of some examples, and of those that lack one kind of question."""
        ...


@runtime_checkable
class InFamily(Protocol):
    """A benchmark of which there are several forms or languages: runs of one model on a family are compared.

    Attributes:
        family: Name of the benchmark whose scores it has, or its own where others have its scores.
        forms: Which of its sources are forms of each other; None where none are.
    """

    family: str
    forms: ParallelForms | None

    def language(self, config: str) -> str:
        """The language of the texts of a configuration, by its English name; several with commas between."""
        ...

    def is_control_of(self, control: str, config: str) -> bool:
        """Whether a configuration is the control set of another: the same questions about people of no group."""
        ...

    def common_templates(self, table: pa.Table) -> list[str] | None:
        """The template of every row, named alike in all languages; None where languages have other questions."""
        ...

    def pair_forms(self, first: Form, second: Form, rules: Rules = NO_RULES) -> dict[str, Pair]:
        """The answers of a run to two forms, counted by stereotypes that both have, for every name of `groups`."""
        ...


@runtime_checkable
class Rescores(Protocol):
    """A benchmark that can give its own scores to runs of other benchmarks, for a comparison.

    Attributes:
        rescored: By the name of the other benchmark the scores of its examples and answers.
    """

    rescored: Mapping[str, Rescoring]


@runtime_checkable
class HasRemarks(Protocol):
    """A benchmark that says more below the scores in the terminal."""

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """Sentences and tables."""
        ...


@runtime_checkable
class ComparesFurther(Protocol):
    """A benchmark with further tables in a comparison."""

    def across(self, names: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> list[Table]:
        """Tables of runs, from their names and scores in the same order."""
        ...


def family_of(benchmark: Benchmark) -> str:
    """The family of a benchmark, "" for none."""
    return benchmark.family if isinstance(benchmark, InFamily) else ""


def language_of(benchmark: Benchmark, config: str) -> str:
    """The language of a configuration, "" for a benchmark of no family."""
    return benchmark.language(config) if isinstance(benchmark, InFamily) else ""


def forms_of(benchmark: Benchmark) -> ParallelForms | None:
    """Which sources of a benchmark are forms of each other; None where none are."""
    return benchmark.forms if isinstance(benchmark, InFamily) else None


def rescored_by(benchmark: Benchmark) -> Mapping[str, Rescoring]:
    """How a benchmark scores the runs of others, by their names."""
    return benchmark.rescored if isinstance(benchmark, Rescores) else {}


def is_grouped(benchmark: Benchmark, config: str) -> bool:
    """Whether a configuration is several, with scores of their own."""
    return benchmark.group_path(ALL) is None and config in (benchmark.configs[-1], *benchmark.default_configs.values())


def whole_config(benchmark: Benchmark, kind: ScorerKind) -> str:
    """The configuration of all examples that a scorer can answer."""
    names = (config for interface, config in benchmark.default_configs.items() if interface in kind.interfaces)
    return next(names, benchmark.configs[-1])


def parts(benchmark: Benchmark, scores: Mapping[str, Any]) -> dict[str, Scores]:
    """The selections with headline scores of their own, by JSON pointer, which ends in the name; "" is the whole."""
    if benchmark.group_path(ALL) is not None:
        return {"": scores}
    groups = benchmark.groups(scores)
    return {"".join(f"/{key}" for key in benchmark.group_path(name) or ()): groups[name] for name in groups}


def short_title(benchmark: Benchmark) -> str:
    """The title of a benchmark without its explanation."""
    return benchmark.title.partition(":")[0]


def headline_tiles(benchmark: Benchmark, scores: Mapping[str, Any], question_only: bool) -> list[Tile]:
    """The headline scores of a report."""
    measures = meaningful(benchmark, question_only, benchmark.facts.tiles)
    shown = parts(benchmark, scores)
    return [
        tile if len(shown) == 1 and not pointer else replace(tile, title=f"{tile.title}, {pointer.rpartition('/')[2]}")
        for pointer, part in shown.items()
        for tile in tiles(measures, part)
    ]


def make_origin(
    benchmark: Benchmark, source: str, seed: int, fixes: bool, mirror: str | None, options: Mapping[str, str]
) -> Origin:
    """Check the choice of a source and of the benchmark's own options; further options are somebody else's.

    Raises:
        QabiasError: If there is no such source, or an option of the benchmark has no such value.
    """
    if "," in source:
        raise QabiasError(f"one source at a time, not {source!r}: only qabias run takes two of them")
    chosen = {name: value for name, value in options.items() if name in benchmark.options}
    for name, value in chosen.items():
        if value not in benchmark.options[name]:
            raise unknown(name, value, benchmark.options[name])
    # Most benchmarks have no options, and an `origin` that takes none.
    make: Callable[..., Origin] = benchmark.origin
    return make(source, seed, fixes, mirror, **chosen)


def meaningful(benchmark: Benchmark, question_only: bool, names: Sequence[str] = ()) -> tuple[Measure, ...]:
    """The named scores, by default those of a comparison, that mean something; without a context only some do."""
    facts = benchmark.facts
    chosen = names or facts.compared
    question_facts = facts.question_only
    if not question_only or question_facts is None:
        return facts.chosen(chosen)
    return tuple(measure for measure in facts.chosen(chosen) if measure.name in question_facts.measures)


def check_rules(known: Mapping[str, Sequence[str]], rules: Rules, name: str) -> dict[str, str]:
    """The rules that are not the default."""
    for rule, value in rules.items():
        if rule not in known:
            raise unknown(f"rule of {name}", rule, known, "--rule", f"qabias list {name}")
        if value not in known[rule]:
            raise unknown(f"value of {rule}", value, known[rule], f"--rule {rule}=")
    return {rule: value for rule, value in rules.items() if value != known[rule][0]}
