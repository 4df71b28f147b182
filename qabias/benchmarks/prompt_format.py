"""Named prompt formats: pure functions from an example to what a model is asked.

A format carries a version that goes into the signature of every score; a change of its text is a new version.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from qabias.errors import QabiasError

Example = Mapping[str, Any]


@dataclass(frozen=True)
class PromptFormat:
    """A way of putting an example to a model.

    Attributes:
        name: Name of the format.
        version: Version of its text.
        description: One line for people.
        render: Gives the text before the options, and the options with the blank or newline that goes before them.
    """

    name: str
    version: int
    description: str
    render: Callable[[Example], tuple[str, tuple[str, ...]]]

    @property
    def signature(self) -> str:
        """Name and version, e.g. "qa@1"."""
        return f"{self.name}@{self.version}"


def choose(formats: Mapping[str, PromptFormat], name: str) -> PromptFormat:
    """The format of that name.

    Raises:
        QabiasError: If there is none.
    """
    if name not in formats:
        close = difflib.get_close_matches(name, formats, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise QabiasError(f"unknown format {name!r}: choose one of {', '.join(formats)}{hint}")
    return formats[name]
