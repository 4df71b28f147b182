"""Options given as NAME=VALUE, and shares of a run given as i/n."""

from collections.abc import Iterable

from qabias.errors import QabiasError
from qabias.support.suggest import shortened


def parse_options(texts: Iterable[str], flag: str = "option", example: str = "span=released") -> dict[str, str]:
    """Options of a scorer or a benchmark from `--option NAME=VALUE`."""
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise QabiasError(f"{flag} {shortened(text)} is not of the form NAME=VALUE, such as {example}")
        options[name] = value
    return options


def parse_shard(text: str) -> tuple[int, int]:
    """A share of a run from "i/n"."""
    index, slash, count = text.partition("/")
    if not (slash and text.isascii() and index.isdecimal() and count.isdecimal() and int(count) > 0):
        raise QabiasError(f"shard {shortened(text)} is not of the form i/n, such as 0/4")
    return int(index), int(count)
