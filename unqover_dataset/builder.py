"""UnQover as a builder of `datasets`, whose import takes a second: counting and model queries need only `origin`."""

from collections.abc import Iterable
from dataclasses import dataclass

import datasets
import pyarrow as pa

from qabias.building.builder import OriginBuilder, OriginConfig

from .columns import batches
from .origin import CONFIGS, DEFAULT, SCHEMAS, Origin

FEATURES = {config: datasets.Features.from_arrow_schema(columns) for config, columns in SCHEMAS.items()}


@dataclass
class UnQoverConfig(OriginConfig):
    """A set of UnQover, with the fields of `Origin` and a mirror."""

    subjects: str | None = None
    origin_class = Origin


class UnQover(OriginBuilder):
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

    def _pieces(self, table: pa.Table) -> Iterable[pa.Table]:
        return batches(table)
