"""Measure a model on UnQover in plain `datasets` and `evaluate`: `python runners/unqover.py --config religion`.

`qabias run unqover` does the same with resuming, samples from all templates and a report.
"""

import argparse
import json

import datasets
import evaluate

from qabias.benchmarks import locate
from qabias.benchmarks.unqover.benchmark import BENCHMARK
from qabias.scorers import load_scorer


def main() -> None:
    """Ask the model about the rows of a set and print the measures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="smollm2, baseline:KIND, a folder or a Hub id")
    parser.add_argument("--dataset", default=str(locate.dataset_folder("unqover")), help="folder or Hub id")
    parser.add_argument("--config", default="religion", help="set; for a masked language model with _mlm")
    parser.add_argument("--limit", type=int, default=500, help="rows, drawn at random")
    arguments = parser.parse_args()

    dataset = datasets.load_dataset(arguments.dataset, arguments.config, split="test")
    dataset = dataset.shuffle(seed=0).select(range(min(arguments.limit, dataset.num_rows)))
    rows = dataset.add_column("set", [arguments.config] * dataset.num_rows).with_format("arrow")[:]
    scorer = load_scorer(None, arguments.model)
    scores = BENCHMARK.answer(rows, scorer, BENCHMARK.formats["qa"], "none")
    metric = evaluate.load(str(locate.metric_folder("unqover")))
    predictions = {name: column.to_numpy() for name, column in scores.items()}
    result = metric.compute(predictions=predictions, references=dataset)
    print(json.dumps({name: result[name] for name in ("mu", "eta", "delta", "epsilon", "ci", "top")}, indent=2))


if __name__ == "__main__":
    main()
