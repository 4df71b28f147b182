"""A published set of BBQ's form as a benchmark: BBQ's scores and tables with other texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from qabias.answers import Phrases
from qabias.benchmarks.base import NO_RULES, LogReader, Rules, Scored
from qabias.benchmarks.bbq.benchmark import BBQBenchmark, check_ordered
from qabias.benchmarks.bbq.facts import FACTS
from qabias.benchmarks.bbq.logs import OWN_TASK
from qabias.benchmarks.bbq.roles import score
from qabias.benchmarks.bbq.tables import ACCURACY, BIAS, COST, N_TEMPLATES, OF_BBQ, READ_BIAS, READ_INTERVALS
from qabias.benchmarks.breakdowns import Breakdown, make_tables
from qabias.benchmarks.multilingual.folder import Card, FolderOrigin, SetFolder, read_card
from qabias.benchmarks.multilingual.language import Language, formats_in, load_language
from qabias.benchmarks.prompt_format import Example
from qabias.building import sources
from qabias.building.origin import check_source
from qabias.building.templating import StableRandom
from qabias.errors import QabiasError, arg
from qabias.scorers.base import Scorer, TextScorer
from qabias.scorers.registry import kind_of
from qabias.scores.facts import Facts, ParallelTexts
from qabias.tables.model import Analysis, Column, Table

ALL = "all"
"""The config of all examples."""

RELEASE = "release"
"""The source of the released examples."""

CARDS = Path(__file__).parent / "cards"

ORDERS = ("shuffled", "released")
"""Values of the option `answers`: an order per set by the seed, or the released order."""

LANGUAGES = "languages"

_TABLE = Breakdown(
    LANGUAGES,
    LANGUAGES,
    [Column("language", "Language", "text")],
    (*BIAS, COST, *ACCURACY, Column("n", "Examples", "count"), N_TEMPLATES),
    "Bias",
    "intervals",
    title="By language",
)


@dataclass(frozen=True)
class SetOrigin:
    """The origin of a set's texts."""

    source: str
    commit: str
    seed: int
    options: Mapping[str, str]
    changed: tuple[str, ...]

    @property
    def version(self) -> str:
        """Source, commit and changed options, e.g. "release@0dd165a+answers=released"."""
        return "+".join((f"{self.source}@{self.commit[:7]}", *self.changed))

    def shuffle(self, *parts: object) -> StableRandom | None:
        """The random generator for the order of the answers, None for the released order."""
        return StableRandom(*parts, self.seed) if self.options.get("answers") == ORDERS[0] else None


class PublishedQuestions(BBQBenchmark):
    """A published set of BBQ's form."""

    sources: Sequence[str] = (RELEASE,)
    forms: ParallelTexts | None = None
    asks: Mapping[str, str] = MappingProxyType({"answer-logprob": "", "letter-logprob": "letters", "letter": "letters"})
    interfaces: Sequence[str] = ("options", "texts")
    log_readers: Sequence[LogReader] = (OWN_TASK,)
    categories: Sequence[str]
    groups_of_categories: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Further configs: their categories by name."""

    lopsided = False
    """Whether released sets are incomplete, which scores must accept."""

    card: Card

    def __init__(self, name: str, card: Card | None = None) -> None:
        self.name = name
        self.card = card or read_card(CARDS / f"{name}.yaml")
        self.title = self.card.title
        members = (category for group in self.groups_of_categories.values() for category in group)
        self.configs = (*dict.fromkeys((*self.categories, *members)), *self.groups_of_categories, ALL)
        self.formats = formats_in(self.language_of)
        self.facts = _facts(self.card, name)

    def language_of(self, example: Example) -> Language:
        """The language of an example, by default the card's only one."""
        (code,) = self.card.codes
        return load_language(code)

    def commit(self) -> str:
        """The commit of the published files."""
        return sources.commit(self.card.repository)

    def phrases_of(self, example: Example) -> Phrases:
        """Phrases of the example's language for parsing written answers."""
        return self.language_of(example).phrases

    @abstractmethod
    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The examples of one category, with the columns of BBQ."""

    def origin(self, source: str, seed: int, fixes: bool, **options: str) -> SetOrigin:
        """Check the choice of a source."""
        self.check_source(source, fixes)
        chosen = {name: options.get(name, values[0]) for name, values in self.options.items()}
        changed = tuple(f"{name}={value}" for name, value in chosen.items() if value != self.options[name][0])
        return SetOrigin(source, self.commit(), seed, chosen, changed)

    def check_source(self, source: str, fixes: bool) -> None:
        """Refuse unknown sources, and fixes."""
        check_source(source, self.sources, fixes)
        if fixes:
            raise QabiasError(f"{self.name}: published texts have no fixes.", f"Remove {arg('fixes')}.")

    def load(self, config: str, origin: Any) -> pa.Table:
        """The examples of a category or of all, in file order."""
        return pa.concat_tables([self.table(category, origin) for category in self._categories(config)])

    def write_folder(self, output: Path, config: str, origin: Any) -> dict[str, pa.Table]:
        """Build a dataset folder and return its tables by category."""
        names = list(self._categories(config))
        groups = {config: self.members(config) for config in self.configs}
        folder = SetFolder(self.card, groups, lambda category: self.language_of({"category": category}))
        tables = partial(self.table, origin=origin)
        described = FolderOrigin(self.name, origin.source, origin.version, origin.seed, tables)
        return folder.write(output, described, names)

    def default_format(self, scorer: Scorer) -> str:
        """Letters for models that write or must see the answers."""
        kind = kind_of(scorer)
        return "letters" if isinstance(scorer, TextScorer) or kind.lists_options else "qa"

    def score(self, table: pa.Table, answers: pa.Table, rules: Rules = NO_RULES) -> dict[str, Any]:
        """BBQ's scores; lopsided sets may be incomplete."""
        return super().score(table, answers, self._counting(rules))

    def analyse(self, run: Scored) -> Analysis:
        """The tables of BBQ without its paper's figures, and scores by language."""
        rules = self._counting(run.rules)
        analysis = super().analyse(run._replace(rules=rules))
        languages = [self.language_of({"category": name}).name for name in run.table["category"].to_pylist()]
        tables = _by_language(run.table, run.answers, languages, rules)
        return replace(analysis, tables=(*tables, *map(_without_paper, analysis.tables)))

    def incomplete_sets(self, table: pa.Table) -> tuple[int, int]:
        """Like BBQ's; none for lopsided sets."""
        return (0, 0) if self.lopsided else super().incomplete_sets(table)

    def language(self, config: str) -> str:
        """The languages of the categories of a config."""
        return ", ".join(dict.fromkeys(self.language_of({"category": name}).name for name in self._categories(config)))

    def members(self, config: str) -> Sequence[str]:
        """The categories of one config."""
        return self.categories if config == ALL else self.groups_of_categories.get(config, (config,))

    def check_config(self, config: str) -> None:
        """Accept a config, or several in order without a common category."""
        names = check_ordered(config, self.configs, self.configs)
        categories = self._members(names)
        twice = sorted({name for name in categories if categories.count(name) > 1})
        if twice:
            raise QabiasError(f"the config {config!r} repeats {', '.join(twice)}.", "Name each once.")

    def _counting(self, rules: Rules) -> dict[str, Any]:
        return {**rules, "allow_incomplete": "yes"} if self.lopsided else dict(rules)

    def _categories(self, config: str) -> Sequence[str]:
        self.check_config(config)
        return self._members(config.split(","))

    def _members(self, names: Sequence[str]) -> list[str]:
        return [category for name in names for category in self.members(name)]


def _without_paper(table: Table) -> Table:
    """A table of BBQ without notes on its paper and texts."""
    note = table.note
    for words in OF_BBQ:
        note = note.replace(words, "")
    return replace(table, source="", note=note)


def _facts(card: Card, name: str) -> Facts:
    """The facts of BBQ without those about its paper and texts."""
    return replace(
        FACTS,
        dataset=name,
        measures=tuple(replace(measure, source="") for measure in FACTS.measures),
        caption=f"{card.title}, scores in % [95% CI]. Bias: 0 is best, + follows the stereotype.",
        citations=(card.citation, *FACTS.citations),
        intro=FACTS.intro.with_name("intro_sets.html.j2"),
        own_tables=tuple(table for table in FACTS.own_tables if table != "question_only"),
        question_only=None,
        hub=None,
        means=(),
    )


def _by_language(table: pa.Table, answers: pa.Table, languages: Sequence[str], rules: Rules) -> list[Table]:
    """Bias scores and accuracies by language, if there are several."""
    if len(set(languages)) < 2:
        return []
    groups = score(table, answers, {"language": [(language,) for language in languages]}, rules)["by"]["language"]
    note = f"{READ_BIAS} {READ_INTERVALS} Read accuracy first: a model that guesses has a bias near 0."
    return make_tables([_TABLE], {LANGUAGES: groups.items()}, {LANGUAGES: note}, FACTS.measures)
