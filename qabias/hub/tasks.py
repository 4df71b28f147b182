"""The tasks of the datasets, as the Hub's benchmark datasets list them: a configuration and a score each."""

import textwrap
from collections.abc import Sequence

from qabias.benchmarks import Benchmark, load_benchmark, loadable_benchmarks
from qabias.benchmarks.base import is_grouped
from qabias.benchmarks.registry import is_folder
from qabias.errors import QabiasError
from qabias.support.suggest import unknown


def load_dataset_owner(name: str) -> Benchmark:
    """The benchmark that has a dataset, a card and a metric of its own."""
    known = loadable_benchmarks()
    owners = [other for other, benchmark in known.items() if benchmark.facts.hub is not None]
    if name in owners:
        return known[name]
    if name in known:
        dataset = known[name].facts.dataset
        why = f"is a part of the dataset {dataset}" if dataset in owners else "has no dataset folder"
        raise QabiasError(f"{name} {why}; choose one of {', '.join(owners)}")
    raise unknown("name", name, owners)


def load_pushable(name: str) -> Benchmark:
    """The benchmark whose dataset can be pushed: with a dataset of its own, a published set, a folder of templates."""
    if is_folder(name):
        return load_benchmark(name)
    known = loadable_benchmarks()
    if name in known and known[name].card is not None:
        return known[name]
    return load_dataset_owner(name)


def benchmarks_of(dataset: str) -> list[Benchmark]:
    """The benchmarks whose examples a dataset holds, its owner first."""
    return [benchmark for benchmark in loadable_benchmarks().values() if benchmark.facts.dataset == dataset]


def task_id(config: str, score: str) -> str:
    """Name of a task, e.g. "Age/bias_ambig"."""
    return f"{config}/{score}"


def eval_yaml(dataset: str, configs: Sequence[str] | None = None) -> str:
    """The `eval.yaml` of a dataset repository."""
    texts = load_dataset_owner(dataset).facts.hub
    assert texts is not None
    description = f"{texts.description} Values are fractions, computed by `qabias run` and written by `qabias results`."
    lines = [
        f"name: {texts.name}",
        "description: >-",
        *textwrap.wrap(description, 110, initial_indent="  ", subsequent_indent="  "),
        "# The Hub refuses a framework that is not on its list (huggingface.js, packages/tasks/src/eval.ts).",
        "evaluation_framework: qabias",
        "tasks:",
    ]
    for benchmark in benchmarks_of(dataset):
        lines.append(f"# {benchmark.title}")
        for config in benchmark.configs:
            if is_grouped(benchmark, config) or (configs is not None and config not in configs):
                continue
            for score in benchmark.facts.tasks:
                lines += [f"- id: {task_id(config, score)}", f"  config: {config}", "  split: test"]
    return "\n".join(lines) + "\n"
