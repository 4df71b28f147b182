"""Batches that fit in memory: up to a number of tokens, which is halved when memory runs out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from qabias.errors import QabiasError
from qabias.support.progress import tell, within

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel

# Tokens of a batch, pads included. A CPU is busy with few tokens and gains from caches that hold them.
CPU_TOKEN_BUDGET = 1024
GPU_TOKEN_BUDGET = 16384
# Encoders compute no logits for every token, so that more of them fit.
ENCODER_GPU_TOKEN_BUDGET = 65536
# Logits in memory at once, in numbers: rows of vocabulary size are many times larger than the states they come from.
LOGITS_PER_BATCH = 2**27

_log = logging.getLogger(__name__)


class TokenBudget:
    """Most tokens of a batch of one scorer, halved when memory runs out."""

    def __init__(self, loaded: LoadedModel, scorer: str, tokens: int | None = None, *, encoder: bool = False) -> None:
        if tokens is not None and tokens < 1:
            raise QabiasError(f"{scorer}: token budget {tokens} is less than one token")
        on_gpu = ENCODER_GPU_TOKEN_BUDGET if encoder else GPU_TOKEN_BUDGET
        self.tokens = tokens or (CPU_TOKEN_BUDGET if loaded.device == "cpu" else on_gpu)
        self._scorer, self._name, self._device = scorer, loaded.name, loaded.device

    def fits(self, run: Callable[[], object]) -> bool:
        """Run a batch; False if memory ran out. Then call `halve` and run less of it."""
        try:
            run()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return False
        return True

    def halve(self, size: int, *, can_split: bool) -> None:
        """Go on with smaller batches, and log a warning."""
        import torch

        if not can_split:
            raise QabiasError(
                f"model {self._name!r}: {size} tokens do not fit in memory; use a smaller model, --dtype bfloat16 "
                "or a larger device"
            )
        if self._device.startswith("cuda"):
            torch.cuda.empty_cache()
        self.tokens = max(1, min(self.tokens, size) // 2)
        _log.warning("%s: out of memory; going on with batches of %d tokens", self._scorer, self.tokens)


class BatchRunner:
    """Asks a model about rows, batch by batch."""

    def __init__(self, loaded: LoadedModel, scorer: str, token_budget: int | None = None) -> None:
        self._budget = TokenBudget(loaded, scorer, token_budget)

    def run(self, lengths: Sequence[int], ask: Callable[[list[int]], None]) -> None:
        """Ask about all rows, the longest first so that memory runs out early."""
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        total, finished = max(1, sum(lengths)), 0
        done = 0
        while done < len(order):
            longest = lengths[order[done]]
            chosen = order[done : done + max(1, self._budget.tokens // max(1, longest))]
            size = sum(lengths[row] for row in chosen)
            with within(finished / total, (finished + size) / total):
                fits = self._budget.fits(partial(ask, chosen))
            if fits:
                done += len(chosen)
                finished += size
                tell(finished / total)
            else:
                self._budget.halve(len(chosen) * longest, can_split=len(chosen) > 1)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Tell a lack of memory from other errors: the CPU's allocator raises a plain RuntimeError."""
    import torch

    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or any(
        sign in text for sign in ("can't allocate memory", "not enough memory", "out of memory")
    )
