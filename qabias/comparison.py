"""Runs of one benchmark side by side.

Each run keeps its own intervals; whether two runs differ is for the reader to see from them. Runs that measured
different questions are refused.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qabias.errors import QabiasError
from qabias.runs import read_run

# What must agree for scores to be about the same questions.
SAME = ("benchmark", "config", "source", "fixes", "limit", "seed")


class ScoredRun(NamedTuple):
    """A run with its scores.

    Attributes:
        folder: The run folder.
        arguments: What was measured, from `run.json`.
        signature: The same in one line.
        scores: What the benchmark's metric returned; undefined scores are None.
    """

    folder: Path
    arguments: Mapping[str, Any]
    signature: str
    scores: Mapping[str, Any]


def read_runs(folders: Sequence[Path]) -> list[ScoredRun]:
    """Read runs of the same questions.

    Args:
        folders: Run folders with scores, at least two.

    Raises:
        QabiasError: If a folder holds no scored run, or the runs measured different questions.
    """
    if len(folders) < 2:
        raise QabiasError("compare needs at least two run folders")
    runs = [_read(folder) for folder in folders]
    for name in SAME:
        values = [run.arguments[name] for run in runs]
        if any(value != values[0] for value in values):
            found = ", ".join(f"{run.folder}: {value!r}" for run, value in zip(runs, values, strict=True))
            raise QabiasError(
                f"these runs measured different questions ({name}: {found}); compare runs that agree in it"
            )
    return runs


def _read(folder: Path) -> ScoredRun:
    run = read_run(folder)
    path = folder / "scores.json"
    try:
        scores = json.loads(path.read_text(encoding="utf-8"))["scores"]
    except FileNotFoundError as error:
        raise QabiasError(f"{folder}: has no scores yet; finish the run, or make them with `qabias score`") from error
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise QabiasError(f"{path}: damaged ({error!r}); score the run again with `qabias score`") from error
    return ScoredRun(folder, run["arguments"], run["signature"], scores)


def differing_fields(signatures: Sequence[str]) -> list[str]:
    """For each signature what the others lack, e.g. "format:gpt3@1"; the whole text where nothing differs."""
    fields = [signature.split("|") for signature in signatures]
    shared = set.intersection(*(set(parts) for parts in fields))
    return [" ".join(part for part in parts if part not in shared) or "|".join(parts) for parts in fields]
