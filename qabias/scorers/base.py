"""What scorers take and give.

A scorer asks a model and knows no benchmark. There are five Protocols: an `OptionScorer` scores the options that may
follow a text, a `TextScorer` lets the model write, a `PairScorer` classifies pairs of texts, a `SpanScorer` scores
spans of contexts, and a `MaskScorer` scores words at masks. Which of them a scorer has is also in its description
(`interfaces` of `qabias.scorers.kind.ScorerKind`), which can be read before a model is loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from qabias.answers.likelihoods import OptionScores as OptionScores

MARK = "[MASK]"
"""The mark of a mask in texts, whatever the model's own mask token."""


@dataclass(frozen=True)
class Request:
    """One question to a model: which of `options` follows `prefix`?

    Attributes:
        prefix: Text before the options, without a space at its end.
        options: Continuations of `prefix`; the space that separates them from the prefix belongs to the option.
        roles: Index of the option that plays a part in the benchmark (`"biased"`, `"counter_biased"`, `"unknown"`,
            `"gold"`; -1 where undefined). Only baselines read it, models never see it.
        key: Stable identity of the question, e.g. `"Age/17"`; seeds the random baseline.
    """

    prefix: str
    options: tuple[str, ...]
    roles: Mapping[str, int] = field(default_factory=dict)
    key: str = ""


@dataclass(frozen=True)
class SpanQuestions:
    """Questions about contexts that name two subjects each.

    Attributes:
        contexts: Distinct contexts.
        questions: Distinct questions.
        subjects: For each context its two subjects as they occur in it, apart from their case.
        context_of: int array of shape (n_items,); for each item the number of its context.
        question_of: int array of shape (n_items,); for each item the number of its question.
    """

    contexts: Sequence[str]
    questions: Sequence[str]
    subjects: Sequence[tuple[str, str]]
    context_of: np.ndarray
    question_of: np.ndarray


@dataclass(frozen=True)
class MaskedSentences:
    """Sentences with a mask, and the two subjects whose probability there is asked.

    Attributes:
        texts: Distinct texts, with one `MARK` each.
        subjects: Distinct subjects.
        text_of: int array of shape (n_items,); for each item the number of its text.
        subject_of: int array of shape (n_items, 2); for each item the numbers of its subjects.
        contexts: Distinct texts without a mark that stand before others, joined by a space; empty if there are none.
        context_of: int array of shape (n_items,); for each item the number of its context; None if there are none.
        clusters: For each subject its cluster, e.g. `"female"`; needed for pronouns only.
    """

    texts: Sequence[str]
    subjects: Sequence[str]
    text_of: np.ndarray
    subject_of: np.ndarray
    contexts: Sequence[str] = ()
    context_of: np.ndarray | None = None
    clusters: Sequence[str] = ()


class Scorer(Protocol):
    """One way of asking one model; what it is asked depends on the way.

    Attributes:
        name: Name of the way, e.g. "causal".
        model_signature: What pins the model beside its name (version and precision); empty for baselines.
    """

    name: str
    model_signature: str


@runtime_checkable
class ConfiguredScorer(Protocol):
    """A scorer with settings beside its options, which have a say in the answers.

    Attributes:
        settings: What stands in the signature where no option of that name was given, name to value.
    """

    settings: Mapping[str, str]


@runtime_checkable
class GeneratingScorer(Protocol):
    """A scorer that writes texts of a limited length."""

    def limit_new_tokens(self, new_tokens: int) -> None:
        """Choose the most tokens of an answer, for a prompt format that needs so many; an option goes before it."""
        ...


@runtime_checkable
class BatchScorer(Protocol):
    """A scorer whose answers may come later, in files.

    Attributes:
        needs_single_process: Whether one process must ask all of a run, because what is left to ask goes into files.
    """

    needs_single_process: bool

    def is_waiting(self) -> bool:
        """Return whether a question since the last call has no answer yet; its placeholder is thrown away."""
        ...

    def write_requests(self) -> str:
        """Write down what is left to ask, and say it to people; "" where nothing is to be said."""
        ...


class OptionScorer(Scorer, Protocol):
    """Scores the options that may follow a text."""

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        ...


@runtime_checkable
class TextScorer(Scorer, Protocol):
    """Lets a model answer in its own words.

    Attributes:
        samples: Answers to every prompt.
    """

    samples: int

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """`samples` answers to every prompt, in order; `keys` seed the samples of each."""
        ...


@runtime_checkable
class PairScorer(Scorer, Protocol):
    """Classifies pairs of premise and hypothesis."""

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Probabilities of contradiction, neutral and entailment; float64 of shape (n_pairs, 3)."""
        ...


class SpanScorer(Scorer, Protocol):
    """Scores the two subjects of contexts as spans that answer questions."""

    def score(self, items: SpanQuestions) -> np.ndarray:
        """Scores in [0, 1] of both subjects of every item; float32 of shape (n_items, 2)."""
        ...


class MaskScorer(Scorer, Protocol):
    """Scores two subjects at the masks of sentences."""

    def score(self, items: MaskedSentences) -> np.ndarray:
        """Probabilities of both subjects of every item, NaN where a model cannot say; float32 of shape (n_items, 2)."""
        ...
