"""Whether a server has a chat template of its model, and whether the model follows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from qabias.scorers.server.options import CHAT, COMPLETIONS, LOGPROBS, PLAIN_LOGPROBS

PLAIN = {CHAT: COMPLETIONS, LOGPROBS: PLAIN_LOGPROBS}
"""For a mode with the chat template the one without."""

_DEFAULT_MARK = "<|im_start|>"  # of llama.cpp's own template, for models that have none
_LACKING = re.compile(r"chat.?template", re.IGNORECASE)
_ROLES = re.compile(
    r"<\|?/?(im_start|im_end|start_header_id|end_header_id|eot_id|user|assistant|system|start_of_turn|end_of_turn)\|?>"
    r"|\[/?INST\]|^#{2,3} (Instruction|Response|Human|Assistant)\b|^(user|human|assistant):?$",
    re.MULTILINE | re.IGNORECASE,
)


def lacking_template(look: Callable[..., Any], model: str) -> str:
    """Why a server's model has no chat template; "" if it has one or the server does not show it.

    llama.cpp gives a model without a template its own, whose marks are no tokens of the model. vLLM and SGLang reject
    chats of such a model.

    Args:
        look: Returns the JSON of a reply to a method, a path and a body; None without one.
        model: The server's name of the model.
    """
    listed = _at(look("GET", "models"), "data", 0, "owned_by")
    if listed == "llamacpp":
        template = _at(look("GET", "../props"), "chat_template")
        if not isinstance(template, str) or (template and _DEFAULT_MARK not in template):
            return ""
        asked = {"content": _DEFAULT_MARK, "add_special": False, "parse_special": True}
        tokens = _at(look("POST", "../tokenize", asked), "tokens")
        is_unknown = isinstance(tokens, list) and len(tokens) > 1
        return "llama.cpp's default template has marks that the model does not know" if is_unknown else ""
    if listed in ("vllm", "sglang"):
        asked = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        return "the server rejects chats without one" if lacks_template(look("POST", CHAT_PATH, asked)) else ""
    return ""


CHAT_PATH = "chat/completions"


def lacks_template(reply: object) -> bool:
    """Whether a failure is about a missing chat template."""
    is_failure = not (isinstance(reply, Mapping) and "choices" in reply)
    return is_failure and _LACKING.search(str(reply)) is not None


def misfit(text: str, finish: str, thinking: str) -> str:
    """What shows that a model does not follow the chat template: marks of roles, or no end; "" if nothing does."""
    if mark := _ROLES.search(text):
        return f"repeats the mark {mark[0]!r} of the chat template"
    return "did not end within the allowed tokens" if finish == "length" and text and not thinking else ""


def _at(content: Any, *path: str | int) -> Any:
    """A part of JSON; None if it is not there."""
    for step in path:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return None
    return content
