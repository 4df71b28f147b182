"""MBBQ (Neplenbroek et al. 2024): the same questions in English, Dutch, Spanish and Turkish, with a control set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from qabias.benchmarks.multilingual.benchmark import ORDERS, PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import Answer, Item, rows_of, table_of, target_of
from qabias.benchmarks.prompt_format import Example
from qabias.errors import QabiasError

CONTROL = "_control"
"""The end of the name of a configuration of the control set."""

CATEGORIES = ("Age", "Disability_status", "Gender_identity", "Physical_appearance", "SES", "Sexual_orientation")
LANGUAGES = ("en", "nl", "es", "tr")
ITEMS_PER_SET = 4
"""Neighbours in a file: two contexts with two questions."""

UNKNOWN = "unknown"
"""The tag of the answer that nobody can tell."""

_WORDS = {
    "F": (*("woman", "girl", "vrouw", "meisje", "mujer", "chica", "maestra"), *("kadın", "kız")),
    "M": (*("man", "boy", "jongen", "hombre", "chico", "maestro"), *("adam", "erkek çocuk")),
}
_TAGS = {word: gender for gender, words in _WORDS.items() for word in words} | {"low SES": "lowSES"}
"""What the tag of a person, or of a group, is called where the two are not called alike."""

_BY_LANGUAGE: Mapping[str, Sequence[str]] = {
    f"{language}{control}": tuple(f"{language}_{category}{control}" for category in CATEGORIES)
    for control in ("", CONTROL)
    for language in LANGUAGES
}
"""The categories of a language, and those of its control set."""


def read_items(path: Path, category: str, control: bool) -> Iterator[Item]:
    """The items of one file in its order."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            yield _item(json.loads(line), category, number // ITEMS_PER_SET, control)
        except (KeyError, ValueError, TypeError) as error:
            raise QabiasError(f"{path}: line {number + 1}: no released row ({error!r})") from error


def is_target(tag: str, groups: Sequence[str]) -> bool:
    """Whether a person with that tag is a member of a stereotyped group; tags of gender are words of the language."""
    return _TAGS.get(tag, tag) in {_TAGS.get(group, group) for group in groups}


def _item(row: Mapping[str, Any], category: str, number: int, control: bool) -> Item:
    metadata = row["additional_metadata"]
    tags = [row["answer_info"][f"ans{place}"][1] for place in range(3)]
    groups = metadata["stereotyped_groups"]
    first, second, third = (Answer(row[f"ans{place}"], tag) for place, tag in enumerate(tags))
    return Item(
        category=category,
        template=f"{int(row['question_index']):02d}",
        set=str(number),
        negative=row["question_polarity"] == "neg",
        ambiguous=row["context_condition"] == "ambig",
        context=row["context"],
        question=row["question"],
        answers=(first, second, third),
        right=row["label"],
        target=target_of([tag != UNKNOWN and is_target(tag, groups) for tag in tags]),
        unknown=tags.index(UNKNOWN),
        groups=groups,
        label_type="name" if control else "label",
        subcategory=metadata["subcategory"],
        version=metadata["version"],
        source=metadata["source"],
    )


class FourLanguages(PublishedQuestions):
    """MBBQ: Multilingual Bias Benchmark for Question Answering (Neplenbroek et al. 2024)."""

    categories = tuple(name for language in LANGUAGES for name in _BY_LANGUAGE[language])
    groups_of_categories = _BY_LANGUAGE
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS[::-1]})

    def language_of(self, example: Example) -> Language:
        """The language with which the name of the example's category begins."""
        return load_language(example["category"].split("_")[0])

    def is_control_of(self, control: str, config: str) -> bool:
        """Whether the names say so: `nl_Age_control` of `nl_Age`, `nl_control` of `nl`."""
        return control == f"{config}{CONTROL}"

    def common_templates(self, table: pa.Table) -> list[str]:
        """The template of every row: it has one name in all languages and in the control set."""
        names: list[str] = table["template_id"].to_pylist()
        return names

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category of one language, or of its control set."""
        language, _, name = category.partition("_")
        path = self.fetch(f"data/{name}_{language}.jsonl", origin)
        items = read_items(path, category, control=name.endswith(CONTROL))
        table = table_of(rows_of(items, origin.shuffle(self.name, category, "order")))
        names = [template.partition("_")[2].replace(CONTROL, "") for template in table["template_id"].to_pylist()]
        return table.set_column(table.schema.get_field_index("template_id"), "template_id", pa.array(names))


BENCHMARK = FourLanguages("mbbq")
