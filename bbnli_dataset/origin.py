"""BBNLI: 16 subtopics, 3 domains and `all`, from a source that is never replaced silently."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from qabias.building.origin import BUNDLED, check_source
from qabias.building.sources import licence

from . import bundled, official
from .pairs import Row
from .subtopics import subtopics_of

SOURCES = ("bundled", "official")

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
class Origin:
    """The source of the texts.

    Attributes:
        source: `bundled` (this project's texts) or `official` (the authors' files).
        seed: Unused, because nothing is random. Every benchmark has this field.
        fixes: Drop published rows that repeat stance, premise and hypothesis (and differ only in the question).
            `bundled` has none.
    """

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False

    def __post_init__(self) -> None:
        check_source(self.source, SOURCES, self.fixes)

    @property
    def is_committed(self) -> bool:
        """Whether the committed Parquet files hold the tables."""
        return self.source == BUNDLED

    @property
    def version(self) -> str:
        """Name and version for the signature, e.g. "bundled@1" or "official+fixes@9f55895"."""
        if self.source == BUNDLED:
            return f"{BUNDLED}@{bundled.VERSION}"
        version = official.version()
        return f"{self.source}{'+fixes' if self.fixes else ''}@{version}"

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
