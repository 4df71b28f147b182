"""The card of a dataset that its authors published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from qabias.building import sources
from qabias.building.origin import NO_LICENCE, Licence, licence_of
from qabias.errors import QabiasError


@dataclass(frozen=True)
class Card:
    """The card of a published set."""

    title: str
    name: str
    codes: Sequence[str]
    languages: str
    society: str
    authors: str
    summary: str
    homepage: str
    paper: str
    citation: str
    bibtex: str
    making: str
    repository: str = ""
    licence: str = ""
    defects: Sequence[str] = ()

    @property
    def licence_id(self) -> str:
        """Identifier of its licence, by default the pinned repository's."""
        return self.licence or (sources.licence(self.repository) if self.repository else NO_LICENCE)

    @property
    def terms(self) -> Licence:
        """Its licence."""
        return licence_of(self.licence_id)


def read_card(path: Path) -> Card:
    """A card from its YAML file with the fields of `Card`."""
    try:
        return Card(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except TypeError as error:
        raise QabiasError(
            f"{path}: {str(error).removeprefix('Card.__init__() ')}.", "Use the fields of the other cards."
        ) from error
