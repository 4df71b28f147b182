"""The answers of other APIs as chat completions, and the tokens that every API counts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from qabias.answers.outcomes import REFUSAL_FINISH, joined

USAGE = ("prompt_tokens", "cached_tokens", "generated_tokens", "reasoning_tokens")
"""What an answer used. Cached tokens are among those of the prompt, and tokens of reasoning among the generated."""


def as_chat(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer of Anthropic's Messages or OpenAI's Responses API as a chat completion; other answers unchanged."""
    with suppress(KeyError, TypeError, AttributeError):
        if answer.get("type") == "message":
            choice = _message(answer)
        elif isinstance(answer.get("output"), list):
            choice = _response(answer)
        else:
            return answer
        kept = {name: answer[name] for name in ("model", "usage", "error") if answer.get(name)}
        return {**kept, "choices": [choice]}
    return answer


def _choice(text: str, thinking: str, finish: object) -> dict[str, Any]:
    return {"message": {"content": text, "reasoning_content": thinking}, "finish_reason": finish}


def _message(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A message of Anthropic's API; what a refused one had begun is no answer."""
    reason, blocks = answer["stop_reason"], answer["content"]
    thinking = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    text = joined([block for block in blocks if block["type"] == "text"])
    return _choice("" if reason == REFUSAL_FINISH else text, thinking, reason)


def _response(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A response of OpenAI's API: its messages, and the summary of its reasoning."""
    parts = [part for item in answer["output"] if item["type"] == "message" for part in item["content"]]
    thought = [part for item in answer["output"] if item["type"] == "reasoning" for part in item.get("summary") or []]
    reason = (answer.get("incomplete_details") or {}).get("reason") or answer.get("status")
    if reason == "completed" and any(part.get("type") == REFUSAL_FINISH for part in parts):
        reason = REFUSAL_FINISH
    return _choice(joined(parts), joined(thought), reason)


def usage_of(answer: Mapping[str, Any]) -> dict[str, int]:
    """The tokens of an answer of any API, by the names of `USAGE`; only what it counts."""
    usage = answer.get("usage")
    if not isinstance(usage, Mapping):
        return {}

    def count(*places: str) -> int:
        value: Any = usage
        for place in places:
            value = value.get(place) if isinstance(value, Mapping) else None
        return value if type(value) is int and value > 0 else 0

    read, created = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    counts = (
        # Anthropic's count of the input is without the cached tokens.
        count("prompt_tokens") or count("input_tokens") + read + created,
        count("prompt_tokens_details", "cached_tokens") or count("input_tokens_details", "cached_tokens") or read,
        count("completion_tokens") or count("output_tokens"),
        count("completion_tokens_details", "reasoning_tokens") or count("output_tokens_details", "reasoning_tokens"),
    )
    return {name: n for name, n in zip(USAGE, counts, strict=True) if n}
