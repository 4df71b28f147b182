"""Log-likelihoods of token sequences, arranged as trees, under a causal language model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from qabias.scorers.batches import LOGITS_PER_BATCH
from qabias.scorers.causal_rows import Row, TokenSequence, ancestor_mask

LOGITS_AT_ONCE = 2**22  # logits in memory at once, in numbers, if computed in blocks


class CausalNetwork:
    """A model on its device that scores rows of trees."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._device = device
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.vocabulary_size = int(model.get_input_embeddings().weight.shape[0])
        self.has_plain_head = self._probe_head()

    @property
    def batch_limit(self) -> int:
        """Maximum tokens of a batch, which bounds its logits; a plain head computes them in blocks."""
        return sys.maxsize if self.has_plain_head else max(1, LOGITS_PER_BATCH // self.vocabulary_size)

    def score(self, rows: list[Row], *, as_trees: bool) -> dict[TokenSequence, float]:
        """Run rows as one batch and return the log-likelihood of each sequence."""
        length = max(len(row.tree) for row in rows)
        sequences = [sequence for row in rows for sequence in row.sequences]
        predictors = [i * length + nodes for i, row in enumerate(rows) for nodes in row.tree.predictors]
        targets = [tokens for row in rows for tokens in row.tree.targets]
        # Options of one question are predicted from the same nodes: compute these once.
        needed, index = np.unique(np.concatenate(predictors), return_inverse=True)
        with torch.inference_mode():
            inputs = self._make_inputs(rows, length, as_trees)
            values = _log_probabilities(self._logits(inputs, needed), index, np.concatenate(targets))
        starts = np.cumsum([0, *(len(tokens) for tokens in targets[:-1])])
        return dict(zip(sequences, np.add.reduceat(values, starts).tolist(), strict=True))

    def score_plainly(self, sequences: Sequence[TokenSequence]) -> list[float]:
        """Score sequences of one length in the plainest way, with logarithms in float64."""
        values = []
        with torch.inference_mode():
            tokens = torch.tensor([one.tokens[:-1] for one in sequences], device=self._device)
            for one, logits in zip(sequences, self._model(input_ids=tokens).logits, strict=True):
                targets = torch.tensor(one.tokens[-one.n_scored :])
                scores = logits[-one.n_scored :].cpu().double().log_softmax(dim=-1)
                values.append(float(scores.gather(1, targets[:, None]).sum()))
        return values

    def _make_inputs(self, rows: list[Row], length: int, as_trees: bool) -> dict[str, Any]:
        tokens = np.zeros((len(rows), length), dtype=np.int64)
        for i, row in enumerate(rows):
            tokens[i, : len(row.tree)] = row.tree.tokens
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(tokens).to(self._device), "use_cache": False}
        if not as_trees:
            sizes = np.array([[len(row.tree)] for row in rows])
            real = (np.arange(length) < sizes).astype(np.int64)
            return inputs | {"attention_mask": torch.from_numpy(real).to(self._device)}
        positions = np.zeros_like(tokens)
        ends = np.tile(np.arange(1, length + 1), (len(rows), 1))  # a pad sees itself, because a softmax needs a token
        for i, row in enumerate(rows):
            positions[i, : len(row.tree)] = row.tree.depths
            ends[i, : len(row.tree)] = row.tree.ends
        visible = torch.from_numpy(ancestor_mask(ends)).to(self._device)
        mask = torch.zeros(visible.shape, dtype=self._model.dtype, device=self._device)
        mask.masked_fill_(~visible, torch.finfo(mask.dtype).min)
        return inputs | {"position_ids": torch.from_numpy(positions).to(self._device), "attention_mask": mask[:, None]}

    def _logits(self, inputs: dict[str, Any], needed: np.ndarray) -> Iterator[torch.Tensor]:
        """Yield the logits after the needed nodes of the flattened batch, in order and in blocks."""
        if self.has_plain_head:
            states = self._model.base_model(**inputs)[0].flatten(0, 1)
            head = self._model.get_output_embeddings()
        else:
            states, needed = self._all_logits(inputs, needed)
            head = torch.nn.Identity()
        n_rows = max(1, LOGITS_AT_ONCE // self.vocabulary_size)
        for start in range(0, len(needed), n_rows):
            # On several devices, the last layer is not on the input device.
            rows = torch.from_numpy(needed[start : start + n_rows]).to(states.device)
            yield head(states[rows]).float()

    def _all_logits(self, inputs: dict[str, Any], needed: np.ndarray) -> tuple[torch.Tensor, np.ndarray]:
        """Run the whole model for all columns that any row needs logits of."""
        if not self._keeps_logits:
            return self._model(**inputs).logits.flatten(0, 1), needed
        length = inputs["input_ids"].shape[1]
        columns = np.unique(needed % length)
        kept = torch.from_numpy(columns).to(self._device)
        logits = self._model(**inputs, logits_to_keep=kept).logits.flatten(0, 1)
        return logits, needed // length * len(columns) + np.searchsorted(columns, needed % length)

    def _probe_head(self) -> bool:
        """Test whether logits are the output embeddings applied to the last states."""
        head = self._model.get_output_embeddings()
        base = self._model.base_model
        if head is None or base is self._model:
            return False
        tokens = torch.arange(min(8, self.vocabulary_size), device=self._device)[None]
        with torch.inference_mode(), _recorded(base) as states, _recorded(head) as logits:
            final = self._model(input_ids=tokens).logits
        if len(states) != 1 or len(logits) != 1:
            return False
        ((_, state),), ((seen, logit),) = states, logits
        return len(seen) == 1 and torch.equal(seen[0], state[0]) and torch.equal(logit.to(final.device), final)


@contextmanager
def _recorded(module: Any) -> Iterator[list[tuple[Any, Any]]]:
    calls: list[tuple[Any, Any]] = []
    handle = module.register_forward_hook(lambda _, inputs, output: calls.append((inputs, output)))
    try:
        yield calls
    finally:
        handle.remove()


def _log_probabilities(blocks: Iterator[torch.Tensor], index: np.ndarray, targets: np.ndarray) -> np.ndarray:
    values = np.empty(len(index), dtype=np.float64)
    start = 0
    for logits in blocks:
        stop = start + len(logits)
        here = np.flatnonzero((start <= index) & (index < stop))
        rows = torch.from_numpy(index[here] - start).to(logits.device)
        columns = torch.from_numpy(targets[here]).to(logits.device)
        # Not `log_softmax`, which loses 1e-5 and more a token in float32 if the vocabulary is large.
        target, total = torch.stack([logits[rows, columns], logits.logsumexp(dim=-1)[rows]]).cpu().double()
        values[here] = target - total
        start = stop
    return values
