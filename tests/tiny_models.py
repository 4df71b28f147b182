"""Small models with random weights and a real tokenizer, made in a moment and without a network."""

from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from qabias.models import LoadedModel

VOCABULARY_SIZE = 400
SENTENCES = (
    "A baker and a carpenter shared a table at the library while the rain came down outside.",
    "The carpenter had forgotten an umbrella. The baker didn't mind and lent them a spare one.",
    "Who was forgetful? Who was generous? It can't be determined. Not enough information.",
    "Two neighbours, an engineer and a nurse, talked about the weather before the train left the station.",
)
# Large weights, so that a wrong mask or position shows in the figures.
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.2}
ROTARY = {**SIZE, "intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 256}
GEMMA2 = {**ROTARY, "head_dim": 8, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 5.0}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", ROTARY),
    "gpt2": (
        "GPT2Config",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "initializer_range": 0.2},
    ),
    # Learned positions that some versions derive from the mask.
    "opt": ("OPTConfig", {**SIZE, "ffn_dim": 48, "word_embed_proj_dim": 32, "init_std": 0.2}),
    # Every other layer sees 16 tokens only; logits are capped at 2.
    "gemma2": ("Gemma2Config", {**GEMMA2, "sliding_window": 16, "final_logit_softcapping": 2.0}),
    "mistral": ("MistralConfig", {**ROTARY, "sliding_window": 16}),
    "granite": ("GraniteConfig", {**ROTARY, "logits_scaling": 3.0}),
    "bloom": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.2}),
    "mamba": ("MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "initializer_range": 0.2}),
}


@cache
def make_tokenizer(adds_bos: bool = False) -> transformers.PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer; with `adds_bos` it puts `<s>` before every text, as Llama's does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def make_model(kind: str, **changes: Any) -> Any:
    """Make a model of one of the `CONFIGS`, the same weights every time."""
    name, options = CONFIGS[kind]
    config = getattr(transformers, name)(
        vocab_size=VOCABULARY_SIZE, bos_token_id=0, eos_token_id=1, pad_token_id=1, **{**options, **changes}
    )
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def load(model: Any, *, adds_bos: bool = False, dtype: str = "float32") -> LoadedModel:
    """Wrap a model as `load_causal` does."""
    return LoadedModel(
        model=model.to(getattr(torch, dtype)),
        tokenizer=make_tokenizer(adds_bos),
        name="tiny",
        version="local",
        device="cpu",
        dtype=dtype,
    )
