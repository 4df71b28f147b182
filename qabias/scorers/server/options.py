"""The options of the scorer `server`, read from texts. Nothing here needs HTTP."""

import json
import math
import re
import urllib.parse
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabias.errors import QabiasError, arg
from qabias.scorers.kind import option_field
from qabias.scorers.server.apis import ANTHROPIC, ANTHROPIC_HOST, APIS, CHAT_API, RESPONSES, Api
from qabias.support.address import is_address
from qabias.support.suggest import missing

PREFIX, HEADER = "body.", "header."

MAX_CONNECTIONS = 8
TIMEOUT = 60.0
TOTAL_TIMEOUTS = 10  # maximum total time of a request, in timeouts

CHAT, LOGPROBS, ECHO, COMPLETIONS, PLAIN_LOGPROBS = MODES = (
    "chat",
    "logprobs",
    "echo",
    "completions",
    "completions-logprobs",
)
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

# Values of `batch`: write request files, send them too, fetch the results, or read the named result files.
WRITE, SUBMIT, FETCH, READ = "write", "submit", "fetch", "read="

KEY_VARIABLE = "QABIAS_API_KEY"  # before the variable of the service
_FROM = "env:"  # what the value of a header begins with
# Headers of the connection and the body, which are HTTP's own.
_OWN_HEADERS = ("host", "connection", "content-length", "content-type", "transfer-encoding", "accept-encoding")
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SECRET = re.compile(r"key|token|secret|sig|password|auth|code|credential", re.IGNORECASE)  # in the name of a parameter

# Models that think before they answer know the limit by the second name, and often no temperature.
_LIMIT, _OWN_LIMIT, _TEMPERATURE = "max_tokens", "max_completion_tokens", "temperature"
# The options that only some modes have.
_MODES_OF = {
    "max_new_tokens": (CHAT, COMPLETIONS),
    "top_logprobs": (LOGPROBS, PLAIN_LOGPROBS),
    "batch": (CHAT, LOGPROBS),
    f"{PREFIX}{_OWN_LIMIT}": (CHAT, LOGPROBS),
    f"{PREFIX}{_TEMPERATURE}": (CHAT, LOGPROBS, COMPLETIONS, PLAIN_LOGPROBS),
}
# Options that a caller's client replaces.
_CLIENTS_OWN = ("base_url", "timeout", "batch", "api")
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def _fixed() -> dict[str, str]:
    """Fields that an option cannot set, with what to do instead."""
    return {
        "model": f"Use {arg('model')}.",
        "messages": f"Use {arg('format')}.",
        "prompt": f"Use {arg('format')}.",
        "input": f"Use {arg('format')}.",
        "max_output_tokens": f"Use {arg('option')} max_new_tokens=N.",
        "background": "Remove it: qabias reads whole answers.",
        _LIMIT: f"Use {arg('option')} max_new_tokens=N, or body.max_completion_tokens=N.",
        "echo": f"Use {arg('option')} mode=echo.",
        "logprobs": f"Use {arg('option')} mode=logprobs.",
        "top_logprobs": f"Use {arg('option')} mode=logprobs and top_logprobs=N.",
        "stream": "Remove it: qabias reads whole answers.",
        "n": "Remove it: a question has one answer.",
        "extra_body": f"Give its fields one by one, as {arg('option')} body.NAME=VALUE.",
    }


def _price(text: str) -> Any:
    return option_field(None, text, least=0, wanted="dollars per million tokens such as 0.15", passing=True)


@dataclass(frozen=True)
class ServerOptions:
    """How a server is queried."""

    base_url: str = option_field(
        "", "base of the endpoint, e.g. http://host:8000/v1", read=lambda text: check_url(text), passing=True
    )
    api: str = option_field(
        "",
        "form of the requests, by default by the address: chat (OpenAI-compatible), anthropic or responses",
        choices=tuple(APIS),
        passing=True,
    )
    mode: str = option_field(
        CHAT,
        "chat for written answers, logprobs for probabilities of letters, or echo for probabilities of texts; without "
        "a chat template completions and completions-logprobs",
        choices=MODES,
    )
    max_connections: int = option_field(
        MAX_CONNECTIONS, "most requests under way at once", wanted="a whole number such as 8", passing=True
    )
    timeout: float = option_field(
        TIMEOUT,
        "seconds to wait for a sign of life; a whole request may take ten times as long",
        least=math.ulp(0.0),
        wanted="seconds such as 60",
        passing=True,
    )
    max_new_tokens: int | None = option_field(
        None,
        "most tokens of a written answer; by default four times what the prompt format needs",
        wanted="a whole number such as 256",
    )
    top_logprobs: int = option_field(
        TOP_LOGPROBS,
        "number of the likeliest tokens that the server is to name with mode=logprobs",
        wanted="a whole number such as 20",
    )
    batch: tuple[str, tuple[Path, ...]] = option_field(
        ("", ()),
        "submit for a batch at the service and fetch for its results; or write, and read=FILE,FILE, for files",
        read=lambda text: _parse_batch(text),
        passing=True,
    )
    tokenizer: str | None = option_field(None, "tokenizer that an estimate counts with", passing=True)
    price_in: float | None = _price("dollars for a million tokens of prompts")
    price_out: float | None = _price("dollars for a million generated tokens")
    body: Mapping[str, Any] = option_field(
        None,
        "field of every request, JSON or text, dots lead into objects",
        prefix=PREFIX,
        read=lambda options: parse_body(options),
    )

    headers: Mapping[str, str] = option_field(
        None,
        "header of every request, as env:NAME of the environment variable with its value",
        prefix=HEADER,
        read=lambda options: parse_headers(options),
        passing=True,
    )

    def check(self, scorer: str, names: Collection[str]) -> None:
        """Refuse a missing server, and options that contradict each other."""
        if not self.base_url and self.batch[0] not in (WRITE, READ):
            raise QabiasError("No server URL.", f"Add {arg('base_url')} http://HOST:PORT/v1.")
        if self.wire is not APIS[CHAT_API] and self.mode != CHAT:
            raise QabiasError("server: this API gives no log-probabilities.", f"Use {arg('ask')} letter or cot.")
        if self.wire is APIS[ANTHROPIC] and RESPONSE_FORMAT in self.body:
            raise QabiasError(f"server: this API does not take {RESPONSE_FORMAT}.", f"Use {arg('ask')} letter.")
        for name, modes in _MODES_OF.items():
            if name in names and self.mode not in modes:
                raise QabiasError(
                    f"server: {name} is for mode={' or '.join(modes)}.", f"Remove {name}, or mode={self.mode}."
                )
        if (self.price_in is None) != (self.price_out is None):
            raise QabiasError(
                "server: one price is missing.", "Add price_in and price_out (dollars per million tokens)."
            )
        if self.mode in (LOGPROBS, PLAIN_LOGPROBS) and self.body.get(_TEMPERATURE) is not None:
            raise QabiasError(
                f"server: {PREFIX}{_TEMPERATURE} is for mode={CHAT}.", "Remove it: probabilities have none."
            )
        if self.max_new_tokens is not None and _OWN_LIMIT in self.body:
            raise QabiasError(f"server: max_new_tokens and {PREFIX}{_OWN_LIMIT} are the same limit.", "Remove one.")

    @property
    def wire(self) -> Api:
        """The API: the chosen one, or the one of the address."""
        is_anthropic = urllib.parse.urlsplit(self.base_url).hostname == ANTHROPIC_HOST
        return APIS[self.api or (ANTHROPIC if is_anthropic else CHAT_API)]

    @property
    def _temperature(self) -> Any:
        """The temperature; by default 0, and none for models that reason before every answer."""
        thinks = self.wire is APIS[RESPONSES] or (self.wire is APIS[ANTHROPIC] and "thinking" in self.body)
        return self.body.get(_TEMPERATURE, None if thinks else 0)

    @property
    def fields(self) -> dict[str, Any]:
        """The user's fields to send."""
        return {name: value for name, value in self.body.items() if name != _TEMPERATURE or value is not None}

    @property
    def temperature(self) -> str:
        """The temperature for the signature; "none" if none is sent."""
        return "none" if self._temperature is None else f"{self._temperature:g}"

    @property
    def token_limit(self) -> int | None:
        """Maximum tokens of an answer, by either option."""
        return self.max_new_tokens or self.body.get(_OWN_LIMIT)

    def fields_of_chat(self, new_tokens: int) -> dict[str, Any]:
        """Fields of a request to write at most `new_tokens` tokens."""
        limit = _OWN_LIMIT if _OWN_LIMIT in self.body else _LIMIT
        sent = {} if self._temperature is None else {_TEMPERATURE: self._temperature}
        return {limit: new_tokens, **sent, **self.fields}


def client_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a caller's client, which has its own address."""
    for name in options:
        if name in _CLIENTS_OWN or name.startswith(HEADER):
            raise QabiasError(f"server: the client sets {name}.", "Remove it.")
    return {**options, "base_url": "http://client"}


def _parse_batch(text: str) -> tuple[str, tuple[Path, ...]]:
    if text in (WRITE, SUBMIT, FETCH):
        return text, ()
    names = text.removeprefix(READ).split(",")
    if not text.startswith(READ) or "" in names:
        raise QabiasError(f"server: batch is {text!r}.", f"Give batch={SUBMIT}, {FETCH}, {WRITE} or {READ}FILE.")
    paths = tuple(map(Path, names))
    for path in paths:
        if not path.is_file():
            raise missing(path)
    return READ, paths


def check_url(url: str) -> str:
    """Return a base URL without a final slash; messages omit it, because it may contain a password."""
    address, _, query = url.partition("?")
    if "@" in url or "#" in url or any(_SECRET.search(part.partition("=")[0]) for part in query.split("&")):
        raise QabiasError(
            "server: the url has a user, a password, a # or a key in its query.",
            f"Remove them, and set the key in the environment variable {KEY_VARIABLE}, or use "
            f"{arg('option')} {HEADER}NAME={_FROM}VARIABLE.",
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
    return address.rstrip("/") + (f"?{query}" if query else "")


def parse_headers(options: Mapping[str, str]) -> dict[str, str]:
    """Read the options `header.NAME`: for every header the environment variable that has its value."""
    variables: dict[str, str] = {}
    for option in sorted(name for name in options if name.startswith(HEADER)):
        name, value = option.removeprefix(HEADER), options[option]
        if not _HEADER_NAME.fullmatch(name) or name.lower() in (*_OWN_HEADERS, *map(str.lower, variables)):
            raise QabiasError(f"server: {option!r} is no header that you can set, or is given twice.", "Remove it.")
        variable = value.removeprefix(_FROM)
        if variable == value or not variable.isidentifier():  # the value may be secret, so it is not shown
            raise QabiasError(
                f"server: {option} has a value, which the history of commands would keep.",
                f"Set it in an environment variable, and give {option}={_FROM}NAME.",
            )
        variables[name] = variable
    return variables


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
