"""Two ways of asking a model behind a server: it writes an answer, or says how likely the answers are.

`chat` sends the prompt as a user's message to `/chat/completions`, at temperature 0, and reads what comes back. The
server puts its own chat template around it. A prompt that the server's content filter refuses has an empty answer. What
a server gives as the model's thinking in a field of its own is kept and not read as the answer.

`echo` sends prefix and option to `/completions` and asks for the log-probabilities of what it sent. The option's are
those of the tokens that reach beyond the prefix; a token across the boundary counts with the option, and spaces at the
end of the prefix belong to the option. Boundaries are counted from the end of the text by the server's `text_offset`,
because some servers put a start token before it that shifts all offsets. Nothing need be generated (`max_tokens` 0). If
a server refuses that, one token is generated and cut off.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qabias.answers.outcomes import Written
from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.server.client import Body, Client, RefusedError
from qabias.scorers.server.options import MAX_NEW_TOKENS, TEMPERATURES, TOKEN_FIELDS, ServerOptions

FILTERED_FINISH = "content_filter"
"""What ends an answer that a service's filter held back."""

# Fields in which servers give what a model thought before its answer.
_THINKING = ("reasoning_content", "reasoning")
_FILTERED = ("content_filter", "content_policy_violation")
_CHAT_INSTEAD = "a server that gives no log-probabilities of a prompt can be asked with --option mode=chat"


class Asker(Protocol):
    """What scorers need of a client."""

    def ask(self, bodies: Sequence[Body], ask_one: Any) -> list[Any]:
        """See `Client.ask`."""
        ...

    def post(self, path: str, body: Body) -> dict[str, Any]:
        """See `Client.post`."""
        ...


class ServerChatScorer:
    """Lets a model behind a server write answers.

    Args:
        model: Name that the server knows the model by.
        client: Asks the server.
        max_new_tokens: Most tokens of an answer.
        token_field: What the server calls that limit.
        temperature: See `ServerOptions`.

    Attributes:
        model_signature: Empty: a server does not say what it runs.
        samples: 1.
    """

    name = "server"
    model_signature = ""
    samples = 1

    def __init__(
        self,
        model: str,
        client: Asker,
        max_new_tokens: int = MAX_NEW_TOKENS,
        token_field: str = TOKEN_FIELDS[0],
        temperature: str = TEMPERATURES[0],
    ) -> None:
        self._model = model
        self._client = client
        self._settings: Body = {token_field: max_new_tokens}
        if temperature != "none":
            self._settings["temperature"] = int(temperature)

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """One answer to every prompt, in order, with why it ended and what a server gives as the thinking before it.

        One without text (a filter, or thoughts only) is empty.

        Raises:
            QabiasError: If the server refuses, fails for good or does not answer as it should.
        """
        bodies: list[Body] = [
            {"model": self._model, "messages": [{"role": "user", "content": prompt}], **self._settings}
            for prompt in prompts
        ]
        return [(_written(answer),) for answer in self._client.ask(bodies, self._ask_one)]

    def _ask_one(self, body: Body) -> dict[str, str]:
        try:
            answer = self._client.post("chat/completions", body)
        except RefusedError as error:
            if error.code in _FILTERED:
                # It is this service's answer: asked again, it would refuse again.
                return {"text": "", "finish": FILTERED_FINISH, "thinking": ""}
            raise
        try:
            choice = answer["choices"][0]
            message = choice["message"]
            content = message["content"]
        except (KeyError, IndexError, TypeError):
            content = 0
        if content is not None and not isinstance(content, str):
            raise QabiasError("server: the answer has no choices[0].message.content; does the server chat?")
        # A service that declines may say so in a field of its own, which reads as the answer.
        said = content or message.get("refusal") or ""
        thinking = next((message[name] for name in _THINKING if isinstance(message.get(name), str)), "")
        return {"text": str(said), "finish": str(choice.get("finish_reason") or ""), "thinking": thinking}


def _written(answer: Mapping[str, str] | str) -> Written:
    """An answer as the journal keeps it; before thinking was kept, it was the text alone."""
    return Written(answer) if isinstance(answer, str) else Written(answer["text"], answer["finish"], answer["thinking"])


class ServerEchoScorer:
    """Scores options by the log-probabilities that a server gives for its prompt.

    Args:
        model: Name that the server knows the model by.
        client: Asks the server.

    Attributes:
        model_signature: Empty: a server does not say what it runs.
    """

    name = "server"
    model_signature = ""

    def __init__(self, model: str, client: Asker) -> None:
        self._model = model
        self._client = client
        self._max_tokens = 0

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order.

        Raises:
            QabiasError: If the server refuses, fails for good or gives no log-probabilities of the prompt.
        """
        bodies: list[Body] = [
            {
                "model": self._model,
                "prompt": request.prefix + option,
                "option_length": len(request.prefix + option) - len(request.prefix.rstrip()),
            }
            for request in requests
            for option in request.options
        ]
        answers = iter(self._client.ask(bodies, self._ask_one))
        return [_collect(request, [next(answers) for _ in request.options]) for request in requests]

    def _ask_one(self, body: Body) -> dict[str, float]:
        sent = {"model": body["model"], "prompt": body["prompt"], "temperature": 0, "echo": True, "logprobs": 1}
        max_tokens = self._max_tokens
        try:
            try:
                answer = self._client.post("completions", {**sent, "max_tokens": max_tokens})
            except RefusedError as error:
                if max_tokens == 1 or error.status not in (400, 422):
                    raise
                max_tokens = 1
                answer = self._client.post("completions", {**sent, "max_tokens": 1})
                self._generate_one()
        except RefusedError as error:
            raise QabiasError(f"{error}; {_CHAT_INSTEAD}") from None
        return sum_option(answer, body["prompt"], body["option_length"], max_tokens)

    def _generate_one(self) -> None:
        if self._max_tokens == 0:
            self._max_tokens = 1
            warnings.warn(
                "server: it refuses max_tokens 0; one token is generated for every option and cut off", stacklevel=2
            )


def sum_option(answer: Mapping[str, Any], prompt: str, option_length: int, max_tokens: int) -> dict[str, float]:
    """Sum the log-probabilities of the tokens that reach into the option.

    Args:
        answer: What `/completions` answered, with echo and logprobs.
        prompt: What was sent: prefix and option.
        option_length: Characters of the option, at the end of the prompt.
        max_tokens: Tokens that may have been generated after it.

    Returns:
        `loglikelihood` and `n_tokens`.

    Raises:
        QabiasError: If the answer does not have them.
    """
    try:
        logprobs = answer["choices"][0]["logprobs"]
        tokens, values, offsets = (list(logprobs[name]) for name in ("tokens", "token_logprobs", "text_offset"))
        # Without a count, all tokens but the generated ones are the prompt's; a wrong count shows below.
        n_prompt = int((answer.get("usage") or {}).get("prompt_tokens") or len(tokens) - max_tokens)
        tokens, values, offsets = tokens[:n_prompt], values[:n_prompt], offsets[:n_prompt]
        ends = [*offsets[1:], offsets[-1] + len(tokens[-1])]
        first = next(i for i, end in enumerate(ends) if ends[-1] - end < option_length)
        # Offsets that a start token shifts are right if the tokens are the option's; one token less must be too short.
        is_option = "".join(tokens[first:]).endswith(prompt[-option_length:])
        fits = ends[-1] == len(prompt) or (is_option and len("".join(tokens[first + 1 :])) < option_length)
        counted = [float(value) for value in values[first:]]
    except (KeyError, IndexError, TypeError, ValueError, StopIteration):
        raise QabiasError(f"server: it gives no log-probabilities of the prompt; {_CHAT_INSTEAD}") from None
    if not fits or offsets[0] < 0 or ends != sorted(ends) or len(values) != len(tokens) or math.isnan(sum(counted)):
        raise QabiasError(
            f"server: its log-probabilities or text offsets are not those of the prompt ...{prompt[-60:]!r}; "
            f"{_CHAT_INSTEAD}"
        )
    return {"loglikelihood": math.fsum(counted), "n_tokens": len(counted)}


def _collect(request: Request, answers: Sequence[Mapping[str, float]]) -> OptionScores:
    return OptionScores(
        loglikelihoods=np.array([answer["loglikelihood"] for answer in answers], dtype=np.float64),
        n_tokens=np.array([answer["n_tokens"] for answer in answers], dtype=np.int32),
        n_bytes=np.array([len(option.encode()) for option in request.options], dtype=np.int32),
    )


def load(model: str, options: ServerOptions, journal: Path | None) -> ServerChatScorer | ServerEchoScorer:
    """The scorer that the options ask for, with a client of its own.

    Args:
        model: Name that the server knows the model by.
        options: How the server is asked.
        journal: File that keeps the answers.

    Raises:
        QabiasError: If the key makes no sense.
    """
    client = Client(options.url, concurrency=options.concurrency, timeout=options.timeout, journal=journal)
    return make_scorer(model, client, options)


def make_scorer(model: str, client: Asker, options: ServerOptions) -> ServerChatScorer | ServerEchoScorer:
    """The scorer of a mode."""
    if options.mode == "echo":
        return ServerEchoScorer(model, client)
    return ServerChatScorer(model, client, options.max_new_tokens, options.token_field, options.temperature)
