"""BasqBBQ (Saralegi and Zulaika 2025): BBQ in Basque."""

from __future__ import annotations

import pyarrow as pa

from qabias.benchmarks.multilingual.benchmark import PublishedQuestions, SetOrigin
from qabias.benchmarks.multilingual.rows import read_items, rows_of, table_of


class BasqueQuestions(PublishedQuestions):
    """BBQ in Basque; its answers are released in many orders."""

    categories = (
        *("Adin", "Arraza_etnizitate", "Ezgaitasun_egoera", "Genero_identitate", "Itxura_fisikoa", "MSE"),
        *("Nazionalitate", "Orientazio_sexual"),
    )

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category."""
        return table_of(rows_of(read_items(self.fetch(f"data/BasqBBQ/{category}.jsonl", origin), category)))


BENCHMARK = BasqueQuestions("basqbbq")
