"""GG-BBQ (Satheesh et al. 2025): BBQ's questions about gender, in German, with words for groups and with names."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from qabias.benchmarks.multilingual.benchmark import ORDERS, PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.rows import PLACES, Answer, Item, rows_of, table_of, target_of
from qabias.building.templating import filled_pattern

PARTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"labels": ("subset-1", "bbq_de"), "names": ("subset-2", "bbq_de_proper_names")}
)
"""The two parts: folder of the files, and prefix of their names."""

UNKNOWN = "unknown"
"""The tag of the UNKNOWN answer, always the last one."""

TAGS: Mapping[str, str] = {"trans": "non_binary"}
"""The tag of a group with another name in the rows. In templates about trans people, one person has this tag."""

_POLARITIES = {"negative": True, "non_negative": False}


class _Template(NamedTuple):
    """A published template."""

    name: str
    version: str
    context: re.Pattern[str]
    questions: tuple[str, str]
    names: bool
    source: str


def read_items(category: str, ambiguous: Path, disambiguated: Path, templates: Path) -> Iterator[Item]:
    """The items of one part, with the four of a set as neighbors."""
    with templates.open(encoding="utf-8", newline="") as file:
        known = [_template({name.strip(): text for name, text in row.items()}) for row in csv.DictReader(file)]
    for number, (unclear, clear) in enumerate(zip(_rows(ambiguous), _rows(disambiguated), strict=True)):
        template = _template_of(clear, known)
        for row in (unclear, clear):
            yield _item(category, row, template, number // 2)


def is_target(tag: str, groups: Sequence[str]) -> bool:
    """Whether a person is a member of the stereotyped group."""
    return tag in groups or tag in {TAGS.get(group) for group in groups}


def _item(category: str, row: Mapping[str, Any], template: _Template, number: int) -> Item:
    groups = json.loads(row["known_stereotyped_groups"])
    tags = [tag for _, tag in ast.literal_eval(row["choice_info"]).values()]
    first, second, third = (Answer(row[f"choice_{place}"], tags[place]) for place in PLACES)
    return Item(
        category=category,
        template=template.name,
        set=str(number),
        version=template.version,
        negative=_POLARITIES[row["question_type"]],
        ambiguous=row["context_type"] == "ambiguous_context",
        context=row["context"],
        question=row["question"],
        answers=(first, second, third),
        right=row["label"],
        target=target_of([is_target(tag, groups) for tag in tags]),
        unknown=tags.index(UNKNOWN),
        stereotype=row["relevant_social_values"],
        groups=groups,
        label_type="name" if template.names else "label",
        source=template.source,
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _template(row: Mapping[str, str]) -> _Template:
    # One slot of the published templates lacks a brace.
    text = re.sub(r"(?<!\{)\{(?=\w+\}\})", "{{", f"{row['ambiguous_context']} {row['disambiguous_context']}")
    return _Template(
        name=f"{int(row['question_index']):02d}",
        version=f"{int(row['id']):03d}",
        context=filled_pattern(_one_space(text)),
        questions=(_one_space(row["question_negative_stereotype"]), _one_space(row["question_non_negative"])),
        names=row["proper_nouns_only"] == "True",
        source=row["Notes"],
    )


def _template_of(row: Mapping[str, Any], templates: Sequence[_Template]) -> _Template:
    """The one template of a disambiguated row."""
    context, question = _one_space(row["context"]), _one_space(row["question"])
    (match,) = (one for one in templates if question in one.questions and one.context.fullmatch(context))
    return match


def _one_space(text: str) -> str:
    """The text with single spaces: the files differ in them."""
    return " ".join(text.split())


class GermanQuestions(PublishedQuestions):
    """BBQ's questions about gender in German (Satheesh et al. 2025)."""

    categories = tuple(PARTS)
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS})

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one part. The four of a set are neighbors and share one answer order."""
        folder, stem = PARTS[category]
        paths = (*(f"data/{folder}/{stem}_{kind}_test.jsonl" for kind in ("amb", "disamb")), f"templates/{folder}.csv")
        files = [self.fetch(path, origin) for path in paths]
        return table_of(rows_of(read_items(category, *files), origin.shuffle(self.name, category, "order")))


BENCHMARK = GermanQuestions("ggbbq")
