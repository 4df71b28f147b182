"""From the log-likelihoods of options to an answer, and to the columns that a run keeps of them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, PairScorer, Scorer, TextScorer

NORMS = ("none", "token", "byte")
# Scorers that compare options without a likelihood of their texts, which a length could normalise.
WITHOUT_LENGTHS = ("multiple_choice",)
# Ways of reading generated text beside the strict one, which has the name `none`.
PARSE_RULES = ("released",)
NO_ANSWER = -1


def best_option(score: OptionScores, norm: str) -> int:
    """Index of the most likely option; -1 (no answer) where the best two are exactly equal.

    The authors of BBQ likewise take an answer only if it is strictly above the others (trap T-B24).

    Args:
        score: Scores of the options of one request.
        norm: `none` compares the log-likelihoods of whole options, `token` and `byte` their means.
    """
    values = score.loglikelihoods
    if norm != "none":
        values = values / np.maximum(score.n_tokens if norm == "token" else score.n_bytes, 1)
    best = int(np.argmax(values))
    return best if np.count_nonzero(values == values[best]) == 1 else NO_ANSWER


def check_rule(scorer: Scorer, norm: str) -> None:
    """Refuse a way of scoring that this way of asking does not have.

    Raises:
        QabiasError: If log-likelihoods are to be parsed, or texts, label probabilities or choices to be normalised.
    """
    if isinstance(scorer, TextScorer):
        known: tuple[str, ...] = ("none", *PARSE_RULES)
    else:
        known = ("none",) if isinstance(scorer, PairScorer) or scorer.name in WITHOUT_LENGTHS else NORMS
    if norm not in known:
        raise QabiasError(f"norm {norm!r} does not fit the scorer {scorer.name}; choose {' or '.join(known)}")


def choice_columns(scores: Sequence[OptionScores], norm: str) -> dict[str, pa.Array]:
    """The answers, and what they were chosen by: log-likelihoods, tokens and bytes of every option."""
    return {
        "prediction": pa.array([best_option(score, norm) for score in scores], pa.int8()),
        "loglikelihoods": pa.array([score.loglikelihoods.tolist() for score in scores], pa.list_(pa.float64())),
        "n_tokens": pa.array([score.n_tokens.tolist() for score in scores], pa.list_(pa.int32())),
        "n_bytes": pa.array([score.n_bytes.tolist() for score in scores], pa.list_(pa.int32())),
    }
