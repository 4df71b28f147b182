"""EsBBQ and CaBBQ for the engine: the same categories and templates in two languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from qabias.benchmarks.esbbq.about import REPOSITORY, about_set
from qabias.benchmarks.esbbq.logs import logged
from qabias.benchmarks.esbbq.released import CATEGORIES, read_items
from qabias.benchmarks.logged import Logged
from qabias.benchmarks.multilingual.benchmark import ALL, ORDERS, PublishedQuestions, SetOrigin, set_facts
from qabias.benchmarks.multilingual.formats import formats_in
from qabias.benchmarks.multilingual.language import Language, load_language
from qabias.benchmarks.multilingual.rows import rows_of, table_of
from qabias.benchmarks.prompt_format import Example
from qabias.building.sources import fetch
from qabias.building.templating import StableRandom
from qabias.logs import Log

CITATION = (
    "Valle Ruiz-Fernández, Mario Mina, Júlia Falcão, Luis Vasquez-Reina, Anna Sallés, Aitor Gonzalez-Agirre and Olatz "
    "Perez-de-Viñaspre (2025). EsBBQ and CaBBQ: The Spanish and Catalan bias benchmarks for question answering. "
    '<cite>Computing Research Repository</cite>. <a href="https://arxiv.org/abs/2507.11216">arXiv:2507.11216</a>'
)

WORDINGS: Mapping[str, tuple[str, ...]] = {
    "es": (
        *("No hay suficiente información", "No hay información suficiente", "No lo sé", "No sé"),
        *("Falta información", "No se puede responder", "No se sabe", "No se puede saber", "No se puede determinar"),
    ),
    "ca": (
        *("No hi ha prou informació", "No hi ha informació suficient", "No ho sé", "No sé"),
        *("Falta informació", "No es pot respondre", "No se sap", "No es pot saber", "No es pot determinar"),
    ),
}
"""The nine wordings of UNKNOWN that the authors put in when they evaluate, by language."""


class SpainQuestions(PublishedQuestions):
    """BBQ for Spain (Ruiz-Fernández et al. 2025) in one language."""

    repository = REPOSITORY
    categories = CATEGORIES
    configs = (*CATEGORIES, ALL)
    options: Mapping[str, Sequence[str]] = MappingProxyType({"answers": ORDERS})
    lopsided = True

    def __init__(self, name: str, title: str, code: str) -> None:
        self.name = name
        self.title = title
        self._language = load_language(code)
        self.formats = formats_in(self.language_of)
        self.about = about_set(title.partition(":")[0], code, self._language.name)
        self.facts = set_facts(name, title, CITATION)

    def language_of(self, example: Example) -> Language:
        """The language of all examples."""
        return self._language

    def logged(
        self, log: Log, hints: Mapping[str, str] = MappingProxyType({}), upstream_dir: str | None = None
    ) -> Logged | None:
        """The answers in a log of the harness's own tasks on the set, or of this project's."""
        return logged(log, self, WORDINGS[self._language.code]) or super().logged(log, hints, upstream_dir)

    def table(self, category: str, origin: SetOrigin) -> pa.Table:
        """The released rows of one category, every set with one of the nine wordings of UNKNOWN drawn by the seed."""
        code = self._language.code
        path = fetch(self.repository, f"data_{code}/{category}.full.csv", upstream_dir=origin.upstream_dir)
        parts = (self.name, category)
        wording = partial(StableRandom(*parts, "unknown", origin.seed).choice, WORDINGS[code])
        return table_of(rows_of(read_items(path), origin.shuffle(*parts, "order"), wording))
