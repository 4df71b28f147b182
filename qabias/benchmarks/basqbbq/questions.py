"""BasqBBQ for the engine."""

from __future__ import annotations

import pyarrow as pa

from qabias.benchmarks.basqbbq import BASQBBQ
from qabias.benchmarks.basqbbq.about import ABOUT
from qabias.benchmarks.multilingual.benchmark import ALL, PublishedQuestions, SetOrigin, set_facts
from qabias.benchmarks.multilingual.formats import formats_in
from qabias.benchmarks.multilingual.jsonl import read_items
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import rows_of, table_of
from qabias.benchmarks.prompt_format import Example
from qabias.building.sources import fetch

CITATION = (
    "Xabier Saralegi and Muitze Zulaika (2025). BasqBBQ: A QA benchmark for assessing social biases in LLMs for "
    "Basque, a low-resource language. <cite>Proceedings of the 31st International Conference on Computational "
    'Linguistics</cite>. <a href="https://github.com/orai-nlp/BasqBBQ">orai-nlp/BasqBBQ</a>'
)

CATEGORIES = (
    *("Adin", "Arraza_etnizitate", "Ezgaitasun_egoera", "Genero_identitate", "Itxura_fisikoa", "MSE"),
    *("Nazionalitate", "Orientazio_sexual"),
)


class BasqueQuestions(PublishedQuestions):
    """BBQ in Basque; its answers stand in many orders as they are released."""

    name = BASQBBQ
    title = "BasqBBQ: BBQ in Basque"
    repository = "orai-nlp/BasqBBQ"
    categories = CATEGORIES
    configs = (*CATEGORIES, ALL)
    facts = set_facts(BASQBBQ, title, CITATION)
    about = ABOUT

    def __init__(self) -> None:
        self._language = load_language("eu")
        self.formats = formats_in(self.language_of)

    def language_of(self, example: Example) -> Language:
        """The language of all examples."""
        return self._language

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category."""
        path = fetch(self.repository, f"data/BasqBBQ/{category}.jsonl", upstream_dir=origin.upstream_dir)
        return table_of(rows_of(read_items(path, category)))


BENCHMARK = BasqueQuestions()
