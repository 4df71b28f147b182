"""The options of the scorer `server`, read from texts. Nothing here needs HTTP."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from qabias.errors import QabiasError
from qabias.scorers.server.body import parse_body
from qabias.support.address import is_address

CONCURRENCY = 8
TIMEOUT = 60.0
TOTAL_TIMEOUTS = 10
"""How many times the timeout one request may take in all, unless `total_timeout` says otherwise."""

CHAT, LOGPROBS, ECHO = MODES = ("chat", "logprobs", "echo")
TOP_LOGPROBS = 20
"""Most tokens whose probability OpenAI and, by default, vLLM name; some servers allow 5."""

WRITE, READ = "write", "read="
"""What `batch` may be: write request files, or read the result files named behind."""

# Models that think before they answer know the limit by the second name, and often no temperature.
TOKEN_FIELDS = ("max_tokens", "max_completion_tokens")
TEMPERATURES = ("0", "none")
KEY_VARIABLES = ("QABIAS_API_KEY", "OPENAI_API_KEY")
# The options that only some modes have.
_MODES_OF = {
    "max_new_tokens": (CHAT,),
    "token_field": (CHAT, LOGPROBS),
    "temperature": (CHAT, LOGPROBS),
    "top_logprobs": (LOGPROBS,),
    "batch": (CHAT, LOGPROBS),
}
# What cannot be said where a caller gives a client.
_CLIENTS_OWN = ("url", "timeout", "total_timeout", "batch")


@dataclass(frozen=True)
class ServerOptions:
    """How a server is asked."""

    url: str
    mode: str = CHAT
    concurrency: int = CONCURRENCY
    timeout: float = TIMEOUT
    total_timeout: float | None = None
    max_new_tokens: int | None = None
    token_field: str = TOKEN_FIELDS[0]
    temperature: str = TEMPERATURES[0]
    top_logprobs: int = TOP_LOGPROBS
    body: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    batch: str = ""
    results: tuple[Path, ...] = ()
    tokenizer: str | None = None
    price_in: float | None = None
    price_out: float | None = None


def parse_options(options: Mapping[str, str], has_client: bool = False) -> ServerOptions:
    """Read options from texts."""
    for name in _CLIENTS_OWN if has_client else ():
        if name in options:
            raise QabiasError(f"server: {name} is the client's own business where a client is given; leave it out")
    batch, results = _parse_batch(options["batch"]) if "batch" in options else ("", ())
    if "url" not in options and not batch and not has_client:
        raise QabiasError("server: where is it? Give --option url=http://HOST:PORT/v1")
    mode = options.get("mode", CHAT)
    if mode not in MODES:
        raise QabiasError(f"server: mode is {mode!r}; give {', '.join(MODES[:-1])} or {MODES[-1]}")
    for name, known in (("token_field", TOKEN_FIELDS), ("temperature", TEMPERATURES)):
        if options.get(name, known[0]) not in known:
            raise QabiasError(f"server: {name} is {options[name]!r}; give {' or '.join(known)}")
    for name, modes in _MODES_OF.items():
        if name in options and mode not in modes:
            raise QabiasError(f"server: {name} is for mode={' or '.join(modes)}; leave out {name}, or mode={mode}")
    temperature = options.get("temperature", TEMPERATURES[0])
    if ("price_in" in options) != ("price_out" in options):
        raise QabiasError("server: give both price_in and price_out, in dollars per million tokens")
    return ServerOptions(
        url=check_url(options["url"]) if "url" in options else "",
        mode=mode,
        concurrency=_whole(options, "concurrency", CONCURRENCY),
        timeout=_positive(options, "timeout", TIMEOUT),
        total_timeout=_positive(options, "total_timeout", 600.0) if "total_timeout" in options else None,
        max_new_tokens=_whole(options, "max_new_tokens", 256) if "max_new_tokens" in options else None,
        token_field=options.get("token_field", TOKEN_FIELDS[0]),
        temperature=temperature,
        top_logprobs=_whole(options, "top_logprobs", TOP_LOGPROBS),
        body=parse_body(options, may_set_temperature=mode == CHAT and temperature == "none"),
        batch=batch,
        results=results,
        tokenizer=options.get("tokenizer"),
        price_in=_price(options, "price_in"),
        price_out=_price(options, "price_out"),
    )


def _parse_batch(text: str) -> tuple[str, tuple[Path, ...]]:
    """What a batch is to do, and the files that it reads."""
    if text == WRITE:
        return WRITE, ()
    names = text.removeprefix(READ).split(",")
    if not text.startswith(READ) or "" in names:
        raise QabiasError(f"server: batch is {text!r}; give batch={WRITE}, or batch={READ}FILE,FILE")
    paths = tuple(map(Path, names))
    for path in paths:
        if not path.is_file():
            raise QabiasError(f"server: batch={READ}{path}: there is no such file")
    return READ, paths


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
    """The base of an endpoint without a slash at its end; messages do not repeat it, because it may hold a password."""
    if "@" in url or "?" in url or "#" in url:
        raise QabiasError(
            "server: the url may hold no user, password or query, because it is written into the run folder; "
            f"give the key by the environment variable {KEY_VARIABLES[0]}"
        )
    if not is_address(url):
        raise QabiasError("server: the url is not of the form http://HOST:PORT/v1")
    if not (url.isascii() and url.isprintable() and " " not in url):
        raise QabiasError(
            "server: the url may hold letters, digits and marks of ASCII only; write a host of another script with "
            "xn--, and other characters of the path with %"
        )
    return url.rstrip("/")
