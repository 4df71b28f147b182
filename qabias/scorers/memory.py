"""Batches that fit in memory: rows of like length, up to a number of tokens that is halved when memory runs out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.models.loading import LoadedModel

# Tokens of a batch, pads included. A CPU is busy with few tokens and gains from caches that hold them.
CPU_TOKEN_BUDGET = 1024
GPU_TOKEN_BUDGET = 16384

_log = logging.getLogger(__name__)


class BatchRunner:
    """Asks a model about rows, batch by batch.

    Args:
        loaded: The model.
        scorer: Name of the scorer, for messages.
        token_budget: Most tokens of a batch, pads included; a longer row runs alone. It is halved when memory runs out.
            None for a default by device.

    Raises:
        QabiasError: If the budget is not positive.
    """

    def __init__(self, loaded: LoadedModel, scorer: str, token_budget: int | None = None) -> None:
        if token_budget is not None and token_budget < 1:
            raise QabiasError(f"{scorer}: token budget {token_budget} is less than one token")
        default_budget = CPU_TOKEN_BUDGET if loaded.device == "cpu" else GPU_TOKEN_BUDGET
        self._token_budget = token_budget or default_budget
        self._scorer, self._name, self._device = scorer, loaded.name, loaded.device

    def run(self, lengths: Sequence[int], ask: Callable[[list[int]], None]) -> None:
        """Ask about all rows, the longest first so that memory runs out early.

        Args:
            lengths: Tokens of each row.
            ask: Given numbers of rows, asks the model and keeps its answers. Called again for the same rows, fewer at a
                time, when memory runs out.

        Raises:
            QabiasError: If one row alone does not fit in memory.
        """
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        done = 0
        while done < len(order):
            longest = lengths[order[done]]
            chosen = order[done : done + max(1, self._token_budget // max(1, longest))]
            if _fits(chosen, ask):
                done += len(chosen)
            else:  # outside the handler, which would keep the tensors of the failed batch alive
                self._retreat(len(chosen), longest)

    def _retreat(self, n_rows: int, longest: int) -> None:
        self._token_budget = halved(
            self._token_budget, n_rows, longest, scorer=self._scorer, model=self._name, device=self._device
        )


def halved(token_budget: int, n_rows: int, longest: int, *, scorer: str, model: str, device: str) -> int:
    """A smaller token budget after a batch did not fit in memory, which is freed; logs a warning.

    Args:
        token_budget: The budget until now.
        n_rows: Rows of the batch.
        longest: Tokens of its longest row.
        scorer: Name of the scorer, for the warning.
        model: Name of the model, for the error.
        device: Where it was asked.

    Raises:
        QabiasError: If the batch was one row.
    """
    import torch

    if n_rows == 1:
        raise QabiasError(
            f"model {model!r}: {longest} tokens do not fit in memory; use a smaller model, --dtype bfloat16 "
            "or a larger device"
        )
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    smaller = max(1, min(token_budget, n_rows * longest) // 2)
    _log.warning("%s: out of memory; going on with batches of %d tokens", scorer, smaller)
    return smaller


def _fits(chosen: list[int], ask: Callable[[list[int]], None]) -> bool:
    try:
        ask(chosen)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True


def is_out_of_memory(error: RuntimeError) -> bool:
    """Tell a lack of memory from other errors: the CPU's allocator raises a plain RuntimeError."""
    import torch

    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or any(
        sign in text for sign in ("can't allocate memory", "not enough memory", "out of memory")
    )
