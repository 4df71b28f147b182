"""A model behind a server says how likely options are: it echoes prompts with their log-probabilities."""

import math
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.server.asking import Asker, Body, NoChoiceError, RefusedError
from qabias.scorers.server.chat import ServerScorer
from qabias.scorers.server.client import GaveUpError
from qabias.scorers.server.options import ServerOptions

ECHO_PATH = "completions"

# Where the length of an option stands in what identifies a request; no field of a user's has a space in its name.
_LENGTH = "option length"
_CHAT_INSTEAD = "a server that gives no log-probabilities of a prompt can be asked with --option mode=chat"


class ServerEchoScorer(ServerScorer):
    """Scores options by the log-probabilities that a server gives for its prompt; see `ServerScorer`."""

    # What an answer to come, of an estimate, is taken for.
    _NOTHING: Mapping[str, float] = MappingProxyType({"loglikelihood": 0.0, "n_tokens": 1})

    def __init__(self, model: str, client: Asker, options: ServerOptions | None = None) -> None:
        super().__init__(model, client, options)
        self._max_tokens = 0

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        bodies: list[Body] = [
            {
                "model": self._model,
                "prompt": request.prefix + option,
                _LENGTH: len(request.prefix + option) - len(request.prefix.rstrip()),
                **self._options.fields,
            }
            for request in requests
            for option in request.options
        ]
        answers = (answer or self._NOTHING for answer in self._client.ask(bodies, self._ask_one))
        return [_collect(request, [next(answers) for _ in request.options]) for request in requests]

    def _ask_one(self, body: Body) -> dict[str, float]:
        asked = {name: value for name, value in body.items() if name != _LENGTH}
        sent = {**asked, "temperature": 0, "echo": True, "logprobs": 1}
        max_tokens = self._max_tokens
        try:
            try:
                # A first request that fails as if zero were the reason is not worth another, if one token may get it.
                doubtful = None if max_tokens or self._client.has_answered else 1
                answer = self._client.post(ECHO_PATH, {**sent, "max_tokens": max_tokens}, doubtful)
            except (RefusedError, GaveUpError) as error:
                if max_tokens == 1 or not self._may_be_the_zero(error):
                    raise
                max_tokens = 1
                answer = self._client.post(ECHO_PATH, {**sent, "max_tokens": 1})
                self._generate_one()
        except RefusedError as error:
            raise RefusedError(f"{error}; {_CHAT_INSTEAD}", error.status, error.code) from None
        except NoChoiceError as error:
            raise QabiasError(f"{error}, at prompt ...{body['prompt'][-60:]!r}; {_CHAT_INSTEAD}") from None
        return sum_option(answer, body["prompt"], body[_LENGTH], max_tokens)

    def _may_be_the_zero(self, error: RefusedError | GaveUpError) -> bool:
        if isinstance(error, RefusedError):
            return error.status in (400, 422)
        return error.is_doubtful and not self._client.has_answered

    def _generate_one(self) -> None:
        if self._max_tokens == 0:
            self._max_tokens = 1
            warnings.warn(
                "server: it does not answer with max_tokens 0; one token is generated for every option and cut off",
                stacklevel=2,
            )


def sum_option(answer: Mapping[str, Any], prompt: str, option_length: int, max_tokens: int) -> dict[str, float]:
    """Sum the log-probabilities of the tokens that reach into the option."""
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
    loglikelihoods, n_tokens = ([answer[name] for answer in answers] for name in ("loglikelihood", "n_tokens"))
    return OptionScores.make(loglikelihoods, n_tokens, request.options)
