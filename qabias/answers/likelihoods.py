"""From the log-likelihoods of options to an answer, and to the columns that a run keeps of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qabias.answers.outcomes import NO_ANSWER as NO_ANSWER

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike

NORMS = ("none", "token", "byte")


@dataclass(frozen=True)
class OptionScores:
    """Scores of the options of one request."""

    loglikelihoods: np.ndarray
    n_tokens: np.ndarray
    n_bytes: np.ndarray

    @classmethod
    def make(cls, loglikelihoods: ArrayLike, n_tokens: ArrayLike, options: Sequence[str]) -> OptionScores:
        """Make the scores of options, whose bytes are counted."""
        return cls(
            loglikelihoods=np.asarray(loglikelihoods, dtype=np.float64),
            n_tokens=np.asarray(n_tokens, dtype=np.int32),
            n_bytes=np.array([len(option.encode()) for option in options], dtype=np.int32),
        )


def best_option(score: OptionScores, norm: str) -> int:
    """Index of the most likely option; `NO_ANSWER` where the best two are exactly equal."""
    values = normalised(score.loglikelihoods, score.n_tokens, score.n_bytes, norm).tolist()
    most = max(values)
    best = [place for place, value in enumerate(values) if not value < most]
    return best[0] if len(best) == 1 else NO_ANSWER


def normalised(loglikelihoods: np.ndarray, n_tokens: np.ndarray, n_bytes: np.ndarray, norm: str) -> np.ndarray:
    """Log-likelihoods as they are compared; all arrays have one shape."""
    if norm == "none":
        return loglikelihoods
    means: np.ndarray = loglikelihoods / np.maximum(n_tokens if norm == "token" else n_bytes, 1)
    return means


def probability_column(columns: Mapping[str, pa.Array], norm: str) -> pa.Array:
    """The probabilities of the options of every question, normalised to a sum of 1."""
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
