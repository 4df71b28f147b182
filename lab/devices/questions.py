"""Real questions for every way of asking, from the bundled texts of the benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from qabias.benchmarks import choose_format, load_benchmark
from qabias.benchmarks.base import whole_config
from qabias.benchmarks.registry import benchmark_names
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.scorers.base import MARK, MaskedSentences, SpanQuestions
from qabias.scorers.registry import load_kind


class Prompt(NamedTuple):
    """A prompt for a model that writes, and the name of its question."""

    text: str
    key: str


class _Asked(Exception):
    """Carries the questions of a scorer."""

    def __init__(self, items: Any) -> None:
        super().__init__()
        self.items = items


class _Listener:
    """Replaces a scorer of that name, and answers nothing."""

    model_signature = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def score(self, items: Any) -> NoReturn:
        raise _Asked(items)


class _Writer(_Listener):
    samples = 1

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> NoReturn:
        raise _Asked([Prompt(*both) for both in zip(prompts, keys, strict=True)])


class _Classifier(_Listener):
    def classify(self, pairs: Sequence[tuple[str, str]]) -> NoReturn:
        raise _Asked(list(pairs))


_LISTENERS = {"texts": _Writer, "pairs": _Classifier}


def questions(scorer: str, way: str, limit: int) -> Any:
    """The questions of the first benchmark with bundled texts for a scorer and way of asking."""
    known = map(load_benchmark, benchmark_names())
    benchmark = next(one for one in known if way in one.interfaces and one.sources[0] == BUNDLED)
    listener = _LISTENERS.get(way, _Listener)(scorer)
    whole = whole_config(benchmark, load_kind(scorer))
    # A scorer with limited examples has its own config; otherwise the first config is enough.
    config = benchmark.configs[0] if whole == benchmark.configs[-1] else whole
    arguments = RunArguments(benchmark.name, config=config, source=benchmark.sources[0], limit=limit)
    table = load_examples(arguments).table
    prompt_format = choose_format(benchmark.formats, benchmark.default_format(listener))
    try:
        benchmark.answer(table, listener, prompt_format, benchmark.norms[0])
    except _Asked as asked:
        return asked.items
    raise QabiasError(f"{benchmark.name} has no questions for the scorer {scorer}", "choose another scorer")


def count(items: Any) -> int:
    """Number of questions."""
    if isinstance(items, SpanQuestions):
        return len(items.context_of)
    return len(items.text_of) if isinstance(items, MaskedSentences) else len(items)


def take(items: Any, n: int) -> Any:
    """At most `n` of the questions, evenly spread."""
    n_items = count(items)
    chosen = np.unique(np.linspace(0, n_items - 1, min(n, n_items)).round().astype(np.int64))
    if isinstance(items, SpanQuestions):
        return replace(items, context_of=items.context_of[chosen], question_of=items.question_of[chosen])
    if isinstance(items, MaskedSentences):
        context_of = None if items.context_of is None else items.context_of[chosen]
        chosen_of = {"text_of": items.text_of[chosen], "subject_of": items.subject_of[chosen]}
        return replace(items, context_of=context_of, **chosen_of)
    return [items[i] for i in chosen]


def texts(items: Any) -> list[str]:
    """The distinct texts of questions, to train a tokenizer on."""
    if isinstance(items, SpanQuestions):
        return [*items.contexts, *items.questions]
    if isinstance(items, MaskedSentences):
        # A subject is a word at a mask.
        sentences = [text.replace(MARK, items.subjects[i % len(items.subjects)]) for i, text in enumerate(items.texts)]
        return [*items.contexts, *sentences, *(f" {subject}" for subject in items.subjects)]
    distinct: dict[str, None] = {}
    for item in items:
        if isinstance(item, Prompt):
            distinct[item.text] = None
        elif isinstance(item, tuple):
            distinct |= dict.fromkeys(item)
        else:
            distinct |= dict.fromkeys(item.prefix + option for option in item.options)
    return list(distinct)
