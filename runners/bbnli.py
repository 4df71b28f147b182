"""Measure a model on BBNLI in plain `datasets` and `evaluate`: `python runners/bbnli.py --config man_is_to_surgeon`.

`qabias run bbnli` does the same with resuming, samples from all hypotheses and a report.
"""

import argparse
import json

import datasets
import evaluate

from qabias.benchmarks import choose_format, locate
from qabias.benchmarks.inference.bbnli import BENCHMARK
from qabias.scorers import load_scorer


def main() -> None:
    """Ask the model about the pairs of a configuration and print the scores as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="smollm2, baseline:KIND, a folder or a Hub id")
    parser.add_argument("--dataset", default=str(locate.dataset_folder("bbnli")), help="folder or Hub id")
    parser.add_argument("--config", default="man_is_to_surgeon", help="subtopic, domain or all")
    parser.add_argument("--format", help="prompt format; by default what fits the model")
    arguments = parser.parse_args()

    dataset = datasets.load_dataset(arguments.dataset, arguments.config, split="test")
    scorer = load_scorer(None, arguments.model)
    prompt_format = choose_format(BENCHMARK.formats, arguments.format or BENCHMARK.default_format(scorer))
    answers = BENCHMARK.answer(dataset.with_format("arrow")[:], scorer, prompt_format, "none")
    metric = evaluate.load(str(locate.metric_folder("bbnli")))
    scores = metric.compute(predictions=answers["prediction"].to_pylist(), references=dataset, by=["subtopic"])
    print(json.dumps(scores, indent=2))


if __name__ == "__main__":
    main()
