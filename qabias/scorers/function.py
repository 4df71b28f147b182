"""A caller's Python function as the model: it returns texts, or log-likelihoods of options."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, Request, Scorer
from qabias.scorers.journal import Journal, request_hash
from qabias.scorers.kind import ASK_METHODS, Loading, ScorerKind, option_field, parse_options
from qabias.scorers.registry import FUNCTION, FUNCTION_PREFIX
from qabias.support.progress import tell
from qabias.support.waiting import wait_for

GENERATE, SCORE = MODES = ("generate", "score")
BATCH = 32
_SHOWN = 60  # characters of a prompt in a message

Function = Callable[[list[Any]], Any]
Asked = TypeVar("Asked", str, Request)


@dataclass(frozen=True)
class FunctionOptions:
    """How a function is called."""

    mode: str = option_field(
        GENERATE, "generate for answers to prompts, score for log-likelihoods of options", choices=MODES
    )
    batch: int = option_field(BATCH, "most prompts of one call", wanted=f"a whole number such as {BATCH}", passing=True)


class _FunctionScorer:
    """Calls a function, batch after batch, and stores its results."""

    name = "function"
    model_signature = ""

    def __init__(self, name: str, function: Function, batch: int = BATCH, journal: Path | None = None) -> None:
        self._place = f"function {name!r}"
        self._function = function
        self._batch = batch
        self._journal = Journal(journal)

    def _ask(
        self,
        items: Sequence[Asked],
        identify: Callable[[Asked], Mapping[str, Any]],
        read: Callable[[str, Asked, Any], Any],
    ) -> list[Any]:
        """Return the function's results; repeated items, and items in the journal, are not asked."""
        names = [request_hash(identify(item)) for item in items]
        missing = {name: item for name, item in zip(names, items, strict=True) if name not in self._journal}
        waiting = list(missing.items())
        try:
            for start in range(0, len(waiting), self._batch):
                batch = waiting[start : start + self._batch]
                results = self._call([item for _, item in batch])
                answers = [
                    read(f"{self._place}, item {number} of {len(batch)}", item, result)
                    for number, ((_, item), result) in enumerate(zip(batch, results, strict=True))
                ]
                for (name, _), answer in zip(batch, answers, strict=True):
                    self._journal.add(name, answer)
                tell((start + len(batch)) / len(waiting))
        finally:
            self._journal.close()
        return [self._journal[name] for name in names]

    def _call(self, items: list[Any]) -> list[Any]:
        result = self._function(list(items))
        if inspect.isawaitable(result):
            result = wait_for(result)
        gave = f"{self._place} gave"
        if isinstance(result, str | bytes | Mapping) or not isinstance(result, Iterable):
            raise QabiasError(f"{gave} {_type(result)} for a list of {len(items)}.", "Return a list of that length.")
        results = list(result)
        if len(results) != len(items):
            raise QabiasError(f"{gave} {len(results)} elements for a list of {len(items)}.", "Return one for each.")
        return results


class FunctionTextScorer(_FunctionScorer):
    """Answers that a function writes."""

    samples = 1

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """Return one answer to every prompt, in order."""
        return [(answer,) for answer in self._ask(prompts, lambda prompt: {"prompt": prompt}, _read_answer)]


class FunctionOptionScorer(_FunctionScorer):
    """Log-likelihoods that a function returns."""

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        bare = [Request(request.prefix, request.options) for request in requests]
        answers = self._ask(bare, lambda one: {"prefix": one.prefix, "options": list(one.options)}, _read_numbers)
        return [
            OptionScores.make(values, [0] * len(values), request.options)
            for request, values in zip(requests, answers, strict=True)
        ]


def _read_answer(place: str, prompt: str, answer: Any) -> str:
    if not isinstance(answer, str):
        raise QabiasError(
            f"{place}: the answer to ...{prompt[-_SHOWN:]!r} is {_type(answer)}, not a text.",
            'Return a str for each prompt. For log-likelihoods use ask="answer-logprob" or "letter-logprob".',
        )
    return str(answer)


def _read_numbers(place: str, request: Request, answer: Any) -> list[float]:
    n_options = len(request.options)
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise QabiasError(f"{place}: {_type(answer)} instead of a list.", f"Return {n_options} log-likelihoods.")
    values = [_number(place, number, value) for number, value in enumerate(answer)]
    if len(values) != n_options:
        raise QabiasError(
            f"{place}: {len(values)} log-likelihoods were given for {n_options} options.",
            "Return one for each, in the order of request.options.",
        )
    return values


def _number(place: str, number: int, value: Any) -> float:
    try:
        loglikelihood = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, RuntimeError):  # a tensor of several numbers raises the last
        loglikelihood = math.nan
    if not loglikelihood <= 0:
        raise QabiasError(
            f"{place}: the log-likelihood of option {number} is {value!r}.",
            "Return the natural logarithm of a probability: 0 or less, -inf if impossible.",
        )
    return loglikelihood


def _type(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _load(loading: Loading) -> Scorer:
    name = loading.model.removeprefix(FUNCTION_PREFIX)
    if not callable(loading.handed_over):
        raise QabiasError(
            f"model {loading.model!r}: a function works only in Python.",
            f"Call qabias.run(..., model=FUNCTION, name={name!r}).",
        )
    ignored = loading.chosen("revision", "dtype", "device", "batch_tokens")
    if ignored:
        raise QabiasError(f"function {name!r} sets these itself: {', '.join(ignored)}.", "Remove them.")
    options = parse_options("function", FunctionOptions, loading.options)
    scorer = FunctionOptionScorer if options.mode == SCORE else FunctionTextScorer
    return scorer(name, loading.handed_over, options.batch, loading.journal)


KIND = ScorerKind(
    name=FUNCTION,
    summary="answers or log-likelihoods that a function gives, from Python only",
    interfaces=("options", "texts"),
    load=_load,
    options=FunctionOptions,
    asks={
        word: {"mode": SCORE if word in ("answer-logprob", "letter-logprob") else GENERATE} for word in ASK_METHODS[:-1]
    },
    chats=True,
    counts_tokens=False,
)
