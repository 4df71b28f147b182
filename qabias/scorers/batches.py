"""Rows of tokens and their batches, up to a number of tokens that is halved when memory runs out."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from qabias.errors import QabiasError, arg
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.journal import Journal
from qabias.support.progress import tell, within

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

# Tokens of a batch, pads included. A CPU is busy with few tokens and gains from caches that hold them.
CPU_TOKEN_BUDGET = 1024
GPU_TOKEN_BUDGET = 16384
ENCODER_GPU_TOKEN_BUDGET = 65536  # more tokens fit, because encoders compute few logits
# Logits in memory at once, in numbers: rows of vocabulary size are many times larger than the states they come from.
LOGITS_PER_BATCH = 2**27

POSITIONS_OF_SIDE = {
    "encoder": ("max_encoder_position_embeddings", "max_position_embeddings"),
    "decoder": ("max_decoder_position_embeddings", "max_position_embeddings"),
}

Tokens = tuple[int, ...]

_kept: ContextVar[Journal | None] = ContextVar("kept", default=None)

_log = logging.getLogger(__name__)


@dataclass
class RunStats:
    """Work of a scorer so far."""

    tokens_run: int = 0
    pads_run: int = 0
    batches: int = 0


@contextmanager
def keeping(path: Path) -> Iterator[None]:
    """Keep the results of the batches inside the block in a file, for a repetition after an interruption."""
    with closing(Journal(path)) as journal:
        before = _kept.set(journal)
        try:
            yield
        finally:
            _kept.reset(before)


class TokenBudget:
    """Maximum tokens per batch of one scorer, halved when memory runs out."""

    def __init__(self, loaded: LoadedModel, scorer: str, tokens: int | None = None, *, encoder: bool = False) -> None:
        if tokens is not None and tokens < 1:
            raise QabiasError(f"{scorer}: batch tokens are {tokens}.", "Give a whole number of at least 1.")
        on_gpu = ENCODER_GPU_TOKEN_BUDGET if encoder else GPU_TOKEN_BUDGET
        self.tokens = tokens or (CPU_TOKEN_BUDGET if loaded.device == "cpu" else on_gpu)
        self._scorer, self._name, self._device = scorer, loaded.name, loaded.device

    def fitting(self, content: Any, compute: Callable[[], list[Any]]) -> list[Any] | None:
        """Results of a batch, kept ones of the same content; None if memory ran out: then `halve`, and run less."""
        kept, name = _kept.get(), f"{self._scorer} {digest_of(content)}"
        if kept is not None and name in kept:
            return list(kept[name])
        try:
            results = compute()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return None
        if kept is not None:
            kept.add(name, results)
        return results

    def halve(self, size: int, *, can_split: bool) -> None:
        """Continue with smaller batches, and log a warning."""
        import torch

        if not can_split:
            raise QabiasError(
                f"model {self._name!r}: {size} tokens do not fit in memory.",
                f"Use a smaller model, {arg('dtype')} bfloat16 or a larger device.",
            )
        if self._device.startswith("cuda"):
            torch.cuda.empty_cache()
        self.tokens = max(1, min(self.tokens, size) // 2)
        _log.warning("%s: out of memory; continuing with batches of %d tokens", self._scorer, self.tokens)

    def run(
        self,
        content: Any,
        lengths: Sequence[int] | np.ndarray,
        ask: Callable[[np.ndarray], list[Any]],
        end_of: Callable[[np.ndarray, int], int] | None = None,
    ) -> list[Any]:
        """Run rows in batches, the longest first: memory then runs out early. Returns the result of each, in order.

        `content` identifies the rows, `ask` takes the numbers of those of a batch and gives their results as JSON, and
        `end_of` takes the negative lengths in order and where a batch begins.
        """
        order = np.argsort(-np.asarray(lengths), kind="stable")
        keys = -np.asarray(lengths)[order]
        content, shares = digest_of(content), np.cumsum([0, *keys]) / min(-1, keys.sum())
        results: list[Any] = []
        while (done := len(results)) < len(order):
            chosen = order[done : (end_of or self._end_of)(keys, done)]
            end = done + len(chosen)
            with within(shares[done], shares[end]):
                own = self.fitting([content, chosen.tolist()], partial(ask, chosen))
            if own is None:
                self.halve(len(chosen) * -int(keys[done]), can_split=len(chosen) > 1)
                continue
            results += own
            tell(shares[end])
        return [results[place] for place in np.argsort(order)]

    def _end_of(self, keys: np.ndarray, begin: int) -> int:
        return begin + max(1, self.tokens // max(1, -int(keys[begin])))


def digest_of(content: Any) -> str:
    """SHA-256 of a value as JSON has it, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def nan_error(model: str, place: str = "") -> QabiasError:
    """Return the error of a model that answers with NaN."""
    where = f"{place}: " if place else ""
    return QabiasError(f"{where}model {model!r} answers with NaN.", f"Use {arg('dtype')} float32 or bfloat16.")


def is_out_of_memory(error: RuntimeError) -> bool:
    """Recognize a lack of memory; the CPU's allocator raises a plain `RuntimeError`."""
    import torch

    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or any(
        sign in text for sign in ("can't allocate memory", "not enough memory", "out of memory")
    )


def encode_each(tokenizer: Any, texts: Iterable[str], **options: bool) -> dict[str, Tokens]:
    """Encode every distinct text, by default with the tokenizer's special tokens."""
    distinct = list(dict.fromkeys(texts))
    encoded = tokenizer(distinct, verbose=False, **options)["input_ids"] if distinct else []
    return {text: tuple(tokens) for text, tokens in zip(distinct, encoded, strict=True)}


def pad_rows(rows: Sequence[Tokens], pad: int, *, left: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Pad rows to a batch: tokens, and whether each is real, both of shape (n_rows, longest)."""
    lengths = np.array([[len(row)] for row in rows])
    longest = int(lengths.max())
    columns = np.arange(longest)
    real = columns >= longest - lengths if left else columns < lengths
    tokens = np.full(real.shape, pad, dtype=np.int64)
    tokens[real] = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
    return tokens, real


def too_long(text: str, n_tokens: int, limit: float, reader: str) -> QabiasError:
    """Return the error of a text that a model cannot read."""
    return QabiasError(
        f"{text}: {n_tokens} tokens are more than the {limit} that {reader} can read.",
        "Use a shorter text or another model.",
    )


def option_scores(
    model: str, request: Request, options: Sequence[str], loglikelihoods: Sequence[float], n_tokens: Sequence[int]
) -> OptionScores:
    """Return the scores of a request's options; refuse NaN."""
    values = np.array(loglikelihoods, dtype=np.float64)
    if np.isnan(values).any():
        raise nan_error(model, f"request {request.key!r}")
    return OptionScores.make(values, n_tokens, options)


def check_length(key: str, n_tokens: int, loaded: LoadedModel, side: str) -> None:
    """Refuse texts too long for one side, `"encoder"` or `"decoder"`, of a model with fixed positions."""
    limit = n_positions(loaded, side)
    if n_tokens > limit:
        raise too_long(f"request {key!r}", n_tokens, limit, f"the {side} of model {loaded.name!r}")


def n_positions(loaded: LoadedModel, side: str) -> float:
    """Maximum tokens of one side of a model; infinite for relative positions."""
    config = getattr(loaded.model.config, side, loaded.model.config).get_text_config()
    stated = [getattr(config, name, None) for name in POSITIONS_OF_SIDE[side]]
    # Some models count positions from the pad token's on; their tokenizer knows how many are left.
    return next((min(n, loaded.tokenizer.model_max_length) for n in stated if n and n > 0), float("inf"))


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


class EncoderScorer:
    """Base class of scorers of encoders: runs rows through a model, batch by batch."""

    name = "encoder"

    def __init__(
        self,
        loaded: LoadedModel,
        batch_tokens: int | None = None,
        *,
        token_limit: int = sys.maxsize,
        row_limit: int = sys.maxsize,
    ) -> None:
        self._budget = TokenBudget(loaded, self.name, batch_tokens, encoder=True)
        self._budget.tokens = min(self._budget.tokens, token_limit)
        if not getattr(loaded.tokenizer, "is_fast", False):
            raise QabiasError(
                f"{self.name}: the tokenizer of model {loaded.name!r} does not return the characters of its tokens.",
                "Use a model with a fast tokenizer.",
            )
        self.stats = RunStats()
        self._longest = longest_row(loaded.model, loaded.tokenizer)
        self._row_limit = row_limit
        self.model_signature = loaded.signature
        self._name, self._model, self._tokenizer = loaded.name, loaded.model, loaded.tokenizer
        self._device = loaded.device
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

    def figures(self, rows: TokenRows, ask: Ask, describe: Callable[[int], str]) -> np.ndarray:
        """Run all rows and return their figures; refuse NaN."""
        figures = np.array(self.run(rows, ask, describe))
        self.refuse_nan(figures, describe)
        return figures

    def refuse_nan(self, figures: np.ndarray, describe: Callable[[int], str]) -> None:
        """Raise the error of the first row without a number; `describe` names its text."""
        unanswered = np.flatnonzero(~np.isfinite(figures).all(axis=tuple(range(1, figures.ndim))))
        if unanswered.size:
            raise nan_error(self._name, describe(int(unanswered[0])))

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


def longest_row(model: Any, tokenizer: Any) -> float:
    """Maximum tokens of a row; RoBERTa-like models count positions from the pad token's number."""
    n_positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 0
    if n_positions <= 0:
        return tokenizer.model_max_length
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return module.num_embeddings - module.padding_idx - 1
    return n_positions
