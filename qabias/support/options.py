"""Options given as NAME=VALUE."""

from collections.abc import Iterable

from qabias.errors import QabiasError


def parse_options(texts: Iterable[str], flag: str = "option", example: str = "span=released") -> dict[str, str]:
    """Options of a scorer or a benchmark from `--option NAME=VALUE`.

    Args:
        texts: What was given.
        flag: Name of the option of the command line, for the message.
        example: Something that it takes, for the message.

    Raises:
        QabiasError: If one is not of that form.
    """
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise QabiasError(f"{flag} {text!r} is not of the form NAME=VALUE, such as {example}")
        options[name] = value
    return options
