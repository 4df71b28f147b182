"""The options of the scorer `server`, read from texts. Nothing here needs HTTP."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from qabias.errors import QabiasError, arg
from qabias.support.address import is_address
from qabias.support.suggest import missing

PREFIX = "body."

MAX_CONNECTIONS = 8
TIMEOUT = 60.0
TOTAL_TIMEOUTS = 10  # maximum total time of a request, in timeouts

CHAT, LOGPROBS, ECHO = MODES = ("chat", "logprobs", "echo")
TOP_LOGPROBS = 20  # maximum tokens with probabilities in OpenAI's and, by default, vLLM's answers; some servers allow 5

RESPONSE_FORMAT = "response_format"
_LETTER = {"type": "string", "enum": ["A", "B", "C"]}
LETTER_SCHEMA = json.dumps(
    {
        "type": "json_schema",
        "json_schema": {
            "name": "answer",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {"answer": _LETTER},
                "required": ["answer"],
                "additionalProperties": False,
            },
        },
    }
)
"""The field `response_format` of OpenAI's API that allows one letter as JSON and nothing else."""

WRITE, READ = "write", "read="  # values of `batch`: write request files, or read the named result files

KEY_VARIABLES = ("QABIAS_API_KEY", "OPENAI_API_KEY")

# Models that think before they answer know the limit by the second name, and often no temperature.
_LIMIT, _OWN_LIMIT, _TEMPERATURE = "max_tokens", "max_completion_tokens", "temperature"
# The options that only some modes have.
_MODES_OF = {
    "max_new_tokens": (CHAT,),
    "top_logprobs": (LOGPROBS,),
    "batch": (CHAT, LOGPROBS),
    f"{PREFIX}{_OWN_LIMIT}": (CHAT, LOGPROBS),
    f"{PREFIX}{_TEMPERATURE}": (CHAT, LOGPROBS),
}
# Options that a caller's client replaces.
_CLIENTS_OWN = ("base_url", "timeout", "batch")
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def _fixed() -> dict[str, str]:
    """Fields that an option cannot set, with what to do instead."""
    return {
        "model": f"Use {arg('model')}.",
        "messages": f"Use {arg('format')}.",
        "prompt": f"Use {arg('format')}.",
        _LIMIT: f"Use {arg('option')} max_new_tokens=N, or body.max_completion_tokens=N.",
        "echo": f"Use {arg('option')} mode=echo.",
        "logprobs": f"Use {arg('option')} mode=logprobs.",
        "top_logprobs": f"Use {arg('option')} mode=logprobs and top_logprobs=N.",
        "stream": "Remove it: qabias reads whole answers.",
        "n": "Remove it: a question has one answer.",
        "extra_body": f"Give its fields one by one, as {arg('option')} body.NAME=VALUE.",
    }


@dataclass(frozen=True)
class ServerOptions:
    """How a server is queried."""

    base_url: str = ""
    mode: str = CHAT
    max_connections: int = MAX_CONNECTIONS
    timeout: float = TIMEOUT
    max_new_tokens: int | None = None
    top_logprobs: int = TOP_LOGPROBS
    body: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    batch: str = ""
    results: tuple[Path, ...] = ()
    tokenizer: str | None = None
    price_in: float | None = None
    price_out: float | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The user's fields to send."""
        return {name: value for name, value in self.body.items() if name != _TEMPERATURE or value is not None}

    @property
    def temperature(self) -> str:
        """The temperature for the signature; "none" if none is sent."""
        value = self.body.get(_TEMPERATURE, 0)
        return "none" if value is None else f"{value:g}"

    def fields_of_chat(self, new_tokens: int) -> dict[str, Any]:
        """Fields of a request to write at most `new_tokens` tokens."""
        limit = _OWN_LIMIT if _OWN_LIMIT in self.body else _LIMIT
        return {limit: new_tokens, **({} if _TEMPERATURE in self.body else {_TEMPERATURE: 0}), **self.fields}


def parse_options(options: Mapping[str, str], has_client: bool = False) -> ServerOptions:
    """Read options from texts."""
    for name in _CLIENTS_OWN if has_client else ():
        if name in options:
            raise QabiasError(f"server: the client sets {name}.", "Remove it.")
    batch, results = _parse_batch(options["batch"]) if "batch" in options else ("", ())
    if "base_url" not in options and not batch and not has_client:
        raise QabiasError("No server URL.", f"Add {arg('base_url')} http://HOST:PORT/v1.")
    mode = options.get("mode", CHAT)
    if mode not in MODES:
        raise QabiasError(f"server: mode is {mode!r}.", f"Give {', '.join(MODES[:-1])} or {MODES[-1]}.")
    for name, modes in _MODES_OF.items():
        if name in options and mode not in modes:
            raise QabiasError(f"server: {name} is for mode={' or '.join(modes)}.", f"Remove {name}, or mode={mode}.")
    if ("price_in" in options) != ("price_out" in options):
        raise QabiasError("server: one price is missing.", "Add price_in and price_out (dollars per million tokens).")
    body = parse_body(options)
    if mode == LOGPROBS and body.get(_TEMPERATURE) is not None:
        raise QabiasError(f"server: {PREFIX}{_TEMPERATURE} is for mode={CHAT}.", "Remove it: probabilities have none.")
    limit = body.get(_OWN_LIMIT)
    if "max_new_tokens" in options and limit is not None:
        raise QabiasError(f"server: max_new_tokens and {PREFIX}{_OWN_LIMIT} are the same limit.", "Remove one.")
    return ServerOptions(
        base_url=check_url(options["base_url"]) if "base_url" in options else "",
        mode=mode,
        max_connections=_whole(options, "max_connections", MAX_CONNECTIONS),
        timeout=_number(options, "timeout", "seconds such as 60", least=math.ulp(0.0)) or TIMEOUT,
        max_new_tokens=_whole(options, "max_new_tokens", 256) if "max_new_tokens" in options else limit,
        top_logprobs=_whole(options, "top_logprobs", TOP_LOGPROBS),
        body=body,
        batch=batch,
        results=results,
        tokenizer=options.get("tokenizer"),
        price_in=_number(options, "price_in", "dollars per million tokens such as 0.15"),
        price_out=_number(options, "price_out", "dollars per million tokens such as 0.15"),
    )


def _parse_batch(text: str) -> tuple[str, tuple[Path, ...]]:
    if text == WRITE:
        return WRITE, ()
    names = text.removeprefix(READ).split(",")
    if not text.startswith(READ) or "" in names:
        raise QabiasError(f"server: batch is {text!r}.", f"Give batch={WRITE}, or batch={READ}FILE,FILE.")
    paths = tuple(map(Path, names))
    for path in paths:
        if not path.is_file():
            raise missing(path)
    return READ, paths


def _whole(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise QabiasError(f"server: {name} is {text!r}.", f"Give a whole number such as {default}.")
    return int(text)


def _number(options: Mapping[str, str], name: str, wanted: str, least: float = 0.0) -> float | None:
    if name not in options:
        return None
    try:
        value = float(options[name])
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise QabiasError(f"server: {name} is {options[name]!r}.", f"Give {wanted}.")
    return value


def check_url(url: str) -> str:
    """Return a base URL without a final slash; messages omit it, because it may contain a password."""
    if "@" in url or "?" in url or "#" in url:
        raise QabiasError(
            "server: the run folder would store the user, password or query of the url.",
            f"Remove them, and set the key in the environment variable {KEY_VARIABLES[0]}.",
        )
    if "://" not in url:
        raise QabiasError(
            "server: the base URL does not begin with http:// or https://.", "Use the form http://HOST:PORT/v1."
        )
    if not (is_address(url) and url.isascii() and url.isprintable() and " " not in url):
        raise QabiasError(
            "server: the url is malformed or not ASCII.",
            "Use the form http://HOST:PORT/v1, with xn-- for non-ASCII hosts and % for non-ASCII paths.",
        )
    return url.rstrip("/")


def parse_body(options: Mapping[str, str]) -> dict[str, Any]:
    """Read the fields that options `body.NAME` add to every request."""
    body: dict[str, Any] = {}
    for name in sorted(name for name in options if name.startswith(PREFIX)):
        path, value = name.removeprefix(PREFIX), options[name]
        if not _NAME.fullmatch(path):
            raise QabiasError(f"server: {name!r} is not a field.", f"Write it like {PREFIX}reasoning_effort=low.")
        *steps, last = path.split(".")
        top = (*steps, last)[0]
        if top in _fixed():
            raise QabiasError(f"server: {name} cannot be set.", _fixed()[top])
        if "|" in value or not value.isprintable():
            raise QabiasError(f"server: {name} has a | or a line break.", "Write JSON, \\u007c and \\n.")
        place = body
        for step in steps:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise QabiasError(f"server: another option makes {step} of {name} a value.", "Remove one of them.")
        if last in place:
            raise QabiasError(f"server: another {PREFIX} option also sets {name}.", "Remove one of them.")
        place[last] = _parse_value(name, value)
    limit, temperature = body.get(_OWN_LIMIT, 1), body.get(_TEMPERATURE, 0)
    if type(limit) is not int or limit < 1:
        raise QabiasError(f"server: {PREFIX}{_OWN_LIMIT} is {limit!r}.", "Give a whole number such as 4096.")
    if temperature is not None and (type(temperature) not in (int, float) or temperature < 0):
        raise QabiasError(f"server: {PREFIX}{_TEMPERATURE} is {temperature!r}.", "Give a number, or null to send none.")
    return body


def _parse_value(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise QabiasError(f"server: {name} is {text}, but JSON has only finite numbers.", "Quote texts.") from None
    return value
