"""Rows of tokens for encoder models.

A benchmark crosses contexts with questions, so its rows are many and its distinct texts few. `TokenRows` holds every
distinct text once, as tokens, and lays rows out when their batch is due.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qabias.errors import QabiasError

CHECKED_AT_ONCE = 4096


class Template(NamedTuple):
    """What a tokenizer puts around one or two texts."""

    specials: tuple[tuple[int, ...], ...]
    special_types: tuple[tuple[int, ...], ...]
    types: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Any, n_texts: int) -> Template | None:
        """Read the template off an example; None if the texts do not follow each other in order."""
        encoded = tokenizer(*("a", "b")[:n_texts])
        tokens = encoded["input_ids"]
        types = encoded.get("token_type_ids") or [0] * len(tokens)
        owners = encoded.sequence_ids(0)
        text_types: dict[int, int] = {}
        specials: list[list[int]] = [[]]
        special_types: list[list[int]] = [[]]
        for token, token_type, owner in zip(tokens, types, owners, strict=True):
            if owner is None:
                specials[-1].append(token)
                special_types[-1].append(token_type)
            elif owner not in text_types:
                text_types[owner] = token_type
                specials.append([])
                special_types.append([])
        if list(text_types) != list(range(n_texts)):
            return None
        return cls(tuple(map(tuple, specials)), tuple(map(tuple, special_types)), tuple(text_types.values()))


@dataclass(frozen=True)
class Pieces:
    """Sequences of tokens, end to end."""

    tokens: np.ndarray
    types: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> Pieces:
        """Join sequences; without types all tokens are of type 0."""
        tokens = flatten(sequences)
        return cls(
            tokens=tokens,
            types=np.zeros_like(tokens) if types is None else flatten(types),
            lengths=np.array([len(sequence) for sequence in sequences], dtype=np.int64),
        )

    @classmethod
    def framed(
        cls, sequences: Sequence[Sequence[int]], template: Template, text: int, *, before: bool, after: bool
    ) -> Pieces:
        """Join sequences of the text number `text` of a template, with the special tokens before or after it."""
        left, left_types = (template.specials[text], template.special_types[text]) if before else ((), ())
        right, right_types = (template.specials[text + 1], template.special_types[text + 1]) if after else ((), ())
        own_type = (template.types[text],)
        return cls.of(
            [(*left, *sequence, *right) for sequence in sequences],
            [left_types + own_type * len(sequence) + right_types for sequence in sequences],
        )

    @property
    def starts(self) -> np.ndarray:
        """int64 array; where each sequence starts in `tokens`."""
        return np.cumsum(self.lengths) - self.lengths


class TokenRows:
    """Rows of tokens, each a head followed by a tail."""

    def __init__(self, heads: Pieces, tails: Pieces, head_of: np.ndarray, tail_of: np.ndarray) -> None:
        self._head_of, self._tail_of = head_of, tail_of
        self._head_lengths, self._head_starts = heads.lengths, heads.starts
        self._tail_starts = len(heads.tokens) + tails.starts
        # One more token stands for all pads.
        self._tokens = np.concatenate([heads.tokens, tails.tokens, [0]])
        self._types = np.concatenate([heads.types, tails.types, [0]])
        self.lengths = heads.lengths.astype(np.int32)[head_of] + tails.lengths.astype(np.int32)[tail_of]
        self.max_type = int(self._types.max())

    def __len__(self) -> int:
        return len(self.lengths)

    def tails(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number of the tail of each chosen row, and how many tokens stand before it."""
        return self._tail_of[chosen], self._head_lengths[self._head_of[chosen]]

    def lay_out(self, chosen: np.ndarray, pad: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lay chosen rows out as a batch."""
        lengths = self.lengths[chosen]
        columns = np.arange(int(lengths.max()))
        head = self._head_of[chosen]
        head_lengths = self._head_lengths[head][:, None]
        head_starts = self._head_starts[head][:, None]
        tail_starts = self._tail_starts[self._tail_of[chosen]][:, None]
        where = np.where(columns < head_lengths, head_starts, tail_starts - head_lengths) + columns
        real = columns < lengths[:, None]
        where[~real] = len(self._tokens) - 1
        tokens = self._tokens[where]
        tokens[~real] = pad
        return tokens, self._types[where], real


def spells(rows: TokenRows, encode: Callable[[np.ndarray], Any]) -> bool:
    """Tell whether rows are what a tokenizer makes of the whole texts."""
    for start in range(0, len(rows), CHECKED_AT_ONCE):
        chosen = np.arange(start, min(start + CHECKED_AT_ONCE, len(rows)))
        tokens, types, real = rows.lay_out(chosen, pad=0)
        whole = encode(chosen)
        if not _same(tokens[real], real, whole["input_ids"]):
            return False
        if "token_type_ids" in whole and not _same(types[real], real, whole["token_type_ids"]):
            return False
    return True


def _same(values: np.ndarray, real: np.ndarray, whole: Sequence[Sequence[int]]) -> bool:
    lengths = [len(row) for row in whole]
    return bool(np.array_equal(real.sum(axis=1), lengths) and np.array_equal(values, flatten(whole)))


def flatten(sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """Join sequences of integers to one int64 array."""
    return np.fromiter(itertools.chain.from_iterable(sequences), dtype=np.int64)


def encode_plain(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Encode texts without special tokens."""
    if not texts:
        return []
    return tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]


def check_index(scorer: str, name: str, index: np.ndarray, n_values: int) -> None:
    """Refuse an index that points outside of what it numbers."""
    if index.size and not (index.min() >= 0 and index.max() < n_values):
        wrong = index[(index < 0) | (index >= n_values)][0]
        raise QabiasError(f"{scorer}: {name} holds {wrong}, which is not one of the {n_values} given")


def in_use(index: np.ndarray, n_values: int) -> tuple[np.ndarray, np.ndarray]:
    """Number what an index uses anew."""
    used = np.flatnonzero(np.bincount(index, minlength=n_values))
    renumbered = np.zeros(n_values, dtype=np.int32)
    renumbered[used] = np.arange(len(used), dtype=np.int32)
    return used, renumbered[index]
