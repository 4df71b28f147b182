"""Shapes of models: sizes of published ones, and tiny ones that show in a moment whether a device computes rightly.

Weights are random, but not small: the width of the initial weights keeps every layer's states of size 1, so that a
wrong mask, position or pad shows in the figures, and rounding is not blown up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from qabias.devices.vocabulary import EOS, PAD

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number by precision."""

_TOKENS: Mapping[str, Any] = {"pad_token_id": PAD, "eos_token_id": EOS}


@dataclass(frozen=True, eq=False)
class Shape:
    """The sizes of a model, without weights."""

    name: str
    size: str
    tokenizer: str
    config_class: str
    options: Mapping[str, Any] = field(default_factory=dict)
    only: str = ""

    @property
    def vocabulary_size(self) -> int:
        """Tokens that it knows."""
        return int(self.options["vocab_size"])

    def config(self, **options: Any) -> Any:
        """Its configuration."""
        import transformers

        return getattr(transformers, self.config_class)(**_TOKENS, **self.options, **options)

    @cached_property
    def parameters(self) -> int:
        """Number of its weights without a head, counted on a model without memory."""
        import torch
        import transformers

        with torch.device("meta"):
            model = transformers.AutoModel.from_config(self.config())
        return sum(weights.numel() for weights in model.parameters())

    def weights_bytes(self, dtype: str) -> int:
        """Memory of the weights, the input embeddings once more for a head to the vocabulary that is not tied."""
        tied = self.options.get("tie_word_embeddings", True)
        head = 0 if tied else self.vocabulary_size * self.width
        return (self.parameters + head) * BYTES[dtype]

    @property
    def scales_head(self) -> bool:
        """Whether the library makes the weights of its output layer so large that no logit is of size 1."""
        return self.config_class == "T5Config"

    @property
    def width(self) -> int:
        """Size of a state."""
        return int(self.options.get("hidden_size") or self.options["d_model"])

    @property
    def layers(self) -> int:
        """Layers, those of encoder and decoder together."""
        written: int = self.options.get("num_decoder_layers", 0)
        return int(self.options.get("num_hidden_layers") or self.options["num_layers"]) + written


def _llama(
    name: str, size: str, width: int, layers: int, heads: int, inner: int, vocabulary: int, **options: Any
) -> Shape:
    only = options.pop("only", "")
    return Shape(
        name,
        size,
        "causal",
        "LlamaConfig",
        {
            "vocab_size": vocabulary,
            "hidden_size": width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "intermediate_size": inner,
            "max_position_embeddings": 2048,
            "initializer_range": width**-0.5,
            "tie_word_embeddings": True,
            **options,
        },
        only,
    )


def _t5(name: str, size: str, width: int, layers: int, heads: int, inner: int, vocabulary: int) -> Shape:
    options = {
        "vocab_size": vocabulary,
        "d_model": width,
        "d_kv": width // heads if size == "tiny" else 64,
        "d_ff": inner,
        "num_layers": layers,
        "num_decoder_layers": layers,
        "num_heads": heads,
        "decoder_start_token_id": PAD,
        # With the embeddings for a head, random weights would repeat the token that they read.
        "tie_word_embeddings": False,
    }
    return Shape(name, size, "seq2seq", "T5Config", options)


def _encoder(family: str, name: str, size: str, width: int, layers: int, heads: int, vocabulary: int) -> Shape:
    tokenizer, config_class, options = _FAMILIES[family]
    sizes = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "max_position_embeddings": 514,
        "initializer_range": width**-0.5,
    }
    return Shape(name, size, tokenizer, config_class, sizes | dict(options))


_FAMILIES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "bert": ("wordpiece", "BertConfig", {}),
    "roberta": ("bytes", "RobertaConfig", {"type_vocab_size": 1}),
    # As microsoft/deberta-v3-large.
    "deberta": (
        "pieces",
        "DebertaV2Config",
        {
            "relative_attention": True,
            "position_buckets": 256,
            "max_relative_positions": -1,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
    ),
}
_TINY_SIZES = (64, 2, 4, 9000)

TINY_CAUSAL = _llama("Llama 2 x 64", "tiny", 64, 2, 4, 128, 9000)
SMALL_CAUSAL = _llama("SmolLM2-135M", "small", 576, 30, 9, 1536, 49152, num_key_value_heads=3)
MIDDLE_CAUSAL = _llama("SmolLM2-1.7B", "large", 2048, 24, 32, 8192, 49152)
LARGE_CAUSAL = _llama(
    "Llama-3.1-8B",
    "large",
    4096,
    32,
    32,
    14336,
    128256,
    num_key_value_heads=8,
    tie_word_embeddings=False,
    only="bfloat16",
)
TINY_T5 = _t5("T5 2 x 64", "tiny", 64, 2, 4, 128, 9000)
SMALL_T5 = _t5("T5-small", "small", 512, 6, 8, 2048, 32128)
LARGE_T5 = _t5("T5-large", "large", 1024, 24, 16, 4096, 32128)
TINY_ENCODERS = {family: _encoder(family, f"{family} 2 x 64", "tiny", *_TINY_SIZES) for family in _FAMILIES}
SMALL_ENCODER = _encoder("bert", "BERT-base", "small", 768, 12, 12, 30522)
LARGE_ENCODERS = {
    "bert": _encoder("bert", "BERT-large", "large", 1024, 24, 16, 30522),
    "roberta": _encoder("roberta", "RoBERTa-large", "large", 1024, 24, 16, 50265),
    "deberta": _encoder("deberta", "DeBERTa-v3-large", "large", 1024, 24, 16, 128100),
}
