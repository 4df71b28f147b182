"""UnQover: four sets, as questions and as masked sentences, from two sources."""

from dataclasses import dataclass

import pyarrow as pa

from qabias.building.origin import BUNDLED, TextOrigin
from qabias.errors import QabiasError
from qabias.support.suggest import unknown

from . import bundled, official
from .columns import cross, schema
from .design import SETS, Design

MLM = "_mlm"
CONFIGS = (*SETS, *(f"{name}{MLM}" for name in SETS))
DEFAULT = "gender"
SOURCES = TextOrigin.sources
SUBJECTS = ("all", "bert", "roberta")

# By config: the columns with plain strings, as in `datasets` and Parquet.
SCHEMAS = {config: schema(config.endswith(MLM)) for config in CONFIGS}


@dataclass(frozen=True)
class Origin(TextOrigin):
    """The source of the texts. Nothing is random.

    Attributes:
        source: `bundled` (the published tables with attributes of this project) or `official` (the authors' lists).
        subjects: Subjects of the `_mlm` configs of `official`: `all`, or the authors' selection for BERT (the default)
            or RoBERTa, whose vocabularies hold these words whole. `bundled` always has all subjects.
    """

    subjects: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subjects is not None and self.subjects not in SUBJECTS:
            raise unknown("subjects", self.subjects, SUBJECTS)
        if self.subjects in ("bert", "roberta") and self.source == BUNDLED:
            raise QabiasError(
                f"subjects {self.subjects!r} is a published selection, which the source bundled does not have",
                "use --source official, or remove the option subjects",
            )

    @property
    def version(self) -> str:
        """Name, fixes, version and subjects for the signature, e.g. "official+fixes@3e47969+subjects=roberta"."""
        version = self.version_of(bundled.VERSION, official.REPOSITORY)
        is_default = self.source == BUNDLED or self.subjects in (None, official.DEFAULT_SUBJECTS)
        return version if is_default else f"{version}+subjects={self.subjects}"

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
