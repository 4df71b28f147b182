"""Chat models in their own format: the prompt is the user's turn, an option begins the model's turn."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qabias.answers.outcomes import mentions_thinking, opens_thinking
from qabias.errors import QabiasError, arg
from qabias.scorers.base import Request
from qabias.scorers.batches import Tokens, encode_each
from qabias.scorers.causal_rows import TokenSequence
from qabias.support.suggest import did_you_mean, first_line

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel

TEMPLATE = "template."  # prefix of options for the chat template

SWITCHES = ("enable_thinking", "thinking")  # template arguments that switch reasoning on and off

# What every template is given besides, by the scorer, the tokenizer and the library.
_OTHERS = ("messages", "tools", "documents", "add_generation_prompt", "raise_exception", "strftime_now")
_WORDS = ("true", "false", "null")
_GENERATION = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")
DATE_FUNCTION = "strftime_now"  # function of templates that writes today's date
_TURN = "What is asked?"  # A user's turn behind which the assistant's header is found
_CHANNEL = "<|channel|>analysis"  # templates of models that always reason, in a separate channel


class ChatTemplate:
    """The chat template of a model's tokenizer, with a system message or the template's own."""

    def __init__(
        self, loaded: LoadedModel, system: str | None = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        if not loaded.tokenizer.chat_template:
            raise QabiasError(
                f"chat: the tokenizer of model {loaded.name!r} has no chat template.",
                "Ask without chat, or use a model that was tuned to chat.",
            )
        self._tokenizer = loaded.tokenizer
        self._system = system
        self._arguments = dict(arguments or {})
        self._source = loaded.tokenizer.get_chat_template()
        try:
            self._known = argument_names(self._source, loaded.tokenizer.special_tokens_map)
            self._check_names(loaded.name)
            rendered = self._render()
        except QabiasError:
            raise
        except Exception as error:  # a template raises whatever it likes
            options = [*(["system"] if system is not None else []), *(f"{TEMPLATE}{name}" for name in self._arguments)]
            fix = f"Remove {arg('option')} {' or '.join(options)}, or if it fails without, use" if options else "Use"
            raise QabiasError(
                f"chat: the template of model {loaded.name!r} fails: {first_line(error)}.",
                f"{fix} {arg('option')} chat=no.",
            ) from error
        if system is not None and system.strip() not in rendered:
            raise QabiasError(
                f"chat: the template of model {loaded.name!r} drops the system message.",
                f"Remove {arg('option')} system.",
            )
        self.opening = opens_thinking(_header(rendered)) or ""
        self.thinks = self._renders_thinking(rendered)
        if DATE_FUNCTION in self._source:
            warnings.warn(
                f"chat: the template of model {loaded.name!r} may contain today's date, which changes "
                "prompts every day; finish a run on its first day, and compare runs of one day",
                stacklevel=2,
            )

    def _check_names(self, model: str) -> None:
        """Refuse arguments that the template would ignore."""
        for name in self._arguments:
            if name not in self._known:
                offer = f"Use one of {', '.join(self._known)}" if self._known else "Remove it"
                meant = did_you_mean(name, self._known)
                raise QabiasError(f"chat: the template of {model!r} has no argument {name!r}.", f"{offer}{meant}.")

    def encode_prompts(self, prompts: Iterable[str]) -> dict[str, Tokens]:
        """Encode every distinct prompt as the user's turn, up to the end of the assistant's header."""
        distinct = list(dict.fromkeys(prompts))
        if not distinct:
            return {}
        encoded = self._apply([self._conversation(prompt) for prompt in distinct], tokenize=True)["input_ids"]
        return {prompt: tuple(tokens) for prompt, tokens in zip(distinct, encoded, strict=True)}

    def encode_options(self, requests: Sequence[Request]) -> list[list[TokenSequence]]:
        """Encode every option after the assistant's header; only the option's tokens are scored."""
        before = self.encode_prompts(request.prefix for request in requests)
        options = (option for request in requests for option in request.options)
        after = encode_each(self._tokenizer, options, add_special_tokens=False)
        return [
            [TokenSequence(before[request.prefix] + after[option], len(after[option])) for option in request.options]
            for request in requests
        ]

    @property
    def switch(self) -> str:
        """Name of the argument that switches reasoning; "" if there is none."""
        return next((name for name in SWITCHES if name in self._known), "")

    def _renders_thinking(self, rendered: str) -> bool:
        """Return whether the model reasons after a rendered conversation."""
        opened = opens_thinking(_header(rendered))
        if opened is not None:
            return bool(opened)
        if self.switch:
            on, off = (self._render_or_fail({self.switch: value}) for value in (True, False))
            if on != off:
                return rendered != off
        return mentions_thinking(rendered) or _CHANNEL in self._source

    def _render(self, changes: Mapping[str, Any] | None = None) -> str:
        """Render a conversation with some arguments changed."""
        rendered: list[str] = self._apply([self._conversation(_TURN)], tokenize=False, changes=changes)
        return rendered[0]

    def _render_or_fail(self, changes: Mapping[str, Any]) -> str | None:
        try:
            return self._render(changes)
        except Exception:  # it writes the conversation without them, so what it raises, of any kind, is about them
            return None

    def _conversation(self, prompt: str) -> list[dict[str, str]]:
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        return [*system, {"role": "user", "content": prompt}]

    def _apply(
        self, conversations: list[list[dict[str, str]]], *, tokenize: bool, changes: Mapping[str, Any] | None = None
    ) -> Any:
        return self._tokenizer.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=tokenize,
            tokenizer_kwargs={"verbose": False},
            **{**self._arguments, **(changes or {})},
        )


def _header(rendered: str) -> str:
    return rendered.rpartition(_TURN)[2]


def chat_template(
    loaded: LoadedModel, chat: str, system: str | None, arguments: Mapping[str, Any] | None = None
) -> ChatTemplate | None:
    """The chat template for a model; None for plain texts."""
    needed = system is not None or bool(arguments)
    if chat == "yes" or (chat == "auto" and (needed or loaded.tokenizer.chat_template)):
        return ChatTemplate(loaded, system, arguments)
    return None


def parse_arguments(scorer: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Read the arguments of a chat template from the options of a scorer."""
    arguments = {option.removeprefix(TEMPLATE): text for option, text in options.items() if option.startswith(TEMPLATE)}
    return {name: _value(scorer, name, text) for name, text in arguments.items()}


def _value(scorer: str, name: str, text: str) -> Any:
    option = f"{scorer}: {TEMPLATE}{name}"
    if not name.isidentifier():
        raise QabiasError(f"{option} is not a name.", f"Write {TEMPLATE}NAME=VALUE.")
    if len(text.splitlines()) != 1 or "|" in text:
        raise QabiasError(f"{option} does not fit into the signature.", "Use one line of text without '|'.")
    if text.lower() in _WORDS and text not in _WORDS:
        raise QabiasError(f"{option} is {text!r}.", f"Write {text.lower()}.")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    # Any text would count as true in a template, "off" too.
    if name in SWITCHES and not isinstance(value, bool):
        raise QabiasError(f"{option} is {text!r}.", "Write true or false.")
    return value


def argument_names(source: str, special: Iterable[str]) -> tuple[str, ...]:
    """Names of the arguments of a chat template, except the ones that every template gets."""
    import jinja2
    import jinja2.meta

    environment = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"], autoescape=False)
    # Transformers' own tag around the assistant's turn.
    names = jinja2.meta.find_undeclared_variables(environment.parse(_GENERATION.sub("", source)))
    return tuple(sorted(names.difference(_OTHERS, special)))
