"""Thinking set aside: what a model wrote before its answer, by the marks that today's models put around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# An opening and a closing mark each. Some templates write the opening one, so that only the other is in the text.
_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|seed:think"
_OPEN = re.compile(
    rf"<(?:{_TAGS})\s*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)<\|message\|>|<\|channel>thought\b",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    rf"</(?:{_TAGS})\s*>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:\s*<\|constrain\|>\w+)?<\|message\|>|<channel\|>",
    re.IGNORECASE,
)
# Channels whose special tokens were dropped with all others: their names run into the text.
_BARE_OPEN, _BARE_CLOSE = re.compile(r"\s*analysis(?=[A-Z\"'])"), "assistantfinal"
# Tokens of which a mark is made where it is not one token.
_PARTS = ("<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|channel>")
# What is left of a template around an answer.
_REST = re.compile(
    r"<\|start\|>assistant|<\|(?:start|end|return|message|im_end|eot_id|eom_id|end_of_text)\|>|<end_of_turn>"
)


class Said(NamedTuple):
    """What a model wrote, in its parts."""

    answer: str
    thinking: str
    is_open: bool


def set_thinking_aside(text: str) -> Said:
    """Split a text into thinking and answer."""
    bare = _BARE_OPEN.match(text)
    if bare:
        thinking, closing, rest = text[bare.end() :].partition(_BARE_CLOSE)
        return Said(rest.strip(), thinking.strip(), not closing)
    closed = list(_CLOSE.finditer(text))
    start = closed[-1].end() if closed else 0
    thinking, rest = text[: closed[-1].start()] if closed else "", text[start:]
    opened = _OPEN.search(rest)
    if opened:
        thinking, rest = f"{thinking}{rest[opened.end() :]}", rest[: opened.start()]
    thinking = _CLOSE.sub(" ", _OPEN.sub(" ", thinking))
    return Said(_without_rest(rest), _without_rest(thinking), opened is not None)


def opens_thinking(text: str) -> str | None:
    """The mark inside which a text ends: "" where the last mark closes, None where there is none."""
    marks = [*_OPEN.finditer(text), *_CLOSE.finditer(text)]
    if not marks:
        return None
    last = max(marks, key=lambda mark: mark.start())
    return last[0] if _OPEN.fullmatch(last[0]) else ""


def mentions_thinking(text: str) -> bool:
    """Return whether an opening mark is anywhere in a text."""
    return _OPEN.search(text) is not None


def marks_thinking(token: str) -> bool:
    """Return whether a token is a mark of thinking or a part of one, which decoding must keep."""
    return token in _PARTS or any(mark.fullmatch(token) is not None for mark in (_OPEN, _CLOSE))


def _without_rest(text: str) -> str:
    return _REST.sub(" ", text).strip()


_FIELDS = ("reasoning_content", "reasoning")  # of a message, with the model's reasoning before its answer


def message_parts(message: Mapping[str, Any]) -> tuple[str, str]:
    """Text and separate reasoning of a chat message, which may be chunks of both as in Mistral's API."""
    thinking = next((message[name] for name in _FIELDS if isinstance(message.get(name), str)), "")
    # A refusal may be in its own field; it counts as the answer.
    refusal = str(message.get("refusal") or "")
    content = message.get("content") if thinking or refusal else message["content"]
    if content is None or isinstance(content, str):
        return content or refusal, thinking
    thought = (part["text"] for chunk in content if chunk["type"] == "thinking" for part in chunk["thinking"])
    return joined([chunk for chunk in content if chunk["type"] != "thinking"]) or refusal, thinking or "".join(thought)


def joined(chunks: Iterable[Mapping[str, Any]]) -> str:
    """The text of the chunks of an answer."""
    return "".join(str(chunk.get("text") or chunk.get("refusal") or "") for chunk in chunks)
