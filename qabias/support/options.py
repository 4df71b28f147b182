"""Options given as NAME=VALUE."""

from collections.abc import Iterable

from qabias.errors import QabiasError


def parse_options(texts: Iterable[str]) -> dict[str, str]:
    """Options of a scorer from `--option NAME=VALUE`.

    Raises:
        QabiasError: If one is not of that form.
    """
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise QabiasError(f"option {text!r} is not of the form NAME=VALUE, such as span=released")
        options[name] = value
    return options
