"""Names of models that a caller makes up."""

from __future__ import annotations

from qabias.errors import QabiasError


def check_name(name: object, argument: str = "name") -> None:
    """Refuse a name of a model that the one line of a signature cannot hold."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "|" in name:
        raise QabiasError(f"{argument} is {name!r}; give one line of text without '|', which the signature can hold")
