"""Runs that are to be set side by side: read, checked for what must agree, and named by what differs.

Scores may be compared where the same questions were asked in the same way. What determines that stands in the
signature; runs that differ in it are refused, or marked where the user says so.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qabias.errors import QabiasError
from qabias.benchmarks.bbq.prompts import QUESTION_ONLY
from qabias.measuring.run import read_run

# What must agree for scores to be about the same questions; for a suite, which asks them in several ways on purpose.
SAME = ("benchmark", "config", "source", "fixes", "limit", "seed")
# Fields of the signature that say how the questions were asked. Baselines see neither prompt nor likelihoods.
ASKED = ("format", "scorer", "norm")
# Benchmarks whose scores mean the same: BBQ as questions and as inference (Akyurek et al. 2022, Tables 4 and 5).
FORMS_OF_BBQ = frozenset({"bbq", "bbq_nli"})

_LONGEST_NAME = 40


class ScoredRun(NamedTuple):
    """A run with its scores.

    Attributes:
        folder: The run folder.
        arguments: What was measured, from `run.json`.
        signature: The same in one line.
        scores: What the benchmark's metric returned; undefined scores are None.
        created: When it was begun, as text.
        units_per_part: See `qabias.benchmarks.Benchmark.units_per_part`.
    """

    folder: Path
    arguments: Mapping[str, Any]
    signature: str
    scores: Mapping[str, Any]
    created: str
    units_per_part: int

    @property
    def benchmark(self) -> str:
        """Name of the benchmark."""
        return str(self.arguments["benchmark"])

    @property
    def is_baseline(self) -> bool:
        """Whether a baseline answered."""
        return str(self.arguments["model"]).startswith("baseline:")


def read_runs(folders: Sequence[Path], allow_mixed: bool = False) -> list[ScoredRun]:
    """Read runs of the same questions.

    Args:
        folders: Run folders with scores, at least two.
        allow_mixed: Read runs that asked other questions, or asked them otherwise, too.

    Raises:
        QabiasError: If a folder holds no scored run, or the runs differ in what must agree.
    """
    if len(folders) < 2:
        raise QabiasError("compare needs at least two run folders")
    runs = [read_scored(folder) for folder in folders]
    benchmarks = {run.benchmark for run in runs}
    if len(benchmarks) > 1 and not benchmarks <= FORMS_OF_BBQ:
        raise QabiasError(
            f"these runs measured different questions (benchmark: {_found(runs, [run.benchmark for run in runs])}); "
            "only bbq and bbq_nli have scores in common, with --allow-mixed"
        )
    differing = mixed_fields(runs)
    if differing and not allow_mixed:
        what = "; ".join(f"{name}: {_found(runs, values)}" for name, values in differing.items())
        questions = "different questions" if set(differing) & set(SAME) else "the same questions in different ways"
        raise QabiasError(
            f"these runs measured {questions} ({what}); compare runs that agree in it, or add --allow-mixed to have "
            "the differences marked"
        )
    return runs


def mixed_fields(runs: Sequence[ScoredRun]) -> dict[str, list[str]]:
    """What must agree and does not: by field the value of every run, as text.

    A baseline asks no model anything; its format, scorer and norm agree with any.
    """
    fields: dict[str, list[str]] = {}
    for name in ("benchmark", "source", "config", *ASKED, "limit", "seed"):
        values = [_field(run, name) for run in runs]
        asked = [value for run, value in zip(runs, values, strict=True) if name not in ASKED or not run.is_baseline]
        if len(set(asked)) > 1:
            fields[name] = values
    return fields


def _field(run: ScoredRun, name: str) -> str:
    if name == "benchmark":
        return run.benchmark
    if name == "source":
        source = signature_fields(run.signature).get("source", str(run.arguments["source"]))
        return source + (" with fixes" if run.arguments["fixes"] and "+" not in source else "")
    if name == "scorer":
        # Answers of another scorer, or of the same with other options, are another way of asking.
        return signature_fields(run.signature).get("scorer", "")
    if name in ("format", "norm"):
        return signature_fields(run.signature).get(name, "")
    value = run.arguments[name]
    return "none" if value is None else str(value)


def signature_fields(signature: str) -> dict[str, str]:
    """The fields of a signature by name; its first part, the benchmark, has none."""
    parts = (part.partition(":") for part in signature.split("|")[1:])
    return {name: value for name, _, value in parts}


def is_question_only(signature: str) -> bool:
    """Whether the model saw no context, so that only scores of ambiguous contexts mean anything."""
    return signature_fields(signature).get("format", "").partition("@")[0] in QUESTION_ONLY


def are_question_only(runs: Sequence[ScoredRun]) -> bool:
    """Whether no model saw a context. A baseline reads nothing; its format agrees with any."""
    models = [run for run in runs if not run.is_baseline] or runs
    return all(is_question_only(run.signature) for run in models)


def _found(runs: Sequence[ScoredRun], values: Sequence[str]) -> str:
    return ", ".join(f"{run.folder}: {value!r}" for run, value in zip(runs, values, strict=True))


def read_scored(folder: Path) -> ScoredRun:
    """Read a run with its scores.

    Raises:
        QabiasError: If there is none, its files are damaged, or the scores are those of another run.
    """
    run = read_run(folder)
    path = folder / "scores.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        scores = content["scores"]
    except FileNotFoundError as error:
        raise QabiasError(f"{folder}: has no scores yet; finish the run, or make them with `qabias score`") from error
    except (ValueError, KeyError, TypeError) as error:
        raise QabiasError(f"{path}: damaged ({error!r}); score the run again with `qabias score`") from error
    check_same_run(path, content, run)
    return ScoredRun(
        folder,
        {**run["arguments"], "model": _writable(run["arguments"]["model"])},
        _writable(run["signature"]),
        scores,
        str(run.get("created", "")),
        run["units_per_part"],
    )


def check_same_run(path: Path, scores: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Refuse scores of another run than the one whose `run.json` lies beside them.

    Args:
        path: The `scores.json`, for the message.
        scores: Its content.
        run: The content of `run.json`.

    Raises:
        QabiasError: If benchmark or signature differ.
    """
    for key in ("benchmark", "signature"):
        if scores.get(key) != run.get(key):
            raise QabiasError(
                f"{path}: its {key} {scores.get(key)!r} is not that of run.json, {run.get(key)!r}; score the run "
                "again with `qabias score`"
            )


def _writable(text: str) -> str:
    """The text with a question mark for half of a surrogate pair: JSON can spell one, and no file can hold it."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def differing_fields(signatures: Sequence[str]) -> list[str]:
    """For each signature what the others lack, e.g. "format:gpt3@1"; the whole text where nothing differs."""
    fields = [signature.split("|") for signature in signatures]
    shared = set.intersection(*(set(parts) for parts in fields))
    return [" ".join(part for part in parts if part not in shared) or "|".join(parts) for parts in fields]


def run_names(runs: Sequence[ScoredRun]) -> list[str]:
    """Short names that tell the runs apart: the model, then what else differs, then a number.

    Returns:
        A different name for each run.
    """
    names = [_model_name(run.arguments["model"]) for run in runs]
    for name in ("benchmark", "config", "format", "scorer", "norm", "limit", "seed", "source"):
        if len(set(names)) == len(names):
            break
        values = [_field(run, name) for run in runs]
        if len(set(values)) > 1:
            names = [f"{shown}, {value}" for shown, value in zip(names, values, strict=True)]
    names = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, start=1)]
    return names


def _model_name(model: str) -> str:
    return model if model.startswith("baseline:") else model.rstrip("/").rpartition("/")[2] or model
