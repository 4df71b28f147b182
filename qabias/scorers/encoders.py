"""Rows of tokens for encoder models."""

from __future__ import annotations

import inspect
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from qabias.errors import QabiasError
from qabias.scorers.batches import RunStats, TokenBudget, nan_error, too_long

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

CHECKED_AT_ONCE = 4096
NEARLY_EQUAL = 0.9  # rows share a batch with the longest if they have at least this share of its tokens


class Template(NamedTuple):
    """Special tokens around one or two texts."""

    specials: tuple[tuple[int, ...], ...]
    special_types: tuple[tuple[int, ...], ...]
    types: tuple[int, ...]

    @classmethod
    def read(cls, tokenizer: Any, n_texts: int) -> Template | None:
        """Read the template from an example; None if the texts do not follow each other in order."""
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
    """Sequences of tokens, concatenated."""

    tokens: np.ndarray
    types: np.ndarray
    lengths: np.ndarray

    @classmethod
    def join(cls, sequences: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> Pieces:
        """Concatenate sequences; without types, all tokens have type 0."""
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
        """Concatenate sequences of text number `text` of a template, with the special tokens before or after it."""
        left, left_types = (template.specials[text], template.special_types[text]) if before else ((), ())
        right, right_types = (template.specials[text + 1], template.special_types[text + 1]) if after else ((), ())
        own_type = (template.types[text],)
        return cls.join(
            [(*left, *sequence, *right) for sequence in sequences],
            [left_types + own_type * len(sequence) + right_types for sequence in sequences],
        )

    @property
    def starts(self) -> np.ndarray:
        """Start of each sequence in `tokens`."""
        return np.cumsum(self.lengths) - self.lengths


class TokenRows:
    """Rows of tokens, each a head followed by a tail."""

    def __init__(self, heads: Pieces, tails: Pieces, head_of: np.ndarray, tail_of: np.ndarray) -> None:
        self._head_of, self._tail_of = head_of, tail_of
        self._head_lengths, self._head_starts = heads.lengths, heads.starts
        self._tail_starts = len(heads.tokens) + tails.starts
        # One more token for all pads.
        self._tokens = np.concatenate([heads.tokens, tails.tokens, [0]])
        self._types = np.concatenate([heads.types, tails.types, [0]])
        self.lengths = heads.lengths.astype(np.int32)[head_of] + tails.lengths.astype(np.int32)[tail_of]
        self.max_type = int(self._types.max())

    @classmethod
    def whole(cls, encoded: Any, tail_of: np.ndarray | None = None) -> TokenRows:
        """Rows of whole encoded texts, without heads."""
        tails = Pieces.join(encoded["input_ids"], encoded.get("token_type_ids"))
        each = np.arange(len(tails.lengths)) if tail_of is None else tail_of
        return cls(Pieces.join([()]), tails, np.zeros_like(each), each)

    def __len__(self) -> int:
        return len(self.lengths)

    def content(self) -> list[list[int]]:
        """What identifies all rows."""
        content = (self._head_of, self._tail_of, self._head_starts, self._tail_starts, self._tokens, self._types)
        return [part.tolist() for part in content]

    def tails(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number of each chosen row's tail, and how many tokens precede it."""
        return self._tail_of[chosen], self._head_lengths[self._head_of[chosen]]

    def lay_out(self, chosen: np.ndarray, pad: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Arrange chosen rows as a padded batch."""
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


def spells(heads: Pieces, tails: Pieces, encode: Callable[[np.ndarray, np.ndarray], Any]) -> bool:
    """Return whether heads with tails equal the tokenizer's own encoding of both, for each head and tail once."""
    number = np.arange(max(len(heads.lengths), len(tails.lengths)) if len(heads.lengths) and len(tails.lengths) else 0)
    head_of, tail_of = number % max(1, len(heads.lengths)), number % max(1, len(tails.lengths))
    rows = TokenRows(heads, tails, head_of, tail_of)
    for start in range(0, len(rows), CHECKED_AT_ONCE):
        chosen = np.arange(start, min(start + CHECKED_AT_ONCE, len(rows)))
        tokens, types, real = rows.lay_out(chosen, pad=0)
        whole = encode(head_of[chosen], tail_of[chosen])
        if not _same(tokens[real], real, whole["input_ids"]):
            return False
        if "token_type_ids" in whole and not _same(types[real], real, whole["token_type_ids"]):
            return False
    return True


def _same(values: np.ndarray, real: np.ndarray, whole: Sequence[Sequence[int]]) -> bool:
    lengths = [len(row) for row in whole]
    return bool(np.array_equal(real.sum(axis=1), lengths) and np.array_equal(values, flatten(whole)))


def flatten(sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """Concatenate sequences of integers to one int64 array."""
    return np.fromiter(itertools.chain.from_iterable(sequences), dtype=np.int64)


def encode_plain(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Encode texts without special tokens."""
    if not texts:
        return []
    return tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]


def in_use(index: np.ndarray, n_values: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the used numbers in order, and the index renumbered."""
    used = np.flatnonzero(np.bincount(index, minlength=n_values))
    renumbered = np.zeros(n_values, dtype=np.int32)
    renumbered[used] = np.arange(len(used), dtype=np.int32)
    return used, renumbered[index]


Ask: TypeAlias = "Callable[[np.ndarray, dict[str, torch.Tensor]], list[Any]]"
"""Takes the numbers of chosen rows and their model inputs, and gives the result of each row, as JSON."""


class EncoderRunner:
    """Runs rows through a model, batch by batch."""

    def __init__(
        self,
        loaded: LoadedModel,
        scorer: str,
        batch_tokens: int | None = None,
        *,
        token_limit: int = sys.maxsize,
        row_limit: int = sys.maxsize,
    ) -> None:
        self._budget = TokenBudget(loaded, scorer, batch_tokens, encoder=True)
        self._budget.tokens = min(self._budget.tokens, token_limit)
        if not getattr(loaded.tokenizer, "is_fast", False):
            raise QabiasError(
                f"{scorer}: the tokenizer of model {loaded.name!r} does not return the characters of its tokens.",
                "Use a model with a fast tokenizer.",
            )
        self.stats = RunStats()
        self._longest = longest_row(loaded.model, loaded.tokenizer)
        self._row_limit = row_limit
        self._name, self._device = loaded.name, loaded.device
        self._takes_types = "token_type_ids" in inspect.signature(loaded.model.forward).parameters
        self._takes_types &= "token_type_ids" in loaded.tokenizer.model_input_names
        self._n_types = getattr(loaded.model.config, "type_vocab_size", sys.maxsize)
        pads = (loaded.tokenizer.pad_token_id, loaded.model.config.pad_token_id, 0)
        self._pad = next(pad for pad in pads if pad is not None)

    def make_inputs(self, rows: TokenRows, chosen: np.ndarray) -> dict[str, torch.Tensor]:
        """Make the model's inputs of chosen rows; without pads, no attention mask."""
        import torch

        tokens, types, real = rows.lay_out(chosen, self._pad)
        inputs = {"input_ids": tokens}
        if not real.all():
            inputs["attention_mask"] = real.astype(np.int64)
        if self._takes_types and rows.max_type < self._n_types:
            inputs["token_type_ids"] = types
        return {name: torch.from_numpy(values).to(self._device) for name, values in inputs.items()}

    def run(self, rows: TokenRows, ask: Ask, describe: Callable[[int], str]) -> list[Any]:
        """Run all rows and return the result of each; `describe` names a row's text."""
        import torch

        longest = int(rows.lengths.max(initial=0))
        if longest > self._longest:
            row = int(np.argmax(rows.lengths > self._longest))
            raise too_long(describe(row), int(rows.lengths[row]), self._longest, f"model {self._name!r}")

        def compute(chosen: np.ndarray) -> list[Any]:
            with torch.inference_mode():
                results = ask(chosen, self.make_inputs(rows, chosen))
            size = len(chosen) * int(rows.lengths[chosen[0]])
            self.stats.tokens_run += size
            self.stats.pads_run += size - int(rows.lengths[chosen].sum())
            self.stats.batches += 1
            return results

        return self._budget.run(rows.content(), rows.lengths, compute, self._cut)

    def _cut(self, keys: np.ndarray, start: int) -> int:
        """End of the batch from `start` on: no pads if rows of one length fill half a batch."""
        longest = -int(keys[start])
        n_rows = max(1, min(self._budget.tokens // longest, self._row_limit))

        def end_of(length: int) -> int:
            return int(np.searchsorted(keys, keys.dtype.type(-length), side="right"))  # another type copies all keys

        end = end_of(longest)
        if 2 * (end - start) < n_rows:
            end = end_of(math.ceil(NEARLY_EQUAL * longest))
        return min(start + n_rows, end)


class EncoderScorer:
    """Base class of scorers of encoders."""

    name = ""

    def __init__(self, loaded: LoadedModel, batch_tokens: int | None = None, **limits: int) -> None:
        self.model_signature = loaded.signature
        self._name, self._model, self._tokenizer = loaded.name, loaded.model, loaded.tokenizer
        self._runner = EncoderRunner(loaded, self.name, batch_tokens, **limits)
        self.stats = self._runner.stats

    def _refuse_nan(self, figures: np.ndarray, describe: Callable[[int], str]) -> None:
        unanswered = np.flatnonzero(~np.isfinite(figures).all(axis=tuple(range(1, figures.ndim))))
        if unanswered.size:
            raise nan_error(self._name, describe(int(unanswered[0])))


def longest_row(model: Any, tokenizer: Any) -> float:
    """Maximum tokens of a row; RoBERTa-like models count positions from the pad token's number."""
    n_positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 0
    if n_positions <= 0:
        return tokenizer.model_max_length
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return module.num_embeddings - module.padding_idx - 1
    return n_positions
