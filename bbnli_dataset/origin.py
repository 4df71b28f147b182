"""BBNLI: 16 subtopics, 3 domains and `all`, from a source that is never replaced silently."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from qabias.building.origin import BUNDLED, TextOrigin
from qabias.building.sources import licence

from . import bundled, official
from .pairs import Row
from .subtopics import subtopics_of

SOURCES = TextOrigin.sources

SCHEMA = pa.schema(
    [
        ("example_id", pa.string()),
        ("subtopic", pa.string()),
        ("domain", pa.string()),
        ("cognitive_bias", pa.string()),
        ("premise_id", pa.int16()),
        ("hypothesis_id", pa.int16()),
        ("variant_id", pa.int16()),
        ("kind", pa.string()),
        ("stance", pa.string()),
        ("premise", pa.string()),
        ("hypothesis", pa.string()),
        ("question", pa.string()),
        ("label", pa.int64()),
        ("bias_label", pa.int8()),
        ("reference", pa.string()),
        ("pair_id", pa.string()),
    ]
)


@dataclass(frozen=True)
class Origin(TextOrigin):
    """The source of the texts. Nothing is random.

    Fixes drop the published rows that repeat stance, premise and hypothesis, and differ only in the question.
    """

    @property
    def version(self) -> str:
        """Name, fixes and version for the signature, e.g. "bundled@1" or "official+fixes@9f55895"."""
        return self.version_of(bundled.VERSION, official.REPOSITORY)

    @property
    def licence(self) -> str:
        """Licence of the texts as an SPDX identifier."""
        return "Apache-2.0" if self.source == BUNDLED else licence(official.REPOSITORY)

    def rows(self, config: str) -> Iterator[Row]:
        """The rows of a subtopic, a domain or `all`.

        Raises:
            QabiasError: If the config is unknown, or a file is missing or wrong.
        """
        for subtopic in subtopics_of(config):
            if self.source == BUNDLED:
                yield from bundled.generate(subtopic)
            else:
                yield from official.generate(subtopic, fixes=self.fixes)

    def table(self, config: str) -> pa.Table:
        """The rows of a subtopic, a domain or `all` as an Arrow table with `SCHEMA`."""
        return pa.Table.from_pylist(list(self.rows(config)), schema=SCHEMA)
