"""A model as far as a plan needs it: tokenizer, configuration and size, but no weights."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from qabias.errors import QabiasError
from qabias.models.loading import SMOLLM2, gguf_read_once, load_pretrained
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import FALLBACK, kinds, load_kind, scorer_of

# One of the smallest models stands in for one of which only the size is known. It reads texts of any length.
_STAND_IN = {"hidden_size": 2, "intermediate_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1}


@dataclass(frozen=True)
class Subject:
    """A model on the meta device, without weights, and the scorer that asks it."""

    name: str
    kind: ScorerKind
    tokenizer: Any
    model: Any
    parameters: int


@cache
def load_subject(
    model: str, scorer: str | None = None, parameters: float | None = None, tokenizer: str | None = None
) -> Subject:
    """Find out about a model from its configuration and tokenizer; the same model is looked up once."""
    with gguf_read_once() if SMOLLM2 in (model, tokenizer) else nullcontext():
        kind = _find_kind(model, scorer)
        if not model and (parameters is None or tokenizer is None):
            raise QabiasError("name a model by --model, or give its size and a tokenizer by --parameters, --tokenizer")
        if not model and kind.name != FALLBACK:
            raise QabiasError(f"only the scorer {FALLBACK} can be planned by size alone; give --model for {kind.name}")
        loaded = load_pretrained("AutoTokenizer", tokenizer or model)
        network = _make_empty(model, len(loaded), kind)
        name = model or f"{parameters:.4g} parameters, tokenizer of {tokenizer}"
        return Subject(name, kind, loaded, network, int(parameters or network.num_parameters()))


def _find_kind(model: str, scorer: str | None) -> ScorerKind:
    kind = load_kind(scorer_of(scorer, model) if model else scorer or FALLBACK)
    if not kind.auto_class:
        able = ", ".join(name for name, other in kinds().items() if other.auto_class)
        raise QabiasError(f"the scorer {kind.name} runs no model on this machine; plan for one of {able}")
    return kind


def _make_empty(model: str, vocabulary_size: int, kind: ScorerKind) -> Any:
    import torch
    import transformers

    if model:
        config = load_pretrained("AutoConfig", model)
    else:
        config = transformers.LlamaConfig(vocab_size=vocabulary_size, max_position_embeddings=0, **_STAND_IN)
    try:
        with torch.device("meta"):
            return getattr(transformers, kind.auto_class).from_config(config).eval()
    except (ValueError, KeyError) as error:
        found = f"model {model!r} is a {config.model_type} model"
        raise QabiasError(f"{found}, which {kind.name} cannot ask; choose the scorer made for it") from error
