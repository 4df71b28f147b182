"""A model as far as a plan needs it: tokenizer, configuration and size, but no weights."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from qabias.errors import QabiasError
from qabias.models.loading import SMOLLM2, gguf_read_once, load_pretrained
from qabias.scorers.kind import ScorerKind
from qabias.scorers.registry import BASELINE, BASELINE_PREFIX, FALLBACK, default_scorer, kinds, load_kind

# One of the smallest models stands in for one of which only the size is known. It reads texts of any length.
_STAND_IN = {
    **{"hidden_size": 2, "intermediate_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1},
    "max_position_embeddings": 0,
}


@dataclass(frozen=True)
class Subject:
    """A model on the meta device, without weights, and the scorer that asks it.

    Attributes:
        encoder_parameters: Parameters of the encoder of a text-to-text model; 0 for others.
        attention_size: Layers times the width of their attention; 0 where it is not known.
    """

    name: str
    kind: ScorerKind
    tokenizer: Any
    model: Any
    parameters: int
    encoder_parameters: int = 0
    attention_size: int = 0


@cache
def load_subject(
    model: str, scorer: str | None = None, parameters: float | None = None, tokenizer: str | None = None
) -> Subject:
    """Find out about a model from its configuration and tokenizer; the same model is looked up once.

    Args:
        model: `"smollm2"`, a folder or a Hub id; "" where only a size is known.
        scorer: Name of the scorer that asks it; None for the one that its head is made for.
        parameters: Number of parameters, in place of that of the configuration.
        tokenizer: `"smollm2"`, a folder or a Hub id, in place of the model's own tokenizer.

    Raises:
        QabiasError: If the model, its size or a tokenizer cannot be had, or the scorer runs no model on this machine.
    """
    with gguf_read_once() if SMOLLM2 in (model, tokenizer) else nullcontext():
        kind = _find_kind(model, scorer)
        if not model:
            return _of_size(kind, parameters, tokenizer)
        config = load_pretrained("AutoConfig", model)
        network = _make_empty(model, config, kind)
        counted = network.num_parameters()
        total = int(parameters or counted)
        # A given size is shared between encoder and decoder as the configuration has it.
        share = network.get_encoder().num_parameters() / counted if config.is_encoder_decoder else 0.0
        loaded = load_pretrained("AutoTokenizer", tokenizer or model)
        return Subject(model, kind, loaded, network, total, round(share * total), _attention_size(config))


def _find_kind(model: str, scorer: str | None) -> ScorerKind:
    if model.startswith(BASELINE_PREFIX):
        scorer = BASELINE
    kind = load_kind(scorer or (default_scorer(model) if model else FALLBACK))
    if not kind.auto_class:
        able = ", ".join(name for name, other in kinds().items() if other.auto_class)
        raise QabiasError(f"the scorer {kind.name} runs no model on this machine; plan for one of {able}")
    return kind


def _of_size(kind: ScorerKind, parameters: float | None, tokenizer: str | None) -> Subject:
    if parameters is None or tokenizer is None:
        raise QabiasError("name a model by --model, or give its size and a tokenizer by --parameters and --tokenizer")
    if kind.name != FALLBACK:
        raise QabiasError(f"only the scorer {FALLBACK} can be planned by size alone; give --model for {kind.name}")
    from transformers import AutoConfig

    loaded = load_pretrained("AutoTokenizer", tokenizer)
    name = f"{parameters:.4g} parameters, tokenizer of {tokenizer}"
    config = AutoConfig.for_model("llama", vocab_size=len(loaded), **_STAND_IN)
    return Subject(name, kind, loaded, _make_empty(name, config, kind), int(parameters))


def _make_empty(name: str, config: Any, kind: ScorerKind) -> Any:
    import torch
    import transformers

    try:
        with torch.device("meta"):
            return getattr(transformers, kind.auto_class).from_config(config).eval()
    except (ValueError, KeyError) as error:
        found = f"model {name!r} is a {config.model_type} model"
        raise QabiasError(f"{found}, which {kind.name} cannot ask; choose the scorer made for it") from error


def _attention_size(config: Any) -> int:
    """Layers times heads times the size of a head; 0 for a model without heads."""
    text = config.get_text_config()
    heads = getattr(text, "num_attention_heads", None) or 0
    # T5 names the size of a head otherwise, and some configurations leave it to be worked out.
    head_size = getattr(text, "head_dim", None) or getattr(text, "d_kv", None)
    width = heads * head_size if head_size else text.hidden_size if heads else 0
    return int(text.num_hidden_layers * width)
