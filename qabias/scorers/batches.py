"""Batches up to a number of tokens, which is halved when memory runs out; texts as padded rows."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.errors import QabiasError, arg
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.journal import Journal
from qabias.support.progress import tell, within

if TYPE_CHECKING:
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
