"""MBBQ (Neplenbroek et al. 2024): the same questions in English, Dutch, Spanish and Turkish, with a control set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from qabias.benchmarks.multilingual.benchmark import ORDERS, PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import read_items, rows_of, table_of
from qabias.benchmarks.prompt_format import Example

CONTROL = "_control"
"""Suffix of the control set's configs."""

CATEGORIES = ("Age", "Disability_status", "Gender_identity", "Physical_appearance", "SES", "Sexual_orientation")
LANGUAGES = ("en", "nl", "es", "tr")
_WORDS = {
    "F": (*("woman", "girl", "vrouw", "meisje", "mujer", "chica", "maestra"), *("kadın", "kız")),
    "M": (*("man", "boy", "jongen", "hombre", "chico", "maestro"), *("adam", "erkek çocuk")),
}
_TAGS = {word: gender for gender, words in _WORDS.items() for word in words} | {"low SES": "lowSES"}

_BY_LANGUAGE: Mapping[str, Sequence[str]] = {
    f"{language}{control}": tuple(f"{language}_{category}{control}" for category in CATEGORIES)
    for control in ("", CONTROL)
    for language in LANGUAGES
}
"""The categories of a language, or of its control set."""


def is_target(text: str, tag: str, groups: Sequence[str]) -> bool:
    """Whether a tag is a member of a stereotyped group. Gender tags are words of the language."""
    return _TAGS.get(tag, tag) in {_TAGS.get(group, group) for group in groups}


class FourLanguages(PublishedQuestions):
    """MBBQ: Multilingual Bias Benchmark for Question Answering (Neplenbroek et al. 2024)."""

    categories = tuple(name for language in LANGUAGES for name in _BY_LANGUAGE[language])
    groups_of_categories = _BY_LANGUAGE
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS[::-1]})

    def language_of(self, example: Example) -> Language:
        """The language at the start of the category's name."""
        return load_language(example["category"].split("_")[0])

    def is_control_of(self, control: str, config: str) -> bool:
        """By name: `nl_Age_control` is the control of `nl_Age`, `nl_control` of `nl`."""
        return control == f"{config}{CONTROL}"

    def common_templates(self, table: pa.Table) -> list[str]:
        """The template of every row, with the same name in all languages and in the control set."""
        names: list[str] = table["template_id"].to_pylist()
        return names

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category in one language, or of its control set."""
        language, _, name = category.partition("_")
        path = self.fetch(f"data/{name}_{language}.jsonl", origin)
        label_type = "name" if name.endswith(CONTROL) else "label"
        items = (item._replace(label_type=label_type) for item in read_items(path, category, is_target))
        table = table_of(rows_of(items, origin.shuffle(self.name, category, "order")))
        names = [template.partition("_")[2].replace(CONTROL, "") for template in table["template_id"].to_pylist()]
        return table.set_column(table.schema.get_field_index("template_id"), "template_id", pa.array(names))


BENCHMARK = FourLanguages("mbbq")
