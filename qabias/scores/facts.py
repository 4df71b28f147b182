"""A benchmark as data: its scores, how to read them, whom to cite, how a report shows it.

The terminal, the report, the comparison, the planner and the Hub read these facts, and know no benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

ALL = "All"  # name of the group of all examples, if they have common scores

Scores = Mapping[str, Any]
"""Scores of one selection of examples as a metric returns them: numbers, counts, and `ci`."""

Row = Mapping[str, Any]


class UndefinedReason(NamedTuple):
    """Counts whose sum is 0 if a score is undefined (no counts: always), and the reason."""

    counts: tuple[str, ...]
    reason: str


class Balance(NamedTuple):
    """Two kinds of examples that must be equally many for a bias score of 0 to mean no bias.

    Attributes:
        counts: Names of their counts in the metric's result.
        first: Description of the first kind, after its share: "of the right answers ...".
        instead: What to read if the sample is unbalanced.
    """

    counts: tuple[str, str]
    first: str
    instead: str


@dataclass(frozen=True)
class Measure:
    """A score of a benchmark.

    Attributes:
        name: Its name in the metric's result.
        title: Its heading in a report.
        kind: Kind of its column, see `qabias.tables.model.Column`.
        counts: Names of the counts of its examples; their sum is its n.
        breakdowns: Columns whose groups have it; empty for all groups.
        heading: Heading in the terminal, in two lines.
        tile: Heading among the headline scores of a report, or "".
        tile_note: Note of a few words, or a function that returns it. "" for a bias score: its direction is described.
        heatmap: Whether a comparison also shows it as a heat map of groups by models.
        undefined: Reasons why it may be undefined, the first that applies wins.
        missing: Pairs of counts: missing answers, and their examples. Empty: `unparsed_share` is used.
        sides: Names of the counts of answers that raise and lower a bias score; () if a plan has no sample size for it.
        best: Its best value for rankings of runs, or None.
        fewest_clusters: Number of clusters that its interval needs.
        subcounts: Counts that a comparison shows instead of the sum of `counts`, with titles.
        bound: Name of the score with its largest possible absolute value.
        lacks: Why a result may lack it, or "". A comparison shows it if all runs have it.
        balance: What must be balanced for 0 to mean no bias, or None.
    """

    name: str
    title: str
    kind: str
    counts: tuple[str, ...] = ()
    source: str = ""
    note: str = ""
    breakdowns: tuple[str, ...] = ()
    heading: str = ""
    tile: str = ""
    tile_note: str | Callable[[Scores, Measure], str] = ""
    heatmap: bool = False
    undefined: tuple[UndefinedReason, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    sides: tuple[str, ...] = ()
    best: float | None = None
    fewest_clusters: int = 2
    subcounts: tuple[tuple[str, str], ...] = ()
    bound: str = ""
    lacks: str = ""
    balance: Balance | None = None

    @property
    def farthest(self) -> float:
        """The largest difference of two values: 2 for bias scores from -1 to 1, 1 for shares."""
        return 2.0 if self.kind == "signed" else 1.0


@dataclass(frozen=True)
class QuestionOnly:
    """Facts about runs whose prompts have no context.

    Attributes:
        measures: Names of the scores that are meaningful.
        count: Name of the count of their examples.
        rows: Column and value of the examples that count; the others repeat the same questions.
        remark: The note in one line for the terminal.
    """

    measures: tuple[str, ...]
    count: str
    rows: tuple[str, str]
    source: str
    note: str
    remark: str


class TemplateView(NamedTuple):
    """How the examples of one template are shown with their answers.

    Attributes:
        template: From a table to the template of every row.
        lines: From an example with its answers to lines of text.
        conditions: Columns with the conditions of a template.
        kinds: Kinds of answers with shares, in column order.
        left_out: Kinds that are counted but have no share.
        columns: Columns that `answers` reads.
        answers: From a row to the kinds of its answers, one per sample.
        rates: A table instead of shares, from the template's name and rows, if answers have no kinds.
        in_sets: Whether the first examples of a template form a set.
        questions: From an example of the analysis to the examples that a prompt format renders.
    """

    template: Callable[[pa.Table], pa.ChunkedArray]
    lines: Callable[[Row], Sequence[str]]
    conditions: Sequence[str] = ()
    kinds: Sequence[str] = ()
    left_out: Sequence[str] = ()
    columns: Sequence[str] = ()
    answers: Callable[[Row], Sequence[str]] = lambda row: ()
    rates: Callable[[str, pa.Table], Any] | None = None
    in_sets: bool = False
    questions: Callable[[Row], list[Row]] = lambda row: [row]


class Hazards(NamedTuple):
    """The documented harms of a benchmark's templates.

    Attributes:
        columns: The columns that `read` needs. Texts without one of them document no harms.
        read: From a row to the affected group, the harm, and its source; "" if no source is documented.
    """

    columns: tuple[str, ...]
    read: Callable[[Row], tuple[str, str, str]]


class Instance(NamedTuple):
    """An example as result stores keep it: its text, its choices, and the index of the right choice."""

    text: str
    choices: tuple[str, ...]
    right: int


class HeadlineRules(NamedTuple):
    """Inputs of the headline of a run, see `qabias.benchmarks.headline`.

    Attributes:
        by: The breakdown whose groups are named. An example is in at most one group.
        biases: Bias scores that decide, the overall one first. 1: above 0 follows stereotypes; -1: below 0 does.
        task: Accuracies that show whether the model does the task, the main one first.
        abstains: The share of abstentions in disambiguated contexts, or "".
        positions: The shares of answers at each position, or ().
        labels: The shares of the labels by name, or "".
        magnitude: A score that chance raises above 0, for a benchmark without signed bias scores.
        errors: Errors that may exceed the magnitude, each with a verb phrase.
        excess: How far the magnitude exceeds chance, with a p-value.
    """

    by: str = ""
    biases: Mapping[str, int] = {}
    task: tuple[str, ...] = ()
    abstains: str = ""
    positions: tuple[str, ...] = ()
    labels: str = ""
    magnitude: str = ""
    errors: Mapping[str, str] = {}
    excess: str = ""


class AuditPart(NamedTuple):
    """A part of an audit: the scores that answer what a person asks.

    Attributes:
        name: Name of its run folder.
        questions: Scores, each with the question that it answers. Parts may answer one question together.
        share: Weight of its share of the questions, and of the error.
        by: The breakdown whose groups are decided.
        config: Part of the benchmark; "" for all of it.
        n_each: Questions to the model per example.
        shows_task: Whether its own questions also show if the model does the task.
        needs_task: Whether its scores mean nothing if the model fails the task.
        abstentions: The share of abstentions, if it has one.
        if_abstains: Whether it is asked only if the model nearly always abstains.
        is_tested: Whether its scores have a p-value instead of a threshold.
        unless: A benchmark that makes it superfluous.
        words: The answer if it leans to the stereotype, against it, or to neither.
    """

    name: str
    questions: Mapping[str, str]
    share: float
    by: str | None = None
    config: str = ""
    n_each: int = 1
    shows_task: bool = False
    needs_task: bool = False
    abstentions: str = ""
    if_abstains: bool = False
    is_tested: bool = False
    unless: str = ""
    words: tuple[str, str, str] = ("Yes", "The opposite", "No")


class Stereotype(NamedTuple):
    """A stereotype that several forms of a benchmark test, and its groups. Equal ones are the same."""

    name: str
    groups: str


class ParallelTexts(NamedTuple):
    """Sources of a benchmark that test the same stereotypes with different texts.

    Attributes:
        published: Sources whose texts may be in training data.
        parallel: Sources with new texts, the current one first.
        stereotypes: From examples to the stereotype of every row, with the same names for all these sources.
        topic: Column with the topic of a stereotype in the `parallel` sources.
        basis: Why two forms test the same stereotype, in a sentence.
    """

    published: tuple[str, ...]
    parallel: tuple[str, ...]
    stereotypes: Callable[[pa.Table], list[Stereotype]]
    topic: str
    basis: str


class HubTexts(NamedTuple):
    """A dataset on the Hub: the authors, whom the card of published texts must name, and its task.

    Attributes:
        authors: The authors.
        accuracy: From the scores of a complete run to the value of the task in `eval.yaml`, or None without a task.
    """

    authors: str
    accuracy: Callable[[Mapping[str, Any]], float | None] | None = None


class Notes(NamedTuple):
    """Notes of a report on a sample, and on the ends of a possible range."""

    limit: str = "small samples are weak evidence"
    range: str = "all right or none, all with the stereotype or all against it"


@dataclass(frozen=True)
class Facts:
    """A benchmark as data.

    Attributes:
        dataset: Name of its dataset folder, without `_dataset`.
        compared: Scores in a comparison, in order.
        columns: Scores in the terminal, in order.
        tiles: Headline scores of a report, in order.
        explained: The headline score whose note the terminal prints, or "".
        tasks: Scores in a model card.
        caption: Heading of the scores in the terminal.
        group: Heading of the groups in a comparison; the terminal shows its first word.
        clusters: Plural noun for the clusters of intervals, and the name of their count.
        own_tables: Tables that a comparison does not compare: its own scores, or single examples.
        means: Tables that the paper shows as means over prompts or formats.
        task_type: The Hub's name for the task.
        intro: Jinja template with the blocks `reading` and `limits` of a report.
        citations: References in HTML.
        view: How one template is shown.
        question_only: Facts about runs without a context, or None.
        hub: The dataset on the Hub, or None if another benchmark owns it.
        headline: Inputs of the headline of a run, or None.
        hazards: The documented harms of its templates, or None.
        instance: From an example to what a result store keeps. None if no answer is right.
        audit: Its parts of an audit.
    """

    dataset: str
    measures: tuple[Measure, ...]
    compared: tuple[str, ...]
    columns: tuple[str, ...]
    tiles: tuple[str, ...]
    tasks: tuple[str, ...]
    caption: str
    group: str
    task_type: str
    intro: Path
    view: TemplateView
    explained: str = ""
    clusters: tuple[str, str] = ("templates", "n_templates")
    own_tables: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    question_only: QuestionOnly | None = None
    notes: Notes = field(default_factory=Notes)
    hub: HubTexts | None = None
    headline: HeadlineRules | None = None
    hazards: Hazards | None = None
    instance: Callable[[Row], Instance] | None = None
    audit: tuple[AuditPart, ...] = ()

    @property
    def row(self) -> str:
        """Heading of the groups in the terminal."""
        return self.group.split()[0].lower()

    def measure(self, name: str) -> Measure:
        """The score of that name."""
        return next(measure for measure in self.measures if measure.name == name)

    def chosen(self, names: Sequence[str]) -> tuple[Measure, ...]:
        """The scores of these names, in their order."""
        return tuple(self.measure(name) for name in names)


RUNS = "Runs"
"""Section of a comparison's tables about the runs. The terminal shows them before the scores."""

SHOWN = "Side by side"
"""Section of a benchmark's own tables in a comparison. The terminal shows the first."""

WORDINGS = "wordings"
"""Key of the scores of each prompt variant by its name."""


def union(lists: Sequence[Sequence[str]]) -> list[str]:
    """All names in order of first occurrence, `ALL` last."""
    names = dict.fromkeys(name for of_run in lists for name in of_run)
    return [name for name in names if name != ALL] + [ALL] * (ALL in names)


def run_column(number: int) -> str:
    """Name of a run's column in a comparison; runs count from 0."""
    return f"run_{number + 1}"
