"""The options of the scorer `server`, read from texts. Nothing here needs HTTP."""

import math
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass

from qabias.errors import QabiasError

CONCURRENCY = 8
TIMEOUT = 60.0
MODES = ("chat", "echo")
MAX_NEW_TOKENS = 16
# Models that think before they answer know the limit by the second name, and often no temperature.
TOKEN_FIELDS = ("max_tokens", "max_completion_tokens")
TEMPERATURES = ("0", "none")
KEY_VARIABLES = ("QABIAS_API_KEY", "OPENAI_API_KEY")


@dataclass(frozen=True)
class ServerOptions:
    """How a server is asked.

    Attributes:
        url: Base of the endpoint.
        mode: One of `MODES`.
        concurrency: Most requests under way at once.
        timeout: Seconds to wait for a sign of life.
        max_new_tokens: Most tokens of a written answer.
        token_field: What the server calls that limit, one of `TOKEN_FIELDS`.
        temperature: "0", or "none" for a server that wants none to be named.
        tokenizer: Name or folder of the tokenizer that an estimate counts with.
        price_in: Dollars for a million tokens of prompts.
        price_out: Dollars for a million generated tokens.
    """

    url: str
    mode: str = "chat"
    concurrency: int = CONCURRENCY
    timeout: float = TIMEOUT
    max_new_tokens: int = MAX_NEW_TOKENS
    token_field: str = TOKEN_FIELDS[0]
    temperature: str = TEMPERATURES[0]
    tokenizer: str | None = None
    price_in: float | None = None
    price_out: float | None = None


def parse_options(options: Mapping[str, str]) -> ServerOptions:
    """Read options from texts.

    Raises:
        QabiasError: If an option is missing or makes no sense.
    """
    if "url" not in options:
        raise QabiasError("server: where is it? Give --option url=http://HOST:PORT/v1")
    url = check_url(options["url"])
    mode = options.get("mode", "chat")
    if mode not in MODES:
        raise QabiasError(f"server: mode is {mode!r}; give {' or '.join(MODES)}")
    for name, known in (("token_field", TOKEN_FIELDS), ("temperature", TEMPERATURES)):
        if options.get(name, known[0]) not in known:
            raise QabiasError(f"server: {name} is {options[name]!r}; give {' or '.join(known)}")
    for name in ("max_new_tokens", "token_field", "temperature"):
        if mode == "echo" and name in options:
            raise QabiasError(f"server: {name} is for written answers; leave out {name}, or mode=echo")
    if ("price_in" in options) != ("price_out" in options):
        raise QabiasError("server: give both price_in and price_out, in dollars per million tokens")
    return ServerOptions(
        url=url,
        mode=mode,
        concurrency=_whole(options, "concurrency", CONCURRENCY),
        timeout=_positive(options, "timeout", TIMEOUT),
        max_new_tokens=_whole(options, "max_new_tokens", MAX_NEW_TOKENS),
        token_field=options.get("token_field", TOKEN_FIELDS[0]),
        temperature=options.get("temperature", TEMPERATURES[0]),
        tokenizer=options.get("tokenizer"),
        price_in=_price(options, "price_in"),
        price_out=_price(options, "price_out"),
    )


def _whole(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise QabiasError(f"server: {name} is {text!r}; give a whole number such as {default}")
    return int(text)


def _number(options: Mapping[str, str], name: str) -> float:
    try:
        return float(options[name])
    except ValueError:
        return math.nan


def _positive(options: Mapping[str, str], name: str, default: float) -> float:
    if name not in options:
        return default
    value = _number(options, name)
    if not 0 < value < math.inf:
        raise QabiasError(f"server: {name} is {options[name]!r}; give seconds such as {default:g}")
    return value


def _price(options: Mapping[str, str], name: str) -> float | None:
    if name not in options:
        return None
    value = _number(options, name)
    if not 0 <= value < math.inf:
        raise QabiasError(f"server: {name} is {options[name]!r}; give dollars per million tokens such as 0.15")
    return value


def check_url(url: str) -> str:
    """The base of an endpoint without a slash at its end; messages do not repeat it, because it may hold a password.

    Raises:
        QabiasError: If it is no such url, or has a place for secrets.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if "@" in url or "?" in url or "#" in url:
        raise QabiasError(
            "server: the url may hold no user, password or query, because it is written into the run folder; "
            f"give the key by the environment variable {KEY_VARIABLES[0]}"
        )
    if not fits:
        raise QabiasError("server: the url is not of the form http://HOST:PORT/v1")
    return url.rstrip("/")
