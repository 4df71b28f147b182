"""Small models in folders, saved as a user saves theirs."""

import torch
import transformers

from .tiny_models import VOCABULARY_SIZE


def save(folder, model, tokenizer):
    """Save a model with its tokenizer; returns the folder as text."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def make_t5():
    """A text-to-text model, the same weights every time."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=VOCABULARY_SIZE,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        eos_token_id=1,
        pad_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config)
