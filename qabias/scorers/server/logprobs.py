"""A model behind a server says how likely the letter of each answer is: one token of `/chat/completions`.

The server names the likeliest tokens with their log-probabilities. The probability of an option is the sum over those
tokens that are the option once spaces are stripped. A single character counts in its own case only, because `a` is also
a word. A longer word counts in any case, since chat models write `Yes` for `yes`, and so does a token that it alone of
the options begins with, since a tokenizer may cut it.

An option that is not among the N likeliest tokens has probability 0, the logarithm -inf: what it really has is at most
the probability of the last token named, for each of its own tokens. Where none of the options is among them, the
question has no answer, which counts as missing.

Probabilities are the model's own at temperature 0 and 1; at others some servers divide by it, and none can be chosen.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.server.chat import PATH, ServerScorer, chat_body, is_filtered, temperature_field
from qabias.scorers.server.client import Asker, Body, RefusedError
from qabias.scorers.server.options import TEMPERATURES, TOKEN_FIELDS, TOP_LOGPROBS

_INSTEAD = (
    "a server that names fewer tokens takes --option top_logprobs=5; one that gives no log-probabilities can be asked "
    "for the letter itself, with --ask write or --option mode=chat"
)

TopTokens = list[tuple[str, float]]


class ServerLogprobScorer(ServerScorer):
    """Scores options of one token each by the probabilities that a server gives for the first token of an answer.

    Args:
        model: Name that the server knows the model by.
        client: Asks the server.
        top_logprobs: Number of tokens that the server names.
        token_field: What the server calls the limit of new tokens.
        temperature: See `ServerOptions`.
        body: See `ServerScorer`.
    """

    def __init__(
        self,
        model: str,
        client: Asker,
        top_logprobs: int = TOP_LOGPROBS,
        token_field: str = TOKEN_FIELDS[0],
        temperature: str = TEMPERATURES[0],
        body: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(model, client, body)
        self._top_logprobs = top_logprobs
        self._fields = {
            token_field: self.new_tokens,
            "logprobs": True,
            "top_logprobs": top_logprobs,
            **temperature_field(temperature),
            **self._body,
        }
        self.settings = {"temperature": temperature, "top_logprobs": str(top_logprobs)}
        self._has_warned = False

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order.

        Raises:
            QabiasError: If an option is more than one token, as far as can be told, or the server refuses, fails for
                good or gives no log-probabilities.
        """
        for options in {request.options for request in requests}:
            _check_options(options)
        bodies = [chat_body(self._model, request.prefix, self._fields) for request in requests]
        answers = self._client.ask(bodies, self._ask_one)
        return [self._scores(request, answer) for request, answer in zip(requests, answers, strict=True)]

    def _ask_one(self, body: Body) -> TopTokens:
        try:
            return top_tokens(self._client.post(PATH, body))
        except RefusedError as error:
            if is_filtered(error):
                return []
            raise QabiasError(f"{error}; {_INSTEAD}" if error.status in (400, 422) else str(error)) from None

    def _scores(self, request: Request, top: TopTokens | None) -> OptionScores:
        """Scores by the tokens that the server named; None is an answer to come."""
        loglikelihoods = sum_options(top or [], request.options)
        if top is not None and not np.isfinite(loglikelihoods).any() and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"server: of {request.options} none is among the {self._top_logprobs} likeliest tokens; such questions "
                "have no answer and are counted so. A model must not think here: see body.NAME in docs/scaling.md",
                stacklevel=3,
            )
        return OptionScores(
            loglikelihoods=loglikelihoods,
            n_tokens=np.ones(len(request.options), dtype=np.int32),
            n_bytes=np.array([len(option.encode()) for option in request.options], dtype=np.int32),
        )


def _check_options(options: tuple[str, ...]) -> None:
    for option in options:
        if len(option.split()) != 1:
            raise QabiasError(
                f"server: mode=logprobs reads one token, and the answer {option.strip()!r} is more than a letter or a "
                "word; choose a prompt format whose answers are letters (--ask letter), or mode=echo"
            )


def sum_options(top: Sequence[tuple[str, float]], options: Sequence[str]) -> np.ndarray:
    """Natural logarithms of the probabilities of options, summed over tokens.

    Args:
        top: Tokens, each with the logarithm of its probability.
        options: Options; spaces around them do not count.

    Returns:
        float64 array of shape (n_options,), in [-inf, 0].
    """
    found = np.full(len(options), -math.inf)
    words = [option.strip() for option in options]
    for token, logprob in top:
        place = _place(token.strip(), words)
        if place is not None:
            found[place] = np.logaddexp(found[place], logprob)
    # The sum of rounded probabilities may be a little above 1.
    return np.minimum(found, 0.0)


def _place(token: str, words: Sequence[str]) -> int | None:
    """Number of the option that a token is, or that it begins; None where it is none's or of several."""
    said = token.casefold()
    same = [place for place, word in enumerate(words) if token == word or (len(word) > 1 and said == word.casefold())]
    begun = [place for place, word in enumerate(words) if said and len(word) > 1 and word.casefold().startswith(said)]
    found = same or begun
    return found[0] if len(found) == 1 else None


def top_tokens(answer: Mapping[str, Any]) -> TopTokens:
    """The likeliest first tokens of an answer with the logarithms of their probabilities, in the server's order.

    They stand in `choices[0].logprobs.content[0].top_logprobs` (OpenAI, vLLM, SGLang, llama.cpp), or, as in
    `/completions`, in `choices[0].logprobs.top_logprobs[0]` by token.

    Args:
        answer: What `/chat/completions` answered, with log-probabilities.

    Returns:
        Tokens with their logarithms; none where the answer ended before its first token.

    Raises:
        QabiasError: If it has no log-probabilities.
    """
    try:
        logprobs = answer["choices"][0]["logprobs"]
        if "content" in logprobs:
            named = [(entry["token"], entry["logprob"]) for token in logprobs["content"][:1] for entry in _top(token)]
        else:
            named = [entry for token in logprobs["top_logprobs"][:1] for entry in token.items()]
        found = [(str(token), float(logprob)) for token, logprob in named]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        found = [("", math.nan)]
    if any(math.isnan(logprob) for _, logprob in found):
        raise QabiasError(f"server: it gives no log-probabilities of the likeliest tokens; {_INSTEAD}")
    return found


def _top(token: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """What a server names at a token; that it names none there is a failure."""
    top: Sequence[Mapping[str, Any]] = token["top_logprobs"]
    if not top:
        raise ValueError("no likeliest tokens")
    return top
