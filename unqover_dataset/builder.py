"""UnQover as a builder of `datasets`, whose import takes a second: counting and model queries need only `origin`."""

from collections.abc import Iterator
from dataclasses import dataclass

import datasets
import pyarrow as pa

from qabias.building.sources import using_mirror

from .columns import batches
from .origin import CONFIGS, DEFAULT, SCHEMAS, Origin

FEATURES = {config: datasets.Features.from_arrow_schema(columns) for config, columns in SCHEMAS.items()}


@dataclass
class UnQoverConfig(datasets.BuilderConfig):
    """A set of UnQover, with the fields of `Origin` and a mirror."""

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False
    mirror: str | None = None
    subjects: str | None = None

    @property
    def origin(self) -> Origin:
        """The source of the texts."""
        return Origin(self.source, self.seed, self.fixes, self.subjects)


class UnQover(datasets.ArrowBasedBuilder):
    """Builder of UnQover (Li et al., 2020): `UnQover(config_name="gender").download_and_prepare()`."""

    BUILDER_CONFIG_CLASS = UnQoverConfig
    BUILDER_CONFIGS = [UnQoverConfig(name=name) for name in CONFIGS]  # noqa: RUF012  # as `datasets` declares it
    DEFAULT_CONFIG_NAME = DEFAULT

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="UnQover: underspecified questions that uncover stereotypes of question answering models.",
            features=FEATURES[self.config.name],
            homepage="https://github.com/allenai/unqover",
            license="apache-2.0",
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(datasets.Split.TEST)]

    def _generate_tables(self) -> Iterator[tuple[int, pa.Table]]:
        with using_mirror(self.config.mirror):
            table = self.config.origin.table(self.config.name)
        yield from enumerate(batches(table))
