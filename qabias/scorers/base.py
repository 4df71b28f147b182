"""Input and output of scorers, as Protocols.

A scorer queries a model and does not depend on a benchmark. The Protocols: `OptionScorer` scores options after a
text, `TextScorer` generates, `PairScorer` classifies pairs of texts, `SpanScorer` scores spans of contexts, and
`MaskScorer` scores words at masks. `ScorerKind.interfaces` names them before a model is loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from qabias.answers.likelihoods import OptionScores as OptionScores

MARK = "[MASK]"  # marks a mask in texts, for all models


@dataclass(frozen=True)
class Request:
    """One question to a model: which of `options` follows `prefix`?

    Attributes:
        prefix: Text before the options, without a space at its end.
        options: Continuations of `prefix`, including the space that separates them.
        roles: Index of the option with a role in the benchmark (`"biased"`, `"counter_biased"`, `"unknown"`, `"gold"`;
            -1 if undefined). Only baselines read it.
        key: Stable identity of the question, e.g. `"Age/17"`; seeds the random baseline.
    """

    prefix: str
    options: tuple[str, ...]
    roles: Mapping[str, int] = field(default_factory=dict)
    key: str = ""


@dataclass(frozen=True)
class SpanQuestions:
    """Questions about contexts with two subjects each.

    Attributes:
        contexts: Distinct contexts.
        questions: Distinct questions.
        subjects: The two subjects of each context as they occur in it, apart from their case.
        context_of: Number of each item's context; int, shape (n_items,).
        question_of: Number of each item's question; int, shape (n_items,).
    """

    contexts: Sequence[str]
    questions: Sequence[str]
    subjects: Sequence[tuple[str, str]]
    context_of: np.ndarray
    question_of: np.ndarray


@dataclass(frozen=True)
class MaskedSentences:
    """Sentences with a mask, and the two subjects to score there.

    Attributes:
        texts: Distinct texts, with one `MARK` each.
        subjects: Distinct subjects.
        text_of: Number of each item's text; int, shape (n_items,).
        subject_of: Numbers of each item's subjects; int, shape (n_items, 2).
        contexts: Distinct texts without a mark, prepended with a space; empty without contexts.
        context_of: Number of each item's context; int, shape (n_items,); None without contexts.
        clusters: Cluster of each subject, e.g. `"female"`; needed for pronouns only.
    """

    texts: Sequence[str]
    subjects: Sequence[str]
    text_of: np.ndarray
    subject_of: np.ndarray
    contexts: Sequence[str] = ()
    context_of: np.ndarray | None = None
    clusters: Sequence[str] = ()


class Scorer(Protocol):
    """One way of querying one model.

    Attributes:
        name: Its name, e.g. "causal".
        model_signature: Version and precision of the model; empty for baselines.
    """

    name: str
    model_signature: str


@runtime_checkable
class ConfiguredScorer(Protocol):
    """A scorer with settings that affect answers, besides its options.

    Attributes:
        settings: Values by name, for the signature; an option of that name replaces one.
    """

    settings: Mapping[str, str]


@runtime_checkable
class GeneratingScorer(Protocol):
    """A scorer that writes texts of a limited length."""

    def limit_new_tokens(self, new_tokens: int) -> None:
        """Set the maximum tokens of an answer as a prompt format needs; an option overrides it."""


@runtime_checkable
class BatchScorer(Protocol):
    """A scorer that may answer later, through files.

    Attributes:
        needs_single_process: Whether one process must ask the whole run, because it writes request files.
    """

    needs_single_process: bool

    def is_waiting(self) -> bool:
        """Return whether a question since the last call has no answer yet; its placeholder is dropped."""

    def write_requests(self) -> str:
        """Write unanswered requests and return a message about them, or ""."""


class OptionScorer(Scorer, Protocol):
    """Scores the options that may follow a text."""

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""


@runtime_checkable
class TextScorer(Scorer, Protocol):
    """Lets a model answer in its own words.

    Attributes:
        samples: Answers per prompt.
    """

    samples: int

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """Return `samples` answers to every prompt, in order; `keys` seed the samples of each."""


@runtime_checkable
class PairScorer(Scorer, Protocol):
    """Classifies pairs of premise and hypothesis."""

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Probabilities of contradiction, neutral and entailment; float64 of shape (n_pairs, 3)."""


class SpanScorer(Scorer, Protocol):
    """Scores the two subjects of contexts as spans that answer questions."""

    def score(self, items: SpanQuestions) -> np.ndarray:
        """Scores in [0, 1] of both subjects of every item; float32 of shape (n_items, 2)."""


class MaskScorer(Scorer, Protocol):
    """Scores two subjects at the masks of sentences."""

    def score(self, items: MaskedSentences) -> np.ndarray:
        """Probabilities of both subjects of every item, NaN if undefined; float32 of shape (n_items, 2)."""
