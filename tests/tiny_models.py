"""Small models with random weights and a real tokenizer, made in a moment and without a network."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from qabias.models.loading import LoadedModel
from qabias.scorers.extractive_qa import NEWSQA_HEADER

VOCABULARY_SIZE = 400
SENTENCES = (
    "A baker and a carpenter shared a table at the library while the rain came down outside.",
    "The carpenter had forgotten an umbrella. The baker didn't mind and lent them a spare one.",
    "Who was forgetful? Who was generous? It can't be determined. Not enough information.",
    "Two neighbours, an engineer and a nurse, talked about the weather before the train left the station.",
)
# Large weights, so that a wrong mask or position shows in the figures.
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.2}
ROTARY = {**SIZE, "intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 512}
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


def first_of(*kinds: str, n: int = 1) -> list[Any]:
    """Parameters of which all but the first `n` are slow."""
    return [*kinds[:n], *(pytest.param(kind, marks=pytest.mark.slow) for kind in kinds[n:])]


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
    tokens = {"vocab_size": VOCABULARY_SIZE, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = getattr(transformers, name)(**{**tokens, **options, **changes})
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def load(model: Any, *, adds_bos: bool = False, dtype: str = "float32") -> LoadedModel:
    """Wrap a model as `load_model` does."""
    return LoadedModel(
        model=model.to(getattr(torch, dtype)),
        tokenizer=make_tokenizer(adds_bos),
        name="tiny",
        version="local",
        device="cpu",
        dtype=dtype,
    )


def assert_equal_scores(scores, expected, atol=1e-5):
    """Compare scores of options with log-likelihoods."""
    for score, values in zip(scores, expected, strict=True):
        np.testing.assert_allclose(score.loglikelihoods, values, rtol=0, atol=atol)


# Encoders

# Contexts with their subjects; articles, nouns and quantities stand around some, one opens the text, some hold another.
CONTEXTS = {
    "Mary got off the flight to visit James.": ("Mary", "James"),
    "James got off the flight to visit Mary.": ("James", "Mary"),
    "The person over the swing is Mary. Sitting by the side is Zbigniewa.": ("Mary", "Zbigniewa"),
    "A Sikh man had a fierce fight with an Orthodox woman.": ("Sikh", "Orthodox"),
    "An African man lives near an African-American man.": ("African", "African-American"),
    "An African-American man lives near an African man.": ("African-American", "African"),
    "A group of Asian people met the Caucasian team.": ("Asian", "Caucasian"),
    "He told a couple of Caucasian boys about a team of Asian girls.": ("Caucasian", "Asian"),
    "He flew from Somalia to Mali.": ("Somalia", "Mali"),
    "He flew from Mali to Somalia.": ("Mali", "Somalia"),
}
QUESTIONS = ("Who was a nurse?", "Who can never be a senator?", "Which place is poor?", "Who?")
RARE = "Zbigniewa"  # several tokens in every vocabulary here
ENCODER_SENTENCES = (
    *(context for context in CONTEXTS if RARE not in context),
    *QUESTIONS,
    NEWSQA_HEADER,
    "The person over the swing is Mary. Sitting by the side is Ann. She was a nurse.",
    "He was a big Zulu senator; so she and he left Ann. And Ann saw Ann, for Ann was Ann.",
)
ENCODER_VOCABULARY_SIZE = 520
ENCODER_SMALL = {"vocab_size": ENCODER_VOCABULARY_SIZE, "initializer_range": 0.3, "pad_token_id": 0}
ENCODER_SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
# Kind of model: its configuration and the tokenizer that goes with it.
ENCODER_CONFIGS = {
    "bert": ("BertConfig", "wordpiece", {**ENCODER_SIZE, "max_position_embeddings": 64}),
    "distilbert": ("DistilBertConfig", "wordpiece", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    "electra": ("ElectraConfig", "wordpiece", {**ENCODER_SIZE, "embedding_size": 16}),
    "albert": ("AlbertConfig", "wordpiece", {**ENCODER_SIZE, "embedding_size": 16}),
    "roberta": ("RobertaConfig", "bytes", {**ENCODER_SIZE, "max_position_embeddings": 65, "type_vocab_size": 1}),
    "modernbert": (
        "ModernBertConfig",
        "bytes",
        {**ENCODER_SIZE, "global_attn_every_n_layers": 2, "local_attention": 8},
    ),
    "deberta-v2": ("DebertaV2Config", "metaspace", {**ENCODER_SIZE, "relative_attention": True, "type_vocab_size": 0}),
    "gpt2": ("GPT2Config", "bytes", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
}


@cache
def make_encoder_tokenizer(kind, **changes):
    """Train a tokenizer: BERT's WordPiece, RoBERTa's byte-level BPE, BPE with `▁` before words or without words."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", changes.get("mask", "[MASK]")]
    frame = {"single": "[CLS] $A [SEP]", "pair": changes.get("pair", "[CLS] $A [SEP] $B:1 [SEP]:1")}
    ids = [(token, special.index(token)) for token in ("[CLS]", "[SEP]")]
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=changes.get("lowercase", True))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(
            vocab_size=ENCODER_VOCABULARY_SIZE, special_tokens=special, show_progress=False
        )
        tokenizer.train_from_iterator(ENCODER_SENTENCES * 3, trainer)
        tokenizer.post_processor = processors.TemplateProcessing(**frame, special_tokens=ids)
        names = ["input_ids", "token_type_ids", "attention_mask"]
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
        if kind == "bytes":
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = decoders.ByteLevel()
            alphabet = pre_tokenizers.ByteLevel.alphabet()
        else:
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace() if kind == "metaspace" else None
            tokenizer.decoder = decoders.Metaspace()
            alphabet = []
        trainer = trainers.BpeTrainer(
            vocab_size=ENCODER_VOCABULARY_SIZE, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
        texts = [" ".join(ENCODER_SENTENCES)] if kind == "unsplit" else ENCODER_SENTENCES
        tokenizer.train_from_iterator([*texts] * 3, trainer)
        if kind == "bytes":
            tokenizer.post_processor = processors.RobertaProcessing(
                ("[SEP]", 3), ("[CLS]", 2), trim_offsets=changes.get("trim_offsets", True), add_prefix_space=False
            )
        else:
            tokenizer.post_processor = processors.TemplateProcessing(**frame, special_tokens=ids)
        names = ["input_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=False)),
        mask_token=AddedToken(changes.get("mask", "[MASK]"), lstrip=kind != "wordpiece", special=True),
        model_input_names=names,
    )


@cache
def make_encoder(kind, auto_class="AutoModelForQuestionAnswering", **changes):
    name, _, options = ENCODER_CONFIGS[kind]
    torch.manual_seed(0)
    config = getattr(transformers, name)(**{**ENCODER_SMALL, **options, **changes})
    return getattr(transformers, auto_class).from_config(config).eval()


def load_encoder(kind, auto_class="AutoModelForQuestionAnswering", *, tokenizer=None, **changes):
    return LoadedModel(
        model=make_encoder(kind, auto_class, **changes),
        tokenizer=tokenizer or make_encoder_tokenizer(ENCODER_CONFIGS[kind][1]),
        name="tiny",
        version="local",
        device="cpu",
        dtype="float32",
    )


def inputs_of(loaded, *texts):
    """Texts as the model takes them by its own tokenizer, one row; some models know no token types."""
    encoded = loaded.tokenizer(*texts, return_tensors="pt")
    if type(loaded.model).__name__.startswith(("DistilBert", "Roberta", "ModernBert", "DebertaV2")):
        encoded.pop("token_type_ids", None)
    return encoded
