"""Sources of texts: the chosen one of a dataset, and whether their licenses allow redistribution."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from qabias.building.sources import version as version_of_pin
from qabias.errors import QabiasError, arg
from qabias.support.suggest import unknown

BUNDLED = "bundled"  # the source of this project's own texts


def check_source(source: str, sources: Sequence[str], fixes: bool) -> None:
    """Check that a dataset has a source, and that fixes apply to it."""
    if source not in sources:
        raise unknown("source", source, sources, arg("source"))
    if fixes and source == BUNDLED:
        published = " or ".join(name for name in sources if name != BUNDLED)
        raise QabiasError("the bundled texts have no known defects to fix", f"use fixes with the source {published}")


@dataclass(frozen=True)
class TextOrigin:
    """The source of a dataset's texts.

    Attributes:
        source: `bundled` (this project's texts), `official` (the authors'), or another of the dataset's sources.
        seed: Seed of the random draws. Every dataset has this field, also if nothing is random.
        fixes: Fix the known defects of the published data; `bundled` has none.
    """

    source: str = BUNDLED
    seed: int = 0
    fixes: bool = False
    sources: ClassVar[tuple[str, ...]] = (BUNDLED, "official")

    def __post_init__(self) -> None:
        check_source(self.source, self.sources, self.fixes)

    @property
    def is_committed(self) -> bool:
        """Whether the committed Parquet files hold the tables."""
        return self.source == BUNDLED

    def version_of(self, bundled: str, repository: str) -> str:
        """Name, fixes and version for the signature, e.g. "bundled@1" or "official+fixes@bea11bd"."""
        version = bundled if self.source == BUNDLED else version_of_pin(repository)
        return f"{self.source}{'+fixes' if self.fixes else ''}@{version}"


NO_LICENCE = "NONE"  # the license of files whose authors state none
CLOSED = "CLOSED"  # the license of files that each user gets from the authors and may not redistribute


class Licence(NamedTuple):
    """A licence."""

    name: str
    terms: str
    allows: bool = True


LICENCES = {
    "Apache-2.0": Licence("Apache-2.0", "they may be passed on and changed, with the licence and a note of changes"),
    "MIT": Licence("MIT", "they may be passed on and changed, with the licence and the copyright notice"),
    "CC0-1.0": Licence("CC0-1.0", "they may be passed on and changed without a condition"),
    "CC-BY-4.0": Licence("CC-BY-4.0", "they may be passed on and changed, with attribution and a note of changes"),
    "CC-BY-SA-4.0": Licence(
        "CC-BY-SA-4.0",
        "they may be passed on and changed, with attribution, a note of changes and under the same licence",
    ),
    "CC-BY-NC-SA-4.0": Licence(
        "CC-BY-NC-SA-4.0",
        "they may be passed on and changed for non-commercial purposes only, with attribution, a note of changes and "
        "under the same licence",
    ),
    NO_LICENCE: Licence("none stated", "their authors state no licence, so only they may pass them on", allows=False),
    CLOSED: Licence("not free", "their authors give them to each user, who may not pass them on", allows=False),
}


def licence_of(identifier: str) -> Licence:
    """The license with an identifier of `LICENCES`."""
    if identifier not in LICENCES:
        raise unknown("licence", identifier, LICENCES)
    return LICENCES[identifier]


def check_passing_on(dataset: str, identifier: str) -> None:
    """Refuse to push texts whose license does not allow it."""
    licence = licence_of(identifier)
    if not licence.allows:
        raise QabiasError(
            f"{dataset}: the texts cannot be pushed: {licence.terms}", "build a private copy: qabias build"
        )
