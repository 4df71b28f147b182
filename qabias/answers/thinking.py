"""Thinking set aside: what a model wrote before its answer, by the marks that today's models put around it.

Between the marks a model names answers that it then drops, so nothing there may be read as its answer.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# An opening and a closing mark each. Some templates write the opening one, so that only the other is in the text.
_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad"
_OPEN = re.compile(
    rf"<(?:{_TAGS})\s*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)<\|message\|>", re.IGNORECASE
)
_CLOSE = re.compile(
    rf"</(?:{_TAGS})\s*>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:\s*<\|constrain\|>\w+)?<\|message\|>", re.IGNORECASE
)
# What is left of a template around an answer.
_REST = re.compile(r"<\|(?:start|end|return|message|im_end|eot_id|eom_id|end_of_text)\|>|<end_of_turn>")


class Said(NamedTuple):
    """What a model wrote, in its parts.

    Attributes:
        answer: What comes after the thinking.
        thinking: The thinking, without its marks; "" for none.
        is_open: Whether the text ends within the thinking, so that there is no answer yet.
    """

    answer: str
    thinking: str
    is_open: bool


def set_thinking_aside(text: str) -> Said:
    """Split a text into thinking and answer.

    All up to the last closing mark is thinking. An opening mark without a closing one after it means that the text was
    cut off while the model was thinking.

    Args:
        text: What the model wrote.
    """
    closed = list(_CLOSE.finditer(text))
    start = closed[-1].end() if closed else 0
    thinking, rest = text[: closed[-1].start()] if closed else "", text[start:]
    opened = _OPEN.search(rest)
    if opened:
        thinking, rest = f"{thinking}{rest[opened.end() :]}", rest[: opened.start()]
    return Said(_REST.sub(" ", rest).strip(), _OPEN.sub(" ", thinking).strip(), opened is not None)
