"""BBNLI as a builder of `datasets`, whose import takes a second: counting and model queries need only `origin`."""

from collections.abc import Sequence

import datasets

from qabias.building.builder import OriginBuilder, OriginConfig, features_of

from .origin import SCHEMA, Origin
from .pairs import LABELS
from .subtopics import ALL, CONFIGS, subtopics_of

FEATURES = features_of(SCHEMA, LABELS)


class BBNLIConfig(OriginConfig):
    """A subtopic, a domain or `all` of BBNLI, with the fields of `Origin` and a mirror."""

    origin_class = Origin


class BBNLI(OriginBuilder):
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

    def _names(self) -> Sequence[str]:
        return subtopics_of(self.config.name)
