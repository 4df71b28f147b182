"""BBQ as a `datasets` builder: 11 categories and `all`, from three sources that are never swapped silently."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import datasets
import pyarrow as pa

from qabias.errors import QabiasError

from . import bundled, official, release
from .examples import Row
from .template import CATEGORIES

ALL = "all"
CONFIGS = (*CATEGORIES, ALL)
Source = Literal["bundled", "official", "release"]
SOURCES: tuple[Source, ...] = get_args(Source)

_ANSWERS = ("ans0", "ans1", "ans2")
_STRINGS = pa.list_(pa.string())

SCHEMA = pa.schema(
    [
        ("example_id", pa.int32()),
        ("question_index", pa.string()),
        ("question_polarity", pa.string()),
        ("context_condition", pa.string()),
        ("category", pa.string()),
        ("answer_info", pa.struct([(answer, _STRINGS) for answer in _ANSWERS])),
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
        *((answer, pa.string()) for answer in _ANSWERS),
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
FEATURES = datasets.Features(
    {
        **datasets.Features.from_arrow_schema(SCHEMA),
        "label": datasets.ClassLabel(names=list(_ANSWERS)),
    }
)


@dataclass(frozen=True)
class Origin:
    """Where the texts come from.

    Attributes:
        source: `bundled` (this project's templates), `official` (the authors' templates) or `release` (their examples).
        seed: Seed of the random draws; `release` has none.
        fixes: Mend the known defects of the published data; `bundled` has none to mend.
        upstream_dir: Local mirror of the published files; else they are downloaded once.
    """

    source: Source = "bundled"
    seed: int = 0
    fixes: bool = False
    upstream_dir: str | Path | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise QabiasError(f"unknown source {self.source!r}: choose one of {', '.join(SOURCES)}")
        if self.fixes and self.source == "bundled":
            raise QabiasError("fixes mend the published data; use them with the source official or release")

    @property
    def version(self) -> str:
        """Name, version and fixes for the signature, e.g. "bundled@0" or "official+fixes@bea11bd"."""
        version = bundled.VERSION if self.source == "bundled" else official.version()
        return f"{self.source}{'+fixes' if self.fixes else ''}@{version}"

    def rows(self, category: str) -> Iterator[Row]:
        """The examples of one category.

        Raises:
            QabiasError: If the category is unknown, or a file cannot be had or read.
        """
        if category not in CATEGORIES:
            raise QabiasError(f"unknown configuration {category!r}: choose one of {', '.join(CONFIGS)}")
        if self.source == "bundled":
            return bundled.generate(category, seed=self.seed)
        if self.source == "official":
            return official.generate(category, seed=self.seed, fixes=self.fixes, upstream_dir=self.upstream_dir)
        return release.generate(category, fixes=self.fixes, upstream_dir=self.upstream_dir)

    def table(self, category: str) -> pa.Table:
        """The examples of one category as an Arrow table with `SCHEMA`."""
        return pa.Table.from_pylist(list(self.rows(category)), schema=SCHEMA)


@dataclass
class BBQConfig(datasets.BuilderConfig):
    """A category (or `all`) of BBQ, with the fields of `Origin`."""

    source: Source = "bundled"
    seed: int = 0
    fixes: bool = False
    upstream_dir: str | None = None

    @property
    def origin(self) -> Origin:
        """Where the texts come from."""
        return Origin(self.source, self.seed, self.fixes, self.upstream_dir)


class BBQ(datasets.ArrowBasedBuilder):
    """Builder of BBQ (Parrish et al. 2022): `BBQ(config_name="Age", source="official").download_and_prepare()`."""

    BUILDER_CONFIG_CLASS = BBQConfig
    BUILDER_CONFIGS = [BBQConfig(name=name) for name in CONFIGS]  # noqa: RUF012  # as `datasets` declares it
    DEFAULT_CONFIG_NAME = ALL

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Bias Benchmark for Question Answering: multiple-choice questions that test attested biases.",
            features=FEATURES,
            homepage="https://github.com/nyu-mll/BBQ",
            license="cc-by-4.0" if self.config.source != "bundled" else "apache-2.0",
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        categories = CATEGORIES if self.config.name == ALL else (self.config.name,)
        return [datasets.SplitGenerator(datasets.Split.TEST, gen_kwargs={"categories": list(categories)})]

    def _generate_tables(self, categories: list[str]) -> Iterator[tuple[int, pa.Table]]:
        for number, category in enumerate(categories):
            yield number, self.config.origin.table(category)
