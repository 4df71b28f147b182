"""Logs that the real lm-evaluation-harness writes, with a model whose answers a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qabias.benchmarks import benchmark_names, load_benchmark
from qabias.benchmarks.base import External
from qabias.logs import Log, as_written
from qabias.logs.lm_eval_samples import read as read_samples
from qabias.runs.collected import collect, scores_of_collected

Doc = Mapping[str, Any]


def ask(
    tasks: Sequence[Any],
    folder: Path,
    likelihood: Callable[[Doc, str], float] = lambda doc, option: 0.0,
    text: Callable[[Doc], str] = lambda doc: "",
    include: Path | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Path]:
    """Let the harness ask tasks, and write its log as `--log_samples` does; return the files of samples by task."""
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install '.[bench]')")
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
            return [(likelihood(request.doc, request.args[1].strip()), False) for request in requests]

        def generate_until(self, requests: Any) -> list[str]:
            return [text(request.doc) for request in requests]

        def loglikelihood_rolling(self, requests: Any) -> Any:
            raise AssertionError("no task here asks for whole texts")

    tracker = EvaluationTracker(output_path=str(folder))
    found = lm_eval.simple_evaluate(
        model=Scripted(),
        tasks=list(tasks),
        task_manager=TaskManager(
            include_path=str(include) if include else None, include_defaults=False, metadata=dict(metadata or {})
        ),
        evaluation_tracker=tracker,
        bootstrap_iters=0,
        log_samples=True,
        **options,
    )
    tracker.general_config_tracker.model_name = "ORG/MODEL"
    tracker.general_config_tracker.model_name_sanitized = "ORG__MODEL"
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for task in found["configs"]:
        tracker.save_results_samples(task_name=task, samples=samples[task])
    of_model = folder / "ORG__MODEL"
    return {task: next(of_model.glob(f"samples_{task}_2*.jsonl")) for task in found["configs"]}


def harness_task(folder: str, name: str, rows: Sequence[Doc], path: Path) -> dict[str, Any]:
    """A task of the harness's own, on local rows in place of a dataset of the Hub."""
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install '.[bench]')")
    from lm_eval.tasks._yaml_loader import load_yaml

    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = load_yaml(Path(lm_eval.__file__).parent / "tasks" / folder / f"{name}.yaml")
    local = {"dataset_path": "json", "dataset_name": None, "dataset_kwargs": {"data_files": {"test": str(path)}}}
    return {**config, **local}


def read(path: Path, benchmark: str) -> External:
    """What a benchmark finds in a file of samples."""
    log = read_samples(path)
    assert log is not None
    with as_written(log.called, log.tool):
        found = read_by(log, benchmark)
    assert found is not None
    return found


def read_by(log: Log, name: str, **asked: Any) -> External | None:
    """What the readers of a benchmark find in a log."""
    one = load_benchmark(name)
    found = next(filter(None, (reader(log, one, asked) for reader in one.log_readers)), None)
    return found and replace(found, benchmark=name, model=log.model, where="log")


def claimed_by(log: Log) -> list[str]:
    """The benchmarks that read a log."""
    return [name for name in benchmark_names() if read_by(log, name)]


def scored(found: External, benchmark: str, upstream: Path | None = None) -> Mapping[str, Any]:
    """The scores of the answers in a log."""
    return scores_of_collected(collect(found))


def at(scores: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The score under a path of keys."""
    for key in path:
        scores = scores[key]
    return scores
