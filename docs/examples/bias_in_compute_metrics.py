"""The bias scores of BBQ in the trainer's own evaluation: `evaluate.load` in `Trainer(compute_metrics=...)`.

    python docs/examples/bias_in_compute_metrics.py --model ORG/ENCODER --steps 40

For models with one logit for each answer, such as a multiple-choice head. This demonstrates the instrument, and nothing
else: the model is trained on the questions that are measured, each with the stereotyped answer although the context
leaves it open, and its bias must rise. Never publish or use such a model; it is thrown away when the script ends.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
from datasets import Dataset
from transformers import (
    AutoModelForMultipleChoice,
    AutoTokenizer,
    DataCollatorForMultipleChoice,
    EvalPrediction,
    Trainer,
    TrainingArguments,
)

import qabias

METRIC = Path(__file__).resolve().parents[2] / "metrics" / "bbq"
SCORES = ("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig", "bias_probability_ambig")


def encoded(rows: Dataset, tokenizer: Any) -> Dataset:
    """The rows with what a multiple-choice head reads: the context, and the question with each answer behind it.

    Args:
        rows: Rows of BBQ.
        tokenizer: Tokenizer of the model.

    Returns:
        The same rows, all their columns kept, with the tokens of three pairs each.
    """

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        answers = [f"{row['question']} {row[f'ans{place}']}" for place in range(3)]
        return dict(tokenizer([row["context"]] * 3, answers))

    return rows.map(encode)


def bias_metrics(rows: Dataset) -> Callable[[EvalPrediction], dict[str, float]]:
    """A function for `Trainer(compute_metrics=...)`.

    Args:
        rows: The rows of the evaluation, in their order: whole sets of BBQ, of which the metric reads the columns.

    Returns:
        From logits of shape (n_rows, 3) it makes `SCORES`, in [-1, 1], each with the ends of its 95 % interval over
        templates (`..._low`, `..._high`), and the share of rows without an answer; NaN is undefined.
    """
    metric = evaluate.load(str(METRIC))

    def compute(prediction: EvalPrediction) -> dict[str, float]:
        logits = np.asarray(prediction.predictions, dtype=np.float64)
        if not np.array_equal(prediction.label_ids, rows["label"]):
            raise ValueError("the evaluation has other rows than bias_metrics was given, or another order")
        logits -= logits.max(axis=1, keepdims=True)
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        # Two answers that are equally likely are none, as everywhere in qabias.
        tied = (logits == 0).sum(axis=1) != 1
        predictions = np.where(tied, -1, logits.argmax(axis=1))
        scores = metric.compute(predictions=predictions, references=rows, probabilities=probabilities)
        ends = {
            f"{name}_{end}": scores["ci"][name][place] for name in SCORES for place, end in enumerate(("low", "high"))
        }
        return {**{name: scores[name] for name in SCORES}, **ends, "unparsed_share": scores["unparsed_share"]}

    return compute


def make_trainer(model: Any, tokenizer: Any, folder: Path, arguments: argparse.Namespace) -> Trainer:
    """A trainer that learns stereotyped answers and evaluates its bias meanwhile.

    Args:
        model: A model with a multiple-choice head, which is changed.
        tokenizer: Its tokenizer.
        folder: Where the trainer writes.
        arguments: The options of the script.
    """
    rows = encoded(qabias.load("bbq", arguments.config, limit=arguments.limit), tokenizer)
    taught = rows.filter(lambda row: row["context_condition"] == "ambig" and row["biased_loc"] >= 0)
    taught = taught.map(lambda row: {"label": row["biased_loc"]})
    return Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder),
            max_steps=arguments.steps,
            learning_rate=arguments.learning_rate,
            per_device_train_batch_size=arguments.batch_size,
            per_device_eval_batch_size=16,
            eval_strategy="steps",
            eval_steps=arguments.every,
            eval_on_start=True,
            save_strategy="no",
            report_to="none",  # "tensorboard", "wandb", ... get the scores too
            seed=0,
        ),
        train_dataset=taught,
        eval_dataset=rows,
        data_collator=DataCollatorForMultipleChoice(tokenizer),
        compute_metrics=bias_metrics(rows),
    )


def main() -> None:
    """Read the command line, train, and print the scores of every evaluation."""
    parser = argparse.ArgumentParser(description="Train a model to be biased, and see it in the trainer's evaluation.")
    parser.add_argument("--model", required=True, help="an encoder: a folder or a Hub id; a new head is put on it")
    parser.add_argument("--config", default="Age", help="configuration of BBQ")
    parser.add_argument("--limit", type=int, default=80, help="rows of an evaluation, half of them trained on")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10, help="steps between two evaluations")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    arguments = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(arguments.model, trust_remote_code=False)
    with tempfile.TemporaryDirectory() as folder:
        model = AutoModelForMultipleChoice.from_pretrained(arguments.model, trust_remote_code=False)
        trainer = make_trainer(model, tokenizer, Path(folder), arguments)
        trainer.train()
    for logged in trainer.state.log_history:
        if "eval_bias_ambig" in logged:
            ends = (logged[f"eval_bias_ambig_{end}"] for end in ("low", "high"))
            print("step {step}: bias_ambig {eval_bias_ambig:+.3f} [{0:+.3f}, {1:+.3f}]".format(*ends, **logged))


if __name__ == "__main__":
    main()
