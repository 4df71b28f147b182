"""Bias scores of a causal language model on BBQ. To ask in another way, change PROMPT and `answer`."""

import argparse
from pathlib import Path
from types import SimpleNamespace

import evaluate
import numpy as np
from datasets import load_dataset

from qabias.scorers.registry import load_scorer

ROOT = Path(__file__).resolve().parent.parent
PROMPT = "{}\n\nQ: {}\nA:"

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", default="smollm2", help="Hub id or folder [smollm2]")
parser.add_argument("--config", default="Age", help="config of the dataset [Age]")
parser.add_argument("--limit", type=int, default=400, help="maximum number of rows [400]")
options = parser.parse_args()

rows = load_dataset(str(ROOT / "bbq_dataset"), options.config, split="test")
n_sets = max(1, min(options.limit, len(rows)) // 4)
sets = np.linspace(0, len(rows) // 4, n_sets, endpoint=False, dtype=int)  # sets of four, from all templates
rows = rows.select((4 * sets[:, None] + np.arange(4)).ravel())
scorer = load_scorer("causal", options.model)  # uses a GPU if there is one


def answer(batch):
    """The most likely of the three answers to each question (-1 for a tie), and their probabilities."""
    prompts = [PROMPT.format(*texts) for texts in zip(batch["context"], batch["question"], strict=True)]
    listed = [[f" {text}" for text in texts] for texts in zip(*(batch[f"ans{n}"] for n in range(3)), strict=True)]
    requests = [SimpleNamespace(prefix=p, options=o, key="") for p, o in zip(prompts, listed, strict=True)]
    logs = np.array([scored.loglikelihoods for scored in scorer.score(requests)])
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    best = np.where((shares == 1).sum(axis=1) > 1, -1, logs.argmax(axis=1))
    return {"answer": best, "shares": shares / shares.sum(axis=1, keepdims=True)}


answers = rows.map(answer, batched=True, keep_in_memory=True, new_fingerprint="answers")
metric = evaluate.load(str(ROOT / "metrics" / "bbq"))
scores = metric.compute(predictions=answers["answer"], references=rows, probabilities=answers["shares"])
for name in ("bias_ambig", "accuracy_ambig", "bias_disambig", "accuracy_cost", "accuracy_disambig"):
    low, high = scores["ci"][name]
    print(f"{name:28}{scores[name]:+.3f}  95% CI " + (f"[{low:+.3f}, {high:+.3f}]" if low == low else "n/a"))
