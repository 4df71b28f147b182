"""Measure a model on BBQ in plain `datasets` and `evaluate`: `python runners/bbq.py --model smollm2 --config Age`.

`qabias run bbq` does the same with resuming, sampling and a report.
"""

import argparse
import json
from typing import Any, cast

import datasets
import evaluate

from qabias.answers.likelihoods import best_option
from qabias.benchmarks import choose_format, locate
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.scorers import load_scorer
from qabias.scorers.base import OptionScorer


def main() -> None:
    """Map the model over the dataset and print the scores as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="smollm2, baseline:KIND, a folder or a Hub id")
    parser.add_argument("--dataset", default=str(locate.dataset_folder("bbq")), help="folder or Hub id")
    parser.add_argument("--config", default="Age", help="category, or all")
    parser.add_argument("--format", default="qa", help="prompt format")
    arguments = parser.parse_args()

    dataset = datasets.load_dataset(arguments.dataset, arguments.config, split="test")
    scorer = cast(OptionScorer, load_scorer("causal", arguments.model))
    prompt_format = choose_format(BENCHMARK.formats, arguments.format)

    def answer(batch: dict[str, list[Any]]) -> dict[str, list[int]]:
        examples = [dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True)]
        scores = scorer.score([BENCHMARK.request(example, prompt_format) for example in examples])
        return {"prediction": [best_option(score, "none") for score in scores]}

    answered = dataset.map(answer, batched=True, batch_size=256, load_from_cache_file=False, desc=arguments.model)
    metric = evaluate.load(str(locate.metric_folder("bbq")))
    scores = metric.compute(predictions=answered["prediction"], references=dataset)
    print(json.dumps(scores, indent=2))


if __name__ == "__main__":
    main()
