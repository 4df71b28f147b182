"""UnQover: four sets, as questions and as masked sentences, from two sources."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from qabias.building.origin import BUNDLED, check_source
from qabias.errors import QabiasError
from qabias.support.suggest import unknown

from . import bundled, official
from .columns import cross, schema
from .design import SETS, Design

MLM = "_mlm"
CONFIGS = (*SETS, *(f"{name}{MLM}" for name in SETS))
DEFAULT = "gender"
SOURCES = ("bundled", "official")
SUBJECTS = ("all", "bert", "roberta")

# By configuration: the columns with plain strings, as `datasets` and Parquet hold them.
SCHEMAS = {config: schema(config.endswith(MLM)) for config in CONFIGS}


@dataclass(frozen=True)
class Origin:
    """Where the texts come from.

    Attributes:
        source: `bundled` (the published tables with attributes of this project) or `official` (the authors' lists).
        seed: Unused, because nothing is drawn at random. Every benchmark has this field.
        fixes: Fix the known defects of the published lists; `bundled` has none to fix.
        mirror: Local mirror of the published files; else they are downloaded once.
        subjects: Who occurs in the `_mlm` configurations of `official`: the authors' selection for BERT (the default)
            or RoBERTa, whose vocabularies hold these words whole, or everyone. `bundled` always has everyone.
    """

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False
    mirror: str | Path | None = None
    subjects: str | None = None

    def __post_init__(self) -> None:
        check_source(self.source, SOURCES, self.fixes)
        if self.subjects is not None and self.subjects not in SUBJECTS:
            raise unknown("subjects", self.subjects, SUBJECTS)
        if self.subjects in ("bert", "roberta") and self.source == BUNDLED:
            raise QabiasError(
                f"subjects {self.subjects!r} is a published selection; use it with the source official "
                "(bundled has everyone, and the scorer leaves out whoever is more than one token)"
            )

    @property
    def is_committed(self) -> bool:
        """Whether the tables are those of the committed Parquet files, so that nothing need be built."""
        return self.source == BUNDLED

    @property
    def version(self) -> str:
        """Name, fixes, version and subjects for the signature, e.g. "official+fixes@3e47969+subjects=roberta"."""
        if self.source == BUNDLED:
            return f"{BUNDLED}@{bundled.VERSION}"
        subjects = "" if self.subjects in (None, official.DEFAULT_SUBJECTS) else f"+subjects={self.subjects}"
        return f"official{'+fixes' if self.fixes else ''}@{official.version()}{subjects}"

    def design(self, config: str) -> Design:
        """The pairs, templates and attributes of one configuration.

        Raises:
            QabiasError: If the configuration is unknown, or a file is not available or not readable.
        """
        if config not in CONFIGS:
            raise unknown("configuration", config, CONFIGS)
        name, masked = config.removesuffix(MLM), config.endswith(MLM)
        if self.source == BUNDLED:
            return bundled.read_design(name, masked=masked)
        subjects = (self.subjects or official.DEFAULT_SUBJECTS) if masked else "all"
        return official.read_design(name, masked=masked, subjects=subjects, fixes=self.fixes, mirror=self.mirror)

    def table(self, config: str) -> pa.Table:
        """The examples of one configuration, texts dictionary-encoded.

        `columns.batches` makes plain strings of them, with `SCHEMAS[config]`. Plain strings of a whole table would take
        up to half a gigabyte.
        """
        return cross(self.design(config), config, masked=config.endswith(MLM))
