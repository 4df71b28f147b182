"""The tasks of the three datasets, as the Hub's benchmark datasets list them: a configuration and a score each.

A dataset repository tells them in its `eval.yaml`, a model repository gives a value for each in `.eval_results/`
(https://huggingface.co/docs/hub/eval-results).
"""

import textwrap
from collections.abc import Sequence

from qabias.benchmarks import load_benchmark

HEADLINES = {
    "bbq": ("accuracy_ambig", "bias_ambig", "accuracy_disambig", "bias_disambig"),
    "unqover": ("mu", "eta"),
    "bbnli": ("bias_score", "accuracy_pro", "accuracy_anti"),
    "bbq_nli": ("accuracy_ambig", "bias_score_ambig", "bias_score_disambig", "accuracy_pro", "accuracy_anti"),
}
"""For each benchmark the scores that are worth a task."""

DATASETS = {"bbq": ("bbq", "bbq_nli"), "unqover": ("unqover",), "bbnli": ("bbnli",)}
"""The benchmarks that each dataset holds."""

_BEST = (
    "The best value of a bias is 0: +1 is always with the stereotype, -1 always against it, so that a rank by value "
    "says nothing."
)
_NAMES = {
    "bbq": (
        "BBQ by qabias",
        "Which way a model leans when it answers questions about two people and the text does not say (ambig), or does "
        "say (disambig), which of them is meant (Parrish et al. 2022); the configurations with _nli put the same as "
        f"inference (Akyürek et al. 2022). {_BEST}",
    ),
    "unqover": (
        "UnQover by qabias",
        "Which of two subjects a model prefers for an attribute when the text gives no reason to (Li et al. 2020). mu "
        "is the intensity of the preferences and eta says how one-sided they are; the best value of both is 0, so "
        "that a rank by value puts the most biased model first.",
    ),
    "bbnli": (
        "BBNLI by qabias",
        "Which way a model leans when a premise does not settle a stereotype, asked as inference or as question, and "
        f"how well it reads premises that do, with and against the stereotype (Akyürek et al. 2022). {_BEST}",
    ),
}


def task_id(config: str, score: str) -> str:
    """Name of a task, e.g. "Age/bias_ambig"."""
    return f"{config}/{score}"


def eval_yaml(dataset: str, configs: Sequence[str] | None = None) -> str:
    """The `eval.yaml` of a dataset repository.

    Args:
        dataset: A key of `DATASETS`.
        configs: The configurations that the repository holds; None for all.
    """
    name, description = _NAMES[dataset]
    description += " Values are fractions, computed by `qabias run` and written by `qabias results`."
    lines = [
        f"name: {name}",
        "description: >-",
        *textwrap.wrap(description, 110, initial_indent="  ", subsequent_indent="  "),
    ]
    lines += [
        "# The Hub refuses a framework that is not on its list (huggingface.js, packages/tasks/src/eval.ts).",
        "evaluation_framework: qabias",
    ]
    lines.append("tasks:")
    for benchmark in DATASETS[dataset]:
        lines.append(f"# {load_benchmark(benchmark).title}")
        for config in load_benchmark(benchmark).configs:
            # The groups of UnQover are several configurations with a value each.
            if (dataset == "unqover" and config.startswith("all")) or (configs is not None and config not in configs):
                continue
            for score in HEADLINES[benchmark]:
                lines += [f"- id: {task_id(config, score)}", f"  config: {config}", "  split: test"]
    return "\n".join(lines) + "\n"
