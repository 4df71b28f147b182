"""What the builders of the datasets share. The import of `datasets` takes a second: only builders and cards need it."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from qabias.building.origin import BUNDLED, TextOrigin
from qabias.building.sources import using_mirror


@dataclass
class OriginConfig(datasets.BuilderConfig):
    """A config of a dataset, with the fields of its `Origin` and a mirror."""

    source: str = BUNDLED
    seed: int = 0
    fixes: bool = False
    mirror: str | None = None
    origin_class: ClassVar[type[TextOrigin]] = TextOrigin

    @property
    def origin(self) -> Any:
        """The source of the texts."""
        return self.origin_class(**{field.name: getattr(self, field.name) for field in fields(self.origin_class)})


class OriginBuilder(datasets.ArrowBasedBuilder):
    """Builds the tables of a config one after the other."""

    def _names(self) -> Sequence[str]:
        """The tables that the config joins."""
        return (self.config.name,)

    def _pieces(self, table: pa.Table) -> Iterable[pa.Table]:
        """The parts of a table as they are stored."""
        return (table,)

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(datasets.Split.TEST, gen_kwargs={"names": list(self._names())})]

    def _generate_tables(self, names: list[str]) -> Iterator[tuple[int, pa.Table]]:
        numbers = itertools.count()
        for name in names:
            with using_mirror(self.config.mirror):
                table = self.config.origin.table(name)
            for piece in self._pieces(table):
                yield next(numbers), piece


def features_of(schema: pa.Schema, labels: Sequence[str]) -> datasets.Features:
    """The columns of a table whose column `label` has names."""
    names = datasets.ClassLabel(names=list(labels))
    return datasets.Features({**datasets.Features.from_arrow_schema(schema), "label": names})
