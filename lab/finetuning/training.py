"""Training with `transformers.Trainer`: seeded and resumable, with one run per folder.

During training a folder holds checkpoints and `finetuning.json`, the settings and data. Afterwards it holds the model,
its tokenizer, and `finetuning.json` with the score. The model has the weights of the last step, or of the best
checkpoint on the development rows.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import inspect
import json
import logging
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lab.finetuning.rows import Row, fingerprint, read_dataset, read_file
from qabias.errors import QabiasError
from qabias.models.loading import load_pretrained
from qabias.runs.folder import check_free
from qabias.scorers.batches import longest_row
from qabias.support.files import write_json
from qabias.support.suggest import need
from qabias.support.version import __version__

RECORD = "finetuning.json"
CHECKPOINTS = "checkpoints"
KEEP = ("last", "best", "lowest-loss")
"""Weights of the model: from the last step, or the checkpoint with the best score or the lowest loss."""
_VERSIONED = ("transformers", "torch", "accelerate", "datasets", "numpy")

_OTHER_FOLDER = "choose another --output, or remove the folder"

Example = TypeVar("Example")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """The settings that affect the trained weights, in addition to model and data."""

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
                raise QabiasError(f"--{name.replace('_', '-')} is {getattr(self, name)}", "use a positive number")
        if not 0 <= self.warmup_ratio < 1:
            raise QabiasError(f"--warmup-ratio is {self.warmup_ratio}", "use at least 0 and less than 1")


@dataclass(frozen=True)
class Task:
    """Training data and scores."""

    train: Sequence[Any]
    dev: Sequence[Any]
    collate: Callable[[Sequence[Any]], dict[str, Any]]
    evaluate: Callable[[Any], dict[str, float]]
    best_by: str


def find_score(folder: Path, run: Mapping[str, Any]) -> dict[str, float] | None:
    """The score in a folder with this run; None for an empty folder or an unfinished run."""
    record = folder / RECORD
    if record.exists():
        try:
            content = json.loads(record.read_text("utf-8"))
            theirs, score = content["run"], content["score"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise QabiasError(f"{record}: damaged ({error!r})", _OTHER_FOLDER) from error
        ours = json.loads(json.dumps(run))
        different = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
        if different:
            what = ", ".join(f"{name} {theirs.get(name)!r} there, {ours.get(name)!r} here" for name in different)
            raise QabiasError(f"{folder}: holds another run ({what})", _OTHER_FOLDER)
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
    """Load a model, with a new head if it has none, and its tokenizer."""
    need("local", "fine-tuning")
    import torch
    import transformers

    transformers.set_seed(seed)
    tokenizer = load_pretrained("AutoTokenizer", name)
    # Some models are published in float16, which loses small steps.
    model, info = load_pretrained(auto_class, name, dtype=torch.float32, output_loading_info=True)
    body = f"{model.base_model_prefix}."
    # Masked language models are published without a pooler, which is part of the head.
    missing = sorted(key for key in info["missing_keys"] if key.startswith(body) and ".pooler." not in key)
    if missing:
        problem = f"model {name!r} has no weights for {', '.join(missing[:3])}"
        raise QabiasError(problem, "use a complete pretrained model")
    if max_length > (longest := longest_row(model, tokenizer)):
        problem = f"--max-length {max_length} is more than the {longest} tokens that model {name!r} can read"
        raise QabiasError(problem, f"use at most {longest}")
    return model, tokenizer


def input_names(model: Any, tokenizer: Any) -> list[str]:
    """The model's inputs from its tokenizer, as in the scorers of qabias."""
    taken = inspect.signature(model.forward).parameters
    one_type = getattr(model.config, "type_vocab_size", 2) < 2
    return [
        name for name in tokenizer.model_input_names if name in taken and not (name == "token_type_ids" and one_type)
    ]


def train(
    model: Any, tokenizer: Any, task: Task, settings: Settings, run: Mapping[str, Any], folder: Path, save_steps: int
) -> dict[str, float]:
    """Train a model, or resume from the last checkpoint, and write it with its score."""
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
            save_total_limit=2,  # the last and the best
            eval_strategy="no" if settings.keep == "last" else "steps",
            eval_steps=save_steps,
            load_best_model_at_end=settings.keep != "last",
            metric_for_best_model="loss" if settings.keep == "lowest-loss" else task.best_by,
            greater_is_better=settings.keep != "lowest-loss",
            logging_steps=50,
            report_to="none",
            use_cpu=PartialState().device.type == "cpu",  # otherwise a CPU refuses bfloat16
            dataloader_pin_memory=torch.cuda.is_available(),
            remove_unused_columns=False,  # rows are not tables
        )
    except ValueError as error:
        raise QabiasError(f"these settings do not fit this machine: {error}", "change the named setting") from error
    if arguments.process_index == 0:
        _write_record(folder, run, commit, None)
        meant, actual = settings.batch_size * settings.gradient_accumulation, describe(settings)["examples_per_step"]
        if actual != meant:
            _log.warning(
                "a step uses %d examples, %d on each device. For %d in total, lower --batch-size.",
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
        _log.warning("%s: resuming after step %s", folder, last.rsplit("-", 1)[1])
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model(str(folder))
    trainer.compute_metrics = None  # scores are computed below, after a check of the logits
    logits = trainer.predict(task.dev).predictions
    if any(np.isnan(part).any() for part in (logits if isinstance(logits, tuple) else (logits,))):
        problem = f"{folder}: the trained model answers with NaN"
        raise QabiasError(problem, "use a smaller --learning-rate and another --output")
    score = task.evaluate(logits)
    if trainer.is_world_process_zero():
        (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle; the record has the settings
        _write_record(folder, run, commit, score)
        shutil.rmtree(checkpoints)
    return score


def last_checkpoint(checkpoints: Path) -> str | None:
    """Return the last complete checkpoint, and remove incomplete ones."""
    whole = {}
    for path in checkpoints.glob("checkpoint-*"):
        try:
            json.loads((path / "trainer_state.json").read_text("utf-8"))  # the Trainer writes this file last
            whole[int(path.name.rsplit("-", 1)[1])] = str(path)
        except (FileNotFoundError, json.JSONDecodeError):
            shutil.rmtree(path)
    return whole[max(whole)] if whole else None


def describe(settings: Settings) -> dict[str, Any]:
    """The settings as recorded in a run, with the examples of a step on all devices."""
    import torch

    # A launcher starts a process per device; without one the Trainer uses all devices.
    n_devices = int(os.environ.get("WORLD_SIZE", 0)) or max(1, torch.cuda.device_count())
    return {**asdict(settings), "examples_per_step": settings.batch_size * settings.gradient_accumulation * n_devices}


def make_parser(
    description: str | None, model: str, dataset: str, config: str, **defaults: Any
) -> argparse.ArgumentParser:
    """Make a parser with the options of every script."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=model, help="pretrained model, a folder or a Hub id")
    parser.add_argument("--dataset", default=dataset, help="folder or Hub id; unused with --train")
    parser.add_argument("--config", help=f"config of the dataset [{config} for {dataset}]")
    parser.add_argument("--train-split", default="train", help="split to train on")
    parser.add_argument("--dev-split", default="validation", help="split to score")
    parser.add_argument("--train", type=Path, help="file to train on: JSON lines, CSV or Parquet")
    parser.add_argument("--dev", type=Path, help="file to score")
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained model")
    parser.add_argument("--epochs", type=float, help="passes over all rows")
    parser.add_argument("--learning-rate", type=float, help="peak learning rate")
    parser.add_argument("--batch-size", type=int, help="rows per pass on a device")
    parser.add_argument("--gradient-accumulation", type=int, default=1, help="passes per step")
    parser.add_argument("--warmup-ratio", type=float, default=0.0, help="share of steps with a rising rate")
    parser.add_argument("--max-length", type=int, help="maximum tokens of a row")
    parser.add_argument("--seed", type=int, default=0, help="seed of the new head, the order of rows and dropout")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16")
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="reproducible weights on a GPU, at lower speed (a CPU is always reproducible)",
    )
    parser.add_argument(
        "--keep",
        choices=KEEP,
        default=KEEP[0],
        help="weights of the model: last step, or checkpoint with the best score or lowest loss",
    )
    parser.add_argument("--save-steps", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--limit", type=int, help="number of rows to train on and to score, for a trial")
    parser.set_defaults(default_dataset=dataset, default_config=config, **defaults)
    return parser


def finetune(
    arguments: argparse.Namespace,
    name: str,
    auto_class: str,
    parse: Callable[[Row], Example],
    make_task: Callable[..., Task],
    noted: Mapping[str, Any] | None = None,
    **choices: Any,
) -> dict[str, float]:
    """Train a model with these options."""
    settings = Settings(**{field.name: getattr(arguments, field.name) for field in fields(Settings)})
    settings.check()
    for option in ("save_steps", "limit"):
        value = getattr(arguments, option)
        if value is not None and value < 1:
            raise QabiasError(f"--{option.replace('_', '-')} is {value}", "use at least 1")
    sources, examples = _read(arguments, parse)
    run = {
        "task": name,
        "model": arguments.model,
        **sources,
        **{f"{part}_rows": len(rows) for part, rows in examples.items()},
        **{f"{part}_sha256": fingerprint(rows) for part, rows in examples.items()},
        **describe(settings),
        **(noted or {}),
        **choices,
    }
    if arguments.keep != "last":
        run["save_steps"] = arguments.save_steps  # it determines the available checkpoints
    score = find_score(arguments.output, run)
    if score is not None:
        return score
    model, tokenizer = load(arguments.model, auto_class, settings.seed, settings.max_length)
    task = make_task(model, tokenizer, **examples, max_length=settings.max_length, **choices)
    return train(model, tokenizer, task, settings, run, arguments.output, arguments.save_steps)


def _read(
    arguments: argparse.Namespace, parse: Callable[[Row], Example]
) -> tuple[dict[str, str], dict[str, list[Example]]]:
    """Read the rows for training and scoring, and their sources."""
    if (arguments.train is None) != (arguments.dev is None):
        raise QabiasError("--train without --dev, or --dev without --train", "give both files, or a --dataset")
    if arguments.train is not None:
        files: Mapping[str, Path] = {"train": arguments.train, "dev": arguments.dev}
        sources = {part: str(path) for part, path in files.items()}
        rows = {part: read_file(path, arguments.limit) for part, path in files.items()}
    else:
        config = arguments.config
        if config is None and arguments.dataset == arguments.default_dataset:
            config = arguments.default_config
        splits = {"train": arguments.train_split, "dev": arguments.dev_split}
        sources = {part: f"{arguments.dataset}/{config or ''}:{split}" for part, split in splits.items()}
        rows = {part: read_dataset(arguments.dataset, config, split, arguments.limit) for part, split in splits.items()}
    return sources, {part: [parse(row) for row in part_rows] for part, part_rows in rows.items()}
