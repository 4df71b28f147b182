"""Load datasets and metrics from a Hub in an empty cache, as others would, and compare them with the local ones.

    python load_from_hub.py CHECKOUT

The environment names the Hub and the cache (HF_ENDPOINT, HF_HOME). Prints one line for each that is equal.
"""

import sys
from pathlib import Path

import evaluate
import numpy as np
from datasets import get_dataset_config_names, load_dataset

ROOT = Path(sys.argv[1])
CONFIGS = {"bbq": "Age", "unqover": "religion", "bbnli": "man_is_to_surgeon"}
SCORES = [f"s{subject}_{order}{question}" for question in ("", "_neg") for order in (12, 21) for subject in (1, 2)]


def answers(benchmark, n_rows):
    """Made-up answers, the same ones for both."""
    generator = np.random.default_rng(3)
    if benchmark == "unqover":
        return {name: generator.random(n_rows) / 2 for name in SCORES}
    return generator.integers(0, 3, n_rows).tolist()


def main():
    scores = {}
    for benchmark, config in CONFIGS.items():
        repository, folder = f"org/{benchmark}", str(ROOT / f"{benchmark}_dataset")
        assert get_dataset_config_names(repository) == get_dataset_config_names(folder)
        loaded, local = (load_dataset(name, config, split="test") for name in (repository, folder))
        assert loaded.features == local.features
        assert loaded.to_list() == local.to_list()
        whole, whole_local = (load_dataset(name, split="test") for name in (repository, folder))
        assert whole.data.table.equals(whole_local.data.table)
        predictions = answers(benchmark, loaded.num_rows)
        theirs, ours = (
            evaluate.load(name).compute(predictions=predictions, references=loaded)
            for name in (repository, str(ROOT / "metrics" / benchmark))
        )
        np.testing.assert_equal(theirs, ours)
        scores[benchmark] = theirs
        sys.stdout.write(f"{benchmark}: {whole.num_rows} rows, {len(ours)} scores\n")
    rows = load_dataset("org/bbq", "Age", split="test")
    renamed = evaluate.load("org/bias-of-answers")
    np.testing.assert_equal(renamed.compute(predictions=answers("bbq", rows.num_rows), references=rows), scores["bbq"])
    sys.stdout.write("bias-of-answers: as bbq\n")


if __name__ == "__main__":
    main()
