"""The modes of a server: written answers, probabilities of echoed texts, and of the first token."""

from __future__ import annotations

import itertools
import logging
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np

from qabias.answers.outcomes import FILTERED_FINISH, TOO_LONG, Written, message_parts
from qabias.errors import QabiasError, arg
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.server.asking import Asker, Body, NoChoiceError, RefusedError
from qabias.scorers.server.client import GaveUpError, check_request
from qabias.scorers.server.options import COMPLETIONS, PLAIN_LOGPROBS, RESPONSE_FORMAT, ServerOptions
from qabias.scorers.server.templates import CHAT_PATH, lacks_template, misfit

PATH = CHAT_PATH
PLAIN_PATH = "completions"

ROOM_TO_THINK = 4  # factor on a prompt format's answer length, because reasoning counts and may occur unseen

_NEW_TOKENS = 64  # what formats need that name no number, see `qabias.benchmarks.prompt_format.PromptFormat.new_tokens`
# So many prompts without a choice are named to people.
_NAMED = 3
_BEGIN = 60

_log = logging.getLogger(__name__)


class ServerScorer:
    """Base class of all modes of a server; see `qabias.scorers.base.BatchScorer`."""

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
        self.chosen: Mapping[str, str] = {}  # options that the server's template decided
        self._is_plain = self._options.mode in (COMPLETIONS, PLAIN_LOGPROBS)
        self._path = PLAIN_PATH if self._is_plain else PATH
        self._unread = itertools.count(1)

    def write_requests(self) -> str:
        """Write unanswered requests, and return a note about them; "" if all are answered."""
        return self._client.write_requests()

    @property
    def cost(self) -> dict[str, float]:
        """Requests, retries and tokens, summed over all commands of the run; and the prices if given."""
        prices = {"price_in": self._options.price_in, "price_out": self._options.price_out}
        return {**self._client.used, **{name: price for name, price in prices.items() if price is not None}}

    def _body(self, prompt: str, fields: Mapping[str, Any]) -> Body:
        """Make a request with a prompt, as the user's message or, without a template, as the text to continue."""
        asked = {"prompt": prompt} if self._is_plain else {"messages": [{"role": "user", "content": prompt}]}
        return {"model": self._model, **asked, **fields}

    def _may_lack(self, body: Body, error: RefusedError) -> bool:
        """Return whether a prompt has no answer because the server rejects this one only."""
        may_lack = bool(error.failed.finish) and (self._client.has_answered or error.failed.is_filtered)
        if may_lack and error.failed.finish == TOO_LONG:
            self._warn_without_answer(body, error)
        return may_lack

    def _warn_without_answer(self, body: Body, error: QabiasError) -> None:
        """Count prompts without an answer, and log the first of them."""
        number = next(self._unread)
        if number <= _NAMED:
            prompt = body["messages"][0]["content"] if "messages" in body else body["prompt"]
            _log.warning(
                "%s, at prompt %r; it counts as missing (such prompts so far: %d; the first %d are named)",
                error.args[0],
                prompt if len(prompt) <= _BEGIN else f"{prompt[:_BEGIN]}...",
                number,
                _NAMED,
            )


class ServerChatScorer(ServerScorer):
    """Lets a model behind a server write answers."""

    samples = 1

    def __init__(self, model: str, client: Asker, options: ServerOptions | None = None) -> None:
        super().__init__(model, client, options)
        self.limit_new_tokens(_NEW_TOKENS)

    def limit_new_tokens(self, new_tokens: int) -> None:
        """Set the maximum tokens to `ROOM_TO_THINK` times what a format needs, unless an option did."""
        # Without a template nothing thinks unseen.
        self.new_tokens = self._options.token_limit or (1 if self._is_plain else ROOM_TO_THINK) * new_tokens
        self.settings = {"max_new_tokens": str(self.new_tokens), "temperature": self._options.temperature}

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """Return one answer to every prompt, in order, with its finish reason and reasoning."""
        fields = self._options.fields_of_chat(self.new_tokens)
        bodies = [self._body(prompt, fields) for prompt in prompts]
        return [(_written(answer),) for answer in self._client.ask(bodies, self._ask_one)]

    def _ask_one(self, body: Body) -> dict[str, str]:
        try:
            answer = (read_text if self._is_plain else read_message)(self._client.post(self._path, body))
            if not (self._is_plain or self._client.has_answered) and (why := misfit(**answer)):
                _log.warning(
                    "server: the first answer %s. If it is a base model, add %s mode=completions", why, arg("option")
                )
            return answer
        except RefusedError as error:
            if lacks_template(str(error)):
                raise RefusedError(error.args[0], error.failed, f"Add {arg('option')} mode=completions.") from None
            if self._may_lack(body, error):
                return {"text": "", "finish": error.failed.finish, "thinking": ""}
            if RESPONSE_FORMAT in body and error.failed.status in (400, 422, 501):
                raise QabiasError(
                    f"The server does not take {RESPONSE_FORMAT} with a JSON schema ({error}).",
                    f"Use {arg('ask')} letter, or a server that constrains answers by a JSON schema.",
                ) from None
            raise
        except NoChoiceError as error:
            self._warn_without_answer(body, error)
            return {"text": "", "finish": "", "thinking": ""}


def read_message(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the stored part of an answer: text, finish reason, and separate reasoning."""
    try:
        choice = answer["choices"][0]
        text, thinking = message_parts(choice["message"])
    except (KeyError, IndexError, TypeError, AttributeError):
        raise QabiasError("server: the answer has no choices[0].message.content.", "Use a chat server.") from None
    return {"text": text, "finish": str(choice.get("finish_reason") or ""), "thinking": thinking}


def read_text(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the stored part of an answer without a chat: text and finish reason."""
    try:
        choice = answer["choices"][0]
        text = choice["text"]
    except (KeyError, IndexError, TypeError):
        text = None
    if not isinstance(text, str):
        raise QabiasError("server: the answer has no choices[0].text.", f"Remove {arg('option')} mode=completions.")
    return {"text": text, "finish": str(choice.get("finish_reason") or ""), "thinking": ""}


def _written(answer: Mapping[str, str] | None) -> Written:
    """Convert an answer for scorers; None is a pending one."""
    return Written("") if answer is None else Written(answer["text"], answer["finish"], answer["thinking"])


# Field of a request's identity with the option's length; users' fields have no space in their names.
_LENGTH = "option length"


def _chat_instead() -> str:
    return f"Use {arg('option')} mode=chat if the server gives no log-probabilities of prompts."


class ServerEchoScorer(ServerScorer):
    """Scores options by the log-probabilities that a server returns for its prompt; see `ServerScorer`."""

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
                answer = self._client.post(PLAIN_PATH, {**sent, "max_tokens": max_tokens}, doubtful)
            except (RefusedError, GaveUpError) as error:
                is_doubtful = isinstance(error, GaveUpError) and error.is_doubtful and not self._client.has_answered
                is_refused = isinstance(error, RefusedError) and error.failed.status in (400, 422)
                if max_tokens == 1 or not (is_doubtful or is_refused):
                    raise
                max_tokens = 1
                answer = self._client.post(PLAIN_PATH, {**sent, "max_tokens": 1})
                if self._max_tokens == 0:
                    self._max_tokens = 1
                    warnings.warn("server: it rejects max_tokens 0; one token is generated and dropped", stacklevel=2)
        except RefusedError as error:
            if self._may_lack(body, error):
                return {"loglikelihood": math.nan, "n_tokens": 1}
            fix = _chat_instead() if error.args[1] in ("", check_request()) else error.args[1]
            raise RefusedError(error.args[0], error.failed, fix) from None
        except NoChoiceError as error:
            raise QabiasError(f"{error}, at prompt ...{body['prompt'][-60:]!r}.", _chat_instead()) from None
        return sum_option(answer, body["prompt"], body[_LENGTH], max_tokens)


def sum_option(answer: Mapping[str, Any], prompt: str, option_length: int, max_tokens: int) -> dict[str, float]:
    """Sum the log-probabilities of the tokens that overlap the option."""
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
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, StopIteration):
        raise QabiasError("server: it gives no log-probabilities of the prompt.", _chat_instead()) from None
    counted = [_log_probability(value, _chat_instead()) for value in values[first:]]
    if not fits or offsets[0] < 0 or ends != sorted(ends) or len(values) != len(tokens):
        raise QabiasError(f"server: its log-probabilities do not fit the prompt ...{prompt[-60:]!r}.", _chat_instead())
    return {"loglikelihood": math.fsum(counted), "n_tokens": len(counted)}


def _collect(request: Request, answers: Sequence[Mapping[str, float]]) -> OptionScores:
    loglikelihoods, n_tokens = ([answer[name] for answer in answers] for name in ("loglikelihood", "n_tokens"))
    if any(map(math.isnan, loglikelihoods)):  # of an option that the server rejects
        loglikelihoods = [-math.inf] * len(answers)
    return OptionScores.make(loglikelihoods, n_tokens, request.options)


def _instead() -> str:
    return (
        f"Use {arg('option')} top_logprobs=5 for a server with that limit, or {arg('ask')} letter or "
        f"{arg('option')} mode=chat if it gives no log-probabilities."
    )


LEAST_SHARE = 0.5  # minimum total probability of a question's options as first token

# Characters around an option in a token, as in "(A" and "**A".
_MARKS = "()[]{}*_`\"'“”‘’.,:;!$#"
_LOST = (
    "server: {n:,} of {asked:,} prompts have no answer and are counted as missing: the service filtered or rejected "
    "it, or the answers have less than half of the first token's probability, counted over the {top} likeliest "
    "tokens. A model must not think here: see body.NAME in docs/server-options.md"
)

_ROUNDING = 0.01  # what a log-probability, or a sum of probabilities, may be too large by

TopTokens = list[tuple[str, float]]
Kept = TopTokens | dict[str, str]
"""What the journal stores of an answer: the likeliest tokens, or `finish` if a filter stopped it."""


class ServerLogprobScorer(ServerScorer):
    """Scores options of one token each by their probabilities as first token of an answer."""

    def __init__(self, model: str, client: Asker, options: ServerOptions | None = None) -> None:
        super().__init__(model, client, options)
        top = self._options.top_logprobs
        asked = {"logprobs": top} if self._is_plain else {"logprobs": True, "top_logprobs": top}
        self._fields = {**asked, **self._options.fields_of_chat(self.new_tokens)}
        self.settings = {"temperature": self._options.temperature, "top_logprobs": str(top)}
        self._n_answered = 0
        self._n_lost = 0
        self._has_warned = False

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        for option in {option for request in requests for option in request.options}:
            if len(option.split()) != 1:
                raise QabiasError(
                    f"server: mode=logprobs reads one token, but the answer {option.strip()!r} has more.",
                    f"Use {arg('ask')} letter-logprob, or {arg('option')} mode=echo.",
                )
        bodies = [self._body(request.prefix, self._fields) for request in requests]
        answers = self._client.ask(bodies, self._ask_one)
        scores = [self._scores(request, answer) for request, answer in zip(requests, answers, strict=True)]
        if self._n_lost and not self._has_warned:
            self._has_warned = True
            top = self._options.top_logprobs
            warnings.warn(_LOST.format(n=self._n_lost, asked=self._n_answered, top=top), stacklevel=2)
        return scores

    def _ask_one(self, body: Body) -> Kept:
        try:
            answer = self._client.post(self._path, body)
        except RefusedError as error:
            if self._may_lack(body, error):
                return {"finish": error.failed.finish}
            if error.failed.status in (400, 422):
                raise RefusedError(error.args[0], error.failed, _instead()) from None
            raise
        except NoChoiceError as error:
            self._warn_without_answer(body, error)
            return []
        return top_tokens(answer)

    def _scores(self, request: Request, answer: Kept | None) -> OptionScores:
        """Scores from the journal's tokens; None is pending and does not count as missing."""
        loglikelihoods = sum_options(answer if isinstance(answer, list) else [], request.options)
        if np.exp(loglikelihoods).sum() < LEAST_SHARE:
            loglikelihoods = np.full(len(request.options), -math.inf)
            self._n_lost += answer is not None
        self._n_answered += answer is not None
        return OptionScores.make(loglikelihoods, [1] * len(request.options), request.options)


def sum_options(top: Sequence[tuple[str, float]], options: Sequence[str]) -> np.ndarray:
    """Log-probabilities of options (natural logarithm), summed over tokens."""
    sums = np.full(len(options), -math.inf)
    words = [_bare(option) for option in options]
    for token, logprob in top:
        place = _place(_bare(_as_text(token)), words)
        if place is not None:
            sums[place] = np.logaddexp(sums[place], logprob)
    # The sum of rounded probabilities may be a little above 1.
    return np.minimum(sums, 0.0)


# Names of tokens in vocabularies: bytes as <0x0A>, and in byte-level vocabularies all others as one character each.
_BYTE_NAMES = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+")
_BYTE_OF = {chr(byte): byte for byte in range(256)}
_BYTE_OF |= {chr(256 + place): byte for place, byte in enumerate((*range(33), *range(127, 161), 173))}


def _as_text(token: str) -> str:
    """The text of a token that may be spelled as in the vocabulary, such as "ĠA" or "▁A"."""
    text = _BYTE_NAMES.sub(lambda name: bytes.fromhex(re.sub("<0x|>", "", name[0])).decode(errors="replace"), token)
    for _ in range(2):  # the second time for a name whose bytes were read as Latin-1
        with suppress(UnicodeError, KeyError):
            spelled = bytes(map(_BYTE_OF.__getitem__, text)).decode()
            # A control character shows that the text is not made of bytes: "ą" would be one.
            text = spelled if re.sub("[\n\t\xa0]", " ", spelled).isprintable() else text
    return text.replace("▁", " ").removesuffix("</w>")


def _bare(text: str) -> str:
    """Strip spaces and punctuation around a text, unless nothing else is in it."""
    return text.strip().strip(_MARKS).strip() or text.strip()


def _place(token: str, words: Sequence[str]) -> int | None:
    """Number of the only option that a token equals or begins; None if ambiguous."""
    said = token.casefold()
    same = [place for place, word in enumerate(words) if token == word or (len(word) > 1 and said == word.casefold())]
    begun = [place for place, word in enumerate(words) if said and len(word) > 1 and word.casefold().startswith(said)]
    places = same or begun
    return places[0] if len(places) == 1 else None


def top_tokens(answer: Mapping[str, Any]) -> Kept:
    """The likeliest first tokens of an answer with their log-probabilities, in the server's order."""
    try:
        choice = answer["choices"][0]
        if choice.get("finish_reason") == FILTERED_FINISH:  # which may lack log-probabilities
            return {"finish": FILTERED_FINISH}
        logprobs = choice["logprobs"]
        if "content" in logprobs:
            # Nothing in the place of the likeliest tokens is a failure, and no token at all is not.
            entries = (entry for token in logprobs["content"][:1] for entry in token["top_logprobs"] or [{}])
            named = [(entry.get("token"), entry["logprob"]) for entry in entries]
        else:
            named = [entry for token in logprobs["top_logprobs"][:1] for entry in token.items()]
    except (KeyError, IndexError, TypeError, AttributeError):
        named = [("", None)]
    if named and all(value is None for _, value in named):
        raise QabiasError("server: it gives no log-probabilities of the likeliest tokens.", _instead())
    if any(not isinstance(token, str) or re.fullmatch(r"token_id:\d+", token) for token, _ in named):
        raise QabiasError(
            "server: it gives the likeliest tokens without texts, perhaps by number.",
            "Remove body.return_tokens_as_token_ids and vLLM's --return-tokens-as-token-ids, "
            f"or use {arg('ask')} letter.",
        )
    # Some servers give null for tokens that cannot occur.
    top = [(token, -math.inf if value is None else _log_probability(value, _instead())) for token, value in named]
    if (total := sum(math.exp(value) for _, value in top)) > 1 + _ROUNDING:
        raise QabiasError(f"server: the probabilities of its likeliest tokens sum to {total:.3g}.", _instead())
    return top


def _log_probability(value: Any, fix: str) -> float:
    """Read a log-probability; servers may write it as a text, or -Infinity."""
    try:
        number = float(str(value))  # an integer of hundreds of digits is infinite
    except ValueError:
        number = math.nan
    if not number <= _ROUNDING:
        what = "above 0, as no logarithm of a probability is" if number > 0 else "not a number"
        raise QabiasError(f"server: one of its log-probabilities is {what}.", fix)
    return min(number, 0.0)
