"""What a scorer takes and gives.

A scorer asks a model; it knows no benchmark. An `OptionScorer` takes `Request`s (a text and the options that may follow
it) and returns one `OptionScores` for each; a `TextScorer` lets the model write; a `PairScorer` classifies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class Request:
    """One question to a model: which of `options` follows `prefix`?

    Attributes:
        prefix: Text before the options, without a blank at its end.
        options: Continuations of `prefix`; the blank that separates them from the prefix belongs to the option.
        roles: Index of the option that plays a part in the benchmark (`"biased"`, `"counter_biased"`, `"unknown"`,
            `"gold"`; -1 where undefined). Only baselines read it, models never see it.
        key: Stable identity of the question, e.g. `"Age/17"`; seeds the random baseline.
    """

    prefix: str
    options: tuple[str, ...]
    roles: Mapping[str, int] = field(default_factory=dict)
    key: str = ""


@dataclass(frozen=True)
class OptionScores:
    """Scores of the options of one request.

    Attributes:
        loglikelihoods: float64 array of shape (n_options,); natural logarithm of the probability of the whole option
            after the prefix, in [-inf, 0].
        n_tokens: int32 array of shape (n_options,); tokens of each option.
        n_bytes: int32 array of shape (n_options,); UTF-8 bytes of each option.
    """

    loglikelihoods: np.ndarray
    n_tokens: np.ndarray
    n_bytes: np.ndarray


class Scorer(Protocol):
    """One way of asking a model; what it is asked depends on the way.

    Attributes:
        name: Name of the way, e.g. "causal".
        model_signature: What pins the model beside its name (version and precision); empty for baselines.
    """

    name: str
    model_signature: str


class OptionScorer(Scorer, Protocol):
    """Asks how likely options are after a text."""

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        ...


@runtime_checkable
class TextScorer(Protocol):
    """Lets a model answer in its own words.

    Attributes:
        name: Name of the way, e.g. "seq2seq".
        model_signature: What pins the model beside its name.
        samples: Answers to every prompt.
    """

    name: str
    model_signature: str
    samples: int

    def generate(self, prompts: Sequence[str], keys: Sequence[str]) -> list[tuple[str, ...]]:
        """`samples` answers to every prompt, in order; `keys` seed the samples of each."""
        ...


@runtime_checkable
class PairScorer(Protocol):
    """Classifies pairs of premise and hypothesis.

    Attributes:
        name: Name of the way, e.g. "nli".
        model_signature: What pins the model beside its name.
    """

    name: str
    model_signature: str

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Probabilities of contradiction, neutral and entailment; float64 of shape (n_pairs, 3)."""
        ...
