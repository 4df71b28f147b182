"""KoBBQ for the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from qabias.benchmarks.kobbq import NAME, prompts
from qabias.benchmarks.kobbq.about import ABOUT
from qabias.benchmarks.kobbq.released import CATEGORIES, read_items
from qabias.benchmarks.multilingual.benchmark import ALL, ORDERS, PublishedQuestions, SetOrigin, set_facts
from qabias.benchmarks.multilingual.formats import formats_in
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import rows_of, table_of
from qabias.benchmarks.prompt_format import Example
from qabias.building.sources import fetch

TITLE = "KoBBQ: BBQ for South Korea, in Korean"
CITATION = (
    "Jiho Jin, Jiseon Kim, Nayeon Lee, Haneul Yoo, Alice Oh and Hwaran Lee (2024). KoBBQ: Korean bias benchmark for "
    "question answering. <cite>Transactions of the Association for Computational Linguistics</cite> 12, 507–524. "
    '<a href="https://doi.org/10.1162/tacl_a_00661">doi:10.1162/tacl_a_00661</a>'
)


class KoreanQuestions(PublishedQuestions):
    """KoBBQ: Korean Bias Benchmark for Question Answering (Jin et al. 2024)."""

    name = NAME
    title = TITLE
    repository = "naver-ai/KoBBQ"
    categories = CATEGORIES
    configs = (*CATEGORIES, ALL)
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS, "part": ("test", "all")})
    facts = set_facts(NAME, TITLE, CITATION)
    about = ABOUT

    def __init__(self) -> None:
        self.formats = {**formats_in(self.language_of), **prompts.formats()}

    def language_of(self, example: Example) -> Language:
        """Korean."""
        return load_language("ko")

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The samples of one category, set by set."""
        prompts.PROMPTS.look_in(origin.upstream_dir)
        samples, templates = (
            fetch(self.repository, f"data/KoBBQ_{name}.tsv", upstream_dir=origin.upstream_dir)
            for name in (f"{origin.options['part']}_samples", "templates")
        )
        return table_of(rows_of(read_items(samples, templates, category), origin.shuffle(NAME, category, "order")))


BENCHMARK = KoreanQuestions()
