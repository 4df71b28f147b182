"""Models with random weights in published shapes, tiny ones, and tokenizers trained on demand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TRAINED = 8000
"""Maximum number of learned tokens; real vocabularies come from other texts too."""

TEXTS = 3000
"""Maximum number of training texts, evenly spread."""

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "bos_token": "<s>",
    "eos_token": "</s>",
}
PAD, EOS = 0, 6
"""Numbers of the tokens that pad rows and end texts."""

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes per number by precision."""

_TOKENS: Mapping[str, Any] = {"pad_token_id": PAD, "eos_token_id": EOS}


@dataclass(frozen=True, eq=False)
class Shape:
    """The sizes of a model, without weights."""

    name: str
    tokenizer: str
    config_class: str
    options: Mapping[str, Any] = field(default_factory=dict)
    only: str = ""

    @property
    def vocabulary_size(self) -> int:
        """Number of known tokens."""
        return int(self.options["vocab_size"])

    def config(self, **options: Any) -> Any:
        """Its configuration."""
        return getattr(transformers, self.config_class)(**_TOKENS, **self.options, **options)

    @cached_property
    def parameters(self) -> int:
        """Number of weights without a head, counted on a model without memory."""
        with torch.device("meta"):
            model = transformers.AutoModel.from_config(self.config())
        return sum(weights.numel() for weights in model.parameters())

    def weights_bytes(self, dtype: str) -> int:
        """Bytes of the weights, with the input embeddings twice for an untied head to the vocabulary."""
        tied = self.options.get("tie_word_embeddings", True)
        head = 0 if tied else self.vocabulary_size * self.width
        return (self.parameters + head) * BYTES[dtype]

    @property
    def width(self) -> int:
        """Size of a state."""
        return int(self.options.get("hidden_size") or self.options["d_model"])

    @property
    def layers(self) -> int:
        """Layers of encoder and decoder together."""
        written: int = self.options.get("num_decoder_layers", 0)
        return int(self.options.get("num_hidden_layers") or self.options["num_layers"]) + written


def _llama(name: str, width: int, layers: int, heads: int, inner: int, vocabulary: int, **options: Any) -> Shape:
    only = options.pop("only", "")
    return Shape(
        name,
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


def _t5(name: str, width: int, layers: int, heads: int, inner: int, vocabulary: int) -> Shape:
    options = {
        "vocab_size": vocabulary,
        "d_model": width,
        "d_kv": width // heads,
        "d_ff": inner,
        "num_layers": layers,
        "num_decoder_layers": layers,
        "num_heads": heads,
        "decoder_start_token_id": PAD,
        # With tied embeddings random weights would repeat their input token.
        "tie_word_embeddings": False,
    }
    return Shape(name, "seq2seq", "T5Config", options)


def _encoder(family: str, name: str, width: int, layers: int, heads: int, vocabulary: int) -> Shape:
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
    return Shape(name, tokenizer, config_class, sizes | dict(options))


_FAMILIES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "bert": ("wordpiece", "BertConfig", {}),
    "roberta": ("bytes", "RobertaConfig", {"type_vocab_size": 1}),
    # Shape of microsoft/deberta-v3-large.
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

TINY_CAUSAL = _llama("Llama 2 x 64", 64, 2, 4, 128, 9000)
SMALL_CAUSAL = _llama("SmolLM2-135M", 576, 30, 9, 1536, 49152, num_key_value_heads=3)
MIDDLE_CAUSAL = _llama("SmolLM2-1.7B", 2048, 24, 32, 8192, 49152)
_EIGHT_BILLION = {"num_key_value_heads": 8, "tie_word_embeddings": False, "only": "bfloat16"}
LARGE_CAUSAL = _llama("Llama-3.1-8B", 4096, 32, 32, 14336, 128256, **_EIGHT_BILLION)
TINY_T5 = _t5("T5 2 x 64", 64, 2, 4, 128, 9000)
SMALL_T5 = _t5("T5-small", 512, 6, 8, 2048, 32128)
LARGE_T5 = _t5("T5-large", 1024, 24, 16, 4096, 32128)
TINY_ENCODERS = {family: _encoder(family, f"{family} 2 x 64", 64, 2, 4, 9000) for family in _FAMILIES}
SMALL_ENCODER = _encoder("bert", "BERT-base", 768, 12, 12, 30522)
LARGE_ENCODERS = {
    "bert": _encoder("bert", "BERT-large", 1024, 24, 16, 30522),
    "roberta": _encoder("roberta", "RoBERTa-large", 1024, 24, 16, 50265),
    "deberta": _encoder("deberta", "DeBERTa-v3-large", 1024, 24, 16, 128100),
}


def make_tokenizer(kind: str, texts: Sequence[str], size: int) -> transformers.PreTrainedTokenizerFast:
    """Train a tokenizer on texts."""
    trained = _train(kind, texts[:: max(1, len(texts) // TEXTS)], min(size, TRAINED))
    filled = _fill(trained, size)
    frame = _frame(kind)
    if frame is not None:
        filled.post_processor = frame
    is_bert = kind == "wordpiece"
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=filled,
        **{**SPECIAL, "mask_token": AddedToken(SPECIAL["mask_token"], lstrip=not is_bert, special=True)},
        model_input_names=["input_ids", *(["token_type_ids"] if is_bert else []), "attention_mask"],
    )


def _train(kind: str, texts: Sequence[str], size: int) -> Tokenizer:
    options: dict[str, Any] = {"vocab_size": size, "special_tokens": list(SPECIAL.values()), "show_progress": False}
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL["unk_token"]))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer: Any = trainers.WordPieceTrainer(**options)
    elif kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(**options, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    else:
        tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL["unk_token"]))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(**options)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _fill(tokenizer: Tokenizer, size: int) -> Tokenizer:
    """Give every number up to `size` a token, with words that no text has: encodings do not change."""
    content = json.loads(tokenizer.to_str())
    known = content["model"]["vocab"]
    for number in range(len(known), size):
        known[f"▁⟨{number}⟩"] = number
    return Tokenizer.from_str(json.dumps(content))


def _frame(kind: str) -> processors.PostProcessor | None:
    """Special tokens around one or two texts."""
    cls, sep, eos = ((SPECIAL[name], list(SPECIAL).index(name)) for name in ("cls_token", "sep_token", "eos_token"))
    if kind == "causal":
        return None
    if kind == "seq2seq":
        return processors.TemplateProcessing(single=f"$A {eos[0]}", special_tokens=[eos])
    if kind == "bytes":
        return processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=False)
    return processors.TemplateProcessing(
        single=f"{cls[0]} $A {sep[0]}",
        pair=f"{cls[0]} $A {sep[0]} $B:1 {sep[0]}:1",
        special_tokens=[cls, sep],
    )
