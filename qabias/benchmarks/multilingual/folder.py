"""The dataset folder of a published set: one card template for all sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from qabias.benchmarks.multilingual.language import Language
from qabias.benchmarks.multilingual.rows import UNDEFINED
from qabias.building import sources
from qabias.building.folder import DatasetFolder, Tables
from qabias.building.origin import NO_LICENCE, Licence, licence_of
from qabias.errors import QabiasError
from qabias.share.bbq_dataset.builder import FEATURES as FEATURES

_PINNED = " The qabias project verifies the published files at a pinned commit, and computes the roles of the answers."

_NOT_SAID = {"source_datasets": None, "annotations_creators": None, "language_creators": None}
"""Fields of a card's head that template folders do not have."""


@dataclass(frozen=True)
class FolderOrigin:
    """The origin of a folder's tables."""

    dataset: str
    source: str
    version: str
    seed: int
    table: Callable[[str], pa.Table]


class SetFolder(DatasetFolder[FolderOrigin]):
    """The folder of a set: one table per category."""

    def __init__(self, card: Card, groups: Mapping[str, Sequence[str]], language: Callable[[str], Language]):
        super().__init__(Path(__file__).parent)
        self.name = card.name
        self._set_card = card
        self._groups = groups
        self._language = language

    def _configurations(self, names: Sequence[str]) -> dict[str, list[str]]:
        whole = {config: list(members) for config, members in self._groups.items() if set(members) <= set(names)}
        largest_first = sorted(whole.items(), key=lambda item: -len(item[1]))
        # A config of one table with another name would repeat its examples.
        return {config: members for config, members in largest_first if len(members) > 1 or members == [config]}

    def _features(self, name: str) -> datasets.Features:
        return FEATURES

    def _source_values(self, origin: FolderOrigin) -> dict[str, Any]:
        return {}

    def _texts(self, origin: FolderOrigin) -> dict[str, str]:
        card, licence = self._set_card, self._set_card.terms
        text = str if card.paper else _plain  # the cards of this package are Markdown
        pages = {"Paper": card.paper, "Published at": card.homepage}
        makers = yaml.safe_load(self._sources.read_text(encoding="utf-8"))["paper" if card.paper else "templates"]
        return {
            "title": "authors' texts" if card.paper else "from templates",
            "name": text(card.name),
            "summary": text(card.summary),
            "licence": f"{licence.name}: {licence.terms}",
            "making": text(card.making) + (_PINNED if card.repository else ""),
            "published": "\n".join(f"- **{what}:** <{page}>" for what, page in pages.items() if page)
            or "- These templates have no page.",
            "attribution": ", ".join(filter(None, (text(card.authors), card.homepage and f"<{card.homepage}>"))),
            **makers,
            **{part: text(getattr(card, part)) for part in ("society", "authors")},
            "bibtex": card.bibtex.strip().replace("```", ""),
            "dataset": origin.dataset,
            "seed": str(origin.seed),
        }

    def _body_values(self, origin: FolderOrigin, texts: Mapping[str, str], tables: Tables) -> dict[str, Any]:
        undefined = {
            name: pc.sum(pc.equal(table["target_loc"], UNDEFINED)).as_py() or 0 for name, table in tables.items()
        }
        text = str if self._set_card.paper else _plain
        lines = [
            f"In {n:,} examples of {name} the target is undefined: none of the answers, or more than one, names it."
            for name, n in undefined.items()
            if n
        ]
        return {
            "languages": self._languages(list(tables)),
            "statistics": "\n".join(_statistics(name, table) for name, table in tables.items()),
            "example": next(iter(tables)),
            "gallery": _gallery(tables),
            "defects": "\n".join(f"- {line}" for line in (*map(text, self._set_card.defects), *lines)),
        }

    def _codes(self, names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self._language(name).code for name in names))

    def _languages(self, names: Sequence[str]) -> str:
        """The languages of some categories; all together have the card's words."""
        if set(self._codes(names)) == set(self._set_card.codes):
            return self._set_card.languages
        return ", ".join(dict.fromkeys(self._language(name).name for name in names))

    def _head_fields(self, origin: FolderOrigin, names: Sequence[str]) -> dict[str, Any]:
        licence = self._set_card.terms
        # The Hub uses lower-case SPDX identifiers; other licences need a name.
        licence_fields = {"license": self._set_card.licence_id.lower()} if licence.allows else {"license": "other"}
        return {
            "language": self._codes(names),
            **licence_fields,
            **({} if self._set_card.paper else _NOT_SAID),
            **({} if licence.allows else {"license_name": licence.name.replace(" ", "-")}),
            "task_categories": ["multiple-choice", "question-answering"],
            "task_ids": ["multiple-choice-qa"],
        }


def _plain(text: str) -> str:
    """A text without Markdown markup."""
    return re.sub(r"[\\`<\[|]", r"\\\g<0>", text)


def _statistics(name: str, table: pa.Table) -> str:
    counts = (table.num_rows, *(pc.count_distinct(table[column]).as_py() for column in ("set_id", "template_id")))
    return f"| {_plain(name)} | {' | '.join(f'{count:,}' for count in counts)} |"


def _gallery(tables: Tables) -> str:
    """The first ambiguous and disambiguated example of every table."""
    lines = ["| configuration | context | question | right answer |", "|---|---|---|---|"]
    for name, table in tables.items():
        for condition in ("ambig", "disambig"):
            for row in table.filter(pc.equal(table["context_condition"], condition)).slice(0, 1).to_pylist():
                right = row[("ans0", "ans1", "ans2")[row["label"]]]
                cells = (*map(_plain, (name, row["context"], row["question"])), f"**{_plain(right)}**")
                lines.append(f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Card:
    """The card of a published set."""

    title: str
    name: str
    codes: Sequence[str]
    languages: str
    society: str
    authors: str
    summary: str
    homepage: str
    paper: str
    citation: str
    bibtex: str
    making: str
    repository: str = ""
    licence: str = ""
    defects: Sequence[str] = ()

    @property
    def licence_id(self) -> str:
        """Identifier of its licence, by default the pinned repository's."""
        return self.licence or (sources.licence(self.repository) if self.repository else NO_LICENCE)

    @property
    def terms(self) -> Licence:
        """Its licence."""
        return licence_of(self.licence_id)


def read_card(path: Path) -> Card:
    """A card from its YAML file with the fields of `Card`."""
    try:
        return Card(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except TypeError as error:
        raise QabiasError(
            f"{path}: {str(error).removeprefix('Card.__init__() ')}.", "Use the fields of the other cards."
        ) from error
