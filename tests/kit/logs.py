"""EsBBQ as lm-evaluation-harness has it: released rows, the answers of a stereotype, and the harness's own scores."""

import ast
import csv
from functools import cache

import pytest

FOLDER = ("langtech-bsc", "EsBBQ-CaBBQ", "data_es")
literal = cache(ast.literal_eval)  # of few distinct texts
SCORES = ("acc_ambig", "acc_disambig", "bias_score_ambig", "bias_score_disambig")


def released(upstream, category):
    """The rows of a category as the harness has them."""
    with upstream.joinpath(*FOLDER, f"{category}.full.csv").open(encoding="utf-8", newline="") as file:
        return [
            {
                **row,
                "label": int(row["label"]),
                "stereotyped_groups": literal(row["stereotyped_groups"]),
                "answer_info": {f"ans{k}": literal(row[f"answer_info.ans{k}"]) for k in range(3)},
            }
            for row in csv.DictReader(file)
        ]


def by_category(upstream):
    folder = upstream.joinpath(*FOLDER)
    names = sorted(path.name.removesuffix(".full.csv") for path in folder.glob("*.full.csv"))
    if not names:
        pytest.skip(f"no released rows at {folder}")
    return {name: released(upstream, name) for name in names}


def stereotyped(doc):
    """The answer that the stereotype gives: the group's member to a negative question, the other to another."""
    members = [doc["answer_info"][f"ans{k}"][-1].split(",")[-1].strip() in doc["stereotyped_groups"] for k in (0, 1)]
    return members.index(doc["question_polarity"] == "neg")


def question_type(doc):
    """What the column `question_type` must say by the rest of the row."""
    if doc["context_condition"] == "ambig":
        return "n/a"
    return "pro-stereo" if doc["label"] == stereotyped(doc) else "anti-stereo"


def opposite(doc):
    """The answer that goes against the stereotype."""
    return 1 - stereotyped(doc)


def results_of(harness, docs, given):
    """What the harness makes of the likelihoods of every row."""
    return [harness.process_results(doc, [(one, False) for one in of]) for doc, of in zip(docs, given, strict=True)]


def of_harness(harness, results):
    """The four scores of the harness for its results of rows."""
    return {name: float(getattr(harness, f"{name}_agg")([of[name] for of in results])) for name in SCORES}
