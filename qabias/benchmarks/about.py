"""What the card of a dataset says of texts that their authors published and this package does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qabias.building import sources
from qabias.building.licences import NO_LICENCE, Licence, licence_of


@dataclass(frozen=True)
class About:
    """A published set, as its card describes it.

    Attributes:
        name: Short name for people, e.g. "KoBBQ".
        codes: ISO 639-1 codes of its languages.
        languages: The same in words, e.g. "Korean".
        society: Whose stereotypes it tests, e.g. "South Korea".
        authors: Whom the card must name, e.g. "Parrish et al.".
        created: Date of the publication, as YYYY-MM-DD.
        summary: What it is, in a few sentences.
        homepage: Where the authors published the texts.
        paper: Where the paper can be read.
        bibtex: The paper's entry.
        making: How the authors made the texts, in a few sentences.
        repository: The pinned repository as `owner/name`; "" where there is none.
        licence: An identifier of `qabias.building.licences`, where no pinned repository says it.
        defects: Known defects of the published texts, and how they are treated, a sentence each.
    """

    name: str
    codes: Sequence[str]
    languages: str
    society: str
    authors: str
    created: str
    summary: str
    homepage: str
    paper: str
    bibtex: str
    making: str
    repository: str = ""
    licence: str = ""
    defects: Sequence[str] = ()

    @property
    def licence_id(self) -> str:
        """Identifier of its licence: that of the pinned repository, unless it has one of its own."""
        return self.licence or (sources.licence(self.repository) if self.repository else NO_LICENCE)

    @property
    def terms(self) -> Licence:
        """Its licence."""
        return licence_of(self.licence_id)
