"""Chat templates as those of today's models that think, and a model that says what it is made to say."""

import copy
from itertools import pairwise

import torch
from tokenizers import AddedToken

from qabias.models.loading import LoadedModel

from . import tiny_models

_TURNS = "{% for message in messages %}[{{ message.role }}]{{ message.content }}[end]{% endfor %}"
PLAIN = _TURNS + "{% if add_generation_prompt %}[assistant]\n{% endif %}"
# The model opens its thoughts itself; turned off, an empty block of them stands in the prompt (as Qwen3).
SWITCHED = (
    _TURNS + "{% if add_generation_prompt %}[assistant]\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}{% endif %}"
)
# The template opens the thoughts, always (as DeepSeek-R1).
OPENED = _TURNS + "{% if add_generation_prompt %}[assistant]\n<think>{% endif %}"
# Off unless asked for; a closing mark alone says so (as DeepSeek-V3.1).
OFF_AT_FIRST = (
    "{% if thinking is not defined %}{% set thinking = false %}{% endif %}" + _TURNS + "{% if add_generation_prompt %}"
    "[assistant]{% if thinking %}<think>{% else %}</think>{% endif %}{% endif %}"
)
# On unless turned off, by a word in the system turn (as SmolLM3).
IN_WORDS = (
    "{% if enable_thinking is not defined %}{% set enable_thinking = true %}{% endif %}"
    "[system]Reasoning: {{ 'on' if enable_thinking else 'off' }}[end]" + PLAIN
)
# Off unless asked for, by a word in the system turn and other marks (as Gemma 4).
IN_TOKENS = (
    "{% if enable_thinking is defined and enable_thinking %}[system]<|think|>[end]{% endif %}"
    + _TURNS
    + "{% if add_generation_prompt %}[model]"
    "{% if not enable_thinking | default(false) %}<|channel>thought\n<channel|>{% endif %}{% endif %}"
)
# Channels; thinks with more or less effort, but always (as gpt-oss).
CHANNELS = (
    "[system]Reasoning: {{ reasoning_effort | default('medium') }}[end]{% for message in messages %}"
    "{% if message.thinking %}<|channel|>analysis<|message|>{{ message.thinking }}{% endif %}"
    "[{{ message.role }}]{{ message.content }}[end]{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
# Told to think by the template's own system turn (as Phi-4-reasoning).
TOLD = "[system]Think between <think> and </think> first.[end]" + PLAIN

MARKS = ("<think>", "</think>")
SCRIPT = ("<think>", "It", "Ġbe", "Ġ", "A", "</think>", "B", "</s>")
"""Tokens that the scripted model writes after a newline; after any of them it goes on from there."""


def make_scripted(template, *, special=True):
    """A Llama that writes `SCRIPT`: what it says next depends on the last token alone.

    Args:
        template: Chat template of its tokenizer.
        special: Whether the marks of thinking are special tokens of the tokenizer.
    """
    loaded = make_chat_model(template, special=special)
    model, tokenizer = loaded.model, loaded.tokenizer
    said = tokenizer.convert_tokens_to_ids(["Ċ", *SCRIPT])
    assert len({*said}) == len(said)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        # One dimension for each token; the layers add nothing, and the head looks up what follows.
        model.model.embed_tokens.weight.copy_(torch.eye(len(tokenizer), model.config.hidden_size))
        model.lm_head.weight.zero_()
        for last, following in pairwise(said):
            model.lm_head.weight[following, last] = 1.0
    return loaded


def make_chat_model(template, *, special=True):
    """A Llama with random weights whose tokenizer has a chat template and marks of thinking."""
    tokenizer = copy.deepcopy(tiny_models.make_tokenizer())
    tokenizer.add_tokens([AddedToken(mark, special=special, normalized=False) for mark in MARKS])
    tokenizer.chat_template = template
    model = tiny_models.make_model("llama", hidden_size=404, head_dim=8, max_position_embeddings=16384)
    model.resize_token_embeddings(len(tokenizer))
    return LoadedModel(model, tokenizer, "tiny", "local", "cpu", "float32")
