"""Our scores of BBQ in other languages beside other implementations, on the same predictions.

lm-evaluation-harness scores EsBBQ by code of its authors: ours are equal. The script released with MBBQ never reads the
polarity of a question, so that a stereotype cancels out: ours does not. Both read the published files on their own.
"""

from __future__ import annotations

import ast
import csv
import random
from collections.abc import Callable
from typing import Any

import evaluate
import pytest

from qabias.benchmarks.base import make_origin
from qabias.benchmarks.registry import load_benchmark

from .conftest import ROOT

ESBBQ = ("langtech-bsc", "EsBBQ-CaBBQ", "data_es")
HARNESS = {
    "acc_ambig": ("accuracy_ambig", 1),
    "acc_disambig": ("accuracy_disambig", 1),
    "bias_score_ambig": ("bias_ambig", 1),
    "bias_score_disambig": ("accuracy_cost", -1),
}
"""Scores of the harness, and ours with their sign."""

MISLABELLED = {"PhysicalAppearance": 4}
"""Released rows whose `question_type` contradicts their own label, groups and polarity (template 10): the right answer
goes against the stereotype and the column says "pro-stereo". The harness reads the column, we the roles.
"""

N_WORDINGS = 9
"""Wordings of UNKNOWN that the harness offers beside the two persons."""


@pytest.fixture(scope="module")
def bbq() -> Any:
    return evaluate.load(str(ROOT / "metrics" / "bbq"))


@pytest.fixture(scope="module")
def harness() -> Any:
    pytest.importorskip("lm_eval", reason='lm-evaluation-harness is not installed: pip install ".[bench]"')
    from lm_eval.tasks.esbbq import utils

    return utils


def released(upstream: Any, category: str) -> list[dict[str, Any]]:
    """The rows of a category as the harness has them."""
    with upstream.joinpath(*ESBBQ, f"{category}.full.csv").open(encoding="utf-8", newline="") as file:
        return [
            {
                **row,
                "label": int(row["label"]),
                "stereotyped_groups": ast.literal_eval(row["stereotyped_groups"]),
                "answer_info": {f"ans{k}": ast.literal_eval(row[f"answer_info.ans{k}"]) for k in range(3)},
            }
            for row in csv.DictReader(file)
        ]


def by_category(upstream: Any) -> dict[str, list[dict[str, Any]]]:
    folder = upstream.joinpath(*ESBBQ)
    names = sorted(path.name.removesuffix(".full.csv") for path in folder.glob("*.full.csv"))
    if not names:
        pytest.skip(f"no released rows at {folder}")
    return {name: released(upstream, name) for name in names}


def stereotyped(doc: dict[str, Any]) -> int:
    """The answer that the stereotype gives: the group's member to a negative question, the other to another."""
    members = [doc["answer_info"][f"ans{k}"][-1].split(",")[-1].strip() in doc["stereotyped_groups"] for k in (0, 1)]
    return members.index(doc["question_polarity"] == "neg")


def question_type(doc: dict[str, Any]) -> str:
    """What the column `question_type` must say by the rest of the row."""
    if doc["context_condition"] == "ambig":
        return "n/a"
    return "pro-stereo" if doc["label"] == stereotyped(doc) else "anti-stereo"


FIXED: dict[str, Callable[[dict[str, Any]], int]] = {
    "stereotyped": stereotyped,
    "opposite": lambda doc: 1 - stereotyped(doc),
    "right": lambda doc: doc["label"],
    "unknown": lambda doc: 2,
    "first": lambda doc: 0,
    "stereotyped in doubt": lambda doc: stereotyped(doc) if doc["context_condition"] == "ambig" else doc["label"],
}


def likelihoods(docs: list[dict[str, Any]], responder: str | int) -> list[list[float]]:
    """What a model says of the eleven answers to every row; a number seeds a random one, with a lean of its own."""
    draw = random.Random(f"{responder}")
    n_answers = 2 + N_WORDINGS
    if isinstance(responder, str):
        found = []
        for doc in docs:
            chosen = FIXED[responder](doc)
            said = draw.randrange(2, n_answers) if chosen == 2 else chosen
            found.append([-1.0 if place == said else -2.0 - draw.random() for place in range(n_answers)])
        return found
    return [
        [
            -draw.random() * (1.0 if place < 2 else 1.0 + responder) + (0.1 * responder if place == lean else 0.0)
            for place in range(n_answers)
        ]
        for lean in map(stereotyped, docs)
    ]


def results_of(harness: Any, docs: list[dict[str, Any]], given: list[list[float]]) -> list[dict[str, Any]]:
    """What the harness makes of the likelihoods of every row."""
    return [harness.process_results(doc, [(one, False) for one in of]) for doc, of in zip(docs, given, strict=True)]


def of_harness(harness: Any, results: list[dict[str, Any]]) -> dict[str, float]:
    """The four scores of the harness for its results of rows."""
    return {name: float(getattr(harness, f"{name}_agg")([of[name] for of in results])) for name in HARNESS}


def in_their_names(scores: dict[str, Any]) -> dict[str, float]:
    """Our scores under the names and signs of the harness."""
    return {name: sign * scores[key] for name, (key, sign) in HARNESS.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "responders"),
    [
        pytest.param("released", [*FIXED, 1, 2, 3], marks=pytest.mark.slow),
        ("shuffled", ["stereotyped", "opposite", "right", 1]),  # of two categories
    ],
)
def test_our_scores_of_esbbq_are_those_of_the_harness(upstream, harness, bbq, order, responders):
    benchmark = load_benchmark("esbbq")
    origin = make_origin(benchmark, "release", 0, False, {"answers": order})
    docs_of = by_category(upstream)
    if order == "shuffled":
        docs_of = {name: docs_of[name] for name in ("PhysicalAppearance", "Religion")}
    ours = {name: benchmark.load(name, origin).to_pylist() for name in docs_of}
    wrong = {name: sum(doc["question_type"] != question_type(doc) for doc in docs_of[name]) for name in docs_of}
    assert {name: n for name, n in wrong.items() if n} == MISLABELLED
    docs_of = {name: [{**doc, "question_type": question_type(doc)} for doc in of] for name, of in docs_of.items()}
    docs, rows = ([row for name in docs_of for row in of[name]] for of in (docs_of, ours))
    assert len(docs) == len(rows) > 4_000
    biases = set()
    for responder in responders:
        given = likelihoods(docs, responder)
        chosen = [min(max(range(len(of)), key=of.__getitem__), 2) for of in given]
        predictions = []
        for row, doc, answer in zip(rows, docs, chosen, strict=True):
            texts = [row[f"ans{place}"] for place in range(3)]
            predictions.append(row["unknown_loc"] if answer == 2 else texts.index(doc[f"ans{answer}"]))
        result = bbq.compute(
            predictions=predictions, references=rows, by=["category"], confidence=None, allow_incomplete=True
        )
        results = results_of(harness, docs, given)
        expected = of_harness(harness, results)
        assert in_their_names(result) == pytest.approx(expected, abs=1e-12), responder
        biases.add(round(expected["bias_score_ambig"], 3))
        start = 0
        for name, of in docs_of.items():
            part = result["by"]["category"][name]
            expected = of_harness(harness, results[start : start + len(of)])
            assert in_their_names(part) == pytest.approx(expected, abs=1e-12), name
            start += len(of)
    assert {-1.0, 0.0, 1.0} < biases, "the responders are too much alike to tell"
