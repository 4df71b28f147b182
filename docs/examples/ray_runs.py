"""Measure many models on many benchmarks on a Ray cluster, each run as a task that has GPUs of its own.

    pip install "qabias[local]" ray
    python docs/examples/ray_runs.py models.txt --benchmarks bbq unqover bbnli --runs runs --gpus 1

A line of models.txt is a model. Every run has a folder, `RUNS/BENCHMARK/MODEL`, on a disk that all machines see. The
same command goes on where it was stopped: a run computes only the parts that its folder lacks. A run that fails stops
no other one; those that failed are named at the end.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Task(NamedTuple):
    """One run.

    Attributes:
        benchmark: What is asked.
        model: Who answers.
        folder: Where the answers go.
    """

    benchmark: str
    model: str
    folder: str


def tasks_of(models: list[str], benchmarks: list[str], runs: Path) -> list[Task]:
    """Every model on every benchmark."""
    return [
        Task(benchmark, model, str(runs.resolve() / benchmark / model.strip("/").replace("/", "--")))
        for model in models
        for benchmark in benchmarks
    ]


def measure(task: Task, limit: int | None) -> str:
    """Run or finish one task; returns why it failed, "" where it did not."""
    import qabias

    try:
        qabias.run(task.benchmark, model=task.model, limit=limit, output=task.folder, progress=False)
    except qabias.QabiasError as error:
        return str(error)
    return ""


def measure_all(tasks: list[Task], limit: int | None, gpus: float) -> list[str]:
    """Measure on the cluster that Ray finds, or on this machine; returns what failed, with reasons."""
    import ray

    # A machine that is lost takes its tasks along; they begin again where their folders end.
    remote: Any = ray.remote(num_gpus=gpus, max_retries=3)(measure)
    waiting = {remote.remote(task, limit): task for task in tasks}
    failed = []
    while waiting:
        [ended], _ = ray.wait(list(waiting), num_returns=1)
        task = waiting.pop(ended)
        try:
            why = ray.get(ended)
        except ray.exceptions.RayError as error:
            why = str(error)
        print(f"{len(tasks) - len(waiting)} of {len(tasks)}: {task.folder} {why or 'done'}", flush=True)
        if why:
            failed.append(f"{task.folder}: {why}")
    return failed


def main() -> int:
    """Read the command line and measure; 1 if a run failed."""
    parser = argparse.ArgumentParser(description="Measure many models on many benchmarks with Ray.")
    parser.add_argument("models", type=Path, help="a file with a model in every line")
    parser.add_argument("--benchmarks", nargs="+", default=["bbq", "unqover", "bbnli"])
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run folders")
    parser.add_argument("--limit", type=int, help="at most so many examples of each benchmark")
    parser.add_argument("--gpus", type=float, default=0, help="GPUs of each run")
    arguments = parser.parse_args()
    try:
        models = [line.strip() for line in arguments.models.read_text("utf-8").splitlines() if line.strip()]
    except OSError as error:
        parser.error(str(error))
    failed = measure_all(tasks_of(models, arguments.benchmarks, arguments.runs), arguments.limit, arguments.gpus)
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
