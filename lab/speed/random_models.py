"""Models with random weights, as fast as trained ones, and a tokenizer trained on the texts."""

from collections.abc import Iterable
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from qabias.models.loading import LoadedModel

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def make_tokenizer(texts: Iterable[str]) -> transformers.PreTrainedTokenizerFast:
    """Train a WordPiece on texts."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=30522, special_tokens=list(SPECIAL.values()), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **SPECIAL, model_input_names=["input_ids", "token_type_ids", "attention_mask"]
    )


def make_bert(head: str, tokenizer: Any, layers: int, width: int, **options: Any) -> LoadedModel:
    """Make a BERT with random weights, large enough for different outputs."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        num_attention_heads=width // 64,
        num_hidden_layers=layers,
        initializer_range=0.1,
        **options,
    )
    model = getattr(transformers, head)(config).eval()
    return LoadedModel(model, tokenizer, f"BERT {layers} x {width}", "random", "cpu", "float32")


def make_t5(tokenizer: Any, **sizes: int) -> LoadedModel:
    """Make a T5 with random weights, with T5-small's sizes by default."""
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP]", special_tokens=[("[SEP]", tokenizer.sep_token_id)]
    )
    tokenizer.eos_token = tokenizer.sep_token
    torch.manual_seed(0)
    config = transformers.T5Config(
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=tokenizer.eos_token_id, **sizes
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    return LoadedModel(model, tokenizer, "T5", "random", "cpu", "float32")
