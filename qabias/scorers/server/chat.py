"""A model behind a server writes answers, through `/chat/completions`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from qabias.answers.outcomes import Written
from qabias.errors import QabiasError
from qabias.scorers.server.asking import Asker, Body, NoChoiceError, RefusedError
from qabias.scorers.server.options import ServerOptions

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
    """What all modes of asking a server have in common; see `qabias.scorers.base.BatchScorer`."""

    name = "server"
    model_signature = ""
    settings: Mapping[str, str] = MappingProxyType({})
    new_tokens = 1

    def __init__(self, model: str, client: Asker, options: ServerOptions | None = None) -> None:
        self._model = model
        self._client = client
        self._options = options or ServerOptions()
        self.needs_single_process = client.needs_single_process
        self.is_waiting = client.is_waiting

    def write_requests(self) -> str:
        """Write down what is left to ask, and return a note for people; "" if nothing is left."""
        return self._client.write_requests()

    def _warn_of_unread(self, body: Body, error: NoChoiceError) -> None:
        """Count a prompt that got no choice, and name the first of them."""
        number = self._client.count_unread()
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

    def __init__(self, model: str, client: Asker, options: ServerOptions | None = None) -> None:
        super().__init__(model, client, options)
        self._set_new_tokens(_NEW_TOKENS)

    def limit_new_tokens(self, new_tokens: int) -> None:
        """Choose the most tokens of an answer, unless an option has: `ROOM_TO_THINK` times what a format needs."""
        self._set_new_tokens(new_tokens)

    def _set_new_tokens(self, needed: int) -> None:
        self.new_tokens = self._options.max_new_tokens or ROOM_TO_THINK * needed
        self.settings = {"max_new_tokens": str(self.new_tokens), "temperature": self._options.temperature}

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """Return one answer to every prompt, in order, with why it ended and what the server gives as its thinking."""
        fields = self._options.fields_of_chat(self.new_tokens)
        bodies = [chat_body(self._model, prompt, fields) for prompt in prompts]
        return [(_written(answer),) for answer in self._client.ask(bodies, self._ask_one)]

    def _ask_one(self, body: Body) -> dict[str, str]:
        try:
            return read_message(self._client.post(PATH, body))
        except RefusedError as error:
            if is_filtered(error):
                return {"text": "", "finish": FILTERED_FINISH, "thinking": ""}
            raise
        except NoChoiceError as error:
            self._warn_of_unread(body, error)
            return {"text": "", "finish": "", "thinking": ""}


def chat_body(model: str, prompt: str, fields: Mapping[str, Any]) -> Body:
    """Make a request that puts a prompt as a user's message."""
    return {"model": model, "messages": [{"role": "user", "content": prompt}], **fields}


def is_filtered(error: RefusedError) -> bool:
    """Return whether a service's filter refused the prompt; it would refuse again."""
    return error.code in _FILTERED


def read_message(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return what is kept of an answer: the text, why it ended, and the thinking that a server gives apart from it."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        thinking = next((message[name] for name in _THINKING if isinstance(message.get(name), str)), "")
        # A service that declines may say so in a field of its own, which reads as the answer.
        refusal = message.get("refusal") or ""
        content = message.get("content") if thinking or refusal else message["content"]
        text, thought = _parts(content)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise QabiasError("server: the answer has no choices[0].message.content; does the server chat?") from None
    finish = str(choice.get("finish_reason") or "")
    return {"text": text or str(refusal), "finish": finish, "thinking": thinking or thought}


def _parts(content: Any) -> tuple[str, str]:
    """Return text and thinking of a message: a text, nothing, or chunks of both as Mistral's services give them."""
    if content is None or isinstance(content, str):
        return content or "", ""
    text = "".join(chunk["text"] for chunk in content if chunk["type"] == "text")
    thought = (part["text"] for chunk in content if chunk["type"] == "thinking" for part in chunk["thinking"])
    return text, "".join(thought)


def _written(answer: Mapping[str, str] | None) -> Written:
    """Return an answer as scorers give it; None is one to come."""
    return Written("") if answer is None else Written(answer["text"], answer["finish"], answer["thinking"])
