"""From the log-likelihoods of options to an answer, and to the columns that a run keeps of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qabias.answers.missing import NO_ANSWER as NO_ANSWER

if TYPE_CHECKING:
    import pyarrow as pa

NORMS = ("none", "token", "byte")


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


def best_option(score: OptionScores, norm: str) -> int:
    """Index of the most likely option; `NO_ANSWER` where the best two are exactly equal.

    The authors of BBQ likewise take an answer only if it is strictly above the others.

    Args:
        score: Scores of the options of one request.
        norm: `none` compares the log-likelihoods of whole options, `token` and `byte` their means.
    """
    values = normalised(score.loglikelihoods, score.n_tokens, score.n_bytes, norm)
    best = int(np.argmax(values))
    return best if np.count_nonzero(values == values[best]) == 1 else NO_ANSWER


def normalised(loglikelihoods: np.ndarray, n_tokens: np.ndarray, n_bytes: np.ndarray, norm: str) -> np.ndarray:
    """Log-likelihoods as they are compared; all arrays have one shape.

    Args:
        loglikelihoods: Natural logarithms of the probabilities of whole options.
        n_tokens: Their tokens.
        n_bytes: Their bytes.
        norm: `none` leaves them as they are, `token` and `byte` take their means.
    """
    if norm == "none":
        return loglikelihoods
    means: np.ndarray = loglikelihoods / np.maximum(n_tokens if norm == "token" else n_bytes, 1)
    return means


def probability_column(columns: Mapping[str, pa.Array], norm: str) -> pa.Array:
    """The probabilities of the options of every question, normalised to a sum of 1.

    Args:
        columns: What `choice_columns` gives; all questions have equally many options.
        norm: What the options are compared by; the probabilities are the softmax of it.

    Returns:
        Lists of numbers in [0, 1]; null where no option has a probability.
    """
    import pyarrow as pa

    loglikelihoods, n_tokens, n_bytes = (
        np.array(columns[name].to_pylist()) for name in ("loglikelihoods", "n_tokens", "n_bytes")
    )
    values = normalised(loglikelihoods, n_tokens, n_bytes, norm)
    best = values.max(axis=1, keepdims=True)
    is_possible = np.isfinite(best[:, 0])
    weights = np.exp(values[is_possible] - best[is_possible])
    shares = iter((weights / weights.sum(axis=1, keepdims=True)).tolist())
    return pa.array([next(shares) if one else None for one in is_possible], pa.list_(pa.float64()))


def choice_columns(scores: Sequence[OptionScores], norm: str) -> dict[str, pa.Array]:
    """The answers, and what they were chosen by: log-likelihoods, tokens and bytes of every option."""
    import pyarrow as pa  # scorers import this module for `OptionScores`, and need no Arrow

    return {
        "prediction": pa.array([best_option(score, norm) for score in scores], pa.int8()),
        "loglikelihoods": pa.array([score.loglikelihoods.tolist() for score in scores], pa.list_(pa.float64())),
        "n_tokens": pa.array([score.n_tokens.tolist() for score in scores], pa.list_(pa.int32())),
        "n_bytes": pa.array([score.n_bytes.tolist() for score in scores], pa.list_(pa.int32())),
    }
