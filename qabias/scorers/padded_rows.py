"""Texts as padded rows of tokens, and how many tokens a model can take; for models that write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel

POSITIONS_OF_SIDE = {
    "encoder": ("max_encoder_position_embeddings", "max_position_embeddings"),
    "decoder": ("max_decoder_position_embeddings", "max_position_embeddings"),
}

Tokens = tuple[int, ...]


def encode_each(tokenizer: Any, texts: Iterable[str]) -> dict[str, Tokens]:
    """Encode every distinct text, with the special tokens that the tokenizer puts around a text to be read."""
    distinct = list(dict.fromkeys(texts))
    encoded = tokenizer(distinct, verbose=False)["input_ids"] if distinct else []
    return {text: tuple(tokens) for text, tokens in zip(distinct, encoded, strict=True)}


def pad_rows(rows: Sequence[Tokens], pad: int, *, left: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Lay rows out as a batch."""
    lengths = np.array([[len(row)] for row in rows])
    longest = int(lengths.max())
    columns = np.arange(longest)
    real = columns >= longest - lengths if left else columns < lengths
    tokens = np.full(real.shape, pad, dtype=np.int64)
    tokens[real] = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
    return tokens, real


def check_length(key: str, n_tokens: int, loaded: LoadedModel, side: str) -> None:
    """Refuse what is too long for one side, `"encoder"` or `"decoder"`, of a model with a fixed number of positions."""
    limit = n_positions(loaded, side)
    if n_tokens > limit:
        raise QabiasError(
            f"request {key!r}: {n_tokens} tokens are more than the {limit} that the {side} of model {loaded.name!r} "
            "can take; use a shorter prompt or another model"
        )


def n_positions(loaded: LoadedModel, side: str) -> float:
    """Most tokens that one side of a model can take; infinite where it counts distances."""
    config = getattr(loaded.model.config, side, loaded.model.config).get_text_config()
    stated = [getattr(config, name, None) for name in POSITIONS_OF_SIDE[side]]
    # Some models count positions from the pad token's on; their tokenizer knows how many are left.
    return next((min(n, loaded.tokenizer.model_max_length) for n in stated if n and n > 0), float("inf"))
