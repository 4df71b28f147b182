"""A model that computes nothing: it counts what a scorer gives it, and answers with zeros.

A scorer that is loaded with it encodes texts and arranges batches as in a run, so that a plan and a run agree to the
token. What only weights can show is left out: a model that cannot be asked in trees, memory that runs out (it halves
batches), and written answers that end before they must.

This file imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutput

# Settings of models that change the logits of their output embeddings. Scorers find out by asking, and keep batches
# small for them; they are shown a model without output embeddings, which has the same effect.
_SCALED_LOGITS = ("final_logit_softcapping", "logits_scaling", "logit_scale")


@dataclass
class Work:
    """What a model has to do; estimates may be fractions."""

    texts: float = 0
    tokens: float = 0
    tokens_alone: float = 0
    written: float = 0


class SilentModel:
    """Stands in for a model on the meta device, where everything is looked up that is not counted here in `work`."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.work = Work()
        self.base_model = _Body(self.work)
        self._encoder = _Body(self.work, counts_texts=False)
        writes = model.get_output_embeddings() is not None
        self._head = _Head(int(model.get_input_embeddings().weight.shape[0])) if writes else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def get_encoder(self) -> Any:
        """The side that reads."""
        return self._encoder

    def get_output_embeddings(self) -> Any:
        """The head to the vocabulary; None where a model has none, or scales what it gives."""
        config = self._model.config.get_text_config()
        scales = any(getattr(config, name, None) not in (None, 1, 1.0) for name in _SCALED_LOGITS)
        return None if scales else self._head

    def __call__(self, input_ids: Any = None, attention_mask: Any = None, **inputs: Any) -> Any:
        """Count a batch; zeros in the shapes that a model of this kind answers in."""
        if "encoder_outputs" in inputs:
            states = self._write(*inputs["decoder_input_ids"].shape)
        else:
            states = self.base_model(input_ids=input_ids, attention_mask=attention_mask)[0]
        if self._head is not None:
            return SimpleNamespace(logits=self._head(states[:, inputs.get("logits_to_keep", slice(None))]))
        ends = states[..., 0]
        labels = torch.zeros(len(states), self._model.config.num_labels)
        return SimpleNamespace(logits=labels, start_logits=ends, end_logits=ends)

    def generate(self, input_ids: Any, attention_mask: Any, generation_config: Any, **_: Any) -> Any:
        """Count prompts and answers, every answer as long as it may be; all answers are empty."""
        self._encoder(input_ids=input_ids, attention_mask=attention_mask)
        self._write(len(input_ids), generation_config.max_new_tokens)
        return input_ids[:, :1]

    def _write(self, n_rows: int, length: int) -> Any:
        """Count rows of tokens that are written; returns their states."""
        self.work.texts += n_rows
        self.work.written += n_rows * length
        return torch.zeros(n_rows, length, 1)


class _Body(torch.nn.Module):
    """A model without its head: rows of tokens in, states of size 1 out."""

    def __init__(self, work: Work, *, counts_texts: bool = True) -> None:
        super().__init__()
        self.work = work
        self.counts_texts = counts_texts

    def forward(self, input_ids: Any, attention_mask: Any = None, **_: Any) -> Any:
        length = input_ids.shape[-1]
        n_rows = input_ids.numel() // length
        # The mask of a tree has another shape, and its scorer counts texts itself.
        has_mask = attention_mask is not None and attention_mask.shape == input_ids.shape
        self.work.texts += n_rows * self.counts_texts
        self.work.tokens += n_rows * length
        self.work.tokens_alone += int(attention_mask.sum()) if has_mask else n_rows * length
        return BaseModelOutput(last_hidden_state=torch.zeros(n_rows, length, 1))


class _Head(torch.nn.Module):
    """Output embeddings: states in, logits out."""

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary_size

    def forward(self, states: Any) -> Any:
        return torch.zeros(1).expand(*states.shape[:-1], self.vocabulary_size).as_subclass(_Zeros)


class _Zeros(torch.Tensor):
    """Zeros that take no memory, and whose logarithms over a vocabulary need no computing."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.log_softmax:
            return args[0]
        if function is torch.Tensor.logsumexp:
            return args[0][..., 0]
        return super().__torch_function__(function, types, args, kwargs or {})
