"""Chat models asked in their own form: the prompt is the user's turn, an option the beginning of the model's.

The tokenizer's chat template writes the turns with all their special tokens, and no other is added. An option follows
the assistant's header directly, without the space or newline that separates it from a plain text. Header and option are
encoded each by itself, so that the boundary lies between them even where the header ends with a newline: the scored
tokens are the option's and no more.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.scorers.base import Request
from qabias.scorers.causal_rows import TokenSequence
from qabias.scorers.padded_rows import Tokens
from qabias.support.suggest import first_line

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel

# The function by which templates write today's date.
DATE_FUNCTION = "strftime_now"
_THINKING_MARKS = ("enable_thinking", "<think>")


class ChatTemplate:
    """The chat template of a model's tokenizer, with a system message or with the template's own.

    Args:
        loaded: The model.
        system: The system message; None for what the template writes without one.

    Raises:
        QabiasError: If the tokenizer has no chat template, or the template refuses or loses the system message.
    """

    def __init__(self, loaded: LoadedModel, system: str | None = None) -> None:
        if not loaded.tokenizer.chat_template:
            raise QabiasError(
                f"chat: the tokenizer of model {loaded.name!r} has no chat template; ask without chat, or use a model "
                "that was tuned to chat"
            )
        self._tokenizer = loaded.tokenizer
        self._system = system
        try:
            rendered = self._apply([self._conversation("?")], tokenize=False)[0]
        except Exception as error:  # a template raises whatever it likes
            raise QabiasError(f"chat: the template of model {loaded.name!r} fails: {first_line(error)}") from error
        if system is not None and system.strip() not in rendered:
            raise QabiasError(f"chat: the template of model {loaded.name!r} drops the system message; leave system out")
        if DATE_FUNCTION in loaded.tokenizer.get_chat_template():
            warnings.warn(
                f"chat: the template of model {loaded.name!r} may write today's date, so that prompts change "
                "from day to day; finish a run on the day it is begun, and compare runs of one day",
                stacklevel=2,
            )

    @property
    def thinks(self) -> bool:
        """Whether the model is made to think before it answers, as far as its template shows."""
        return any(mark in self._tokenizer.get_chat_template() for mark in _THINKING_MARKS)

    def encode_prompts(self, prompts: Iterable[str]) -> dict[str, Tokens]:
        """Tokens of every distinct prompt as the user's turn, up to the end of the assistant's header."""
        distinct = list(dict.fromkeys(prompts))
        if not distinct:
            return {}
        encoded = self._apply([self._conversation(prompt) for prompt in distinct], tokenize=True)["input_ids"]
        return {prompt: tuple(tokens) for prompt, tokens in zip(distinct, encoded, strict=True)}

    def encode_options(self, requests: Sequence[Request]) -> list[list[TokenSequence]]:
        """Tokens of every option after the assistant's header; the option's are scored."""
        before = self.encode_prompts(request.prefix for request in requests)
        distinct = list(dict.fromkeys(option for request in requests for option in request.options))
        encoded = self._tokenizer(distinct, add_special_tokens=False)["input_ids"] if distinct else []
        after = {option: tuple(tokens) for option, tokens in zip(distinct, encoded, strict=True)}
        return [
            [TokenSequence(before[request.prefix] + after[option], len(after[option])) for option in request.options]
            for request in requests
        ]

    def _conversation(self, prompt: str) -> list[dict[str, str]]:
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        return [*system, {"role": "user", "content": prompt}]

    def _apply(self, conversations: list[list[dict[str, str]]], *, tokenize: bool) -> Any:
        return self._tokenizer.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=tokenize,
            tokenizer_kwargs={"verbose": False},
        )


def without_spaces(requests: Sequence[Request]) -> list[Request]:
    """The requests without the spaces before each option: nothing separates it from the assistant's header."""
    return [replace(request, options=tuple(option.lstrip() for option in request.options)) for request in requests]


def chat_template(loaded: LoadedModel, chat: str, system: str | None) -> ChatTemplate | None:
    """The template by which a model is asked, None for plain texts.

    Args:
        loaded: The model.
        chat: `"yes"`, `"no"` or `"auto"`; `"auto"` is yes for a tokenizer with a chat template.
        system: The system message, if any.

    Raises:
        QabiasError: As `ChatTemplate`; also where there is a system message and no template to write it.
    """
    if chat == "yes" or (chat == "auto" and (system is not None or loaded.tokenizer.chat_template)):
        return ChatTemplate(loaded, system)
    return None
