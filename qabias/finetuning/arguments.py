"""The arguments of the fine-tuning runners, and the way from these to a trained model."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from qabias.errors import QabiasError
from qabias.finetuning.rows import Row, fingerprint, read_dataset, read_file
from qabias.finetuning.training import KEEP, Settings, Task, describe, find_score, load, train

EXIT_USER_ERROR = 2
Example = TypeVar("Example")


def make_parser(
    description: str | None, model: str, dataset: str, config: str, **defaults: Any
) -> argparse.ArgumentParser:
    """Make a parser with the options of every runner."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=model, help="pretrained model, a folder or a Hub id")
    parser.add_argument("--dataset", default=dataset, help="folder or Hub id; not read where --train is given")
    parser.add_argument("--config", help=f"configuration of the dataset; of {dataset} by default {config}")
    parser.add_argument("--train-split", default="train", help="split to train on")
    parser.add_argument("--dev-split", default="validation", help="split to score")
    parser.add_argument("--train", type=Path, help="file to train on: JSON lines, CSV or Parquet")
    parser.add_argument("--dev", type=Path, help="file to score")
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained model")
    parser.add_argument("--epochs", type=float, help="times that all rows are seen")
    parser.add_argument("--learning-rate", type=float, help="the largest")
    parser.add_argument("--batch-size", type=int, help="rows of a pass on a device")
    parser.add_argument("--gradient-accumulation", type=int, default=1, help="passes of a step")
    parser.add_argument("--warmup-ratio", type=float, default=0.0, help="share of steps in which the rate rises")
    parser.add_argument("--max-length", type=int, help="most tokens of a row")
    parser.add_argument("--seed", type=int, default=0, help="of the new head, the order of rows and dropout")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16")
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="the same weights on a GPU too, in more time; a CPU gives them anyway",
    )
    parser.add_argument(
        "--keep",
        choices=KEEP,
        default=KEEP[0],
        help="weights that become the model: of the last step, or of the checkpoint with the best score or the lowest "
        "loss on the rows to score",
    )
    parser.add_argument("--save-steps", type=int, default=500, help="steps between two checkpoints")
    parser.add_argument("--limit", type=int, help="first rows to train on and to score, for a trial")
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
    """Train a model as the options say."""
    settings = Settings(**{field.name: getattr(arguments, field.name) for field in fields(Settings)})
    settings.check()
    for option in ("save_steps", "limit"):
        value = getattr(arguments, option)
        if value is not None and value < 1:
            raise QabiasError(f"--{option.replace('_', '-')} is {value}; it must be at least 1")
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
        run["save_steps"] = arguments.save_steps  # the checkpoints there are to choose from
    score = find_score(arguments.output, run)
    if score is not None:
        return score
    model, tokenizer = load(arguments.model, auto_class, settings.seed, settings.max_length)
    task = make_task(model, tokenizer, **examples, max_length=settings.max_length, **choices)
    return train(model, tokenizer, task, settings, run, arguments.output, arguments.save_steps)


def _read(
    arguments: argparse.Namespace, parse: Callable[[Row], Example]
) -> tuple[dict[str, str], dict[str, list[Example]]]:
    """Read the rows to train on and to score: where they come from, and what they are."""
    if (arguments.train is None) != (arguments.dev is None):
        raise QabiasError("--train and --dev go together; give both files, or a --dataset with both splits")
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
    return sources, {part: [parse(row) for row in found] for part, found in rows.items()}
