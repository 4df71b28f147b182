"""Logits of a masked language model at one position of each row."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from qabias.scorers import batches


class MaskedNetwork:
    """A masked language model on its device."""

    def __init__(self, model: Any, device: str, tolerance: float) -> None:
        self._model = model
        self._device = device
        self.vocabulary_size = int(model.get_input_embeddings().weight.shape[0])
        self.gathers = self._probe(tolerance)

    @property
    def row_limit(self) -> int:
        """Maximum rows of a batch, which bounds its logits."""
        return max(1, batches.LOGITS_PER_BATCH // self.vocabulary_size)

    @property
    def token_limit(self) -> int:
        """Maximum tokens of a batch that computes logits for every token."""
        return sys.maxsize if self.gathers else self.row_limit

    def probabilities(
        self,
        inputs: dict[str, torch.Tensor],
        masks: np.ndarray,
        row: np.ndarray,
        accepted: np.ndarray,
        topk: int | None,
    ) -> np.ndarray:
        """Run a batch and return the probabilities of subjects."""
        logits = self._logits(inputs, masks)
        rows = torch.from_numpy(row).to(logits.device)
        tokens = torch.from_numpy(accepted).to(logits.device)
        total = logits.logsumexp(dim=-1)
        chosen = logits[rows[:, None, None], tokens]
        values = (chosen - total[rows][:, None, None]).exp()
        if topk is not None:
            best = logits.topk(topk, dim=-1).indices[rows]
            values = values.where((tokens[..., None] == best[:, None, None, :]).any(dim=-1) | values.isnan(), 0.0)
        return values.amax(dim=-1).cpu().numpy()

    def _logits(self, inputs: dict[str, torch.Tensor], masks: np.ndarray) -> torch.Tensor:
        """Run a batch; logits at the mask of each row, float32 tensor of shape (n_rows, n_vocabulary)."""
        places = torch.from_numpy(masks).to(self._device)
        if not self.gathers:
            return _at(self._model(**inputs).logits, places).float()
        with _states_at(self._model.base_model, places):
            return self._model(**inputs).logits[:, 0].float()

    def _probe(self, tolerance: float) -> bool:
        """Test whether the head accepts the states of one position, by comparison with all positions."""
        base = self._model.base_model
        if base is self._model:
            return False
        tokens = torch.arange(2, 2 + min(16, self.vocabulary_size - 2), device=self._device).view(2, -1)
        places = torch.tensor([1, tokens.shape[1] - 1], device=self._device)
        with torch.inference_mode():
            expected = _at(self._model(input_ids=tokens).logits, places).float()
            try:
                with _states_at(base, places):
                    logits = self._model(input_ids=tokens).logits.float()
            except Exception:  # whatever a model whose head needs all positions raises
                return False
        if logits.shape != (2, 1, expected.shape[-1]):
            return False
        return bool(((logits[:, 0] - expected).abs() <= tolerance * expected.abs().clamp(min=1)).all())


@contextmanager
def _states_at(base: Any, places: torch.Tensor) -> Iterator[None]:
    """Make a base model return the states of one position per row."""

    def pick(_module: Any, _inputs: Any, output: Any) -> Any:
        picked = _at(output[0], places)[:, None]
        if isinstance(output, tuple):
            return (picked, *output[1:])
        output[next(iter(output))] = picked
        return output

    handle = base.register_forward_hook(pick)
    try:
        yield
    finally:
        handle.remove()


def _at(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """One position of each row of a tensor of shape (n_rows, n_positions, ...)."""
    return values[torch.arange(len(places), device=values.device), places]
