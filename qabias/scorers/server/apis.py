"""The APIs of services: the path, the key and the form of a chat request; `as_chat` reads their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Body = dict[str, Any]

CHAT_API, ANTHROPIC, RESPONSES = "chat", "anthropic", "responses"
ANTHROPIC_HOST, OPENAI_HOST = "api.anthropic.com", "api.openai.com"
_LIMITS = ("max_completion_tokens", "max_tokens")


class Api(NamedTuple):
    """How a service takes a chat request, also in a file of its batch service."""

    path: str
    host: str  # the only host that the key in `variable` is made for
    variable: str  # after QABIAS_API_KEY
    request: Callable[[Body], Body]
    headers: Callable[[str], dict[str, str]]  # by the key
    # A line of a request file, by its name and request; and what is before, between and after the lines.
    line: Callable[[str, Body], dict[str, Any]]
    frame: tuple[bytes, bytes, bytes] = (b"", b"\n", b"\n")

    def url(self, base: str, path: str) -> str:
        """The address of a path; a query of the base URL stays at the end."""
        base, mark, query = base.partition("?")
        return f"{base}/{path.removeprefix('v1/') if base.endswith('/v1') else path}{mark}{query}"


def _to_messages(body: Body) -> Body:
    """A request of Anthropic's API, which has the system prompt outside the conversation."""
    turns = body["messages"]
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    wire = {name: value for name, value in body.items() if name not in _LIMITS}
    wire["messages"] = [turn for turn in turns if turn["role"] != "system"]
    limit = next(body[name] for name in _LIMITS if name in body)
    return {"max_tokens": limit, **({"system": "\n\n".join(system)} if system else {}), **wire}


def _to_responses(body: Body) -> Body:
    """A request of OpenAI's Responses API, which would keep the answer for a month by default."""
    wire = {name: value for name, value in body.items() if name not in (*_LIMITS, "messages", "response_format")}
    if "response_format" in body:
        wire["text"] = {"format": {"type": "json_schema", **body["response_format"]["json_schema"]}}
    limit = next(body[name] for name in _LIMITS if name in body)
    return {"store": False, "input": body["messages"], "max_output_tokens": limit, **wire}


def _openai(path: str, request: Callable[[Body], Body]) -> Api:
    return Api(
        path,
        OPENAI_HOST,
        "OPENAI_API_KEY",
        request,
        lambda key: {"Authorization": f"Bearer {key}"} if key else {},
        lambda name, body: {"custom_id": name, "method": "POST", "url": f"/v1/{path}", "body": body},
    )


APIS = {
    CHAT_API: _openai("chat/completions", dict),
    ANTHROPIC: Api(
        "v1/messages",
        ANTHROPIC_HOST,
        "ANTHROPIC_API_KEY",
        _to_messages,
        lambda key: {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})},
        lambda name, body: {"custom_id": name, "params": body},
        (b'{"requests": [\n', b",\n", b"\n]}\n"),
    ),
    RESPONSES: _openai("responses", _to_responses),
}
"""The APIs by the values of the option `api`."""
