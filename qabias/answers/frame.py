"""Where a text stops being an answer: it repeats the frame of its prompt, or the options."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from qabias.answers.phrases import COMMON, MARKS, straight

# What begins another example: a question, a turn of a chat, an exercise, an instruction, a blank.
_OTHER = (
    r"^[\W_]*(?:question|q|user|human|exercise)\s*\d*\s*[:：].*|^#+\s*(?:exercise|question|example|task)\b.*|"
    r"<\|(?:im_start|start_header_id|user|endoftext)\|>|<start_of_turn>|\[/?INST\]|^answer with\b|^fill in the|^_{2,} "
)
# What repeats a part of the prompt, and may also be in an argument.
_PART = rf"^[\s{MARKS}#]*(?:(?P<given>context|passage|premises?|hypothesis)|answer|a)[\s{MARKS}]*[:：].*"
_NAMES = {"question", "context", "passage", "premise", "premises", "hypothesis", "user", "human", "exercise"}
_FRAME = re.compile(rf"(?im)(?P<other>{_OTHER})|(?P<part>{_PART})")

_TRIED = 4  # marks of a frame that are looked at

# The options one after the other: labels, each with its words or without; or yes, no and maybe.
_OPTION = r"\(?{}\b[.):]?(?:[^\S\n]+(?!or\b|and\b|y\b|und\b)[^\n,]{{1,80}}?)?"
_TO_NEXT = r"(?:[,;/]|\s)+(?:(?:or|and|y|o|und|oder|et|ou|e)\s+)?(?:the |option )?"
_LABELS = _TO_NEXT.join(map(_OPTION.format, "ABC"))
_KINDS = (r"(?:yes|true|entailment)", r"(?:no|false|contradiction)", r"(?:maybe|neither|neutral)")
_ONE, _TO_KIND = f"(?:{'|'.join(_KINDS)})", r"(?:[\s,;/]+(?:(?:or|and|nor)\s+)?)"
_TWO = "|".join(rf"(?:{one}{_TO_KIND})+(?!{one}\b){_ONE}(?:{_TO_KIND}{_ONE})*" for one in _KINDS)
REPEATS = re.compile(
    rf"(?is)[\W_]*(?:[^\n:]{{0,60}}:|(?:the |las? )?(?:options|opciones|choices|answers?)(?: \w+)?)?[\W_]*"
    rf"(?:{_LABELS}|{_TWO}|yes:[^\n]*\bno:[^\n]*\bmaybe:[^\n]*)[\W_]*"
)
"""Two or all options one after the other."""


def repeats_options(text: str) -> bool:
    """Return whether a text, up to where it repeats the frame of its prompt, only repeats all of the options."""
    mark = next((one for one in _FRAME.finditer(text) if re.search(r"\w", text[: one.start()])), None)
    said = text[: mark.start()] if mark else text
    kinds = [re.search(rf"(?i)\b{kind}\b", said) is not None for kind in _KINDS]
    return REPEATS.fullmatch(said) is not None and sum(kinds) != 2


def before_frame(text: str, gives_answer: Callable[[str, bool], bool], asked: str = "", context: str = "") -> str:
    """The part of a text before it repeats the frame of its prompt.

    An argument may repeat its own prompt. It is cut where it repeats another one, or after nothing but an answer.
    `gives_answer` is whether a text gives an answer, or nothing else.
    """
    for mark in islice(_FRAME.finditer(text), _TRIED):
        head = text[: mark.start()]
        if re.search(r"\w", head) and not (mark["part"] and _FRAME.search(head)):
            is_bare = mark["part"] is not None
            if gives_answer(head, is_bare) or (REPEATS.fullmatch(head) and REPEATS.fullmatch(mark[0])):
                return head
        own = _words(asked if mark["other"] else context if mark["given"] else "")
        foreign = _words(mark[0].split("?")[0]) - own
        if own and len(foreign) > (0 if mark["other"] else len(own) // 2):
            return head
    return text


def _words(text: str) -> set[str]:
    words = re.findall(r"[^\W_]+", straight(text).casefold())
    return {word for word in words if len(word) > 3 and word not in COMMON} - _NAMES
