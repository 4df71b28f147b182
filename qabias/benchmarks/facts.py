"""What a benchmark says of itself as data: its scores and how they read, whom to cite, how a report shows it.

The terminal, the report, the comparison, the planner and the Hub read these facts; none of them knows a benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qabias.tables.model import ALL, Estimate, Table

if TYPE_CHECKING:
    import pyarrow as pa

Scores = Mapping[str, Any]
"""Scores of one selection of examples as a metric returns them: numbers, counts, and `ci`."""

Row = Mapping[str, Any]


class Rule(NamedTuple):
    """Counts beside a score whose sum must not be 0 (that of no counts is), and the reason why it is undefined then."""

    counts: tuple[str, ...]
    reason: str


class Balance(NamedTuple):
    """Two kinds of examples of which there must be equally many, or a bias score is not 0 without a bias.

    Attributes:
        counts: Names of their numbers in the metric's result.
        first: What the examples of the first kind are, behind their share: "of the right answers ...".
        instead: What to look at where there are more of one kind.
    """

    counts: tuple[str, str]
    first: str
    instead: str


@dataclass(frozen=True)
class Measure:
    """A score of a benchmark.

    Attributes:
        name: Its name in the metric's result.
        title: What people read above it.
        kind: Kind of its column, see `qabias.tables.model.Column`.
        counts: Names, in the metric's result, of the numbers of examples that it is of; their sum is meant.
        source: Where the paper shows it.
        note: How to read it.
        breakdowns: Only the groups of these columns have it; by default all groups.
        heading: What stands above it in the terminal, in two lines.
        tile: Its name among the headline scores of a report; "" for a score that is no headline there.
        tile_note: What it says, in a few words, or a function that says it; "" for a bias score, whose direction is put
            into words.
        heatmap: Whether a comparison also shows it at a glance, groups by models.
        undefined: Why it may be undefined, in the order in which a reader would ask.
        missing: Names, in the metric's result, of numbers of missing answers, each with that of the examples among
            which they are; by default `unparsed_share` says how many are missing.
        sides: Names, in the metric's result, of the numbers of answers that raise and that lower a bias score; () where
            a plan cannot say how many examples show a bias.
        best: Its best value, by which runs are ranked; None for a score that ranks nothing.
        fewest_clusters: How many templates its interval needs, or what else it is over.
        parts: Names of the counts that a comparison shows beside it in place of the sum of `counts`, with their titles.
        bound: Name of the score that says how large its absolute value can be.
        lacks: Why a result may be without it; "" where no result is. A comparison shows it where all runs have it.
        balance: Of which examples there must be equally many for it to be 0 without a bias; None where it always is.
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
    undefined: tuple[Rule, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    sides: tuple[str, ...] = ()
    best: float | None = None
    fewest_clusters: int = 2
    parts: tuple[tuple[str, str], ...] = ()
    bound: str = ""
    lacks: str = ""
    balance: Balance | None = None

    @property
    def farthest(self) -> float:
        """How far apart two of it can be: 2 for bias scores from -1 to 1, 1 for shares."""
        return 2.0 if self.kind == "signed" else 1.0


@dataclass(frozen=True)
class QuestionOnly:
    """What holds of runs in which the models saw no context.

    Attributes:
        measures: Names of the scores that mean anything then.
        count: Name of the number of examples that they are of.
        rows: Column and value of the examples that count; the others ask the same once more.
        source: Where the paper shows it.
        note: How to read it.
        remark: The same in one line for the terminal.
    """

    measures: tuple[str, ...]
    count: str
    rows: tuple[str, str]
    source: str
    note: str
    remark: str


class TemplateView(NamedTuple):
    """How the items of one template are shown with their answers.

    Attributes:
        template: Name of the template of every row.
        lines: An item with its answers, in lines.
        conditions: Columns that tell the conditions of a template apart.
        kinds: Kinds of answers that shares are of, in the order of the columns.
        left_out: Kinds that are counted and have no part in the shares, as in the report.
        columns: What `answers` reads.
        answers: The kinds of the answers to an item, one for each sample.
        rates: A table in place of shares, from the template's name and its rows, where answers have no kinds.
        in_sets: Whether the first items of a template are a set that belongs together.
        questions: The examples that a prompt format renders, made of an example of the analysis.
    """

    template: Callable[[pa.Table], pa.ChunkedArray]
    lines: Callable[[Row], Sequence[str]]
    conditions: Sequence[str] = ()
    kinds: Sequence[str] = ()
    left_out: Sequence[str] = ()
    columns: Sequence[str] = ()
    answers: Callable[[Row], Sequence[str]] = lambda row: ()
    rates: Callable[[str, pa.Table], Table] | None = None
    in_sets: bool = False
    questions: Callable[[Row], list[Row]] = lambda row: [row]


@dataclass(frozen=True)
class Tile:
    """A headline score; the share of missing answers is in [0, 1], and `possible` what it could be with them."""

    title: str
    value: Estimate
    kind: str
    note: str
    missing: float = 0.0
    possible: tuple[float, float] | None = None


class HeadlineRules(NamedTuple):
    """What decides the headline of a run, see `qabias.benchmarks.headline`.

    Attributes:
        by: The breakdown whose groups are named; every example is in one of them at most.
        biases: Bias scores that decide, the first one overall: 1 if above 0 follows stereotypes, -1 if below 0.
        task: Accuracies that show whether the model does the task, the first one for people.
        abstains: The share of abstentions where the text gives the answer; "" if it is unknown.
        positions: The shares of answers at each position; () if they are unknown.
        magnitude: A score that chance raises above 0, for a benchmark without signed bias scores.
        errors: Errors that may exceed the magnitude, with what the model does then.
        chance: The headline if none does.
    """

    by: str = ""
    biases: Mapping[str, int] = {}
    task: tuple[str, ...] = ()
    abstains: str = ""
    positions: tuple[str, ...] = ()
    magnitude: str = ""
    errors: Mapping[str, str] = {}
    chance: str = ""


class Stereotype(NamedTuple):
    """A stereotype that several forms of a benchmark test, and the groups that it is about; equal ones are the same."""

    name: str
    groups: str


class ParallelForms(NamedTuple):
    """Which sources of a benchmark test the same stereotypes with other texts.

    Attributes:
        published: Sources of texts that models may have been trained on.
        parallel: Sources of texts that were written anew, the present one first.
        stereotypes: From examples to the stereotype of every row, in the same names for all of these sources.
        topic: Column of the examples of the sources `parallel` that says what a stereotype is about.
        basis: What says that two forms test the same stereotype, in a sentence.
    """

    published: tuple[str, ...]
    parallel: tuple[str, ...]
    stereotypes: Callable[[pa.Table], list[Stereotype]]
    topic: str
    basis: str


class HubTexts(NamedTuple):
    """What the Hub reads of a dataset; the card of the published texts must name the authors."""

    name: str
    description: str
    authors: str


class Notes(NamedTuple):
    """What a report says of a run of a sample, and which answers the ends of a score's range stand for."""

    limit: str = "small samples are weak evidence"
    range: str = "all right or none, all with the stereotype or all against it"


@dataclass(frozen=True)
class Facts:
    """A benchmark in data. Only some have `means`, `question_only`, `hub`, `suite` and `headline`.

    Attributes:
        dataset: Name of the dataset folder, without `_dataset`, that holds its examples.
        measures: Its scores.
        compared: Names of the scores that a comparison shows, in order.
        columns: Names of the scores that the terminal shows, in order.
        tiles: Names of the scores that a report shows first, in order.
        tasks: Names of the scores that are a task on the Hub.
        caption: What stands above the scores in the terminal.
        group: What stands above the names of the groups in a comparison; in the terminal its first word does.
        clusters: What intervals are over, in the plural, with the count of them in the metric's result.
        own_tables: Names of its tables whose scores a comparison shows itself, or that show single items.
        means: Names of its tables that the paper has as means over prompts or formats; only these are the paper's in a
            pool of runs.
        task_type: What the Hub calls such a task.
        intro: Jinja template that says how to read a report: the blocks `reading` and `limits`.
        citations: Whom to cite, in HTML.
        view: How one template is shown.
        question_only: What holds where no context was shown; None where no format leaves it out.
        notes: What is said where a part of the examples or of the answers is missing.
        hub: What the Hub reads of the dataset; None where it belongs to another benchmark.
        suite: YAML file with the experiment of its paper; None without one.
        headline: What decides the headline of a run; None for a benchmark without one.
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
    clusters: tuple[str, str] = ("templates", "n_templates")
    own_tables: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    question_only: QuestionOnly | None = None
    notes: Notes = field(default_factory=Notes)
    hub: HubTexts | None = None
    suite: Path | None = None
    headline: HeadlineRules | None = None

    @property
    def row(self) -> str:
        """What stands above the names of the groups in the terminal."""
        return self.group.split()[0].lower()

    def measure(self, name: str) -> Measure:
        """The score of that name."""
        return next(measure for measure in self.measures if measure.name == name)

    def chosen(self, names: Sequence[str]) -> tuple[Measure, ...]:
        """The scores of these names, in their order."""
        return tuple(self.measure(name) for name in names)


RUNS = "Runs"
"""Section of the tables of a comparison that are about the runs; the terminal shows them before the scores."""

WORDINGS = "wordings"
"""Key of the scores of each wording, by its name, where a set of prompts was asked."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with the word for what it counts."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def union(lists: Sequence[Sequence[str]]) -> list[str]:
    """All names, in the order of their first occurrence, all together last."""
    names = dict.fromkeys(name for of_run in lists for name in of_run)
    return [name for name in names if name != ALL] + [ALL] * (ALL in names)


def run_column(number: int) -> str:
    """Name of the column of a run, counted from 0, in the tables of a comparison."""
    return f"run_{number + 1}"
