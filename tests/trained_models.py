"""A tiny model that learns to answer by stereotypes in seconds, and the trainer that teaches it."""

import importlib.util
from functools import cache

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

import qabias

from .conftest import ROOT

CONFIG, LIMIT = "Age", 160

_spec = importlib.util.spec_from_file_location("bias_over_training", ROOT / "docs/examples/bias_over_training.py")
example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)


def train_tokenizer(texts):
    """A byte-level tokenizer to which the words of some texts are one token each."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


@cache
def make_tokenizer():
    """A tokenizer that knows the words of the questions."""
    rows = qabias.load("bbq", CONFIG, limit=LIMIT)
    return train_tokenizer(
        f"{row['context']}\n\nQ: {row['question']}\nA: {row['ans0']} {row['ans1']} {row['ans2']}" for row in rows
    )


@cache
def make_texts():
    """The ambiguous questions that are measured, with their stereotyped answers."""
    return example.stereotyped_texts(make_tokenizer(), CONFIG, LIMIT)


def make_model(**changes):
    torch.manual_seed(0)
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    tokens = {"vocab_size": len(make_tokenizer()), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = transformers.LlamaConfig(**{**size, **tokens, "max_position_embeddings": 1024, **changes})
    return transformers.AutoModelForCausalLM.from_config(config)


def make_trainer(folder, model=None, steps=4, callbacks=(), **arguments):
    usual = {
        "max_steps": steps,
        "learning_rate": 3e-3,
        "per_device_train_batch_size": 16,
        "lr_scheduler_type": "constant",
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 0,
    }
    return Trainer(
        model=model or make_model(),
        args=TrainingArguments(output_dir=str(folder), **usual | arguments),
        train_dataset=make_texts(),
        data_collator=DataCollatorForSeq2Seq(make_tokenizer()),
        processing_class=make_tokenizer(),
        callbacks=list(callbacks),
    )
