"""Cost of a measurement by `qabias.callbacks.BiasCallback`, in training steps.

SmolLM2-135M-Instruct is trained on texts of the benchmark with batches of one size, and measured after the last step.
One way uses prefix trees, the other one row per answer (`layout=flat`), like a plain evaluation loop. Both ask the same
model the same questions, one after the other.

    python -m lab.speed.callback_overhead --limit 400 --threads 1
    python -m lab.speed.callback_overhead --quick

The time covers the trainer's whole call: preparation, queries, scoring and logging. Tables and reports follow after the
last step and do not count. The table has processor time; it also has clock time, which depends on other processes.

Exits with 1 if an answer differs, or a log-likelihood by 1e-3 or more.
"""

import argparse
import copy
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments

import qabias
from lab.options import make_parser, read_options, verdict
from lab.speed.clock import Clock, Seconds
from qabias.callbacks import BiasCallback
from qabias.models.loading import CAUSAL, load_model

LAYOUTS = ("tree", "flat")
TOLERANCE = 1e-3


class Steps(TrainerCallback):
    """Times of training steps."""

    def __init__(self) -> None:
        self.seconds: list[Seconds] = []
        self._clock = Clock()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self._clock = Clock()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Stop the clock before any measurement."""
        self.seconds.append(self._clock.read())


class Timed(BiasCallback):
    """A callback that is timed."""

    def on_step_end(self, *positional: Any, **named: Any) -> None:
        """Measure at the last step."""
        clock = Clock()
        super().on_step_end(*positional, **named)
        self.seconds = clock.read()


def main() -> int:
    """Train, measure both ways, print the table."""
    parser = make_parser(
        __doc__,
        limit=(400, 16, "examples of a measurement"),
        steps=(4, 1, "steps of the training"),
        length=(128, 16, "tokens in a text"),
        threads=(1, 1, "of torch"),
    )
    parser.add_argument("--batch-size", type=int, default=8, help="texts in a batch of the training")
    arguments = read_options(parser)
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        steps, timed = measure(arguments, Path(folder))
        first, second = (answers_of(timed[layout], arguments.steps) for layout in LAYOUTS)
    return report(arguments, steps, timed, first, second)


def measure(arguments: argparse.Namespace, folder: Path) -> tuple[list[Seconds], dict[str, Timed]]:
    """Train and measure; the step times, and the callbacks by layout."""
    loaded = load_model(CAUSAL, "smollm2", device="cpu", dtype="float32")
    config = copy.deepcopy(loaded.model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # the trainer takes no model of a GGUF file, though that was unpacked
    model = AutoModelForCausalLM.from_config(config)
    model.load_state_dict(loaded.model.state_dict())
    steps = Steps()
    trainer = Trainer(
        model=model,
        processing_class=loaded.tokenizer,
        args=TrainingArguments(
            output_dir=str(folder),
            max_steps=arguments.steps,
            per_device_train_batch_size=arguments.batch_size,
            learning_rate=1e-6,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=texts(loaded.tokenizer, arguments.length, arguments.batch_size * arguments.steps),
        callbacks=[steps],
    )
    timed = {}
    for layout in LAYOUTS:
        timed[layout] = Timed(
            trainer,
            "bbq",
            every=arguments.steps,
            at_start=False,
            limit=arguments.limit,
            option={"layout": layout},
            name=layout,
        )
        trainer.add_callback(timed[layout])
    trainer.train()
    return steps.seconds, timed


def texts(tokenizer: Any, length: int, n: int) -> list[dict[str, list[int]]]:
    """Training texts of one length, cut from the benchmark's contexts."""
    contexts = " ".join(qabias.load("bbq", limit=20 * n)["context"])
    tokens = tokenizer(contexts)["input_ids"]
    cut = [tokens[start : start + length] for start in range(0, length * n, length)]
    return [{"input_ids": text, "labels": text} for text in cut]


def answers_of(callback: BiasCallback, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and log-likelihoods of a measurement, in example order."""
    if callback.failures:
        raise SystemExit(f"not measured: {callback.failures}")
    folder = callback.results[step].folder
    answers = pq.read_table(folder / "predictions")
    return answers["prediction"].to_numpy(), np.array(answers["loglikelihoods"].to_pylist())


def report(
    arguments: argparse.Namespace,
    steps: list[Seconds],
    timed: dict[str, Timed],
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
) -> int:
    """Print the table; 1 if the two ways differ."""
    busy, clock = (statistics.median(getattr(step, kind) for step in steps) for kind in ("busy", "clock"))
    print(
        f"A step of {arguments.batch_size} texts of {arguments.length} tokens: {busy:.1f} s of processor time "
        f"({clock:.1f} s on the clock); {torch.get_num_threads()} threads\n"
    )
    print(f"| {arguments.limit} examples | processor seconds | steps of the training | seconds on the clock |")
    print("|---|---|---|---|")
    for layout, callback in timed.items():
        of = callback.seconds
        print(f"| {layout} | {of.busy:.1f} | {of.busy / busy:.1f} | {of.clock:.1f} |")
    n_other = int((first[0] != second[0]).sum())
    difference = float(np.abs(first[1] - second[1]).max())
    print(f"\n{n_other} of {len(first[0])} answers differ; largest difference of a log-likelihood {difference:.1e}")
    return verdict(wrong=n_other > 0 or not difference < TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
