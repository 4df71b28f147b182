"""Names of models that a caller makes up."""

from __future__ import annotations

from qabias.errors import QabiasError


def check_name(name: object, argument: str = "name") -> None:
    """Refuse a name of a model that the one line of a signature cannot hold.

    Args:
        name: What the caller gave.
        argument: Name of the argument, for the message.

    Raises:
        QabiasError: If it is no text of one printable line, is empty, or has the `|` that parts the fields of a
            signature.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "|" in name:
        raise QabiasError(f"{argument} is {name!r}; give one line of text without '|', which the signature can hold")
