"""BBNLI as a `datasets` builder: 16 subtopics, 3 domains and `all`, from two sources never swapped silently."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import datasets
import pyarrow as pa

from qabias.building.origin import BUNDLED, check_source
from qabias.building.sources import licence

from . import bundled, official
from .pairs import LABELS, Row
from .subtopics import ALL, CONFIGS, subtopics_of

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
FEATURES = datasets.Features(
    {
        **datasets.Features.from_arrow_schema(SCHEMA),
        "label": datasets.ClassLabel(names=list(LABELS)),
    }
)


@dataclass(frozen=True)
class Origin:
    """Where the texts come from.

    Attributes:
        source: `bundled` (this project's texts) or `official` (the authors' files).
        seed: Unused, because nothing is drawn at random. Every benchmark has this field.
        fixes: Leave out published rows that repeat stance, premise and hypothesis and differ in the question only.
            `bundled` repeats none.
        upstream_dir: Local mirror of the published files; else they are downloaded once.
    """

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False
    upstream_dir: str | Path | None = None

    def __post_init__(self) -> None:
        check_source(self.source, SOURCES, self.fixes)

    @property
    def is_committed(self) -> bool:
        """Whether the tables are those of the committed Parquet files, so that nothing need be built."""
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
            QabiasError: If the configuration is unknown, or a file is not available or not readable.
        """
        for subtopic in subtopics_of(config):
            if self.source == BUNDLED:
                yield from bundled.generate(subtopic)
            else:
                yield from official.generate(subtopic, fixes=self.fixes, upstream_dir=self.upstream_dir)

    def table(self, config: str) -> pa.Table:
        """The rows of a subtopic, a domain or `all` as an Arrow table with `SCHEMA`."""
        return pa.Table.from_pylist(list(self.rows(config)), schema=SCHEMA)


@dataclass
class BBNLIConfig(datasets.BuilderConfig):
    """A subtopic, a domain or `all` of BBNLI, with the fields of `Origin`."""

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False
    upstream_dir: str | None = None

    @property
    def origin(self) -> Origin:
        """Where the texts come from."""
        return Origin(self.source, self.seed, self.fixes, self.upstream_dir)


class BBNLI(datasets.ArrowBasedBuilder):
    """Builder of BBNLI (Akyurek et al. 2022): `BBNLI(config_name="race", source="official").download_and_prepare()`."""

    BUILDER_CONFIG_CLASS = BBNLIConfig
    BUILDER_CONFIGS = [BBNLIConfig(name=name) for name in CONFIGS]  # noqa: RUF012  # as `datasets` declares it
    DEFAULT_CONFIG_NAME = ALL

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Bias Benchmark for Natural Language Inference: premises that never settle a stereotype.",
            features=FEATURES,
            homepage="https://github.com/feyzaakyurek/bbnli",
            license=self.config.origin.licence.lower(),
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(datasets.Split.TEST)]

    def _generate_tables(self) -> Iterator[tuple[int, pa.Table]]:
        for number, subtopic in enumerate(subtopics_of(self.config.name)):
            yield number, self.config.origin.table(subtopic)
