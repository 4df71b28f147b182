"""BBQ: 11 categories, as questions and as inference, from a source that is never replaced silently."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from qabias.building.origin import BUNDLED, TextOrigin
from qabias.errors import QabiasError
from qabias.support.suggest import unknown

from . import bundled, bundled_inference, official, official_inference, release
from .examples import Row
from .inference import ALL_NLI, CATEGORY_CONFIGS, NLI_CONFIGS, NLI_SCHEMA
from .template import CATEGORIES

__all__ = [
    "ALL",
    "ALL_NLI",
    "CATEGORIES",
    "CONFIGS",
    "NLI_CONFIGS",
    "NLI_SCHEMA",
    "SCHEMA",
    "SOURCES",
    "Origin",
]

ALL = "all"
CONFIGS = (*CATEGORIES, ALL)
# The configs that contain others.
GROUPS = {ALL: CATEGORIES, ALL_NLI: CATEGORY_CONFIGS}
SOURCES = ("bundled", "official", "release")

ANSWERS = ("ans0", "ans1", "ans2")
_STRINGS = pa.list_(pa.string())

SCHEMA = pa.schema(
    [
        ("example_id", pa.int32()),
        ("question_index", pa.string()),
        ("question_polarity", pa.string()),
        ("context_condition", pa.string()),
        ("category", pa.string()),
        ("answer_info", pa.struct([(answer, _STRINGS) for answer in ANSWERS])),
        (
            "additional_metadata",
            pa.struct(
                [
                    ("subcategory", pa.string()),
                    ("stereotyped_groups", _STRINGS),
                    ("version", pa.string()),
                    ("source", pa.string()),
                ]
            ),
        ),
        ("context", pa.string()),
        ("question", pa.string()),
        *((answer, pa.string()) for answer in ANSWERS),
        ("label", pa.int64()),
        ("target_loc", pa.int8()),
        ("biased_loc", pa.int8()),
        ("unknown_loc", pa.int8()),
        ("label_type", pa.string()),
        ("comparison", pa.string()),
        ("social_value", pa.string()),
        ("template_id", pa.string()),
        ("set_id", pa.string()),
    ]
)


@dataclass(frozen=True)
class Origin(TextOrigin):
    """The source of the texts: `bundled`, `official` (the authors' templates) or `release` (their examples).

    `release` has no random draws.
    """

    sources = SOURCES

    @property
    def is_committed(self) -> bool:
        """Whether the committed Parquet files hold the tables."""
        return super().is_committed and self.seed == 0

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature, e.g. "bundled@1" or "official+fixes@bea11bd"."""
        return self.version_of(bundled.VERSION, official.REPOSITORY)

    @property
    def inference_version(self) -> str:
        """The same for BBQ as inference, whose published templates are in another repository."""
        return self.version_of(bundled.VERSION, official_inference.REPOSITORY)

    def rows(self, config: str) -> Iterator[Row]:
        """The examples of one category, or the rows of one config of BBQ as inference.

        Raises:
            QabiasError: If the config is unknown or not published, or a file is missing or wrong.
        """
        if config in NLI_CONFIGS:
            return self._inference_rows(config)
        if config not in CATEGORIES:
            raise unknown("configuration", config, (*CATEGORIES, *NLI_CONFIGS))
        if self.source == BUNDLED:
            return bundled.generate(config, seed=self.seed)
        if self.source == "official":
            return official.generate(config, seed=self.seed, fixes=self.fixes)
        return release.generate(config, fixes=self.fixes)

    def _inference_rows(self, config: str) -> Iterator[Row]:
        if self.source == BUNDLED:
            return bundled_inference.generate(config, seed=self.seed)
        if self.source == "official":
            return official_inference.generate(config, fixes=self.fixes)
        raise QabiasError(
            f"config {config!r}: the authors released no examples of BBQ as inference",
            "use --source bundled or --source official",
        )

    def table(self, config: str) -> pa.Table:
        """The rows of one config as an Arrow table with `SCHEMA`, or `NLI_SCHEMA` for BBQ as inference."""
        return pa.Table.from_pylist(list(self.rows(config)), schema=NLI_SCHEMA if config in NLI_CONFIGS else SCHEMA)
