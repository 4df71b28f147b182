"""Logs of lm-evaluation-harness: `samples_TASK_DATE.jsonl` next to `results_DATE.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qabias.errors import QabiasError
from qabias.logs import NOT_AS_WRITTEN, Log, Sample, as_written
from qabias.support.files import require_regular_file

TOOL = "lm-eval"

_FIELDS = {"doc_id", "doc", "arguments", "resps", "filtered_resps"}
_BEGINS = b'{"doc_id":'
_LONGEST_LINE = 1 << 26  # maximum bytes of a first line

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>[^_]+)\.jsonl")


class _Results(NamedTuple):
    """The results of one task in `results_DATE.json`; empty without such a file."""

    path: Path | None = None
    content: Mapping[str, Any] = {}
    task: str = ""

    def of_task(self, name: str) -> Any:
        """The task's entry under a name such as "configs"; None if missing."""
        tasks = self.content.get(name)
        return tasks.get(self.task) if isinstance(tasks, dict) else None


def read(path: Path) -> Log | None:
    """Read the log of one task from a file of samples; None for other files."""
    first = _first_line(path)
    if first is None:
        _refuse_scores_alone(path)
        return None
    results = _results_beside(path)
    with as_written(results.path or path, TOOL):
        return _log(path, first, results)


def _log(path: Path, first: Mapping[str, Any], results: _Results) -> Log:
    chosen = _filter_of(first)
    named = _NAME.fullmatch(path.name)
    n_asked = (results.of_task("n-samples") or {}).get("effective")
    return Log(
        path=path,
        tool=TOOL,
        version=str(results.content.get("lm_eval_version") or ""),
        task=results.task or (named["task"] if named else path.stem),
        model=str(results.content.get("model_name") or ""),
        settings=_settings(results),
        samples=lambda: _samples(path, chosen),
        figures=_figures(results.of_task("results") or {}, chosen),
        n_expected=int(n_asked) * max(1, len(first["resps"][0])) if n_asked is not None else None,
        notes=tuple(_notes(results, chosen)),
        beside=(results.path,) if results.path else (),
    )


def _first_line(path: Path) -> Mapping[str, Any] | None:
    """The first line of a file of samples; None for other files."""
    with path.open("rb") as file:
        begins = file.read(1)
        if begins != b"{":
            return None
        line = begins + file.readline(_LONGEST_LINE)
    try:
        sample = json.loads(line)
    except (ValueError, RecursionError):
        if line.startswith(_BEGINS):
            raise _damaged(path, 1, line) from None
        return None
    if not isinstance(sample, dict) or not sample.keys() >= _FIELDS:
        return None
    _sample(path, 1, sample)  # what its other lines are read by must be there
    return sample


def _refuse_scores_alone(path: Path) -> None:
    """Refuse results without samples, which the harness writes without `--log_samples`."""
    with path.open("rb") as file:
        begins = file.read(64)
    if not path.match("results_*.json") or re.match(rb'\{\s*"results"\s*:', begins) is None:
        return
    date = path.stem.rpartition("_")[2]
    if not any(path.parent.glob(f"samples_*_{date}.jsonl")):
        raise QabiasError(
            f"{path}: scores of {TOOL} without the answers.",
            "Rerun the harness with --log_samples, and keep samples_*.jsonl next to this file.",
        )


def _samples(path: Path, chosen: str) -> Iterator[Sample]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                sample = json.loads(line)
            except (ValueError, RecursionError):
                raise _damaged(path, number, line) from None
            if not isinstance(sample, dict) or not sample.keys() >= _FIELDS:
                raise QabiasError(f"{path}: line {number} is not a sample of {TOOL}.", "Remove lines of other files.")
            if _filter_of(sample) == chosen:
                yield from _sample(path, number, sample)


def _sample(path: Path, number: int, sample: Mapping[str, Any]) -> list[Sample]:
    """The answers on a line, one per repeat."""
    try:
        arguments = [tuple(argument.values()) for argument in sample["arguments"].values()]
        asked = {"doc_id": sample["doc_id"], "doc": sample["doc"], "arguments": arguments}
        where, filtered = f"line {number}", sample["filtered_resps"]
        if isinstance(arguments[0][1], str):  # a prompt and an option
            return [Sample(where, asked, loglikelihoods=tuple(float(value) for value, _ in filtered))]
        texts = sample["resps"][0]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in (arguments[0][0], *texts)):
            raise TypeError(f"{texts!r} for the texts of answers")
        return [
            Sample(where, asked, answer=filtered[0] if run == 1 else None, text=text, run=run)
            for run, text in enumerate(texts, start=1)
        ]
    except NOT_AS_WRITTEN as error:
        raise QabiasError(
            f"{path}: line {number}: not a sample of {TOOL} 0.4.3 or later ({error!r}).",
            "Rerun the harness in a later version.",
        ) from None


def _damaged(path: Path, number: int, line: bytes) -> QabiasError:
    fault = "damaged (no JSON)" if line.endswith(b"\n") else f"cut off after {len(line):,} bytes"
    return QabiasError(f"{path}: line {number} is {fault}.", "Copy the file again, or delete this line.")


def _filter_of(sample: Mapping[str, Any]) -> str:
    return str(sample.get("filter", "none"))


def _results_beside(path: Path) -> _Results:
    """The results of the same date; empty if missing or without the task."""
    date = path.stem.rpartition("_")[2]
    for beside in sorted(path.parent.glob("*.json")):
        if not beside.stem.endswith(f"_{date}"):
            continue
        with as_written(beside, TOOL):
            content = json.loads(require_regular_file(beside).read_text("utf-8"))
        if isinstance(content, dict) and isinstance(content.get("configs"), dict):
            for task in content["configs"]:
                if path.name == f"samples_{task}_{date}.jsonl":
                    return _Results(beside, content, task)
    return _Results()


def _notes(results: _Results, chosen: str) -> Iterator[str]:
    if results.path is None:
        yield (
            "The results_*.json of the same date is missing. Model, settings, the harness's scores and the "
            "number of samples are unknown. The task comes from the file name. If it has several filters, the lines of "
            f'"{chosen}" are used.'
        )
        return
    config = results.of_task("configs") or {}
    counts = results.of_task("n-samples") or {}
    n_asked, n_all = counts.get("effective") or 0, counts.get("original") or 0
    if n_asked < n_all:
        yield f"The harness asked {n_asked:,} of the {n_all:,} documents (--limit or --samples)."
    filters = [str(entry.get("name")) for entry in config.get("filter_list") or () if isinstance(entry, dict)]
    if len(filters) > 1:
        yield (
            f"The task reads every answer by {len(filters)} filters ({', '.join(filters)}). The same answers occur for "
            f'each filter, and only the lines of "{chosen}" are used.'
        )
    n_shots = results.of_task("n-shot")
    if n_shots:
        yield f"{n_shots} examples with their answers stood before every question."
    repeats = config.get("repeats") or 1
    if repeats > 1:
        yield f"Every question was asked {repeats} times."


def _settings(results: _Results) -> dict[str, Any]:
    """What readers need of the task's configuration, which also has source code and keys of services."""
    config = results.of_task("configs") or {}
    ours = (config.get("metadata") or {}).get("qabias")
    return {
        "config": {"dataset_name": config.get("dataset_name"), "metadata": {"qabias": ours}},
        "limit": (results.content.get("config") or {}).get("limit"),
    }


def _figures(scores: Mapping[str, Any], chosen: str) -> dict[str, float]:
    """Scores by name without the filter: "acc" for "acc,none"."""
    figures = {}
    for key, value in scores.items():
        name, comma, filter_name = key.partition(",")
        if comma and filter_name == chosen and not name.endswith("_stderr") and isinstance(value, int | float):
            figures[name] = float(value)
    return figures


def read_options(sample: Sample) -> Sequence[str]:
    """Options of a sample without their leading space, in the harness's order; () for a generation task."""
    return [option.strip() for _, option in sample.asked["arguments"]] if sample.loglikelihoods else []
