"""A model behind a server says how likely the letter of each answer is: one token of `/chat/completions`."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.server.asking import Asker, Body, NoChoiceError, RefusedError
from qabias.scorers.server.chat import FILTERED_FINISH, PATH, ServerScorer, chat_body, is_filtered
from qabias.scorers.server.options import ServerOptions

_INSTEAD = (
    "a server that names fewer tokens takes --option top_logprobs=5; one that gives no log-probabilities can be asked "
    "for the letter itself, with --ask write or --option mode=chat"
)

LEAST_SHARE = 0.5
"""What the options of a question must have together of the first token's probability to be its answer."""

# What may stand around an option in a token, as in "(A" and "**A".
_MARKS = "()[]{}*_`\"'“”‘’.,:;!$#"
_FILTERED, _ELSEWHERE = "filtered", "elsewhere"
_LOST = {
    _FILTERED: "server: a filter of the service held back {n:,} of {asked:,} prompts; {so}",
    _ELSEWHERE: (
        "server: after {n:,} of {asked:,} prompts the answers have less than half of the first token's probability, "
        "counted over the {top} likeliest tokens; {so}. A model must not think here: see body.NAME in docs/scaling.md"
    ),
}
_SO = "such questions have no answer and are counted as missing"

TopTokens = list[tuple[str, float]]
Kept = TopTokens | dict[str, str]
"""What the journal keeps of an answer: the likeliest tokens, or `finish` where a filter held it back."""


class ServerLogprobScorer(ServerScorer):
    """Scores options of one token each by the probabilities that a server gives for the first token of an answer."""

    def __init__(self, model: str, client: Asker, options: ServerOptions | None = None) -> None:
        super().__init__(model, client, options)
        top = self._options.top_logprobs
        self._fields = {"logprobs": True, "top_logprobs": top, **self._options.fields_of_chat(self.new_tokens)}
        self.settings = {"temperature": self._options.temperature, "top_logprobs": str(top)}
        self._n_answered = 0
        self._lost: Counter[str] = Counter()
        self._warned: set[str] = set()

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        for options in {request.options for request in requests}:
            _check_options(options)
        bodies = [chat_body(self._model, request.prefix, self._fields) for request in requests]
        answers = self._client.ask(bodies, self._ask_one)
        scores = [self._scores(request, answer) for request, answer in zip(requests, answers, strict=True)]
        self._warn()
        return scores

    def _ask_one(self, body: Body) -> Kept:
        try:
            answer = self._client.post(PATH, body)
        except RefusedError as error:
            if is_filtered(error):
                return {"finish": FILTERED_FINISH}
            if error.status in (400, 422):
                raise RefusedError(f"{error}; {_INSTEAD}", error.status, error.code) from None
            raise
        except NoChoiceError as error:
            self._warn_of_unread(body, error)
            return []
        return {"finish": FILTERED_FINISH} if _is_held_back(answer) else top_tokens(answer)

    def _scores(self, request: Request, answer: Kept | None) -> OptionScores:
        """Scores by what the journal keeps; None is an answer to come, which is no loss."""
        loglikelihoods = sum_options(answer if isinstance(answer, list) else [], request.options)
        if np.exp(loglikelihoods).sum() < LEAST_SHARE:
            loglikelihoods = np.full(len(request.options), -math.inf)
            self._lost[_FILTERED if isinstance(answer, dict) else _ELSEWHERE] += answer is not None
        self._n_answered += answer is not None
        return OptionScores.make(loglikelihoods, [1] * len(request.options), request.options)

    def _warn(self) -> None:
        """Warn once of each kind of loss, with the counts so far."""
        for loss in [loss for loss in _LOST if self._lost[loss] and loss not in self._warned]:
            self._warned.add(loss)
            top = self._options.top_logprobs
            text = _LOST[loss].format(n=self._lost[loss], asked=self._n_answered, top=top, so=_SO)
            warnings.warn(text, stacklevel=3)


def _is_held_back(answer: Mapping[str, Any]) -> bool:
    """Return whether a filter ended an answer, which may then have no log-probabilities."""
    try:
        return bool(answer["choices"][0]["finish_reason"] == FILTERED_FINISH)
    except (KeyError, IndexError, TypeError):
        return False


def _check_options(options: tuple[str, ...]) -> None:
    for option in options:
        if len(option.split()) != 1:
            raise QabiasError(
                f"server: mode=logprobs reads one token, and the answer {option.strip()!r} is more than a letter or a "
                "word; choose a prompt format whose answers are letters (--ask letter), or mode=echo"
            )


def sum_options(top: Sequence[tuple[str, float]], options: Sequence[str]) -> np.ndarray:
    """Natural logarithms of the probabilities of options, summed over tokens."""
    sums = np.full(len(options), -math.inf)
    words = [_bare(option) for option in options]
    for token, logprob in top:
        place = _place(_bare(token), words)
        if place is not None:
            sums[place] = np.logaddexp(sums[place], logprob)
    # The sum of rounded probabilities may be a little above 1.
    return np.minimum(sums, 0.0)


def _bare(text: str) -> str:
    """A text without spaces and marks around it; one of marks alone is left as it is."""
    return text.strip().strip(_MARKS).strip() or text.strip()


def _place(token: str, words: Sequence[str]) -> int | None:
    """Number of the option that a token is, or that it begins; None where it is none's or of several."""
    said = token.casefold()
    same = [place for place, word in enumerate(words) if token == word or (len(word) > 1 and said == word.casefold())]
    begun = [place for place, word in enumerate(words) if said and len(word) > 1 and word.casefold().startswith(said)]
    places = same or begun
    return places[0] if len(places) == 1 else None


def top_tokens(answer: Mapping[str, Any]) -> TopTokens:
    """The likeliest first tokens of an answer with the logarithms of their probabilities, in the server's order."""
    try:
        logprobs = answer["choices"][0]["logprobs"]
        if "content" in logprobs:
            named = [(entry["token"], entry["logprob"]) for token in logprobs["content"][:1] for entry in _top(token)]
        else:
            named = [entry for token in logprobs["top_logprobs"][:1] for entry in token.items()]
        top = [(str(token), float(logprob)) for token, logprob in named]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        top = [("", math.nan)]
    if any(math.isnan(logprob) for _, logprob in top):
        raise QabiasError(f"server: it gives no log-probabilities of the likeliest tokens; {_INSTEAD}")
    return top


def _top(token: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return what a server names at a token; that it names none there is a failure."""
    top: Sequence[Mapping[str, Any]] = token["top_logprobs"]
    if not top:
        raise ValueError("no likeliest tokens")
    return top
