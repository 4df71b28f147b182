"""Training with `transformers.Trainer` such that a run is a folder: seeded, resumable, and never mixed with another.

While it trains a folder holds `finetuning.json`, which says what is trained on what, and checkpoints. When it is done
it holds the model and its tokenizer, and `finetuning.json` the score; the checkpoints are gone. The model is that of
the last step, or of the checkpoint that does best on the development rows.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import inspect
import json
import logging
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qabias.errors import QabiasError
from qabias.models.loading import load_pretrained
from qabias.runs.folder import check_free
from qabias.scorers.encoder_runner import longest_row
from qabias.support.extras import need
from qabias.support.files import write_json
from qabias.support.version import __version__

RECORD = "finetuning.json"
CHECKPOINTS = "checkpoints"
KEEP = ("last", "best", "lowest-loss")
"""Which weights become the model: of the last step, or of the checkpoint with the best score or the lowest loss."""
_VERSIONED = ("transformers", "torch", "accelerate", "datasets", "numpy")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """What decides about the trained weights beside model and data."""

    epochs: float
    learning_rate: float
    batch_size: int
    gradient_accumulation: int
    seed: int
    max_length: int
    warmup_ratio: float
    bf16: bool
    deterministic: bool
    keep: str

    def check(self) -> None:
        """Refuse settings out of range."""
        for name in ("epochs", "learning_rate", "batch_size", "gradient_accumulation", "max_length"):
            if not getattr(self, name) > 0:
                raise QabiasError(f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be positive")
        if not 0 <= self.warmup_ratio < 1:
            raise QabiasError(f"--warmup-ratio is {self.warmup_ratio}; it must be at least 0 and less than 1")


@dataclass(frozen=True)
class Task:
    """What is trained."""

    train: Sequence[Any]
    dev: Sequence[Any]
    collate: Callable[[Sequence[Any]], dict[str, Any]]
    evaluate: Callable[[Any], dict[str, float]]
    best_by: str


def find_score(folder: Path, run: Mapping[str, Any]) -> dict[str, float] | None:
    """See what a folder holds, which may be nothing yet or this very run."""
    record = folder / RECORD
    if record.exists():
        try:
            found = json.loads(record.read_text("utf-8"))
            theirs, score = found["run"], found["score"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise QabiasError(f"{record}: damaged ({error!r}); choose another --output or remove the folder") from error
        ours = json.loads(json.dumps(run))
        different = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
        if different:
            what = ", ".join(f"{name} {theirs.get(name)!r} there, {ours.get(name)!r} here" for name in different)
            raise QabiasError(f"{folder}: holds another run ({what}); choose another --output or remove the folder")
        return score
    check_free(folder)
    return None


def _write_record(folder: Path, run: Mapping[str, Any], commit: str | None, score: Mapping[str, float] | None) -> None:
    versions = {name: importlib.metadata.version(name) for name in _VERSIONED}
    content = {
        "run": run,
        "model_commit": commit,
        "score": score,
        "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "qabias_version": __version__,
        "versions": {"python": platform.python_version(), **versions},
    }
    write_json(folder / RECORD, content)


def load(name: str, auto_class: str, seed: int, max_length: int) -> tuple[Any, Any]:
    """Load a model with a new head, or the one it has, and its tokenizer."""
    need("local", "fine-tuning")
    import torch
    import transformers

    transformers.set_seed(seed)
    tokenizer = load_pretrained("AutoTokenizer", name)
    # Some models are published in float16, in which small steps are lost.
    model, info = load_pretrained(auto_class, name, dtype=torch.float32, output_loading_info=True)
    body = f"{model.base_model_prefix}."
    # Masked language models are published without a pooler, which is part of the head.
    missing = sorted(key for key in info["missing_keys"] if key.startswith(body) and ".pooler." not in key)
    if missing:
        raise QabiasError(
            f"model {name!r} has no weights for {', '.join(missing[:3])}; use a complete pretrained model"
        )
    if max_length > (longest := longest_row(model, tokenizer)):
        raise QabiasError(f"--max-length {max_length} is more than the {longest} tokens that model {name!r} can read")
    return model, tokenizer


def input_names(model: Any, tokenizer: Any) -> list[str]:
    """Names of what a model takes of its tokenizer's answer, as the scorers of qabias give it later."""
    taken = inspect.signature(model.forward).parameters
    one_type = getattr(model.config, "type_vocab_size", 2) < 2
    return [
        name for name in tokenizer.model_input_names if name in taken and not (name == "token_type_ids" and one_type)
    ]


def train(
    model: Any, tokenizer: Any, task: Task, settings: Settings, run: Mapping[str, Any], folder: Path, save_steps: int
) -> dict[str, float]:
    """Train a model, or go on from the last checkpoint, and write it with its score."""
    import torch
    from accelerate import PartialState
    from transformers import Trainer, TrainingArguments

    checkpoints = folder / CHECKPOINTS
    commit = getattr(model.config, "_commit_hash", None)  # None for a folder
    try:
        arguments = TrainingArguments(
            output_dir=str(checkpoints),
            num_train_epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            per_device_train_batch_size=settings.batch_size,
            per_device_eval_batch_size=settings.batch_size,
            gradient_accumulation_steps=settings.gradient_accumulation,
            warmup_steps=settings.warmup_ratio,  # below 1 it is a share of the steps
            bf16=settings.bf16,
            seed=settings.seed,
            full_determinism=settings.deterministic,
            save_strategy="steps",
            save_steps=save_steps,
            save_total_limit=2,  # the last, and with it the best
            eval_strategy="no" if settings.keep == "last" else "steps",
            eval_steps=save_steps,
            load_best_model_at_end=settings.keep != "last",
            metric_for_best_model="loss" if settings.keep == "lowest-loss" else task.best_by,
            greater_is_better=settings.keep != "lowest-loss",
            logging_steps=50,
            report_to="none",
            use_cpu=PartialState().device.type == "cpu",  # else bfloat16 is refused there
            dataloader_pin_memory=torch.cuda.is_available(),
            remove_unused_columns=False,  # rows are no tables
        )
    except ValueError as error:
        raise QabiasError(f"the training settings do not fit this machine: {error}") from error
    if arguments.process_index == 0:
        _write_record(folder, run, commit, None)
        meant, actual = settings.batch_size * settings.gradient_accumulation, describe(settings)["examples_per_step"]
        if actual != meant:
            _log.warning(
                "a step sees %d examples, %d on each device: for %d in all, as on one device, lower --batch-size",
                actual, meant, meant,
            )  # fmt: skip
    trainer = Trainer(
        model=model,
        args=arguments,
        data_collator=task.collate,
        train_dataset=task.train,
        eval_dataset=task.dev,
        processing_class=tokenizer,
        compute_metrics=lambda answered: task.evaluate(answered.predictions),
    )
    with arguments.main_process_first(desc="looking for checkpoints"):
        last = last_checkpoint(checkpoints)
    if last is not None:
        _log.warning("%s: going on after step %s", folder, last.rsplit("-", 1)[1])
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model(str(folder))
    trainer.compute_metrics = None  # the scores are made below, from logits that are checked first
    logits = trainer.predict(task.dev).predictions
    if any(np.isnan(part).any() for part in (logits if isinstance(logits, tuple) else (logits,))):
        raise QabiasError(
            f"{folder}: the trained model answers with NaN; choose a smaller --learning-rate and another --output"
        )
    score = task.evaluate(logits)
    if trainer.is_world_process_zero():
        (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle; what matters is in the record
        _write_record(folder, run, commit, score)
        shutil.rmtree(checkpoints)
    return score


def last_checkpoint(checkpoints: Path) -> str | None:
    """Find the last whole checkpoint and remove those that a killed process left unfinished."""
    whole = {}
    for path in checkpoints.glob("checkpoint-*"):
        try:
            json.loads((path / "trainer_state.json").read_text("utf-8"))  # what the Trainer writes last
            whole[int(path.name.rsplit("-", 1)[1])] = str(path)
        except (FileNotFoundError, json.JSONDecodeError):
            shutil.rmtree(path)
    return whole[max(whole)] if whole else None


def describe(settings: Settings) -> dict[str, Any]:
    """The settings as a run records them, with the examples of a step on all devices."""
    import torch

    # A launcher starts a process for each device; the Trainer alone uses all that it sees.
    n_devices = int(os.environ.get("WORLD_SIZE", 0)) or max(1, torch.cuda.device_count())
    return {**asdict(settings), "examples_per_step": settings.batch_size * settings.gradient_accumulation * n_devices}
