"""A scorer that prefers the longest option, or the shortest, and needs no model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qabias.answers.likelihoods import OptionScores
from qabias.errors import QabiasError
from qabias.scorers.base import Request
from qabias.scorers.kind import Loading, ScorerKind, option_field, parse_options


class LengthScorer:
    """Gives every option a probability that grows, or falls, with its number of letters."""

    name = "longest"
    model_signature = ""

    def __init__(self, prefer: str = "longest") -> None:
        self._power = 1 if prefer == "longest" else -1

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order."""
        return [self._score_one(request.options) for request in requests]

    def _score_one(self, options: Sequence[str]) -> OptionScores:
        weights = np.array([len(option) for option in options], dtype=np.float64) ** self._power
        n_words = [len(option.split()) for option in options]
        return OptionScores.make(np.log(weights / weights.sum()), n_words, options)


@dataclass(frozen=True)
class LengthOptions:
    """What the scorer prefers."""

    prefer: str = option_field("longest", "longest or shortest", choices=("longest", "shortest"))


def load(loading: Loading) -> LengthScorer:
    """Make the scorer; a real one would begin with `loading.load_model`."""
    if loading.revision is not None:
        raise QabiasError("longest loads no model.", "Remove --revision.")
    return LengthScorer(parse_options("longest", LengthOptions, loading.options).prefer)


KIND = ScorerKind(
    name="longest",
    summary="prefers the longest option, without a model",
    interfaces=("options",),
    load=load,
    options=LengthOptions,
)
