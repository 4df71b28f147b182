"""MBBQ for the engine: four languages, six categories, and the control set of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from qabias.benchmarks.mbbq import NAME
from qabias.benchmarks.mbbq.about import ABOUT
from qabias.benchmarks.mbbq.released import CATEGORIES, LANGUAGES, read_items
from qabias.benchmarks.multilingual.benchmark import ALL, ORDERS, PublishedQuestions, SetOrigin, set_facts
from qabias.benchmarks.multilingual.formats import formats_in
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import rows_of, table_of
from qabias.benchmarks.prompt_format import Example
from qabias.building.sources import fetch

CONTROL = "_control"
"""The end of the name of a configuration of the control set."""

TITLE = "MBBQ: BBQ in English, Dutch, Spanish and Turkish"
CITATION = (
    "Vera Neplenbroek, Arianna Bisazza and Raquel Fernández (2024). MBBQ: A dataset for cross-lingual comparison of "
    "stereotypes in generative LLMs. <cite>Conference on Language Modeling (COLM) 2024</cite>. "
    '<a href="https://arxiv.org/abs/2406.07243">arXiv:2406.07243</a>'
)

_OF_LANGUAGE: Mapping[str, Sequence[str]] = {
    f"{language}{control}": tuple(f"{language}_{category}{control}" for category in CATEGORIES)
    for control in ("", CONTROL)
    for language in LANGUAGES
}
"""The categories of a language, and those of its control set."""


class FourLanguages(PublishedQuestions):
    """MBBQ: Multilingual Bias Benchmark for Question Answering (Neplenbroek et al. 2024)."""

    name = NAME
    title = TITLE
    repository = "Veranep/MBBQ"
    categories = tuple(name for language in LANGUAGES for name in _OF_LANGUAGE[language])
    configs = (*(name for names in _OF_LANGUAGE.values() for name in names), *_OF_LANGUAGE, ALL)
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS[::-1]})
    facts = set_facts(NAME, TITLE, CITATION)
    about = ABOUT

    def __init__(self) -> None:
        self.formats = formats_in(self.language_of)

    def language_of(self, example: Example) -> Language:
        """The language with which the name of the example's category begins."""
        return load_language(example["category"].split("_")[0])

    def members(self, config: str) -> Sequence[str]:
        """The categories of a configuration."""
        return _OF_LANGUAGE.get(config) or super().members(config)

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
        path = fetch(self.repository, f"data/{name}_{language}.jsonl", upstream_dir=origin.upstream_dir)
        items = read_items(path, category, control=name.endswith(CONTROL))
        table = table_of(rows_of(items, origin.shuffle(NAME, category, "order")))
        names = [template.partition("_")[2].replace(CONTROL, "") for template in table["template_id"].to_pylist()]
        return table.set_column(table.schema.get_field_index("template_id"), "template_id", pa.array(names))


BENCHMARK = FourLanguages()
