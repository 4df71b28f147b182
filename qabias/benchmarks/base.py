"""The interface between the engine and a benchmark: examples, prompts, scores and their meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from qabias.errors import QabiasError, arg
from qabias.scores.facts import ALL, Facts, Measure, ParallelTexts, Scores
from qabias.support.suggest import unknown
from qabias.tables.model import Analysis, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from qabias.benchmarks.multilingual.folder import Card
    from qabias.benchmarks.pairs import AnsweredTable, Pair
    from qabias.benchmarks.prompt_format import PromptFormat
    from qabias.logs import Log
    from qabias.scorers.base import Scorer
    from qabias.scorers.kind import ScorerKind

Rules = Mapping[str, str]
"""Scoring rules by name: how answers are counted. Missing ones have their defaults."""

NO_RULES: Rules = MappingProxyType({})

Rescoring: TypeAlias = "Callable[[pa.Table, pa.Table], dict[str, Any]]"
"""Scores of the examples and answers of another benchmark."""

RUN = "run"
"""The column with the run of a row. The scores of a table that has it are means over the runs."""

LOOK, LOOK_GROUP, LOOK_SET = LOOK_COLUMNS = ("look", "look_group", "look_set")
"""Columns of a run that may stop early: the look that first asks an example, within which group, in which set."""


@dataclass(frozen=True)
class ReportedScore:
    """A score as another tool printed it."""

    name: str
    value: float | None
    ours: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class External:
    """Answers of one model that others collected, and what their file records about the questions.

    Attributes:
        answers: Columns of answers with the key of the examples.
        where: The file, in messages and in the signature.
        references: Columns that must equal the examples.
        figures: Scores that another tool printed.
        notes: Sentences about the answers.
        failed: What happens to failed samples.
        log: The log, if the answers come from one.
    """

    answers: pa.Table
    benchmark: str = ""
    model: str = ""
    config: str = ""
    source: str = ""
    format: str = ""
    norm: str = "none"
    seed: int = 0
    fixes: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    references: pa.Table | None = None
    figures: tuple[ReportedScore, ...] = ()
    notes: tuple[str, ...] = ()
    failed: str = "count as no answer"
    log: Log | None = None

    @property
    def name(self) -> str:
        """A name that is unique within a file."""
        return "-".join(filter(None, (self.model, self.format)))


LogReader: TypeAlias = "Callable[[Log, Benchmark, Mapping[str, Any]], External | None]"
"""Reads a log that asked a benchmark's questions, with the caller's arguments; None for other logs."""


class Scored(NamedTuple):
    """A run: examples, parallel answers and what `Benchmark.score` returned. An unknown format is None."""

    table: pa.Table
    answers: pa.Table
    scores: Mapping[str, Any]
    prompt_format: PromptFormat | None = None
    rules: Rules = NO_RULES


class Origin(Protocol):
    """The origin of a benchmark's texts."""

    @property
    def version(self) -> str:
        """Name, version, fixes and changed options for the signature, e.g. "bundled@1"."""
        ...


class Benchmark(Protocol):
    """A benchmark. Subclasses inherit the methods below that are not abstract.

    Attributes:
        configs: Configs, the default last.
        default_configs: Default config per interface of a scorer (see `qabias.scorers.kind.INTERFACES`).
        sources: Sources of the texts, the default first.
        formats: Prompt formats by name.
        norms: Length normalizations of log-likelihoods and parsers of texts, the default first.
        interfaces: Interfaces through which a scorer can be asked. A scorer fits if it has one of them.
        key: Columns that identify an example.
        answer_columns: Columns that `score` needs of answers that others collected.
        optional_columns: Further columns that such answers may have.
        stored_columns: Further columns of stored answers that `score` and `pair_up` read.
        rules: Values of every scoring rule by its name, the default first.
        class_labels: Names of the classes of columns that hold their numbers.
        breakdowns: Breakdowns of the result whose groups are compared; () for all.
        averages: Whether `score` and `analyse` accept the answers of several runs.
        asks: The format of each ask method (`qabias.scorers.kind.ASK_METHODS`), "" for the default format.
        forced_choice: The benchmark that `--ask forced-choice` selects: its questions without a way to abstain, or "".
        orders: Possible numbers of answer orders, see `qabias.benchmarks.orders`.
        options: Options that choose the texts, with their values, the default first; keywords of `origin`.
        strata: Plural noun for the strata of `units`.
        rescored: Scores of the runs of other benchmarks, for a comparison, by their names.
        log_readers: Recognize its questions in logs of other tools.
        card: The card of a dataset that only its authors publish. None for a benchmark with a dataset folder.
        family: The benchmark whose scores it has, in another form or language. Runs of one family are compared.
        forms: Its sources that test the same stereotypes, if any.
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
    breakdowns: Sequence[str] = ()
    averages: bool = False
    asks: Mapping[str, str] = MappingProxyType({"answer-logprob": ""})
    forced_choice: str = ""
    orders: Sequence[int] = (1,)
    options: Mapping[str, Sequence[str]] = {}
    default_configs: Mapping[str, str] = MappingProxyType({})
    strata: str = "templates"
    log_readers: Sequence[LogReader] = ()
    rescored: Mapping[str, Rescoring] = MappingProxyType({})
    facts: Facts
    card: Card | None = None
    family: str = ""
    forms: ParallelTexts | None = None

    def formats_from(self, origin: Any) -> Mapping[str, PromptFormat]:
        """The prompt formats, whose texts may come from an origin."""
        return self.formats

    def origin(self, source: str, seed: int, fixes: bool) -> Origin:
        """Check the choice of a source. An unknown one is a `QabiasError`."""
        ...

    def load(self, config: str, origin: Origin) -> pa.Table:
        """The examples of a config in file order. A missing config or file is a `QabiasError`."""
        ...

    def write_folder(self, output: Path, config: str, origin: Origin) -> dict[str, pa.Table]:
        """Build a dataset folder and return its tables by config."""
        ...

    def units_per_part(self, kind: ScorerKind) -> int:
        """Units of sampling per part: about a minute of work on a slow machine."""
        ...

    def units(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """For every example its unit, which sampling must not split, and the stratum of the unit.

        Both are int64 of shape (n_examples,), numbered from 0. The examples of a unit are neighbors.
        """
        ...

    def sides(self, table: pa.Table) -> np.ndarray:
        """For every example 1 if its right answer agrees with the stereotype, -1 if it disagrees, else 0.

        Samples balance the sides in every stratum that has both; shape (n_examples,).
        """
        import numpy as np

        return np.zeros(table.num_rows, dtype=np.int64)

    def cells(self, table: pa.Table) -> np.ndarray:
        """The cell of each example's unit; shape (n_examples,). Samples draw a cell from all strata before the next."""
        import numpy as np

        return np.arange(table.num_rows)

    def counted(self, table: pa.Table) -> Mapping[str, np.ndarray]:
        """The examples that some of the metric's counts include, as masks by the name of the count."""
        return {}

    def rows_for(self, measures: Sequence[Measure], table: pa.Table) -> np.ndarray:
        """The examples that scores need, as a mask."""
        import numpy as np

        counted, counts = self.counted(table), [count for measure in measures for count in measure.counts]
        if not all(measure.counts for measure in measures) or not set(counts) <= set(counted):
            return np.ones(table.num_rows, dtype=bool)
        mask: np.ndarray = np.any([counted[count] for count in counts], axis=0)
        return mask

    def default_format(self, scorer: Scorer) -> str:
        """Name of the prompt format for a scorer."""
        ...

    def answer(
        self, part: pa.Table, scorer: Scorer, prompt_format: PromptFormat, norm: str
    ) -> dict[str, pa.Array | pa.ChunkedArray]:
        """Ask the scorer about some examples. Returns the columns that `score` needs and others to keep."""
        ...

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """Score answers, parallel to their examples.

        If the examples have a column `RUN`, the scores are means over the runs. Wrong answers are a `QabiasError`.
        """
        ...

    def analyse(self, run: Scored) -> Analysis:
        """The tables of a run, and a selection of its examples."""
        ...

    def examples(self, table: pa.Table, answers: pa.Table) -> Sequence[Mapping[str, Any]]:
        """Every example with its answer, as a report shows it; the columns of `key` are among its keys.

        `outcome` lists what the answer is, such as "right" and "stereotyped", and `group` names the stereotyped group.
        """
        ...

    def group_columns(self, table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
        """The breakdowns whose groups are compared: the group of every row."""
        raise TypeError(f"{self.name} has its own pair_up")

    def group_name(self, column: str, value: str) -> str:
        """The name of a group of a breakdown, unique within a run."""
        return value

    def groups(self, scores: Mapping[str, Any], measure: Measure | None = None) -> dict[str, Scores]:
        """The scores by group, of all or those with a measure. Common scores come last, as `ALL`."""
        columns = (measure and measure.breakdowns) or self.breakdowns or scores["by"]
        by = [(column, value, group) for column in columns for value, group in scores["by"][column].items()]
        groups = {self.group_name(column, value): group for column, value, group in by}
        groups[ALL] = scores
        return {name: group for name, group in groups.items() if measure is None or measure.name in group}

    def group_path(self, group: str) -> tuple[str, ...] | None:
        """The keys of a group of `groups` in the result of `score`: () for `ALL`, None if it has none."""
        return () if group == ALL else ("by", self.breakdowns[0], group)

    def clusters(self, table: pa.Table) -> np.ndarray:
        """The number of every row's cluster of the intervals; int64 of shape (n_examples,)."""
        raise TypeError(f"{self.name} has its own pair_up")

    def count(self, table: pa.Table, answers: pa.Table, cells: np.ndarray, rules: Rules = NO_RULES) -> np.ndarray:
        """The metric's counts by cell, of shape (n_cells, ...). Scores are functions of their sums.

        `cells` has the number of every row's cell, from 0, without gaps.
        """
        raise TypeError(f"{self.name} has its own pair_up")

    def scores_from_counts(self, counts: np.ndarray, rules: Rules = NO_RULES) -> Mapping[str, np.ndarray]:
        """Scores from sums of `count` over cells; leading axes are kept."""
        raise TypeError(f"{self.name} has its own pair_up")

    def pair_up(self, table: pa.Table, first: pa.Table, second: pa.Table, rules: Rules = NO_RULES) -> dict[str, Pair]:
        """The answers of two runs, parallel to the examples, counted by cluster, for every name of `groups`."""
        from qabias.benchmarks.pairs import AnsweredTable

        clusters = self.clusters(table)
        return self.pair_forms(AnsweredTable(table, first, clusters), AnsweredTable(table, second, clusters), rules)

    def pair_forms(self, first: AnsweredTable, second: AnsweredTable, rules: Rules = NO_RULES) -> dict[str, Pair]:
        """A run's answers to two forms, counted by shared clusters, for every name of `groups`."""
        from qabias.benchmarks.pairs import count_cells, pair_cells

        count = partial(self.count, rules=rules)
        cells = [count_cells(form, self.group_columns(form.table), self.group_name, count) for form in (first, second)]
        return pair_cells(cells[0], cells[1], partial(self.scores_from_counts, rules=rules))

    def sample_facts(self, scores: Mapping[str, Any]) -> dict[str, str]:
        """The sample size and what is missing from it, label to text."""
        ...

    def read_given(self, table: pa.Table, answers: pa.Table, prompt_format: PromptFormat | None, norm: str) -> pa.Table:
        """Answers that others collected, as the columns that a run keeps, texts parsed by the last argument."""
        return answers

    def check_config(self, config: str) -> None:
        """Refuse an unknown config with a `QabiasError`."""
        if config not in self.configs:
            raise unknown("config", config, self.configs, arg("config"), f"qabias list {self.name} --full")

    # What only some benchmarks have.

    def recognise(self, table: pa.Table) -> list[External]:
        """The answers in a table that its authors published; none in any other table."""
        return []

    def incomplete_sets(self, table: pa.Table) -> tuple[int, int]:
        """The number of sets that balance kinds of questions, and of those that need the rule `allow_incomplete`."""
        return 0, 0

    def language(self, config: str) -> str:
        """The English name of a config's language; several are joined by commas. "" without a family."""
        return ""

    def is_control_of(self, control: str, config: str) -> bool:
        """Whether `control` asks the questions of `config` about people of no group."""
        return False

    def common_templates(self, table: pa.Table) -> list[str] | None:
        """The template of every row, named alike in all languages. None if languages have other questions."""
        return None

    def list_published(self) -> list[tuple[str, str]]:
        """Makers of models that print its scores, each with a document and the names of its rows."""
        return []

    def next_to_published(self, scores: Scores, name: str, names: Sequence[str]) -> tuple[Table, list[str]]:
        """A run next to published rows, or rows of makers, and notes; the newest rows without names."""
        raise TypeError(f"{self.name} has no published scores")

    def remarks(self, scores: Mapping[str, Any]) -> list[str | Table]:
        """Sentences and tables below the scores in the terminal."""
        return []

    def across(self, names: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> list[Table]:
        """Further tables of a comparison, from parallel names and scores of the runs."""
        return []


def is_grouped(benchmark: Benchmark, config: str) -> bool:
    """Whether a config combines several that have their own scores."""
    return benchmark.group_path(ALL) is None and config in (benchmark.configs[-1], *benchmark.default_configs.values())


def whole_config(benchmark: Benchmark, kind: ScorerKind) -> str:
    """The config with all examples that a scorer can answer."""
    names = (config for interface, config in benchmark.default_configs.items() if interface in kind.interfaces)
    return next(names, benchmark.configs[-1])


def short_title(benchmark: Benchmark) -> str:
    """The title of a benchmark without its explanation."""
    return benchmark.title.partition(":")[0]


def make_origin(benchmark: Benchmark, source: str, seed: int, fixes: bool, options: Mapping[str, str]) -> Origin:
    """Check the choice of a source and of the benchmark's own options. Other options are ignored.

    Raises:
        QabiasError: If the source or the value of an option is unknown.
    """
    if "," in source:
        raise QabiasError(f"{source!r} names two sources.", "Name one. Only qabias contamination takes two.")
    chosen = {name: value for name, value in options.items() if name in benchmark.options}
    for name, value in chosen.items():
        if value not in benchmark.options[name]:
            raise unknown(name, value, benchmark.options[name])
    # Most benchmarks have no options, and an `origin` that takes none.
    make: Callable[..., Origin] = benchmark.origin
    return make(source, seed, fixes, **chosen)
