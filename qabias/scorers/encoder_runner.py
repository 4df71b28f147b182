"""Running rows of tokens through encoder models.

`EncoderRunner` chooses the batches: rows of equal or nearly equal length, up to a number of tokens, which it halves
when memory runs out.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from qabias.errors import QabiasError
from qabias.scorers.encoder_rows import TokenRows
from qabias.scorers.memory import TokenBudget
from qabias.support.progress import tell

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

# Rows share a batch with the longest if they have at least this share of its tokens.
NEARLY_EQUAL = 0.9


@dataclass
class RunStats:
    """What a scorer has done since it was made."""

    tokens_run: int = 0
    pads_run: int = 0
    batches: int = 0
    seconds: float = 0.0


class EncoderRunner:
    """Runs rows through a model, batch by batch."""

    def __init__(
        self,
        loaded: LoadedModel,
        scorer: str,
        token_budget: int | None = None,
        *,
        token_limit: int = sys.maxsize,
        row_limit: int = sys.maxsize,
    ) -> None:
        self._budget = TokenBudget(loaded, scorer, token_budget, encoder=True)
        self._budget.tokens = min(self._budget.tokens, token_limit)
        if not getattr(loaded.tokenizer, "is_fast", False):
            raise QabiasError(
                f"{scorer}: the tokenizer of model {loaded.name!r} does not tell where its tokens lie in a text; "
                "use a model with a fast tokenizer"
            )
        self.stats = RunStats()
        self._longest = longest_row(loaded.model, loaded.tokenizer)
        self._row_limit = row_limit
        self._name, self._device = loaded.name, loaded.device
        self._takes_types = "token_type_ids" in inspect.signature(loaded.model.forward).parameters
        self._takes_types &= "token_type_ids" in loaded.tokenizer.model_input_names
        self._n_types = getattr(loaded.model.config, "type_vocab_size", sys.maxsize)
        self._pad = next(
            (pad for pad in (loaded.tokenizer.pad_token_id, loaded.model.config.pad_token_id) if pad is not None), 0
        )

    def find_too_long(self, rows: TokenRows) -> tuple[int, str] | None:
        """Find a row that the model cannot read: its number and what to say of it; None if all are short enough."""
        if not len(rows) or rows.lengths.max() <= self._longest:
            return None
        row = int(np.argmax(rows.lengths > self._longest))
        return row, (
            f"{rows.lengths[row]} tokens are more than the {self._longest} that model {self._name!r} can read; use "
            "shorter texts or another model"
        )

    def make_inputs(self, rows: TokenRows, chosen: np.ndarray) -> dict[str, torch.Tensor]:
        """Make the model's inputs of chosen rows; without pads there is no attention mask, and none to compute with."""
        import torch

        tokens, types, real = rows.lay_out(chosen, self._pad)
        inputs = {"input_ids": tokens}
        if not real.all():
            inputs["attention_mask"] = real.astype(np.int64)
        if self._takes_types and rows.max_type < self._n_types:
            inputs["token_type_ids"] = types
        return {name: torch.from_numpy(values).to(self._device) for name, values in inputs.items()}

    def run(self, rows: TokenRows, ask: Callable[[np.ndarray, dict[str, torch.Tensor]], None]) -> None:
        """Run all rows, the longest first so that memory runs out early."""
        import torch

        longest = int(rows.lengths.max(initial=0))
        # Sorting 16-bit numbers takes a tenth of the time.
        keys = (-rows.lengths).astype(np.int16) if longest < 2**15 else -rows.lengths
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        total, finished = int(rows.lengths.sum()), 0
        done = 0
        while done < len(order):
            chosen = order[done : self._cut(keys, done)]
            size = len(chosen) * int(rows.lengths[chosen[0]])
            with torch.inference_mode():
                fits = self._budget.fits(partial(self._ask, rows, chosen, ask))
            if not fits:
                self._budget.halve(size, can_split=len(chosen) > 1)
                continue
            done += len(chosen)
            real = int(rows.lengths[chosen].sum())
            self.stats.tokens_run += size
            self.stats.pads_run += size - real
            self.stats.batches += 1
            finished += real
            tell(finished / total)

    def _ask(
        self, rows: TokenRows, chosen: np.ndarray, ask: Callable[[np.ndarray, dict[str, torch.Tensor]], None]
    ) -> None:
        ask(chosen, self.make_inputs(rows, chosen))

    def _cut(self, keys: np.ndarray, start: int) -> int:
        """End of the batch that begins at `start`: no pads where rows of one length make half a batch."""
        longest = -int(keys[start])
        n_rows = max(1, min(self._budget.tokens // longest, self._row_limit))

        def end_of(length: int) -> int:
            # A key of another type would have all keys copied.
            return int(np.searchsorted(keys, keys.dtype.type(-length), side="right"))

        end = end_of(longest)
        if 2 * (end - start) < n_rows:
            end = end_of(math.ceil(NEARLY_EQUAL * longest))
        return min(start + n_rows, end)


def longest_row(model: Any, tokenizer: Any) -> float:
    """Most tokens that a model can read; RoBERTa and models like it count positions from the pad token's on."""
    n_positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 0
    if n_positions <= 0:
        return tokenizer.model_max_length
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return module.num_embeddings - module.padding_idx - 1
    return n_positions
