"""The APIs of services: the path, the key and the form of a chat request; `as_chat` reads their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Body = dict[str, Any]

CHAT_API, ANTHROPIC, RESPONSES = "chat", "anthropic", "responses"
ANTHROPIC_HOST, OPENAI_HOST = "api.anthropic.com", "api.openai.com"
_LIMITS = ("max_completion_tokens", "max_tokens")


class Api(NamedTuple):
    """How a service takes a chat request.

    Attributes:
        path: Path of a chat request, after the base URL.
        base_url: The service's own base URL; "" if there are many services.
        host: The only host that the key in `variable` is made for.
        variable: Environment variable of the key, after `QABIAS_API_KEY`.
        request: A chat request in the API's form.
        batched: A line of a request file of its batch service.
        headers: Headers with a key, by the key.
        file: What a request file has before, between and after its lines.
    """

    path: str
    base_url: str
    host: str
    variable: str
    request: Callable[[Body], Body]
    batched: Callable[[str, Body], dict[str, Any]]
    headers: Callable[[str], Mapping[str, str]]
    file: tuple[bytes, bytes, bytes] = (b"", b"\n", b"\n")

    def url(self, base: str, path: str) -> str:
        """The address of a path; a query of the base URL stays at the end."""
        base, mark, query = base.partition("?")
        base = base.rstrip("/")
        if re.search(r"/v1$", base):
            path = path.removeprefix("v1/")
        return f"{base}/{path}{mark}{query}"


def _to_messages(body: Body) -> Body:
    """A request of Anthropic's API, which has the system prompt outside the conversation."""
    turns = body["messages"]
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    wire = {name: value for name, value in body.items() if name not in _LIMITS}
    wire["messages"] = [turn for turn in turns if turn["role"] != "system"]
    wire["max_tokens"] = next(body[name] for name in _LIMITS if name in body)
    return {"system": "\n\n".join(system), **wire} if system else wire


def _to_responses(body: Body) -> Body:
    """A request of OpenAI's Responses API, which would keep the answer for a month by default."""
    wire = {name: value for name, value in body.items() if name not in (*_LIMITS, "messages", "response_format")}
    wire["input"] = body["messages"]
    wire["max_output_tokens"] = next(body[name] for name in _LIMITS if name in body)
    if "response_format" in body:
        schema = {"type": "json_schema", **body["response_format"]["json_schema"]}
        wire["text"] = {**wire.get("text", {}), "format": schema}
    return {"store": False, **wire}


def _line(path: str) -> Callable[[str, Body], dict[str, Any]]:
    return lambda name, body: {"custom_id": name, "method": "POST", "url": f"/v1/{path}", "body": body}


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anthropic_headers(key: str) -> Mapping[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}


APIS = {
    CHAT_API: Api(
        *("chat/completions", "", OPENAI_HOST, "OPENAI_API_KEY"),
        *(dict, _line("chat/completions"), _bearer),
    ),
    ANTHROPIC: Api(
        *("v1/messages", f"https://{ANTHROPIC_HOST}", ANTHROPIC_HOST, "ANTHROPIC_API_KEY"),
        *(_to_messages, lambda name, body: {"custom_id": name, "params": body}, _anthropic_headers),
        (b'{"requests": [\n', b",\n", b"\n]}\n"),  # the whole request of a batch
    ),
    RESPONSES: Api(
        *("responses", f"https://{OPENAI_HOST}/v1", OPENAI_HOST, "OPENAI_API_KEY"),
        *(_to_responses, _line("responses"), _bearer),
    ),
}
"""The APIs by the values of the option `api`."""
