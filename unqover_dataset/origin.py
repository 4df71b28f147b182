"""UnQover: four sets, as questions and as masked sentences, from two sources."""

from dataclasses import dataclass

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

# By config: the columns with plain strings, as in `datasets` and Parquet.
SCHEMAS = {config: schema(config.endswith(MLM)) for config in CONFIGS}


@dataclass(frozen=True)
class Origin:
    """The source of the texts.

    Attributes:
        source: `bundled` (the published tables with attributes of this project) or `official` (the authors' lists).
        seed: Unused, because nothing is random. Every benchmark has this field.
        fixes: Fix the known defects of the published lists; `bundled` has none.
        subjects: Subjects of the `_mlm` configs of `official`: `all`, or the authors' selection for BERT (the default)
            or RoBERTa, whose vocabularies hold these words whole. `bundled` always has all subjects.
    """

    source: str = "bundled"
    seed: int = 0
    fixes: bool = False
    subjects: str | None = None

    def __post_init__(self) -> None:
        check_source(self.source, SOURCES, self.fixes)
        if self.subjects is not None and self.subjects not in SUBJECTS:
            raise unknown("subjects", self.subjects, SUBJECTS)
        if self.subjects in ("bert", "roberta") and self.source == BUNDLED:
            raise QabiasError(
                f"subjects {self.subjects!r} is a published selection, which the source bundled does not have",
                "use --source official, or remove the option subjects",
            )

    @property
    def is_committed(self) -> bool:
        """Whether the committed Parquet files hold the tables."""
        return self.source == BUNDLED

    @property
    def version(self) -> str:
        """Name, fixes, version and subjects for the signature, e.g. "official+fixes@3e47969+subjects=roberta"."""
        if self.source == BUNDLED:
            return f"{BUNDLED}@{bundled.VERSION}"
        subjects = "" if self.subjects in (None, official.DEFAULT_SUBJECTS) else f"+subjects={self.subjects}"
        return f"official{'+fixes' if self.fixes else ''}@{official.version()}{subjects}"

    def design(self, config: str) -> Design:
        """The pairs, templates and attributes of one config.

        Raises:
            QabiasError: If the config is unknown, or a file is missing or wrong.
        """
        if config not in CONFIGS:
            raise unknown("configuration", config, CONFIGS)
        name, masked = config.removesuffix(MLM), config.endswith(MLM)
        if self.source == BUNDLED:
            return bundled.read_design(name, masked=masked)
        subjects = (self.subjects or official.DEFAULT_SUBJECTS) if masked else "all"
        return official.read_design(name, masked=masked, subjects=subjects, fixes=self.fixes)

    def table(self, config: str) -> pa.Table:
        """The examples of one config, with dictionary-encoded texts.

        `columns.batches` decodes them to plain strings, with `SCHEMAS[config]`. A whole table of plain strings takes up
        to half a gigabyte.
        """
        return cross(self.design(config), config, masked=config.endswith(MLM))
