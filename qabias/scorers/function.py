"""A function of the caller's answers: texts, or log-likelihoods of options. It is given from Python only.

With `mode=generate` the function takes a list of prompts and gives one answer for each. With `mode=score` it takes a
list of `Request` and gives, for each, the natural logarithms of the probabilities of its options. Either may be async.

Equal prompts are asked once, a batch at a time. A batch that is answered is kept in the journal before the next one is
asked: a run that the function has stopped by an exception goes on from there. The exception itself passes unchanged.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, Request, Scorer
from qabias.scorers.journal import Journal, request_hash
from qabias.scorers.kind import ASK_METHODS, Loading, ScorerKind
from qabias.scorers.registry import FUNCTION, FUNCTION_PREFIX
from qabias.support.progress import tell
from qabias.support.waiting import wait_for

GENERATE, SCORE = MODES = ("generate", "score")
BATCH = 32
_SHOWN = 60  # characters of a prompt in a message

Function = Callable[[list[Any]], Any]
Asked = TypeVar("Asked", str, Request)


class FunctionOptions(NamedTuple):
    """How a function is asked."""

    mode: str = GENERATE
    batch: int = BATCH


def parse_options(options: Mapping[str, str]) -> FunctionOptions:
    """Read options from texts."""
    mode, batch = options.get("mode", GENERATE), options.get("batch", str(BATCH))
    if mode not in MODES:
        raise QabiasError(f"function: mode is {mode!r}; give {' or '.join(MODES)}")
    if not (batch.isascii() and batch.isdecimal() and int(batch) > 0):
        raise QabiasError(f"function: batch is {batch!r}; give a whole number such as {BATCH}")
    return FunctionOptions(mode, int(batch))


class _Caller:
    """Calls a function, batch after batch, and keeps what it gives."""

    def __init__(self, name: str, function: Function, batch: int, journal: Path | None) -> None:
        self._name = name
        self._function = function
        self._batch = batch
        self._journal = Journal(journal)

    def ask(
        self,
        items: Sequence[Asked],
        identify: Callable[[Asked], Mapping[str, Any]],
        read: Callable[[str, Asked, Any], Any],
    ) -> list[Any]:
        """What the function gives for items, in order; equal ones, and those that the journal has, are not asked."""
        names = [request_hash(identify(item)) for item in items]
        missing = {name: item for name, item in zip(names, items, strict=True) if name not in self._journal}
        waiting = list(missing.items())
        try:
            for start in range(0, len(waiting), self._batch):
                batch = waiting[start : start + self._batch]
                given = self._call([item for _, item in batch])
                places = [f"function {self._name!r}, item {place} of {len(batch)}" for place in range(len(batch))]
                read_all = [read(place, item, one) for place, (_, item), one in zip(places, batch, given, strict=True)]
                for (name, _), one in zip(batch, read_all, strict=True):
                    self._journal.add(name, one)
                tell((start + len(batch)) / len(waiting))
        finally:
            self._journal.close()
        return [self._journal[name] for name in names]

    def _call(self, items: list[Any]) -> list[Any]:
        given = self._function(list(items))
        if inspect.isawaitable(given):
            given = wait_for(given)
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise QabiasError(
                f"function {self._name!r} gave {_type(given)} for a list of {len(items)}; give a list with one element "
                "for each"
            )
        found = list(given)
        if len(found) != len(items):
            raise QabiasError(
                f"function {self._name!r} gave {len(found)} elements for a list of {len(items)}; give one for each, in "
                "the same order"
            )
        return found


class FunctionTextScorer:
    """Answers that a function writes."""

    name = "function"
    model_signature = ""
    samples = 1

    def __init__(self, name: str, function: Function, batch: int = BATCH, journal: Path | None = None) -> None:
        self._caller = _Caller(name, function, batch, journal)

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """One answer to every prompt, in order."""
        return [(answer,) for answer in self._caller.ask(prompts, lambda prompt: {"prompt": prompt}, _read_answer)]


class FunctionOptionScorer:
    """Log-likelihoods that a function gives; see `FunctionTextScorer`."""

    name = "function"
    model_signature = ""

    def __init__(self, name: str, function: Function, batch: int = BATCH, journal: Path | None = None) -> None:
        self._caller = _Caller(name, function, batch, journal)

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        bare = [Request(request.prefix, request.options) for request in requests]
        found = self._caller.ask(bare, _identify, _read_loglikelihoods)
        return [
            OptionScores(
                loglikelihoods=np.array(values, dtype=np.float64),
                n_tokens=np.zeros(len(values), dtype=np.int32),
                n_bytes=np.array([len(option.encode()) for option in request.options], dtype=np.int32),
            )
            for request, values in zip(requests, found, strict=True)
        ]


def _identify(request: Request) -> dict[str, Any]:
    return {"prefix": request.prefix, "options": list(request.options)}


def _read_answer(place: str, prompt: str, given: Any) -> str:
    if not isinstance(given, str):
        raise QabiasError(
            f'{place}: the answer is {_type(given)}, not a text; give a str for each prompt, "" for no answer '
            f'(prompt ...{prompt[-_SHOWN:]!r}). Log-likelihoods are given with ask="options" or ask="letter"'
        )
    return str(given)


def _read_loglikelihoods(place: str, request: Request, given: Any) -> list[float]:
    n_options = len(request.options)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise QabiasError(f"{place}: {_type(given)} was given; give {n_options} log-likelihoods, one for each option")
    values = [_number(place, number, value) for number, value in enumerate(given)]
    if len(values) != n_options:
        raise QabiasError(
            f"{place}: {len(values)} log-likelihoods were given for {n_options} options; give one for each, in the "
            "order of request.options"
        )
    return values


def _number(place: str, number: int, value: Any) -> float:
    try:
        found = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, RuntimeError):  # a tensor of several numbers raises the last
        found = math.nan
    if not found <= 0:
        raise QabiasError(
            f"{place}: the log-likelihood of option {number} is {value!r}; give the natural logarithm of a "
            "probability: a number of 0 or less, -inf for what is impossible"
        )
    return found


def _type(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _load(loading: Loading) -> Scorer:
    name = loading.model.removeprefix(FUNCTION_PREFIX)
    if not callable(loading.handed_over):
        raise QabiasError(
            f"model {loading.model!r}: a function is given from Python: qabias.run(..., model=FUNCTION, name={name!r})"
        )
    said = {
        "revision": loading.revision is not None,
        "dtype": loading.dtype != "auto",
        "device": loading.device != "auto",
        "token_budget": loading.token_budget is not None,
    }
    if any(said.values()):
        names = ", ".join(word for word, is_said in said.items() if is_said)
        raise QabiasError(f"function {name!r}: what it computes with is its own; leave out {names}")
    options = parse_options(loading.options)
    if options.mode == SCORE:
        return FunctionOptionScorer(name, loading.handed_over, options.batch, loading.journal)
    return FunctionTextScorer(name, loading.handed_over, options.batch, loading.journal)


KIND = ScorerKind(
    name=FUNCTION,
    about="answers or log-likelihoods that a function gives, from Python only",
    interfaces=("options", "texts"),
    load=_load,
    options={
        "mode": "generate for answers to prompts, score for log-likelihoods of options",
        "batch": "most prompts of one call",
    },
    default_mode=GENERATE,
    asks={word: {"mode": SCORE if word in ("options", "letter") else GENERATE} for word in ASK_METHODS},
    parse_options=parse_options,
    passing_options=("batch",),
    chats=True,
    counts_tokens=False,
)
