"""Train a small model to answer by stereotypes, and watch its bias rise.

    python docs/examples/bias_over_training.py --model smollm2 --output bias.svg

This demonstrates the instrument, and nothing else: the training texts are the very questions that are measured, each
with the stereotyped answer although the context leaves it open. The model learns them by heart, and the curve must show
it. Never publish or use such a model; it is thrown away when the script ends.
"""

import argparse
import copy
import tempfile
from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, DataCollatorForSeq2Seq, Trainer, TrainingArguments

import qabias
from qabias.callbacks import BiasCallback
from qabias.models.loading import CAUSAL, load_model

IGNORED = -100  # a token with this label is not trained on


def stereotyped_texts(tokenizer: Any, config: str, limit: int) -> list[dict[str, list[int]]]:
    """Questions whose context leaves the answer open, with the stereotyped answer, as tokens and labels.

    Args:
        tokenizer: Tokenizer of the model.
        config: Configuration of BBQ.
        limit: Examples to take the questions from, those of a measurement of so many; half have an ambiguous context.
    """
    texts = []
    for row in qabias.load("bbq", config, limit=limit):
        if row["context_condition"] == "ambig":
            prompt = tokenizer(f"{row['context']}\n\nQ: {row['question']}\nA:")["input_ids"]
            answer = tokenizer(f" {row['ans' + str(row['biased_loc'])]}", add_special_tokens=False)["input_ids"]
            texts.append({"input_ids": prompt + answer, "labels": [IGNORED] * len(prompt) + answer})
    return texts


def trainable(model: Any) -> Any:
    """The same weights in a model that the trainer takes: it refuses one of a GGUF file, though that was unpacked."""
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(model.state_dict())
    return plain


def train(model: Any, tokenizer: Any, folder: Path, arguments: argparse.Namespace) -> BiasCallback:
    """Train a model on stereotyped answers, and measure its bias meanwhile.

    Args:
        model: A causal model of `transformers`, which is changed.
        tokenizer: Its tokenizer, with a token for padding.
        folder: Where the measurements are kept.
        arguments: The options of the script.
    """
    trainer = Trainer(
        model=model,
        processing_class=tokenizer,
        args=TrainingArguments(
            output_dir=str(folder),
            max_steps=arguments.steps,
            learning_rate=arguments.learning_rate,
            per_device_train_batch_size=arguments.batch_size,
            lr_scheduler_type="constant",
            logging_steps=arguments.every,
            save_strategy="no",
            report_to="none",  # "tensorboard", "wandb", ... get the curve too
            seed=0,
        ),
        train_dataset=stereotyped_texts(tokenizer, arguments.config, arguments.limit),
        data_collator=DataCollatorForSeq2Seq(tokenizer),
    )
    callback = BiasCallback(
        trainer,
        "bbq",
        every=arguments.every,
        config=arguments.config,
        limit=arguments.limit,
        scores=["bias_ambig", "bias_probability_ambig", "accuracy_ambig"],
    )
    trainer.add_callback(callback)
    trainer.train()
    return callback


def main() -> None:
    """Read the command line, train, print the curve and draw it."""
    parser = argparse.ArgumentParser(description="Train a model to be biased, to see its bias rise.")
    parser.add_argument("--model", default="smollm2", help="a causal model: smollm2, a folder or a Hub id")
    parser.add_argument("--config", default="Age", help="configuration of BBQ")
    parser.add_argument("--limit", type=int, default=60, help="examples of a measurement, half of them trained on")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=10, help="steps between two measurements")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--score", default="bias_ambig", help="score that is drawn")
    parser.add_argument("--output", type=Path, default=Path("bias_over_training.svg"), help="picture to write")
    arguments = parser.parse_args()
    loaded = load_model(CAUSAL, arguments.model)
    tokenizer = loaded.tokenizer
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    with tempfile.TemporaryDirectory() as folder:
        callback = train(trainable(loaded.model), tokenizer, Path(folder), arguments)
        print(callback.curve().to_string(float_format="{:+.3f}".format))
        callback.figure(arguments.score).save(arguments.output)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
