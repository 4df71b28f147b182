"""Answer BBQ on a Ray cluster: every actor holds a model, Ray Data hands out the questions.

    pip install "qabias[local]" "ray[data]"
    python docs/examples/ray_data.py "bbq_dataset/data/Age/*.parquet" age.parquet --model smollm2 --actors 4 --gpus 1
    qabias score age.parquet --config Age

The questions are the Parquet files of a BBQ dataset folder (`bbq_dataset` or what `qabias build bbq` wrote).
"""

import argparse
import glob
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qabias.benchmarks import choose_format, load_benchmark
from qabias.scorers import load_scorer

# Questions of a set share most of their text, which is run once if they come together: whole sets of four.
BATCH_SIZE = 256


class Answerer:
    """An actor: loads a model once and answers batches of BBQ examples.

    Args:
        model: `smollm2`, `baseline:KIND`, a folder or a Hub id.
        prompt_format: Name of a prompt format; None for the one that fits the model.
        norm: How an option's log-likelihood becomes a score.
    """

    def __init__(self, model: str, prompt_format: str | None = None, norm: str = "none") -> None:
        self._benchmark = load_benchmark("bbq")
        self._scorer = load_scorer(None, model)
        self._format = choose_format(
            self._benchmark.formats, prompt_format or self._benchmark.default_format(self._scorer)
        )
        self._norm = norm

    def __call__(self, examples: pa.Table) -> pa.Table:
        """The predictions for some examples, in the columns that `qabias score` reads."""
        answers = self._benchmark.answer(examples, self._scorer, self._format, self._norm)
        keys = {name: examples[name] for name in self._benchmark.key}
        return pa.table({**keys, "prediction": answers["prediction"]})


def answer(files: list[str], options: dict[str, Any], actors: int, gpus: float) -> pa.Table:
    """Answer the examples of Parquet files on the cluster that Ray finds, or on this machine.

    Args:
        files: Parquet files of BBQ examples.
        options: Arguments of `Answerer`.
        actors: How many models work at once.
        gpus: GPUs of each actor.
    """
    import ray

    # Read first: actors that hold all CPUs would leave none to the readers they wait for.
    examples = ray.data.read_parquet(files).materialize()
    predictions = examples.map_batches(
        Answerer,
        fn_constructor_kwargs=options,
        batch_size=BATCH_SIZE,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_gpus=gpus,
    )
    return pa.concat_tables(ray.get(predictions.to_arrow_refs()))


def main() -> None:
    """Read the command line, answer, write the predictions."""
    parser = argparse.ArgumentParser(description="Answer BBQ with Ray Data.")
    parser.add_argument("pattern", help="Parquet files of BBQ examples, e.g. 'bbq_dataset/data/Age/*.parquet'")
    parser.add_argument("output", type=Path, help="Parquet file of predictions to write")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--format", help="prompt format (see `qabias list`)")
    parser.add_argument("--norm", default="none")
    parser.add_argument("--actors", type=int, default=1, help="models that work at once")
    parser.add_argument("--gpus", type=float, default=0, help="GPUs of each actor")
    arguments = parser.parse_args()
    files = sorted(glob.glob(arguments.pattern))
    if not files:
        parser.error(f"{arguments.pattern}: no such files")
    options = {"model": arguments.model, "prompt_format": arguments.format, "norm": arguments.norm}
    predictions = answer(files, options, arguments.actors, arguments.gpus)
    pq.write_table(predictions, arguments.output)


if __name__ == "__main__":
    main()
