"""BBQ as a builder of `datasets`, whose import takes a second: counting and model queries need only `origin`."""

from collections.abc import Sequence

import datasets

from qabias.building.builder import OriginBuilder, OriginConfig, features_of
from qabias.building.origin import BUNDLED

from .inference import ALL_NLI, LABELS, NLI_CONFIGS, NLI_SCHEMA
from .origin import ALL, ANSWERS, CONFIGS, GROUPS, SCHEMA, Origin

FEATURES = features_of(SCHEMA, ANSWERS)
NLI_FEATURES = features_of(NLI_SCHEMA, LABELS)


class BBQConfig(OriginConfig):
    """A category (or `all`) of BBQ, or of BBQ as inference, with the fields of `Origin` and a mirror."""

    origin_class = Origin


class BBQ(OriginBuilder):
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

    def _names(self) -> Sequence[str]:
        return GROUPS.get(self.config.name, (self.config.name,))
