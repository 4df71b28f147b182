"""A model in memory: used like a loaded one, restored afterwards, and identified by a fingerprint.

The fingerprint covers everything that determines its answers, in eight hexadecimal digits.
"""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError
from qabias.models.loading import DTYPES, LoadedModel, ModelKind, input_device

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_DIGITS = 8
_CHUNK = 2**18  # values summed at once, which bounds their copy as 64-bit integers
# Odd numbers with bits in all places (the golden ratio, and the finaliser of MurmurHash3), less than 2**63.
_SPREAD, _MIX = 0x1E3779B97F4A7C15, 0x7F51AFD7ED558CCD

# What a configuration says that decides no answer: saving, loading and training change it. The precision of the weights
# is that of the weights themselves. Names with a leading underscore are notes of transformers to itself.
_WITHOUT_EFFECT = {
    "architectures",
    "dtype",
    "gradient_checkpointing",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}
_HARMLESS = ("accelerate", "torch", "transformers")  # hooks of these packages observe, or move values between devices


def from_memory(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, name: str | None) -> LoadedModel:
    """Wrap a model that a caller has in memory for scorers."""
    network: Any = model
    if hasattr(model, "get_base_model"):  # adapters that change layers in place are part of the network below
        if getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False):
            raise QabiasError(
                "the adapter of the model adds learned prompts outside the network, which qabias would not use.",
                "Pass a function that generates with the adapter.",
            )
        network = model.get_base_model()
    name = name or getattr(network, "name_or_path", "")
    if not name:
        raise QabiasError("the model has no name, because it was not loaded from a path.", "Add name=...")
    weight = next(network.parameters(), None)
    if weight is None:
        raise QabiasError(f"model {name!r} has no weights.", "Load the model with its weights.")
    dtype = str(network.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise QabiasError(f"model {name!r} is in {dtype}.", f"Convert it to one of {', '.join(DTYPES)} first.")
    device = input_device(network) if getattr(network, "hf_device_map", None) else weight.device
    own = _tokenizer_of(network, getattr(tokenizer, "tokenizer", tokenizer), name)
    hooked = hooks(network)
    if hooked:
        warnings.warn(
            f"model {name!r} has hooks, which may change its answers ({', '.join(hooked[:3])}"
            f"{', ...' if len(hooked) > 3 else ''}). The signature records hooks, not their effect; add a "
            "name=... that describes it",
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


def _tokenizer_of(network: PreTrainedModel, tokenizer: Any, name: str) -> Any:
    if tokenizer is None:
        raise QabiasError(f"model {name!r} is in memory and needs its tokenizer.", "Add tokenizer=...")
    if not callable(tokenizer) or not hasattr(tokenizer, "vocab_size"):
        raise QabiasError(
            f"tokenizer is a {type(tokenizer).__name__}.",
            "Pass the tokenizer itself, such as transformers.AutoTokenizer.from_pretrained(...).",
        )
    # Added tokens do not count: some models know tokens of images by name that they have no embedding for.
    known = getattr(network.get_input_embeddings(), "num_embeddings", None)
    if known is not None and tokenizer.vocab_size > known:
        raise QabiasError(
            f"the tokenizer has {tokenizer.vocab_size:,} tokens and model {name!r} knows {known:,}.",
            "Pass the model's own tokenizer.",
        )
    return tokenizer


def config_of(loaded: LoadedModel) -> Any:
    """The configuration with its class as architecture, which a model made in memory does not name."""
    config = copy.copy(loaded.model.config)
    config.architectures = [base.__name__ for base in type(loaded.model).__mro__]
    return config


def check_head(kind: ModelKind, loaded: LoadedModel) -> None:
    """Refuse a model with another head than this kind, if its configuration does not name a head."""
    head = kind.auto_class.removeprefix("AutoModel")
    classes = config_of(loaded).architectures
    if kind.made_for is None and not any(head in name for name in classes):
        raise QabiasError(f"model {loaded.name!r} is a {classes[0]}, not a {kind.what}.", "Use its own backend.")


@contextmanager
def evaluating(network: torch.nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, then restore the mode of each of its modules."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def fingerprint(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """Hash what determines the answers of a model, as eight hexadecimal digits."""
    generation = getattr(network, "generation_config", None)
    parts = {
        "weights": weights_digest(network),
        "config": _affecting(network.config.to_dict()),
        "generation": _affecting(generation.to_dict()) if generation else {},
        "tokenizer": _tokenizer_parts(tokenizer),
        "hooks": hooks(network),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:_DIGITS]


def weights_digest(network: torch.nn.Module) -> str:
    """SHA-256 of all weights and saved buffers: names, shapes, precisions, and sums over all bits."""
    import torch

    digest = hashlib.sha256()
    places: dict[torch.device, torch.Tensor] = {}
    for name, weight in network.state_dict().items():
        if not isinstance(weight, torch.Tensor):
            continue
        if weight.is_meta:
            raise QabiasError(
                f"weight {name} of the model is offloaded to the CPU or a disk, where qabias cannot check it.",
                'Pass the name of the model instead, with option={"device_map": "auto"}.',
            )
        if weight.device not in places:
            places[weight.device] = _weights_of_places(weight.device)
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype} {_sums(weight, places[weight.device])}\n".encode())
    return digest.hexdigest()


def _weights_of_places(device: torch.device) -> torch.Tensor:
    """An odd number per place of a chunk, shape (_CHUNK,), int64, in no pattern that changes could follow."""
    import torch

    numbers = torch.arange(1, _CHUNK + 1, dtype=torch.int64, device=device) * _SPREAD
    return ((numbers ^ (numbers >> 29)) * _MIX) | 1


def _sums(weight: torch.Tensor, of_places: torch.Tensor) -> list[list[int]]:
    """Per chunk of a tensor: the sum of its values as integers, and of their products with their places' numbers."""
    import torch

    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(weight.element_size(), torch.int64)
    flat = weight.detach().contiguous().reshape(-1).view(integers)
    sums = []
    for chunk in flat.split(_CHUNK):
        values = chunk.to(torch.int64)
        sums.append(torch.stack((values.sum(), (values * of_places[: len(values)]).sum())))
    # One transfer for a tensor.
    return torch.stack(sums).tolist() if len(flat) else []


def _affecting(content: Any) -> Any:
    """A configuration without fields that do not affect answers, recursively."""
    if isinstance(content, Mapping):
        names = {str(name): value for name, value in content.items()}
        return {
            name: _affecting(value) for name, value in names.items() if name not in _WITHOUT_EFFECT and name[:1] != "_"
        }
    if isinstance(content, list | tuple):
        return [_affecting(value) for value in content]
    return content


def _tokenizer_parts(tokenizer: Any) -> dict[str, Any]:
    """How a tokenizer splits texts, its special tokens and its chat template."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        rules = {"vocabulary": tokenizer.get_vocab()}
    else:
        rules = json.loads(backend.to_str())
        for state in ("padding", "truncation"):  # of its last call
            rules.pop(state, None)
    return {
        "rules": rules,
        "special": getattr(tokenizer, "special_tokens_map", {}),
        "template": getattr(tokenizer, "chat_template", None),
    }


def hooks(network: torch.nn.Module) -> list[str]:
    """Forward hooks that may change answers, by module and name, except hooks of libraries."""
    return [
        f"{place or 'model'}: {getattr(hook, '__qualname__', type(hook).__qualname__)}"
        for place, module in network.named_modules()
        for hook in (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
        if getattr(hook, "__module__", "").partition(".")[0] not in _HARMLESS
    ]
