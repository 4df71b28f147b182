"""GG-BBQ for the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from qabias.benchmarks.ggbbq import GGBBQ
from qabias.benchmarks.ggbbq.about import ABOUT
from qabias.benchmarks.ggbbq.released import read_items
from qabias.benchmarks.multilingual.benchmark import ALL, ORDERS, PublishedQuestions, SetOrigin, set_facts
from qabias.benchmarks.multilingual.formats import formats_in
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import rows_of, table_of
from qabias.benchmarks.prompt_format import Example
from qabias.building.sources import fetch

CITATION = (
    "Shalaka Satheesh, Katrin Klug, Katharina Beckh, Héctor Allende-Cid, Sebastian Houben and Teena Hassan (2025). "
    "GG-BBQ: German gender bias benchmark for question answering. "
    "<cite>Proceedings of the 6th Workshop on Gender Bias in Natural Language Processing</cite>, 137–148. "
    '<a href="https://aclanthology.org/2025.gebnlp-1.14/">2025.gebnlp-1.14</a>'
)

PARTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"labels": ("subset-1", "bbq_de"), "names": ("subset-2", "bbq_de_proper_names")}
)
"""The two parts: folder of the files, and how their names begin."""


class GermanQuestions(PublishedQuestions):
    """BBQ's questions about gender in German (Satheesh et al. 2025), with words for groups and with names."""

    name = GGBBQ
    title = "GG-BBQ: BBQ's questions about gender, in German"
    repository = "shalakasatheesh/GG-BBQ"
    categories = tuple(PARTS)
    configs = (*PARTS, ALL)
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS})
    facts = set_facts(GGBBQ, title, CITATION)
    about = ABOUT

    def __init__(self) -> None:
        self._language = load_language("de")
        self.formats = formats_in(self.language_of)

    def language_of(self, example: Example) -> Language:
        """The language of all examples."""
        return self._language

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one part; the four of a set follow one another, with their answers in one order."""
        folder, stem = PARTS[category]
        paths = (
            f"data/{folder}/{stem}_amb_test.jsonl",
            f"data/{folder}/{stem}_disamb_test.jsonl",
            f"templates/{folder}.csv",
        )
        files = [fetch(self.repository, path, upstream_dir=origin.upstream_dir) for path in paths]
        return table_of(rows_of(read_items(category, *files), origin.shuffle(self.name, category, "order")))


BENCHMARK = GermanQuestions()
