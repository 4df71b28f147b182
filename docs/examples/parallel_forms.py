"""The bundled and the published form of BBQ side by side.

    python docs/examples/parallel_forms.py --model smollm2

Prints accuracy and bias scores of both forms by category, and how the scores of the templates correlate. Templates of
the same number test the same stereotype with other text, so that a model that answers from stereotypes should show it
in both. The authors' template files are read from `--upstream-dir` or QABIAS_UPSTREAM, else downloaded. A run that was
interrupted continues.
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qabias.benchmarks import locate
from qabias.measuring.run import run
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import read_answers, read_run
from qabias.runs.question import put_again

SCORES = ("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig")
N_RESAMPLES = 2000


def main() -> None:
    """Measure the model on both forms and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as in `qabias run`")
    parser.add_argument("--config", nargs="+", default=["Age", "Religion", "Nationality"], help="categories")
    parser.add_argument("--limit", type=int, help="examples of each category and form")
    parser.add_argument("--output", type=Path, default=Path("runs/parallel"), help="folder of the runs")
    parser.add_argument(
        "--upstream-dir", default=os.environ.get("QABIAS_UPSTREAM"), help="mirror of the published files"
    )
    arguments = parser.parse_args()

    pairs: dict[str, list[tuple[float, float]]] = {score: [] for score in SCORES}
    print("| category | form | " + " | ".join(SCORES) + " |\n|---|---|" + "---|" * len(SCORES))
    for config in arguments.config:
        by_form = {}
        for source in ("bundled", "official"):
            what = RunArguments("bbq", arguments.model, config=config, source=source, limit=arguments.limit)
            folder = arguments.output / f"{config}-{source}"
            scores = run(what, folder, Machine(upstream_dir=arguments.upstream_dir)).scores
            assert scores is not None
            by_form[source] = by_template(folder, arguments.upstream_dir)
            print(f"| {config} | {source} | " + " | ".join(_with_interval(scores, name) for name in SCORES) + " |")
        for name in SCORES:
            pairs[name] += [
                (by_form["bundled"][template][name], by_form["official"][template][name])
                for template in sorted(by_form["bundled"].keys() & by_form["official"].keys())
            ]
    print("\n| over stereotypes | n | Pearson's r | 95 % interval | mean of differences |\n|---|---|---|---|---|")
    for name, values in pairs.items():
        both = np.array([pair for pair in values if not np.isnan(pair).any()])
        low, high = _interval_of_correlation(both)
        difference = np.mean(both[:, 0] - both[:, 1])
        print(f"| {name} | {len(both)} | {_correlation(both):.2f} | [{low:.2f}, {high:.2f}] | {difference:+.3f} |")


def by_template(folder: Path, upstream_dir: str | None) -> dict[str, dict[str, Any]]:
    """Scores of a run by template."""
    import evaluate

    question = put_again(read_run(folder), upstream_dir)
    answers, _ = read_answers(folder, question.benchmark, question.table, question.units_per_part)
    metric = evaluate.load(str(locate.metric_folder("bbq")))
    scores = metric.compute(
        predictions=answers["prediction"].to_pylist(),
        references=question.table,
        by=["template_id"],
        confidence=None,
    )
    return scores["by"]["template_id"]


def _with_interval(scores: Mapping[str, Any], name: str) -> str:
    low, high = scores["ci"][name]
    return f"{100 * scores[name]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _correlation(pairs: np.ndarray) -> float:
    return float(np.corrcoef(pairs.T)[0, 1])


def _interval_of_correlation(pairs: np.ndarray) -> tuple[float, float]:
    """Percentiles of the correlations of stereotypes that are drawn anew, with replacement."""
    rng = np.random.default_rng(0)
    draws = [_correlation(pairs[rng.integers(len(pairs), size=len(pairs))]) for _ in range(N_RESAMPLES)]
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return float(low), float(high)


if __name__ == "__main__":
    main()
