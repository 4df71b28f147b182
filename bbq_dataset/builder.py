"""BBQ as a builder of `datasets`, whose import takes a second: counting and model queries need only `origin`."""

from collections.abc import Iterator
from dataclasses import dataclass

import datasets
import pyarrow as pa

from qabias.building.origin import BUNDLED
from qabias.building.sources import using_mirror

from .inference import ALL_NLI, LABELS, NLI_CONFIGS, NLI_SCHEMA
from .origin import ALL, ANSWERS, CONFIGS, GROUPS, SCHEMA, Origin

FEATURES = datasets.Features(
    {
        **datasets.Features.from_arrow_schema(SCHEMA),
        "label": datasets.ClassLabel(names=list(ANSWERS)),
    }
)
NLI_FEATURES = datasets.Features(
    {
        **datasets.Features.from_arrow_schema(NLI_SCHEMA),
        "label": datasets.ClassLabel(names=list(LABELS)),
    }
)


@dataclass
class BBQConfig(datasets.BuilderConfig):
    """A category (or `all`) of BBQ, or of BBQ as inference, with the fields of `Origin` and a mirror."""

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False
    mirror: str | None = None

    @property
    def origin(self) -> Origin:
        """The source of the texts."""
        return Origin(self.source, self.seed, self.fixes)


class BBQ(datasets.ArrowBasedBuilder):
    """Builder of BBQ (Parrish et al. 2022): `BBQ(config_name="Age", source="official").download_and_prepare()`."""

    BUILDER_CONFIG_CLASS = BBQConfig
    BUILDER_CONFIGS = [BBQConfig(name=name) for name in (*CONFIGS, *NLI_CONFIGS, ALL_NLI)]  # noqa: RUF012  # as `datasets` declares it
    DEFAULT_CONFIG_NAME = ALL

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Bias Benchmark for Question Answering: multiple-choice questions that test attested biases.",
            features=NLI_FEATURES if self.config.name in (*NLI_CONFIGS, ALL_NLI) else FEATURES,
            homepage="https://github.com/nyu-mll/BBQ",
            license="apache-2.0" if self.config.source == BUNDLED else "cc-by-4.0",
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        names = GROUPS.get(self.config.name, (self.config.name,))
        return [datasets.SplitGenerator(datasets.Split.TEST, gen_kwargs={"names": list(names)})]

    def _generate_tables(self, names: list[str]) -> Iterator[tuple[int, pa.Table]]:
        for number, name in enumerate(names):
            with using_mirror(self.config.mirror):
                table = self.config.origin.table(name)
            yield number, table
