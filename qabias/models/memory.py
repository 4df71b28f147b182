"""A model that is in memory already: looked at as one that was loaded by name is, and left as it was found."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.models.fingerprint import fingerprint, hooks
from qabias.models.loading import DTYPES, LoadedModel, ModelKind, input_device

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def from_memory(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, name: str | None) -> LoadedModel:
    """A model that a caller has in memory, as what scorers take."""
    # Adapters that change layers in place are part of the network below.
    network = _unwrapped(model) if hasattr(model, "get_base_model") else model
    name = name or getattr(network, "name_or_path", "")
    if not name:
        raise QabiasError("the model was not loaded from anywhere, so that it has no name; give name=...")
    weight = next(network.parameters(), None)
    if weight is None:
        raise QabiasError(f"model {name!r} has no weights")
    dtype = str(network.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise QabiasError(f"model {name!r} is in {dtype}; bring it to one of {', '.join(DTYPES)} first")
    device = input_device(network) if getattr(network, "hf_device_map", None) else weight.device
    own = _tokenizer_of(network, getattr(tokenizer, "tokenizer", tokenizer), name)
    hooked = hooks(network)
    if hooked:
        warnings.warn(
            f"model {name!r} has hooks, which may change its answers ({', '.join(hooked[:3])}"
            f"{', ...' if len(hooked) > 3 else ''}). The signature says that there are hooks, not what they do; give a "
            "name=... that says it",
            stacklevel=2,
        )
    return LoadedModel(
        model=network,
        tokenizer=own,
        name=name,
        version=f"memory{'+hooks' if hooked else ''}-{fingerprint(network, own)}",
        device=str(device),
        dtype=dtype,
    )


def _unwrapped(model: Any) -> PreTrainedModel:
    """The network inside a wrapper of adapters, which are part of its layers."""
    if getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False):
        raise QabiasError(
            "the adapter of the model puts learned prompts before its texts, outside of the network, so that it would "
            "not be asked; give a function that generates with it"
        )
    network: PreTrainedModel = model.get_base_model()
    return network


def _tokenizer_of(network: PreTrainedModel, tokenizer: Any, name: str) -> Any:
    """The tokenizer of a model, as far as can be told."""
    if tokenizer is None:
        raise QabiasError(f"model {name!r} is in memory and needs its tokenizer; give tokenizer=...")
    if not callable(tokenizer) or not hasattr(tokenizer, "vocab_size"):
        raise QabiasError(
            f"tokenizer is a {type(tokenizer).__name__}; give the tokenizer itself, such as "
            "transformers.AutoTokenizer.from_pretrained(...)"
        )
    # Added tokens do not count: some models know tokens of images by name that they have no embedding for.
    known = getattr(network.get_input_embeddings(), "num_embeddings", None)
    if known is not None and tokenizer.vocab_size > known:
        raise QabiasError(
            f"the tokenizer has {tokenizer.vocab_size:,} tokens and model {name!r} knows {known:,}; give the tokenizer "
            "that belongs to it"
        )
    return tokenizer


def config_of(loaded: LoadedModel) -> Any:
    """The configuration of a model, with its class as the architecture, which a model made in memory does not name."""
    config = copy.copy(loaded.model.config)
    config.architectures = [base.__name__ for base in type(loaded.model).__mro__]
    return config


def check_head(kind: ModelKind, loaded: LoadedModel) -> None:
    """Refuse a model with another head than a kind of models has, where its configuration does not tell."""
    head = kind.auto_class.removeprefix("AutoModel")
    classes = config_of(loaded).architectures
    if kind.made_for is None and not any(head in name for name in classes):
        raise QabiasError(f"model {loaded.name!r} is a {classes[0]}, not a {kind.what}; choose the scorer made for it")


@contextmanager
def evaluating(network: torch.nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and every part of it back into its own mode afterwards."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
