"""A model behind a server writes answers, through `/chat/completions`.

The prompt is a user's message; the server puts its own chat template around it. A prompt that the server's content
filter refuses has an empty answer, and so has one that gets an answer without a choice time and again. What a server
gives as the model's thinking in a field or a chunk of its own is kept and not read as the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from qabias.answers.outcomes import Written
from qabias.scorers.server.client import Asker, Body, ModeError, NoChoiceError, RefusedError
from qabias.scorers.server.options import TEMPERATURES, TOKEN_FIELDS

PATH = "chat/completions"
FILTERED_FINISH = "content_filter"
"""What ends an answer that a service's filter held back."""

ROOM_TO_THINK = 4
"""How much longer an answer of a server may be than its prompt format needs: what a model thinks counts, and whether it
thinks is not known."""

# What formats need that name no number, see `qabias.benchmarks.prompt_format.PromptFormat.new_tokens`.
_NEW_TOKENS = 64
# Fields in which servers give what a model thought before its answer.
_THINKING = ("reasoning_content", "reasoning")
_FILTERED = ("content_filter", "content_policy_violation")
# So many prompts without a choice are named to people.
_NAMED = 3
_BEGIN = 60

_log = logging.getLogger(__name__)


class ServerScorer:
    """What all ways of asking a server have in common."""

    name = "server"
    model_signature = ""
    settings: Mapping[str, str] = MappingProxyType({})
    new_tokens = 1

    def __init__(self, model: str, client: Asker, body: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._model = model
        self._client = client
        self._body = dict(body)

    @property
    def needs_single_process(self) -> bool:
        """Whether one process must ask all of a run, because what is left to ask goes into files."""
        return self._client.needs_single_process

    def is_waiting(self) -> bool:
        """Whether a question since the last call has no answer yet, because files bring it."""
        return self._client.is_waiting()

    def write_requests(self) -> str:
        """Write down what is left to ask, and say it to people; "" where nothing is."""
        return self._client.write_requests()

    def show_progress(self) -> None:
        """Show people how many requests are answered, sent again and unread."""
        self._client.show_progress()

    def _tell_unread(self, body: Body, error: NoChoiceError) -> None:
        """Count a prompt that got no choice, and name the first of them."""
        number = self._client.unread()
        if number <= _NAMED:
            prompt = body["messages"][0]["content"]
            _log.warning(
                "%s, at prompt %r; it counts as missing (such prompts so far: %d; the first %d are named)",
                error,
                prompt if len(prompt) <= _BEGIN else f"{prompt[:_BEGIN]}...",
                number,
                _NAMED,
            )


class ServerChatScorer(ServerScorer):
    """Lets a model behind a server write answers."""

    samples = 1

    def __init__(
        self,
        model: str,
        client: Asker,
        max_new_tokens: int | None = None,
        token_field: str = TOKEN_FIELDS[0],
        temperature: str = TEMPERATURES[0],
        body: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(model, client, body)
        self._is_limited = max_new_tokens is not None
        self._token_field = token_field
        self._temperature = temperature
        self.new_tokens = max_new_tokens or ROOM_TO_THINK * _NEW_TOKENS
        self.settings = self._settings()

    def limit_new_tokens(self, new_tokens: int) -> None:
        """Choose the most tokens of an answer, unless they were given: `ROOM_TO_THINK` times what a format needs."""
        if not self._is_limited:
            self.new_tokens = ROOM_TO_THINK * new_tokens
            self.settings = self._settings()

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """One answer to every prompt, in order, with why it ended and what a server gives as the thinking before it."""
        fields = {self._token_field: self.new_tokens, **temperature_field(self._temperature), **self._body}
        bodies = [chat_body(self._model, prompt, fields) for prompt in prompts]
        return [(_written(answer),) for answer in self._client.ask(bodies, self._ask_one)]

    def _settings(self) -> dict[str, str]:
        return {"max_new_tokens": str(self.new_tokens), "temperature": self._temperature}

    def _ask_one(self, body: Body) -> dict[str, str]:
        try:
            return read_message(self._client.post(PATH, body))
        except RefusedError as error:
            if is_filtered(error):
                return {"text": "", "finish": FILTERED_FINISH, "thinking": ""}
            raise
        except NoChoiceError as error:
            self._tell_unread(body, error)
            return {"text": "", "finish": "", "thinking": ""}


def chat_body(model: str, prompt: str, fields: Mapping[str, Any]) -> Body:
    """A request that puts a prompt as a user's message."""
    return {"model": model, "messages": [{"role": "user", "content": prompt}], **fields}


def temperature_field(temperature: str) -> dict[str, int]:
    """The field of a temperature; none where the server wants none to be named."""
    return {} if temperature == "none" else {"temperature": int(temperature)}


def is_filtered(error: RefusedError) -> bool:
    """Whether a service's filter refused the prompt: that is its answer, and asked again, it would refuse again."""
    return error.code in _FILTERED


def read_message(answer: Mapping[str, Any]) -> dict[str, str]:
    """What is kept of an answer: the text, why it ended, and the thinking that a server gives apart from it."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        thinking = next((message[name] for name in _THINKING if isinstance(message.get(name), str)), "")
        # A service that declines may say so in a field of its own, which reads as the answer.
        refusal = message.get("refusal") or ""
        content = message.get("content") if thinking or refusal else message["content"]
        text, thought = _parts(content)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ModeError("server: the answer has no choices[0].message.content; does the server chat?") from None
    finish = str(choice.get("finish_reason") or "")
    return {"text": text or str(refusal), "finish": finish, "thinking": thinking or thought}


def _parts(content: Any) -> tuple[str, str]:
    """Text and thinking of a message's content: a text, nothing, or chunks of both as Mistral's services give them."""
    if content is None or isinstance(content, str):
        return content or "", ""
    said = "".join(chunk["text"] for chunk in content if chunk["type"] == "text")
    thought = (part["text"] for chunk in content if chunk["type"] == "thinking" for part in chunk["thinking"])
    return said, "".join(thought)


def _written(answer: Mapping[str, str] | str | None) -> Written:
    """An answer as the journal keeps it; before thinking was kept, it was the text alone. None is one to come."""
    if answer is None or isinstance(answer, str):
        return Written(answer or "")
    return Written(answer["text"], answer["finish"], answer["thinking"])
