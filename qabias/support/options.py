"""Options given as NAME=VALUE, and shards given as i/n."""

from collections.abc import Iterable, Mapping

from qabias.errors import QabiasError, arg
from qabias.support.suggest import shortened


def parse_options(texts: Iterable[str], argument: str = "option", example: str = "span=released") -> dict[str, str]:
    """Options of a backend or a benchmark from `--option NAME=VALUE`."""
    flag, options = arg(argument), {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise QabiasError(f"{flag} {shortened(text)} is not NAME=VALUE.", f"Write {flag} {example}.")
        options[name] = value
    return options


def server_options(
    backend: str | None, base_url: str | None, max_connections: int | None, options: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """The backend and its options if a server has its own argument."""
    own = {"base_url": base_url, "max_connections": max_connections}
    chosen = {name: str(value) for name, value in own.items() if value is not None}
    for name in chosen:
        if name in options:
            raise QabiasError(f"{name} is an option and an argument.", f"Remove the option {name}.")
    return backend or ("server" if base_url is not None else None), {**options, **chosen}


def parse_shard(text: str) -> tuple[int, int]:
    """A shard from "i/n"."""
    index, slash, count = text.partition("/")
    if not (slash and text.isascii() and index.isdecimal() and count.isdecimal() and int(count) > 0):
        raise QabiasError(
            f"{arg('shard')} {shortened(text)} is not INDEX/COUNT.", f"Write {arg('shard')} 0/4 for the first of four."
        )
    return int(index), int(count)
