"""BBNLI as a builder of `datasets`, whose import takes a second: counting and model queries need only `origin`."""

from collections.abc import Iterator
from dataclasses import dataclass

import datasets
import pyarrow as pa

from qabias.building.sources import using_mirror

from .origin import SCHEMA, Origin
from .pairs import LABELS
from .subtopics import ALL, CONFIGS, subtopics_of

FEATURES = datasets.Features(
    {
        **datasets.Features.from_arrow_schema(SCHEMA),
        "label": datasets.ClassLabel(names=list(LABELS)),
    }
)


@dataclass
class BBNLIConfig(datasets.BuilderConfig):
    """A subtopic, a domain or `all` of BBNLI, with the fields of `Origin` and a mirror."""

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False
    mirror: str | None = None

    @property
    def origin(self) -> Origin:
        """The source of the texts."""
        return Origin(self.source, self.seed, self.fixes)


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
            with using_mirror(self.config.mirror):
                table = self.config.origin.table(subtopic)
            yield number, table
