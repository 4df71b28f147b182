"""What of a server's words may be shown and kept: no key in any form that is known; to show, no control characters.

A server may repeat the key that it got, in a message or an answer, cut or packed in some way. Wherever the letters and
digits of a key stand in this order, with anything else between them, they are replaced: as they are, reversed, as
base64 or hexadecimal digits, in any case, and in texts that are escaped once or twice. In answers only a key that is
no word is looked for: many servers need none and are given `EMPTY` or `not-needed`, which an answer may say.
"""

import base64
import functools
import html
import re
import unicodedata
import urllib.parse
from typing import Any

from qabias.answers.outcomes import whole

KEY = "[key]"
"""What stands in the place of a key."""

MESSAGE_LENGTH = 300

_SHORTEST = 8
"""Of a key with fewer letters and digits no form but the plain one is looked for, and only in messages."""

_SHORTEST_IN_ANSWERS = 16
"""A key with fewer letters and digits, or without a digit, may be a word for "none"; answers may hold it."""

_DEPTH = 3  # as a text is, and what is escaped once and twice
_BETWEEN = re.compile(r"[\W_]+")
_MAY_BE_ESCAPED = re.compile(r"[\\%&]")
_ESCAPED = re.compile(r"\\+(?:u00|x)([0-9a-fA-F]{2})")


def blanked(text: str, key: str) -> str:
    """A text without a key; where it is hidden by escapes, these are resolved first."""
    if sum(map(str.isalnum, key)) < _SHORTEST:
        return text
    view = text
    for _ in range(_DEPTH):
        if _holds(view, key):
            text = view = _pattern(key).sub(KEY, view)
        if not _MAY_BE_ESCAPED.search(view):
            break
        view = _resolved(view)
    return text


def blanked_answer(answer: Any, key: str) -> Any:
    """An answer, as JSON has it, whose texts are whole and without a key that no word is; names of fields stay."""
    if isinstance(answer, str):
        return blanked(whole(answer), key) if _is_no_word(key) else whole(answer)
    if isinstance(answer, dict):
        return {whole(name): blanked_answer(value, key) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [blanked_answer(value, key) for value in answer]
    return answer


def _is_no_word(key: str) -> bool:
    """Whether a key is none of the words that servers without keys are given, such as `not-needed` and `12345678`."""
    n_significant = sum(map(str.isalnum, key))
    return n_significant >= _SHORTEST_IN_ANSWERS and any(map(str.isdigit, key))


def cleaned(message: str, key: str) -> str:
    """A message in one line and not too long, without the key and without what a terminal would obey."""
    shown = "".join(
        " " if char.isspace() else char for char in message if char.isspace() or unicodedata.category(char)[0] != "C"
    )
    shown = blanked(" ".join(shown.split()), key)
    # Before the cut, which might leave half a key.
    shown = shown.replace(key, KEY) if key else shown
    return shown[:MESSAGE_LENGTH] or "no message"


def _resolved(text: str) -> str:
    """A text with its escapes of JSON, of addresses and of HTML resolved."""
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return html.unescape(urllib.parse.unquote(text))


def _holds(text: str, key: str) -> bool:
    """Whether a text holds a key in one of its forms; much quicker than to look for the pattern."""
    bare = _bare(text)
    return any(form in bare for form in _bare_forms(key))


def _bare(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return _BETWEEN.sub("", text).lower()


@functools.lru_cache(maxsize=8)
def _bare_forms(key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_bare, (key, key[::-1], key.encode().hex(), *_base64_forms(key)))))


@functools.lru_cache(maxsize=8)
def _pattern(key: str) -> re.Pattern[str]:
    """What finds the forms of a key, with anything but letters and digits between theirs."""
    return re.compile("|".join(r"[\W_]*".join(form) for form in _bare_forms(key)), re.IGNORECASE)


def _base64_forms(key: str) -> list[str]:
    """A key in base64, wherever in a packed text it begins, without the letters that what stands around it shapes."""
    forms = []
    for n_before in range(3):
        packed = base64.b64encode(b"\0" * n_before + key.encode()).decode().rstrip("=")
        n_whole = (n_before + len(key)) * 8 // 6
        forms.append(packed[-(-n_before * 8 // 6) : n_whole])
    return forms
