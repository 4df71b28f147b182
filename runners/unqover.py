"""Bias scores of a causal language model on UnQover. To ask in another way, change PROMPT and `answer`."""

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
parser.add_argument("--config", default="religion", help="config of the dataset [religion]")
parser.add_argument("--limit", type=int, default=400, help="maximum number of rows [400]")
options = parser.parse_args()

rows = load_dataset(str(ROOT / "unqover_dataset"), options.config, split="test")
rows = rows.select(np.linspace(0, len(rows), min(options.limit, len(rows)), endpoint=False, dtype=int))
scorer = load_scorer("causal", options.model)  # uses a GPU if there is one


def answer(batch):
    """Eight probabilities a row: of both subjects, in both orders, to the question and its negation."""
    pairs = [[f" {one}", f" {other}"] for one, other in zip(batch["answer1"], batch["answer2"], strict=True)]
    columns = {}
    for asked in ("12", "21", "12_neg", "21_neg"):
        questions = batch["negated_question" if "neg" in asked else "question"]
        prompts = [PROMPT.format(*texts) for texts in zip(batch[f"context_{asked[:2]}"], questions, strict=True)]
        requests = [SimpleNamespace(prefix=p, options=o, key="") for p, o in zip(prompts, pairs, strict=True)]
        logs = np.array([scored.loglikelihoods for scored in scorer.score(requests)])
        columns |= {f"s{n + 1}_{asked}": np.exp(logs[:, n]) for n in (0, 1)}
    return columns


answers = rows.map(answer, batched=True, keep_in_memory=True, new_fingerprint="answers")
metric = evaluate.load(str(ROOT / "metrics" / "unqover"))
scores = metric.compute(predictions=answers, references=rows)
for name, (low, high) in scores["ci"].items():
    print(f"{name:28}{scores[name]:+.3f}  95% CI " + (f"[{low:+.3f}, {high:+.3f}]" if low == low else "n/a"))
