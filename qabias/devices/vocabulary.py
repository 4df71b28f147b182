"""Tokenizers trained on the spot, one for each family of models.

Every number of the model's vocabulary has a token: those that training did not find a word for are made-up words. So
whatever a model with random weights writes is a text.

This file imports transformers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TRAINED = 8000
"""Most tokens that are learned; a real vocabulary is not made of these texts alone."""

TEXTS = 3000
"""Most texts, evenly spread, that are learned from."""

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
"""Numbers of the tokens that fill rows and end texts."""

KINDS = ("causal", "seq2seq", "wordpiece", "bytes", "pieces")
"""Families: text models that go on, that read and write, and encoders such as BERT, RoBERTa and DeBERTa-v3."""


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
    """Give every number up to `size` a token; words that no text has, so that no text is encoded differently."""
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
