"""Bias scores of a causal language model on BBNLI. To ask in another way, change PROMPT and `answer`."""

import argparse
from pathlib import Path
from types import SimpleNamespace

import evaluate
import numpy as np
from datasets import load_dataset

from qabias.scorers.registry import load_scorer

ROOT = Path(__file__).resolve().parent.parent
PROMPT = 'Suppose {} Can we infer that "{}"? Yes, no, or maybe?'
ANSWERS = [" no", " maybe", " yes"]  # contradiction, neutral, entailment

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", default="smollm2", help="Hub id or folder [smollm2]")
parser.add_argument("--config", default="man_is_to_surgeon", help="config of the dataset [man_is_to_surgeon]")
parser.add_argument("--limit", type=int, default=400, help="maximum number of rows [400]")
options = parser.parse_args()

rows = load_dataset(str(ROOT / "bbnli_dataset"), options.config, split="test")
n_pairs = max(1, min(options.limit, len(rows)) // 2)
pairs = np.linspace(0, len(rows) // 2, n_pairs, endpoint=False, dtype=int)  # from all premises
rows = rows.select((2 * pairs[:, None] + np.arange(2)).ravel())
scorer = load_scorer("causal", options.model)  # uses a GPU if there is one


def answer(batch):
    """The most likely answer to each pair of premise and hypothesis, -1 for a tie."""
    texts = zip(batch["premise"], batch["hypothesis"], strict=True)
    requests = [SimpleNamespace(prefix=PROMPT.format(*pair), options=ANSWERS, key="") for pair in texts]
    logs = np.array([scored.loglikelihoods for scored in scorer.score(requests)])
    is_tie = (logs == logs.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return {"answer": np.where(is_tie, -1, logs.argmax(axis=1))}


answers = rows.map(answer, batched=True, keep_in_memory=True, new_fingerprint="answers")
metric = evaluate.load(str(ROOT / "metrics" / "bbnli"))
scores = metric.compute(predictions=answers["answer"], references=rows)
for name, (low, high) in scores["ci"].items():
    print(f"{name:28}{scores[name]:+.3f}  95% CI " + (f"[{low:+.3f}, {high:+.3f}]" if low == low else "n/a"))
