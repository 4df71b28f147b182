"""Fields of a user's own in the body of requests: `--option body.NAME=VALUE`.

The value is JSON where it reads as such (numbers, true, null, objects), else a text. Dots in the name lead into
objects: `body.chat_template_kwargs.enable_thinking=false`. What the Python client `openai` calls `extra_body` is not a
field on the wire: what stands in it there stands beside the other fields, and so it does here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from qabias.errors import QabiasError

PREFIX = "body."

_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_LIMIT = "give --option max_new_tokens=N, and token_field for the server's word"
_OWN = {
    "model": "give --model",
    "messages": "the prompt format makes them; give --format",
    "prompt": "the prompt format makes it; give --format",
    "max_tokens": _LIMIT,
    "max_completion_tokens": _LIMIT,
    "echo": "give --option mode=echo",
    "logprobs": "give --option mode=logprobs",
    "top_logprobs": "give --option mode=logprobs and top_logprobs=N",
    "temperature": "with mode=chat, leave it out by --option temperature=none first; probabilities have none",
    "stream": "answers are read whole",
    "n": "a question has one answer",
    "extra_body": "that is a word of the Python client; give what stands in it by itself, as --option body.NAME=VALUE",
}


def parse_body(options: Mapping[str, str], may_set_temperature: bool) -> dict[str, Any]:
    """The fields that options of the form `body.NAME` put into every request."""
    body: dict[str, Any] = {}
    for name in sorted(name for name in options if name.startswith(PREFIX)):
        field, value = name.removeprefix(PREFIX), options[name]
        if not _NAME.fullmatch(field):
            raise QabiasError(f"server: {name!r} names no field; give such as {PREFIX}reasoning_effort=low")
        *path, last = field.split(".")
        top = (*path, last)[0]
        if top in _OWN and not (top == "temperature" and may_set_temperature):
            raise QabiasError(f"server: {name} is not yours to set: {_OWN[top]}")
        if "|" in value or not value.isprintable():
            raise QabiasError(
                f"server: {name} holds a | or a line break, which the signature cannot; write JSON, \\u007c and \\n"
            )
        place = body
        for step in path:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise QabiasError(f"server: {name} leads into {step}, which is no object by another {PREFIX} option")
        if last in place:
            raise QabiasError(f"server: {name} is given twice, also inside of another {PREFIX} option")
        place[last] = _value(name, value)
    return body


def _value(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise QabiasError(
            f"server: {name} is {text}, and JSON has finite numbers only; give a text by quotation marks around it"
        ) from None
    return value
