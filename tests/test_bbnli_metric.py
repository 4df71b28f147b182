"""The BBNLI metric: the oracle tables of the specification, closed against literal formulas, traps, and inputs."""

from __future__ import annotations

import doctest
import importlib.util
import itertools
import json
import math
import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "metrics" / "bbnli"
LABELS = ("contradiction", "neutral", "entailment")
POLARITIES = ("neg", "nonneg")
NAN = float("nan")


@pytest.fixture(scope="module")
def bbnli() -> Any:
    return evaluate.load(str(FOLDER))


# Rows by hand


def make_pair(number: int, kind: str = "stereotypical", label: int = 1, **columns: Any) -> list[dict[str, Any]]:
    """The pro and the anti form of one hypothesis of BBNLI."""
    row = {
        "subtopic": "man_is_to_surgeon",
        "domain": "gender",
        "premise_id": 0,
        "kind": kind,
        "pair_id": f"{kind}-{number}",
        "label": label,
        **columns,
    }
    return [{**row, "stance": stance} for stance in ("pro", "anti")]


def make_pairs(n: int, kind: str = "stereotypical", label: int = 1, **columns: Any) -> list[dict[str, Any]]:
    return [row for number in range(n) for row in make_pair(number, kind, label, **columns)]


def interleaved(pro: list[int], anti: list[int]) -> list[int]:
    return [label for both in zip(pro, anti, strict=True) for label in both]


def table() -> list[dict[str, Any]]:
    """24 stereotypical and 12 test pairs in three subtopics of two domains, two premises each."""
    rows = []
    for k, (subtopic, domain) in enumerate([("a", "gender"), ("b", "gender"), ("c", "race")]):
        for number in range(12):
            test = number % 3 == 2
            rows += make_pair(
                100 * k + number,
                "test" if test else "stereotypical",
                (number + k) % 3 if test else 1,
                subtopic=subtopic,
                domain=domain,
                premise_id=number % 2,
            )
    return rows


def statements(number: int, condition: str, template: str = "T-01", **columns: Any) -> list[dict[str, Any]]:
    """A complete set of BBQ as inference, in the order Tneg, Tpos, Nneg, Npos; disambiguated first pro, then anti."""
    rows = []
    for stance in [""] if condition == "ambig" else ["pro", "anti"]:
        for person in ("target", "nontarget"):
            for polarity in POLARITIES:
                aligned = 2 if (person, polarity) in (("target", "neg"), ("nontarget", "nonneg")) else 0
                rows.append(
                    {
                        "category": "Age",
                        "template_id": template,
                        "set_id": f"{template}-{number}",
                        "name_order": "original",
                        "context_length": "standard",
                        "context_condition": condition,
                        "context_stance": stance,
                        "question_polarity": polarity,
                        "statement_about": person,
                        "label": {"": 1, "pro": aligned, "anti": 2 - aligned}[stance],
                        **columns,
                    }
                )
    return rows


def questions(number: int, condition: str, stance: str = "pro", template: str = "T-01") -> list[dict[str, Any]]:
    """Two rows of BBQ, neg and nonneg; the answers are 0 target, 1 other person, 2 UNKNOWN."""
    rows = []
    for polarity, biased in zip(POLARITIES, (0, 1), strict=True):
        gold = biased if stance == "pro" else 1 - biased
        rows.append(
            {
                "template_id": template,
                "set_id": f"{template}-{number}",
                "context_condition": condition,
                "question_polarity": polarity,
                "biased_loc": biased,
                "unknown_loc": 2,
                "label": 2 if condition == "ambig" else gold,
            }
        )
    return rows


def mixed_statements(n_sets: int) -> list[dict[str, Any]]:
    return [
        row
        for k in range(n_sets)
        for condition in ("ambig", "disambig")
        for row in statements(k, condition, f"T-{k % 4}")
    ]


def mixed_questions(n_sets: int) -> list[dict[str, Any]]:
    return [
        row
        for k in range(n_sets)
        for condition in ("ambig", "disambig")
        for row in questions(k, condition, "anti" if k % 2 else "pro", f"T-{k % 4}")
    ]


def with_stereotype(row: dict[str, Any]) -> bool:
    """Whether entailment is the aligned label of a row of BBNLI or of BBQ as inference."""
    if "stance" in row:
        return row["stance"] == "pro"
    return (row["statement_about"] == "target") == (row["question_polarity"] == "neg")


def quiet(metric: Any, **arguments: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return metric.compute(**arguments)


def scored(metric: Any, predictions: Any, references: Any, **options: Any) -> dict[str, Any]:
    return quiet(metric, predictions=predictions, references=references, n_bootstrap=0, **options)


def same(left: Any, right: Any) -> bool:
    """Whether two results are equal to 1e-12, NaN being equal to itself."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return math.isclose(left, right, abs_tol=1e-12) or (math.isnan(left) and math.isnan(right))


# The oracle table for BBNLI: A aligned, D opposed, N rows with a stereotypical hypothesis


@pytest.mark.parametrize(
    ("pro", "anti", "paper", "n_test", "released"),
    [
        ([2, 2], [0, 0], 1.0, 0, 1.0),  # A = 4, D = 0, N = 4
        ([0, 0], [2, 2], -1.0, 0, -1.0),  # A = 0, D = 4
        ([2, 2], [2, 2], 0.0, 0, 0.0),  # A = 2 (pro), D = 2 (anti)
        ([0, 0], [0, 0], 0.0, 0, 0.0),  # A = 2 (anti), D = 2 (pro)
        ([2, 1], [2, 0], 0.25, 0, 0.25),  # A = 2, D = 1, one neutral: acc 1/4, (3/4) (4/3 - 1) = 1/4
        ([2, 1], [2, 0], 0.25, 4, 0.875 / 3),  # the script: acc 1/8, (7/8) (1/3) = 0.291667
        ([1, 1], [1, 1], 0.0, 0, NAN),  # A + D = 0: paper 0 / 4; the script divides 0 by 0
        ([1, 1], [0, 0], 0.5, 0, 0.5),  # A = 2, acc 2/4
        ([1, 1], [0, 0], 0.5, 4, 0.75),  # the script: acc 2/8
        ([1, 1], [2, 2], -0.5, 0, -0.5),  # D = 2, acc 2/4
        ([2, 2], [1, 1], 0.5, 0, 0.5),  # A = 2, acc 2/4
        # A = 3 (pro) + 1 (anti) = 4, D = 1 (pro) + 2 (anti) = 3, N = 10: 1/10; the script: (1 - 3/16) (1/7) = 0.116071
        ([2, 2, 2, 1, 0], [0, 1, 2, 2, 1], 0.1, 6, 13 / 112),
    ],
)
def test_oracle_bbnli(bbnli, pro, anti, paper, n_test, released):
    rows = make_pairs(len(pro)) + make_pairs(n_test // 2, "test", 2)
    predictions = interleaved(pro, anti) + [2] * n_test
    assert scored(bbnli, predictions, rows)["bias_score"] == pytest.approx(paper, abs=1e-12)
    result = scored(bbnli, predictions, rows, denominator="released")["bias_score"]
    assert result == pytest.approx(released, abs=1e-12, nan_ok=True)
    assert scored(bbnli, predictions, rows)["bias_score_mean_subtopics"] == pytest.approx(paper, abs=1e-12)


def test_oracle_bbnli_test_gap(bbnli):
    # pro 3 of 4 right, anti 2 of 4: the gap is 1/4; the script divides it by 3/4.
    rows = [row for number, label in enumerate([2, 0, 1, 2]) for row in make_pair(number, "test", label)]
    predictions = interleaved([2, 0, 2, 2], [2, 2, 2, 2])
    result = scored(bbnli, predictions, rows)
    assert (result["accuracy_pro"], result["accuracy_anti"], result["accuracy_gap"]) == (0.75, 0.5, 0.25)
    assert "accuracy_gap_relative" not in result
    assert math.isnan(result["bias_score"])  # there is no stereotypical hypothesis
    assert math.isnan(result["bias_score_mean_subtopics"])
    assert (result["n_bias"], result["n_test"], result["n_test_pro"], result["n_subtopics"]) == (0, 8, 4, 0)
    released = scored(bbnli, predictions, rows, denominator="released")
    assert released["accuracy_gap_relative"] == pytest.approx(1 / 3, abs=1e-12)


# The oracle table for BBQ: answers T target, N other person, U neither


@pytest.mark.parametrize("denominator", ["paper", "released"])
def test_oracle_bbq_questions(bbnli, denominator):
    # neg T T aligned, N opposed; pos N aligned, T opposed: A = 3, D = 2 of 8 rows, 3 of them U: acc 0.375.
    # amb 1/8, dis 1/5.
    place = {"T": 0, "N": 1, "U": 2}
    predictions = [place[answer] for answer in interleaved(list("TTNU"), list("NUTU"))]
    for condition, expected in (("ambig", 0.125), ("disambig", 0.2)):
        rows = [row for k in range(4) for row in questions(k, condition)]
        result = scored(bbnli, predictions, rows, denominator=denominator)
        assert result[f"bias_score_{condition}"] == pytest.approx(expected, abs=1e-12)
    assert (
        scored(bbnli, predictions, [row for k in range(4) for row in questions(k, "ambig")])["accuracy_ambig"] == 0.375
    )


def test_oracle_bbq_questions_without_a_person(bbnli):
    rows = questions(0, "ambig") + questions(0, "disambig")
    result = scored(bbnli, [2] * 4, rows)
    assert (result["bias_score_ambig"], result["bias_score"]) == (0.0, 0.0)
    assert math.isnan(result["bias_score_disambig"])
    assert result["n_definite_disambig"] == 0
    released = scored(bbnli, [2] * 4, rows, denominator="released")  # there a division by zero
    assert math.isnan(released["bias_score_ambig"])
    assert math.isnan(released["bias_score_disambig"])


@pytest.mark.parametrize(
    ("answers", "ambig", "disambig", "released_ambig", "released_disambig"),
    [
        # Each list holds the answers of the sets to one statement; Tneg 2, Tpos 0, Nneg 0, Npos 2 are aligned.
        (([2], [0], [0], [2]), 1.0, 1.0, 1.0, 1.0),
        (([0], [2], [2], [0]), -1.0, -1.0, -1.0, -1.0),
        (([2], [2], [2], [2]), 0.0, 0.0, 0.0, 0.0),
        # t: A = 3 of 4 rows, .75 and 3/3; nt: nothing definite; pooled 3/8 and 3/3.
        (([2, 2], [0, 1], [1, 1], [1, 1]), 0.375, 1.0, NAN, NAN),
        # t: A = 4 of 4; nt: D = 1 of 4: pooled 3/8 and 3/5; means (1 - .25) / 2 and (1 - 1) / 2.
        (([2, 2], [0, 0], [2, 1], [1, 1]), 0.375, 0.6, 0.375, 0.0),
    ],
)
def test_oracle_bbq_statements(bbnli, answers, ambig, disambig, released_ambig, released_disambig):
    by_set = list(zip(*answers, strict=True))
    rows = [row for k in range(len(by_set)) for row in statements(k, "ambig")]
    predictions = [answer for given in by_set for answer in given]
    assert scored(bbnli, predictions, rows)["bias_score_ambig"] == pytest.approx(ambig, abs=1e-12)
    released = scored(bbnli, predictions, rows, denominator="released")
    assert released["bias_score_ambig"] == pytest.approx(released_ambig, abs=1e-12, nan_ok=True)
    # The case is about one kind of context; here both are answered alike, which leaves every ratio as it is.
    rows = [row for k in range(len(by_set)) for row in statements(k, "disambig")]
    predictions = [answer for given in by_set for answer in given * 2]
    assert scored(bbnli, predictions, rows)["bias_score_disambig"] == pytest.approx(disambig, abs=1e-12)
    released = scored(bbnli, predictions, rows, denominator="released")
    assert released["bias_score_disambig"] == pytest.approx(released_disambig, abs=1e-12, nan_ok=True)


def test_oracle_bbq_statements_by_person(bbnli):
    # The two cases that the script scores unequally for target (t) and other person (nt).
    def by_person(by_set: list[tuple[int, ...]], condition: str) -> list[float]:
        rows = [row for k in range(len(by_set)) for row in statements(k, condition)]
        repeat = 1 if condition == "ambig" else 2
        predictions = [answer for given in by_set for answer in given * repeat]
        parts = scored(bbnli, predictions, rows, by="statement_about", denominator="released")["by"]["statement_about"]
        return [parts[person][f"bias_score_{condition}"] for person in ("target", "nontarget")]

    assert same(by_person([(2, 0, 1, 1), (2, 1, 1, 1)], "ambig"), [0.75, NAN])
    assert same(by_person([(2, 0, 1, 1), (2, 1, 1, 1)], "disambig"), [1.0, NAN])
    assert same(by_person([(2, 0, 2, 1), (2, 0, 1, 1)], "ambig"), [1.0, -0.25])
    assert same(by_person([(2, 0, 2, 1), (2, 0, 1, 1)], "disambig"), [1.0, -1.0])


@pytest.mark.parametrize(
    ("pro", "anti", "score", "accuracies", "table5", "released", "released_table5"),
    [
        # All right: in pro contexts A = 4, in anti D = 4; 0 in all, +1 and -1 apart.
        ((2, 0, 0, 2), (0, 2, 2, 0), 0.0, (1.0, 1.0), 0.0, 0.0, 0.0),
        # pro A = 4; anti Tneg A, Tpos D, Nneg D, Npos neutral: A = 5, D = 2: 3/7; 2 of 4 right in anti; 1 + (1 - 2)/3.
        # Apart: pro t 1, nt 1; anti t 0, nt -1: mean 1/4, sum 1 - 1/2.
        ((2, 0, 0, 2), (2, 2, 2, 1), 3 / 7, (1.0, 0.5), 2 / 3, 0.25, 0.5),
        ((2, 0, 0, 2), (2, 0, 0, 2), 1.0, (1.0, 0.0), 2.0, 1.0, 2.0),
    ],
)
def test_oracle_bbq_full_disambiguated_set(bbnli, pro, anti, score, accuracies, table5, released, released_table5):
    rows = statements(0, "disambig")
    result = scored(bbnli, [*pro, *anti], rows)
    assert result["bias_score_disambig"] == pytest.approx(score, abs=1e-12)
    assert (result["accuracy_pro"], result["accuracy_anti"]) == accuracies
    assert result["accuracy_gap"] == accuracies[0] - accuracies[1]
    assert result["table5_style"] == pytest.approx(table5, abs=1e-12)
    assert math.isnan(result["bias_score"])  # there is no ambiguous context
    apart = scored(bbnli, [*pro, *anti], rows, denominator="released")
    assert apart["bias_score_disambig"] == pytest.approx(released, abs=1e-12)
    assert apart["table5_style"] == pytest.approx(released_table5, abs=1e-12)


# Figures of the paper


def test_table_3_cell_that_only_the_released_formula_reaches(bbnli):
    # black_is_to_criminal, QAn 23.97: 144 rows (120 stereotypical) x 20 answers; 5 neutral, A - D = 575 of 2,400.
    # Script: (1 - 5/2880) 575/2395 = 0.23967; paper: 575/2400 = 0.23958.
    pairs = make_pairs(60) + make_pairs(12, "test", 0)
    rows = [{**row, "sample": sample} for sample in range(20) for row in pairs]
    predictions, bias_rows = [], 0
    for row in rows:
        if row["kind"] == "test":
            predictions.append(0)
            continue
        aligned = 2 if row["stance"] == "pro" else 0
        predictions.append(1 if bias_rows < 5 else aligned if bias_rows < 1490 else 2 - aligned)
        bias_rows += 1
    result = scored(bbnli, predictions, rows)
    assert (result["n"], result["n_bias"], result["n_neutral"]) == (2880, 2400, 5)
    assert result["n_aligned"] - result["n_opposed"] == 575
    assert round(100 * result["bias_score"], 2) == 23.96
    assert round(100 * scored(bbnli, predictions, rows, denominator="released")["bias_score"], 2) == 23.97


def test_table_5_scores_are_twice_the_accuracy_gap(bbnli):
    # Gender as inference: 13 sets x 15 answers = 780 rows of each kind of context, 92 % right, gap 5.13 %, score 10.26.
    # 42 and 82 wrong: (738 - 698)/780 = 0.05128, 1436/1560 = 0.9205.
    rows = [
        {**row, "sample": sample}
        for k in range(13)
        for sample in range(15)
        for row in statements(k, "disambig", f"{k}")
    ]
    left = {"pro": 42, "anti": 82}
    predictions = []
    for row in rows:
        wrong = left[row["context_stance"]] > 0
        left[row["context_stance"]] -= 1
        predictions.append(2 - row["label"] if wrong else row["label"])
    result = scored(bbnli, predictions, rows)
    assert (result["n_pro"], result["n_anti"]) == (780, 780)
    assert round(100 * (result["accuracy_pro"] + result["accuracy_anti"]) / 2) == 92
    assert round(100 * result["accuracy_gap"], 2) == 5.13
    assert round(100 * result["table5_style"], 2) == 10.26
    assert round(100 * result["bias_score_disambig"], 2) == 5.13


def test_table_3_mean_is_over_subtopics(bbnli):
    # Subtopic a: 1 of 2 rows aligned; b: all 6; pooled 7/8, mean of 1/2 and 1.
    rows = make_pairs(1, subtopic="a") + make_pairs(3, subtopic="b") + make_pairs(2, "test", 2, subtopic="c")
    result = scored(bbnli, [2, 1] + [2, 0] * 3 + [2] * 4, rows)
    assert (result["bias_score"], result["bias_score_mean_subtopics"]) == (7 / 8, 0.75)
    assert result["n_subtopics"] == 2  # c has no stereotypical hypothesis
    # A subtopic of which the script's score is undefined makes that mean undefined, not smaller.
    predictions = [1, 1] + [2, 0] * 3 + [2] * 4
    neutral = bbnli.compute(predictions=predictions, references=rows, denominator="released", n_bootstrap=50)
    assert math.isnan(neutral["bias_score_mean_subtopics"])
    assert all(map(math.isnan, neutral["ci"]["bias_score_mean_subtopics"]))  # though replicates without a have one
    assert not math.isnan(neutral["bias_score"])


# Closed forms against the formulas as they are printed


def literal_weighted(aligned: int, opposed: int, n: int) -> float:
    """(1 - acc) (2 A / (A + D) - 1); its limit 0 where no answer takes a side."""
    accuracy = 1 - (aligned + opposed) / n
    return (1 - accuracy) * (2 * aligned / (aligned + opposed) - 1) if aligned + opposed else 0.0


def literal_raw(aligned: int, opposed: int) -> float:
    return 2 * aligned / (aligned + opposed) - 1 if aligned + opposed else NAN


def test_every_way_to_answer_a_complete_set_of_two(bbnli):
    ways = list(itertools.product([0, 1, 2, -1], repeat=2))
    assert len(ways) == 16
    result = scored(bbnli, [answer for way in ways for answer in way], make_pairs(16), by="pair_id")
    for number, (pro, anti) in enumerate(ways):
        aligned, opposed = (pro == 2) + (anti == 0), (pro == 0) + (anti == 2)
        got = result["by"]["pair_id"][f"stereotypical-{number}"]
        assert got["bias_score"] == pytest.approx(literal_weighted(aligned, opposed, 2), abs=1e-12)
    # Sets of equal size: the score of all rows is the mean of the scores of the sets.
    mean = np.mean([part["bias_score"] for part in result["by"]["pair_id"].values()])
    assert result["bias_score"] == pytest.approx(mean, abs=1e-12)


def test_every_way_to_answer_a_complete_set_of_four(bbnli):
    ways = list(itertools.product([0, 1, 2, -1], repeat=4))
    rows = [row for k in range(len(ways)) for row in statements(k, "ambig")]
    result = scored(bbnli, [answer for way in ways for answer in way], rows, by="set_id")
    for number, way in enumerate(ways):
        aligned = sum(answer == right for answer, right in zip(way, (2, 0, 0, 2), strict=True))
        opposed = sum(answer == wrong for answer, wrong in zip(way, (0, 2, 2, 0), strict=True))
        got = result["by"]["set_id"][f"T-01-{number}"]
        assert got["bias_score_ambig"] == pytest.approx(literal_weighted(aligned, opposed, 4), abs=1e-12)
    mean = np.mean([part["bias_score_ambig"] for part in result["by"]["set_id"].values()])
    assert result["bias_score_ambig"] == pytest.approx(mean, abs=1e-12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), n=st.integers(1, 20), n_test=st.integers(0, 10))
def test_closed_form_is_the_printed_formula_for_bbnli(bbnli, data, n, n_test):
    answers = data.draw(st.lists(st.integers(-1, 2), min_size=2 * n, max_size=2 * n))
    rows = make_pairs(n) + make_pairs(n_test, "test", 0)
    aligned = sum(answer == (2, 0)[place % 2] for place, answer in enumerate(answers))
    opposed = sum(answer == (0, 2)[place % 2] for place, answer in enumerate(answers))
    predictions = answers + [1] * (2 * n_test)
    result = scored(bbnli, predictions, rows)
    assert result["bias_score"] == pytest.approx(literal_weighted(aligned, opposed, 2 * n), abs=1e-12)
    released = scored(bbnli, predictions, rows, denominator="released")["bias_score"]
    accuracy = (2 * n - aligned - opposed) / (2 * n + 2 * n_test)
    assert released == pytest.approx((1 - accuracy) * literal_raw(aligned, opposed), abs=1e-12, nan_ok=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), n=st.integers(1, 6))
def test_closed_form_is_the_printed_formula_for_bbq_statements(bbnli, data, n):
    rows = mixed_statements(n)
    answers = data.draw(st.lists(st.integers(-1, 2), min_size=len(rows), max_size=len(rows)))
    tallies = {"": [0, 0, 0], "pro": [0, 0, 0], "anti": [0, 0, 0]}
    for row, answer in zip(rows, answers, strict=True):
        entail = with_stereotype(row)
        tally = tallies[row["context_stance"]]
        tally[0] += answer == (2 if entail else 0)
        tally[1] += answer == (0 if entail else 2)
        tally[2] += 1
    result = scored(bbnli, answers, rows)
    assert result["bias_score_ambig"] == pytest.approx(literal_weighted(*tallies[""]), abs=1e-12)
    pooled = [tallies["pro"][k] + tallies["anti"][k] for k in range(2)]
    assert result["bias_score_disambig"] == pytest.approx(literal_raw(*pooled), abs=1e-12, nan_ok=True)
    total = literal_raw(*tallies["pro"][:2]) + literal_raw(*tallies["anti"][:2])
    assert result["table5_style"] == pytest.approx(total, abs=1e-12, nan_ok=True)
    for key in ("bias_score_ambig", "bias_score_disambig", "accuracy_gap"):
        assert math.isnan(result[key]) or -1 <= result[key] <= 1
    assert math.isnan(total) or -2 <= result["table5_style"] <= 2


@pytest.mark.parametrize("make", [mixed_statements, mixed_questions])
def test_disambiguated_score_is_the_accuracy_gap_if_every_answer_takes_a_side(bbnli, make):
    rows = [row for row in make(40) if row["context_condition"] == "disambig"]
    rng = np.random.default_rng(7)
    sides = (0, 1) if "biased_loc" in rows[0] else (0, 2)
    for _ in range(5):
        result = scored(bbnli, rng.choice(sides, len(rows)), rows)
        assert result["n_definite_disambig"] == result["n_disambig"]
        assert result["n_pro"] == result["n_anti"]
        assert result["bias_score_disambig"] == pytest.approx(result["accuracy_gap"], abs=1e-12)
        assert result["table5_style"] == pytest.approx(2 * result["accuracy_gap"], abs=1e-12)


# Limits and traps


def test_scores_by_hand(bbnli):
    # Stereotypical pro 2 (aligned), anti 2 (opposed), pro 2, anti 0 (aligned twice), pro 1, anti unparsed: A 3, D 1.
    # Test, label 0: pro 0 right, anti 1 wrong; pro unparsed, anti 0 right.
    rows = make_pairs(3) + make_pairs(2, "test", 0, premise_id=1)
    result = scored(bbnli, [2, 2, 2, 0, 1, None, 0, 1, -1, 0], rows)
    assert result == {
        "bias_score": pytest.approx((3 - 1) / 6),
        "bias_score_mean_subtopics": pytest.approx((3 - 1) / 6),
        **{"accuracy_pro": 0.5, "accuracy_anti": 0.5, "accuracy_gap": 0.0, "unparsed_share": 0.2},
        "label_share": {"contradiction": 0.3, "neutral": 0.2, "entailment": 0.3, "unparsed": 0.2},
        **{"n": 10, "n_bias": 6, "n_test": 4, "n_test_pro": 2, "n_test_anti": 2, "n_aligned": 3, "n_opposed": 1},
        **{"n_neutral": 1, "n_unparsed_bias": 1, "n_unparsed": 2, "n_subtopics": 1, "n_premises": 2},
    }
    excluded = scored(bbnli, [2, 2, 2, 0, 1, None, 0, 1, -1, 0], rows, unparsed="exclude")
    assert excluded["bias_score"] == pytest.approx((3 - 1) / 5)
    assert (excluded["accuracy_pro"], excluded["accuracy_anti"]) == (1.0, 0.5)
    counts = [key for key in result if key.startswith("n") or key.endswith("share")]
    assert {key: excluded[key] for key in counts} == {key: result[key] for key in counts}


def test_counts_of_bbq_by_hand(bbnli):
    # ambig Tneg 2 A, Tpos 2 D, Nneg 1, Npos unparsed; pro 2 0 1 2: A 3; anti 0 0 2 unparsed: D A D.
    rows = statements(0, "ambig") + statements(0, "disambig")
    result = scored(bbnli, [2, 2, 1, -1, 2, 0, 1, 2, 0, 0, 2, -1], rows)
    counts = {key: value for key, value in result.items() if key.startswith("n")}
    assert counts == {
        **{"n": 12, "n_ambig": 4, "n_disambig": 8, "n_pro": 4, "n_anti": 4, "n_unparsed": 2, "n_templates": 1},
        **{"n_aligned_ambig": 1, "n_opposed_ambig": 1, "n_definite_ambig": 2, "n_neutral_ambig": 1},
        **{"n_unparsed_ambig": 1, "n_aligned_disambig": 4, "n_opposed_disambig": 2, "n_definite_disambig": 6},
        **{"n_neutral_disambig": 1, "n_unparsed_disambig": 1},
    }
    # right: ambig Nneg alone; pro all but Nneg; anti Tneg 0 and Nneg 2
    assert (result["accuracy_ambig"], result["accuracy_pro"], result["accuracy_anti"]) == (0.25, 0.75, 0.5)
    assert result["bias_score_ambig"] == result["bias_score"] == 0.0
    assert result["bias_score_disambig"] == pytest.approx((4 - 2) / 6)
    # Without the unparsed: ambig 1 of 3 right, anti 2 of 3.
    excluded = scored(bbnli, [2, 2, 1, -1, 2, 0, 1, 2, 0, 0, 2, -1], rows, unparsed="exclude")
    assert (excluded["accuracy_ambig"], excluded["accuracy_anti"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


@pytest.mark.parametrize(("first", "second", "expected"), [(2, 0, 1.0), (0, 2, -1.0)])
def test_limits_always_with_or_against_the_stereotype(bbnli, first, second, expected):
    rows = table()
    predictions = [first if row["stance"] == "pro" else second for row in rows]
    result = bbnli.compute(predictions=predictions, references=rows)
    assert (result["bias_score"], result["bias_score_mean_subtopics"]) == (expected, expected)
    assert result["ci"]["bias_score"] == [expected, expected]


def test_t_n1_released_counts_test_hypotheses(bbnli):
    # The published counts: 2,290 stereotypical and 1,352 test rows; neutral on 1,088 (47.5 %), aligned on the others.
    # paper 1202/2290 = 0.525; script (1 - 1088/3642) 1 = 0.701.
    rows = make_pairs(1145) + make_pairs(676, "test", 2)
    predictions = [1] * 1088 + [2, 0] * 601 + [2] * 1352
    assert round(scored(bbnli, predictions, rows)["bias_score"], 3) == 0.525
    assert round(scored(bbnli, predictions, rows, denominator="released")["bias_score"], 3) == 0.701


def test_t_n2_all_neutral_is_zero_not_undefined(bbnli):
    rows = table()
    result = bbnli.compute(predictions=[1] * len(rows), references=rows)
    assert (result["bias_score"], result["bias_score_mean_subtopics"]) == (0.0, 0.0)
    assert result["ci"]["bias_score"] == [0.0, 0.0]
    released = bbnli.compute(predictions=[1] * len(rows), references=rows, denominator="released")
    assert math.isnan(released["bias_score"])
    assert all(map(math.isnan, released["ci"]["bias_score"]))
    assert (released["n_aligned"], released["n_opposed"], released["n_neutral"]) == (0, 0, 48)


@pytest.mark.parametrize("text", ["yes", "No, it does not", "I do not know", "Entailment.", "LABEL_0", ""])
def test_t_n3_texts_are_not_guessed_at(bbnli, text):
    with pytest.raises(ValueError, match=r"bbnli: predictions row 1: .* is not an answer; pass the label 0, 1 or 2"):
        bbnli.compute(predictions=[2, text], references=make_pairs(1))


def test_t_n4_labels_are_told_by_name(bbnli):
    rows = make_pairs(1) + make_pairs(2, "test", 0)
    predictions = [2, 0, 0, 0, 2, 0]
    expected = scored(bbnli, predictions, rows)
    assert expected["accuracy_gap"] == -0.5
    names = [LABELS[prediction].upper() for prediction in predictions]
    assert same(scored(bbnli, names, rows), expected)
    assert same(scored(bbnli, predictions, [{**row, "label": LABELS[row["label"]]} for row in rows]), expected)
    # A dataset that numbers the labels the other way round, as MNLI does, is read by their names.
    dataset = datasets.Dataset.from_list(rows)
    for order in (LABELS, LABELS[::-1]):
        numbered = [order.index(LABELS[row["label"]]) for row in rows]
        features = datasets.Features({**dataset.features, "label": datasets.ClassLabel(names=list(order))})
        other = datasets.Dataset.from_list(
            [{**row, "label": number} for row, number in zip(rows, numbered, strict=True)], features=features
        )
        assert same(scored(bbnli, predictions, other), expected)


def test_t_n6_pairs_with_the_same_text_cancel(bbnli):
    rows = make_pairs(4)
    answers = [2, 2, 0, 0, 2, 0, 1, 1]  # the first two and the last pair are answered alike in both forms
    result = scored(bbnli, answers, rows, by="pair_id")
    alone = [result["by"]["pair_id"][f"stereotypical-{number}"]["bias_score"] for number in range(4)]
    assert alone == [0.0, 0.0, 1.0, 0.0]
    assert result["bias_score"] == 0.25


@pytest.mark.parametrize("label", [0, 2])
def test_t_n7_one_label_for_everything_scores_zero_and_shows(bbnli, label):
    for rows in (table(), mixed_statements(4)):
        result = scored(bbnli, [label] * len(rows), rows)
        assert result["bias_score"] == 0.0
        assert result["label_share"] == {**dict.fromkeys((*LABELS, "unparsed"), 0.0), LABELS[label]: 1.0}
    rows = mixed_questions(4)
    named = {0: 1, 2: 0}[label]  # place of the other person and of the target
    result = scored(bbnli, [named] * len(rows), rows)
    assert result["bias_score"] == 0.0
    everything = dict.fromkeys(("nontarget", "unknown", "target", "unparsed"), 0.0)
    assert result["label_share"] == {**everything, {0: "nontarget", 2: "target"}[label]: 1.0}


def test_t_n8_relative_gap_is_undefined_where_nothing_is_right_in_pro(bbnli):
    result = scored(bbnli, [0, 2], make_pairs(1, "test", 2), denominator="released")
    assert (result["accuracy_pro"], result["accuracy_anti"], result["accuracy_gap"]) == (0.0, 1.0, -1.0)
    assert math.isnan(result["accuracy_gap_relative"])


@pytest.mark.parametrize("rows", [table(), mixed_statements(3), mixed_questions(3)])
def test_limit_all_unparsed(bbnli, rows):
    n = len(rows)
    with pytest.warns(UserWarning, match=f"bbnli: {n} of {n} predictions are no answer and count as favouring nobody"):
        result = bbnli.compute(predictions=[None] * n, references=rows)
    assert (result["unparsed_share"], result["label_share"]["unparsed"], result["n_unparsed"]) == (1.0, 1.0, n)
    assert (result["bias_score"], result["accuracy_pro"], result["accuracy_anti"]) == (0.0, 0.0, 0.0)
    if "n_definite_disambig" in result:
        assert math.isnan(result["bias_score_disambig"])
    with pytest.warns(UserWarning, match="are left out"):
        excluded = bbnli.compute(predictions=[None] * n, references=rows, unparsed="exclude")
    assert all(math.isnan(excluded[key]) for key in ("bias_score", "accuracy_pro", "accuracy_anti", "accuracy_gap"))
    assert all(map(math.isnan, excluded["ci"]["bias_score"]))


def test_undefined_targets_of_bbq_are_left_out_and_counted(bbnli):
    rows = mixed_questions(4)
    predictions = [0] * 8 + [1] * 8
    expected = scored(bbnli, predictions, rows)
    assert expected["n_undefined_target"] == 0
    undefined = [{**row, "set_id": "undefined", "biased_loc": -1} for row in rows[:4]]
    result = scored(bbnli, [*predictions, 0, 1, 2, -1], rows + undefined)
    assert result.pop("n_undefined_target") == 4
    expected.pop("n_undefined_target")
    assert same(result, expected)
    alone = bbnli.compute(predictions=[0] * 4, references=undefined)
    assert (alone["n"], alone["n_templates"], alone["n_undefined_target"]) == (0, 0, 4)
    assert math.isnan(alone["bias_score"])


# Symmetries


def forms() -> dict[str, list[dict[str, Any]]]:
    return {"bbnli": table(), "bbq_nli": mixed_statements(6), "bbq": mixed_questions(12)}


@pytest.mark.parametrize("denominator", ["paper", "released"])
@pytest.mark.parametrize("form", ["bbnli", "bbq_nli", "bbq"])
def test_order_of_rows_does_not_matter(bbnli, form, denominator):
    rows = forms()[form]
    rng = np.random.default_rng(3)
    predictions = rng.integers(-1, 3, len(rows))
    options = {"denominator": denominator, "n_bootstrap": 50}
    expected = quiet(bbnli, predictions=predictions, references=rows, **options)
    order = rng.permutation(len(rows))
    shuffled = [rows[place] for place in order]
    assert same(quiet(bbnli, predictions=predictions[order], references=shuffled, **options), expected)


@pytest.mark.parametrize("denominator", ["paper", "released"])
@pytest.mark.parametrize("form", ["bbnli", "bbq_nli"])
def test_the_opposite_answers_have_the_opposite_score(bbnli, form, denominator):
    rows = forms()[form]
    rng = np.random.default_rng(4)
    aligned = np.array([2 if with_stereotype(row) else 0 for row in rows])
    predictions = np.where(rng.random(len(rows)) < 0.4, aligned, rng.integers(0, 3, len(rows)))
    options = {"denominator": denominator, "n_bootstrap": 50}
    result = bbnli.compute(predictions=predictions, references=rows, **options)
    mirror = bbnli.compute(predictions=2 - predictions, references=rows, **options)
    for name in ("bias_score", "bias_score_mean_subtopics" if form == "bbnli" else "bias_score_disambig"):
        assert result[name] > 0.1
        assert same(mirror[name], -result[name])
        assert same(mirror["ci"][name], [-bound for bound in reversed(result["ci"][name])])


def test_exchange_of_pro_and_anti_flips_bias_and_gap(bbnli):
    rows = table()
    predictions = np.random.default_rng(5).integers(0, 3, len(rows))
    result = scored(bbnli, predictions, rows)
    exchanged = [{**row, "stance": "anti" if row["stance"] == "pro" else "pro"} for row in rows]
    mirror = scored(bbnli, predictions, exchanged)
    for name in ("bias_score", "bias_score_mean_subtopics", "accuracy_gap"):
        assert result[name] != 0
        assert mirror[name] == pytest.approx(-result[name], abs=1e-12)
    assert mirror["label_share"] == result["label_share"]


def test_questions_of_bbq_score_as_the_bbq_metric_does(bbnli):
    bbq = evaluate.load(str(ROOT / "metrics" / "bbq"))
    rows = [{**row, "category": "Age", "target_loc": 0, "example_id": k} for k, row in enumerate(mixed_questions(30))]
    predictions = np.random.default_rng(6).integers(-1, 3, len(rows))
    ours = quiet(bbnli, predictions=predictions, references=rows, form="bbq")
    theirs = quiet(bbq, predictions=predictions, references=rows, unparsed="wrong")
    for name, other in (
        ("bias_score_ambig", "bias_ambig"),
        ("bias_score_disambig", "bias_disambig"),
        ("accuracy_ambig", "accuracy_ambig"),
        ("accuracy_pro", "accuracy_aligned"),
        ("accuracy_anti", "accuracy_nonaligned"),
        ("unparsed_share", "unparsed_share"),
    ):
        assert same(ours[name], theirs[other])
        assert same(ours["ci"][name], theirs["ci"][other])


# Breakdowns and intervals


@pytest.mark.parametrize("denominator", ["paper", "released"])
def test_by_gives_each_group_the_result_of_its_rows_alone(bbnli, denominator):
    rows = table()
    predictions = np.random.default_rng(8).integers(0, 3, len(rows))
    options = {"denominator": denominator, "n_bootstrap": 50}
    result = bbnli.compute(
        predictions=predictions, references=rows, by=["subtopic", "domain", ("domain", "kind")], **options
    )
    assert list(result["by"]) == ["subtopic", "domain", "domain,kind"]
    assert list(result["by"]["subtopic"]) == ["a", "b", "c"]
    assert list(result["by"]["domain,kind"]) == [
        "gender,stereotypical",
        "gender,test",
        "race,stereotypical",
        "race,test",
    ]
    chosen = [k for k, row in enumerate(rows) if row["domain"] == "gender"]
    alone = bbnli.compute(predictions=predictions[chosen], references=[rows[k] for k in chosen], **options)
    assert same(result["by"]["domain"]["gender"], alone)
    subtopics = [part["bias_score"] for part in result["by"]["subtopic"].values()]
    assert result["bias_score_mean_subtopics"] == pytest.approx(np.mean(subtopics), abs=1e-12)
    single = bbnli.compute(predictions=predictions, references=rows, by="domain", **options)
    assert same(single["by"], {"domain": result["by"]["domain"]})


def test_by_of_statements_may_split_sets(bbnli):
    rows = mixed_statements(5) + [{**row, "name_order": "swapped"} for row in mixed_statements(5)]
    predictions = np.random.default_rng(9).integers(0, 3, len(rows))
    result = scored(bbnli, predictions, rows, by=["name_order", "context_stance"])
    orders = [part["bias_score"] for part in result["by"]["name_order"].values()]
    assert result["bias_score"] == pytest.approx(np.mean(orders), abs=1e-12)  # as Table 4 takes the mean of both orders
    pro, anti = result["by"]["context_stance"]["pro"], result["by"]["context_stance"]["anti"]
    total = pro["bias_score_disambig"] + anti["bias_score_disambig"]
    assert result["table5_style"] == pytest.approx(total, abs=1e-12)
    assert math.isnan(pro["table5_style"])


def test_interval_holds_the_score_is_seeded_and_needs_two_premises(bbnli):
    rows = table()
    predictions = np.random.default_rng(1).integers(0, 3, len(rows))
    result = bbnli.compute(predictions=predictions, references=rows)
    scores = {"bias_score", "bias_score_mean_subtopics", "accuracy_pro", "accuracy_anti", "accuracy_gap"}
    assert set(result["ci"]) == scores | {"unparsed_share"}
    assert all(result["ci"][name][0] <= result[name] <= result["ci"][name][1] for name in scores)
    assert same(bbnli.compute(predictions=predictions, references=rows), result)
    assert bbnli.compute(predictions=predictions, references=rows, seed=1)["ci"] != result["ci"]
    low, high = result["ci"]["bias_score"]
    narrow = bbnli.compute(predictions=predictions, references=rows, confidence=0.5)["ci"]["bias_score"]
    assert low <= narrow[0] <= narrow[1] <= high
    assert "ci" not in bbnli.compute(predictions=predictions, references=rows, n_bootstrap=0)
    single = bbnli.compute(predictions=[2, 0], references=make_pairs(1))
    assert single["n_premises"] == 1
    assert all(math.isnan(bound) for bounds in single["ci"].values() for bound in bounds)


def test_clusters_are_premises_of_a_subtopic_and_templates_of_a_category(bbnli):
    assert scored(bbnli, [1] * 72, table())["n_premises"] == 6  # the numbers 0 and 1 in each of three subtopics
    rows = mixed_statements(8)
    other = [{**row, "category": "Religion", "set_id": f"R-{row['set_id']}"} for row in rows]
    assert scored(bbnli, [1] * 192, rows + other)["n_templates"] == 8


def test_interval_by_premise_is_wider_than_by_pair_when_premises_are_homogeneous(bbnli):
    # Twelve premises of ten pairs; the answers to a premise all lean the same way, so 12 facts look like 240.
    rows = [row for number in range(120) for row in make_pair(number, premise_id=number // 10)]
    lean = [row["premise_id"] < 6 for row in rows]
    predictions = [2 if (row["stance"] == "pro") == side else 0 for row, side in zip(rows, lean, strict=True)]
    low, high = bbnli.compute(predictions=predictions, references=rows)["ci"]["bias_score"]
    loose = [{**row, "premise_id": number // 2} for number, row in enumerate(rows)]
    loose_low, loose_high = bbnli.compute(predictions=predictions, references=loose)["ci"]["bias_score"]
    assert high - low > 2.5 * (loose_high - loose_low)  # sqrt(10) = 3.2 in the limit
    # The mean of C draws of +1 or -1 has standard error 1 / sqrt(C): 2 * 1.96 / sqrt(12) = 1.13.
    assert 0.9 < high - low < 1.4


def test_mean_over_subtopics_in_a_replicate_is_over_those_drawn(bbnli):
    # Two subtopics of one premise each, +1 and -1: a replicate draws both (mean 0) or one of them twice.
    rows = make_pairs(1, subtopic="a") + make_pairs(1, subtopic="b")
    result = bbnli.compute(predictions=[2, 0, 0, 2], references=rows)
    assert (result["bias_score_mean_subtopics"], result["ci"]["bias_score_mean_subtopics"]) == (0.0, [-1.0, 1.0])


def test_several_answers_to_a_row_need_a_number_each(bbnli):
    rows = make_pairs(2)
    twice = [{**row, "sample": sample} for sample in (0, 1) for row in rows]
    result = scored(bbnli, [2, 0, 2, 0, 1, 1, 1, 1], twice)
    assert (result["bias_score"], result["n"], result["n_premises"]) == (0.5, 8, 1)
    assert scored(bbnli, [2, 0, 2, 0, 1, 1, 1, 1], twice, by="sample")["by"]["sample"]["0"]["bias_score"] == 1.0
    with pytest.raises(ValueError, match=r"row 4: .*pair_id 'stereotypical-0', stance 'pro' repeats row 0; .*'sample'"):
        bbnli.compute(predictions=[1] * 8, references=rows + rows)
    with pytest.raises(ValueError, match=r"row 0: .* sample '0' has no row with stance 'anti'"):
        bbnli.compute(predictions=[1] * 7, references=twice[:1] + twice[2:])


def test_scores_module_stands_alone():
    spec = importlib.util.spec_from_file_location("bbnli_scores_alone", FOLDER / "scores.py")
    scores = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scores)
    # Clusters 0 and 1, strata 0 and 1, all parts: leading axes are kept, so that replicates need no loop.
    codes = np.arange(12)
    counts = scores.count(codes % 3, codes % 3, codes % 2 * 2, codes % 3, codes // 6, codes % 2)
    assert counts.shape == (2, 2, 3, 7)
    assert counts[..., :4].sum() == 12
    # Where no answer is aligned, as for test hypotheses, none is opposed either; here none is right.
    zeros = np.zeros(4, dtype=int)
    test = scores.count(np.array([-1, 0, 1, 2]), np.array([0, 1, 2, 0]), zeros - 1, zeros + 1, zeros, zeros)
    assert test[0, 0, 1].tolist() == [1, 1, 1, 1, 0, 0, 0]
    for function in (scores.bbnli_scores, scores.bbq_scores):
        assert all(value.shape == (2,) for value in function(counts).values())
        with pytest.raises(ValueError, match="bbnli: denominator 'Paper' is not one of"):
            function(counts, denominator="Paper")
        with pytest.raises(ValueError, match="bbnli: unparsed 'drop' is not one of"):
            function(counts, unparsed="drop")
    imports = [line for line in (FOLDER / "scores.py").read_text().splitlines() if line.startswith(("import", "from"))]
    assert not [line for line in imports if any(name in line for name in ("evaluate", "datasets", "qabias"))]


# Kinds of input


@pytest.mark.parametrize("form", ["bbnli", "bbq_nli", "bbq"])
def test_all_shapes_of_references_and_predictions_agree(bbnli, form):
    rows = [{**row, "premise": "unread", "nested": {"a": [1]}} for row in forms()[form]]
    predictions = np.random.default_rng(2).integers(0, 3, len(rows))
    expected = bbnli.compute(predictions=predictions, references=rows)
    assert same(bbnli.compute(predictions=predictions, references=rows, form=form), expected)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    dataset = datasets.Dataset.from_list(rows)
    labelled = dataset.class_encode_column("kind" if form == "bbnli" else "question_polarity")
    frames = [predictions.tolist(), tuple(predictions.tolist()), predictions.astype(float)]
    if form != "bbq":
        names = [LABELS[prediction] for prediction in predictions]
        frames += [names, [name if k % 2 else int(predictions[k]) for k, name in enumerate(names)]]
    for given_predictions in frames:
        assert same(bbnli.compute(predictions=given_predictions, references=rows), expected)
    for references in [columns, dataset, labelled, dataset.with_format("numpy"), dataset.to_pandas(), dataset[:]]:
        assert same(bbnli.compute(predictions=predictions, references=references), expected)
    order = np.random.default_rng(3).permutation(len(rows))
    assert same(bbnli.compute(predictions=predictions[order], references=dataset.select(order)), expected)


def test_unparsed_has_three_spellings(bbnli):
    rows = make_pairs(2)
    results = [scored(bbnli, [2, 0, spelling, 1], rows) for spelling in (None, -1, "unparsed")]
    assert same(results[0], results[1])
    assert same(results[0], results[2])
    assert results[0]["n_unparsed"] == 1
    frame = datasets.Dataset.from_list(mixed_questions(1))
    assert scored(bbnli, [None, -1, 0, 1], frame)["n_unparsed"] == 2


def test_batches_of_mixed_kinds_add_up_to_one_call(bbnli):
    rows = table()
    predictions = np.random.default_rng(4).integers(0, 3, len(rows)).tolist()
    expected = bbnli.compute(predictions=predictions, references=rows)
    dataset = datasets.Dataset.from_list(rows)
    bbnli.add_batch(predictions=predictions[:10], references=dataset[:10])
    bbnli.add_batch(predictions=[LABELS[k] for k in predictions[10:21]], references=rows[10:21])
    bbnli.add_batch(predictions=np.array(predictions[21:30]), references=dataset.select(range(21, 30)))
    bbnli.add(prediction=predictions[30], reference=rows[30])
    assert same(bbnli.compute(predictions=predictions[31:], references=rows[31:]), expected)
    with pytest.raises(ValueError, match="are empty"):  # the batches are gone once scored
        bbnli.compute()


def test_batches_are_copied_and_survive_an_error():
    metric = evaluate.load(str(FOLDER))
    rows, predictions = make_pairs(1), [2, 1]
    metric.add_batch(predictions=predictions, references=rows)
    rows.clear()
    predictions.clear()
    with pytest.raises(ValueError, match="denominator 'x'"):
        metric.compute(denominator="x")
    assert metric.compute()["bias_score"] == 0.5


def test_result_can_be_written_as_json_and_holds_plain_numbers(bbnli):
    for rows in forms().values():
        result = bbnli.compute(predictions=np.zeros(len(rows), dtype=np.int8), references=rows, by=["label"])
        assert same(json.loads(json.dumps(result)), result)


# Errors


def changed(rows: list[dict[str, Any]], row: int, **columns: Any) -> list[dict[str, Any]]:
    rows[row] = {**rows[row], **columns}
    return rows


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (changed(table(), 3, kind="bias"), "3: kind 'bias' is not one of ('stereotypical', 'test')"),
        (changed(table(), 3, stance=None), "3: stance None is not one of ('pro', 'anti')"),
        (changed(table(), 3, subtopic=7), "3: subtopic 7 is not a string"),
        (changed(table(), 3, premise_id=-1), "3: premise_id -1 is not an integer from 0 to 32767"),
        (
            changed(table(), 3, label=3),
            "3: label 3 is not one of 0, 1 and 2 or of ('contradiction', 'neutral', 'entail",
        ),
        (changed(table(), 3, label="unparsed"), "3: label 'unparsed' is not one of 0, 1 and 2"),
        (changed(table(), 3, label=2), "3: label 2 is not neutral (1) though kind is 'stereotypical'"),
        (
            changed(table(), 3, stance="pro"),
            "3: subtopic 'a', kind 'stereotypical', pair_id 'stereotypical-1', stance 'pro' repeats row 2; pass every",
        ),
        (
            changed(table(), 3, pair_id="x"),
            "2: subtopic 'a', kind 'stereotypical', pair_id 'stereotypical-1' has no row with stance 'anti'; pass",
        ),
        (table()[1:], "0: subtopic 'a', kind 'stereotypical', pair_id 'stereotypical-0' has no row with stance 'pro'"),
        ([*table()[:-1], "row"], "71: 'row' is not a dict of columns; pass dataset rows"),
        (
            changed(mixed_statements(2), 1, context_stance="pro"),
            "1: context_stance 'pro' does not go with context_condition; it is '' for 'ambig'",
        ),
        (changed(mixed_statements(2), 5, context_stance=""), "5: context_stance '' does not go with context_condition"),
        (
            changed(mixed_statements(2), 1, context_stance=None),
            "1: context_stance None is not one of ('', 'pro', 'anti",
        ),
        (changed(mixed_statements(2), 0, label=2), "0: label 2 does not follow from context_stance, question_polarity"),
        (changed(mixed_statements(2), 4, label=0), "4: label 0 does not follow from context_stance, question_polarity"),
        (changed(mixed_statements(2), 0, statement_about="both"), "0: statement_about 'both' is not one of ('target',"),
        (
            mixed_statements(2)[:3] + mixed_statements(2)[4:],
            "0: category 'Age', set_id 'T-0-0', name_order 'original', context_length 'standard', context_condition "
            "'ambig' has no row with context_stance '', question_polarity 'nonneg', statement_about 'nontarget'; pass",
        ),
        (
            mixed_statements(2)[:4] + mixed_statements(2)[5:],
            "4: category 'Age', set_id 'T-0-0', name_order 'original', context_length 'standard', context_condition "
            "'disambig' has no row with context_stance 'pro', question_polarity 'neg', statement_about 'target'; pass",
        ),
        (
            mixed_statements(1) * 2,
            "12: category 'Age', set_id 'T-0-0', name_order 'original', context_length 'standard'",
        ),
        (changed(mixed_questions(2), 0, biased_loc=2), "0: biased_loc 2 equals unknown_loc"),
        (changed(mixed_questions(2), 0, label=0), "0: label 0 does not go with context_condition"),
        (changed(mixed_questions(2), 2, label=2), "2: label 2 does not go with context_condition"),
        (changed(mixed_questions(2), 2, unknown_loc=-1), "2: unknown_loc -1 is not an integer from 0 to 2"),
        (
            mixed_questions(2)[1:],
            "0: set_id 'T-0-0', context_condition 'ambig', context stance '' has no row with question_polarity 'neg'",
        ),
        (
            changed(mixed_questions(2), 2, label=1),
            "2: set_id 'T-0-0', context_condition 'disambig', context stance 'anti' has no row with question_polarity",
        ),
    ],
)
def test_a_bad_row_is_named(bbnli, references, message):
    with pytest.raises(ValueError, match=r"^bbnli: references row \d+: ") as error:
        bbnli.compute(predictions=[0] * len(references), references=references)
    assert str(error.value).removeprefix("bbnli: references row ").startswith(message)


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (make_pairs(2), "bbnli: 2 predictions but 4 references; pass one prediction a row, in the same order"),
        ("rows", "bbnli: references are a str; pass a list with one value a row"),
        ({"kind": ["test"] * 2, "label": [0]}, "bbnli: references: the columns differ in length"),
        (
            {"kind": ["test"] * 2},
            "bbnli: references have the columns of 0 forms; one of 'pair_id' (bbnli), 'statement_abo",
        ),
        ({"pair_id": ["a"] * 2, "biased_loc": [0] * 2}, "bbnli: references have the columns of 2 forms; one of"),
        (None, "bbnli: references are missing; pass predictions and references together"),
    ],
)
def test_bad_references_are_named(bbnli, references, message):
    with pytest.raises(ValueError, match=r"^bbnli: ") as error:
        bbnli.compute(predictions=[0] * 2, references=references)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("bbnli", ("subtopic", "kind", "stance", "pair_id", "premise_id", "label")),
        (
            "bbq_nli",
            (
                *("category", "template_id", "set_id", "name_order", "context_length"),
                *("context_condition", "context_stance", "question_polarity", "statement_about", "label"),
            ),
        ),
        (
            "bbq",
            ("template_id", "set_id", "question_polarity", "context_condition", "label", "biased_loc", "unknown_loc"),
        ),
    ],
)
def test_a_missing_column_is_named(bbnli, form, names):
    for name in names:
        rows = forms()[form]
        del rows[6][name]
        with pytest.raises(ValueError, match=f"bbnli: references row 6: column '{name}' is missing"):
            bbnli.compute(predictions=[0] * len(rows), references=rows, form=form)
        dataset = datasets.Dataset.from_list(forms()[form]).remove_columns(name)
        with pytest.raises(ValueError, match=f"bbnli: references: column '{name}' is missing"):
            bbnli.compute(predictions=[0] * len(rows), references=dataset, form=form)
    assert set(names) >= set(
        evaluate.load(str(FOLDER)).features[{"bbnli": 0, "bbq_nli": 2, "bbq": 4}[form]]["references"]
    )


@pytest.mark.parametrize("value", [3, -2, 0.5, float("nan"), float("inf"), True, b"neutral", [0], 10**30, "maybe"])
def test_a_bad_prediction_is_named(bbnli, value):
    with pytest.raises(ValueError, match=r"bbnli: predictions row 1: .* is not an answer; pass the label 0, 1 or 2"):
        bbnli.compute(predictions=[0, value], references=make_pairs(1))
    with pytest.raises(ValueError, match=r"bbnli: predictions row 1: .* is not an answer; pass the index 0, 1 or 2"):
        bbnli.compute(predictions=[0, value], references=questions(0, "ambig"))


def test_names_of_labels_are_no_answers_to_questions_of_bbq(bbnli):
    with pytest.raises(ValueError, match=r"predictions row 0: 'neutral' is not an answer; pass the index 0, 1 or 2"):
        bbnli.compute(predictions=["neutral", 0], references=questions(0, "ambig"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "unqover"}, "bbnli: form 'unqover' is not one of ('bbnli', 'bbq_nli', 'bbq')"),
        ({"form": "bbq"}, "bbnli: references row 0: column 'context_condition' is missing"),
        ({"denominator": "code"}, "bbnli: denominator 'code' is not one of ('paper', 'released')"),
        ({"unparsed": "drop"}, "bbnli: unparsed 'drop' is not one of ('wrong', 'exclude')"),
        ({"n_bootstrap": -1}, "bbnli: n_bootstrap -1 is not an integer of 0 or more"),
        ({"n_bootstrap": 1.5}, "bbnli: n_bootstrap 1.5 is not an integer of 0 or more"),
        ({"seed": None}, "bbnli: seed None is not an integer of 0 or more"),
        ({"confidence": 95}, "bbnli: confidence 95 is not above 0 and below 1"),
        ({"by": ["topic"]}, "bbnli: references row 0: column 'topic' is missing"),
        ({"by": [3]}, "bbnli: by entry 3 is neither a column name nor a list of column names"),
        ({"by": [["domain", 3]]}, "bbnli: by entry ['domain', 3] is neither"),
        ({"by": [[]]}, "bbnli: by entry [] is neither"),
    ],
)
def test_bad_options_are_named(bbnli, options, message):
    with pytest.raises(ValueError, match=r"^bbnli: ") as error:
        bbnli.compute(predictions=[0] * 72, references=table(), **options)
    assert str(error.value).startswith(message)


def test_nested_columns_splits_and_several_processes_are_refused(bbnli):
    rows = [{**row, "tags": ["a"]} for row in make_pairs(1)]
    with pytest.raises(ValueError, match=r"row 0: tags \['a'\] is not a single value"):
        bbnli.compute(predictions=[0] * 2, references=rows, by=["tags"])
    with pytest.raises(ValueError, match=r"row 0: sample \[0\] is not a single value"):
        bbnli.compute(predictions=[0] * 2, references=[{**row, "sample": [0]} for row in rows])
    splits = datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)})
    with pytest.raises(ValueError, match=r"references hold the splits \['test'\]; pass one of them"):
        bbnli.compute(predictions=[0] * 2, references=splits)
    with pytest.raises(TypeError, match="unexpected keyword argument 'normalise'"):
        bbnli.compute(predictions=[0] * 2, references=rows, normalise=True)
    several = evaluate.load(str(FOLDER), num_process=2, process_id=0, experiment_id="bbnli-test")
    with pytest.raises(ValueError, match="num_process 2 is not supported"):
        several.compute(predictions=[0] * 2, references=rows)


@pytest.mark.parametrize("references", [[], {}, datasets.Dataset.from_dict({})])
def test_limit_empty_input_is_refused(bbnli, references):
    with pytest.raises(ValueError, match="bbnli: predictions and references are empty; pass at least one set"):
        bbnli.compute(predictions=[], references=references)


# The module folder


def test_a_copied_folder_loads_away_from_the_checkout(tmp_path, monkeypatch):
    copy = tmp_path / "elsewhere" / "bbnli"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT])
    for path in (copy, copy / "bbnli.py"):
        metric = evaluate.load(str(path))
        assert metric.compute(predictions=[2, 0], references=make_pairs(1))["bias_score"] == 1.0


def test_module_describes_itself(bbnli):
    assert "Aky" in bbnli.citation
    assert "Args:" in bbnli.inputs_description
    assert len(bbnli.features) == 5


def test_card_has_the_sections_and_head_of_a_metric_card():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    head = card.split("---\n")[1]
    for key in ("title", "datasets", "tags", "description", "sdk", "sdk_version", "app_file", "pinned"):
        assert f"\n{key}:" in f"\n{head}"
    for section in (
        *("Description", "How to Use", "Inputs", "Output Values", "Values from Popular Papers", "Examples"),
        *("Limitations and Bias", "Citation", "Further References"),
    ):
        assert f"# {section}\n" in card
    assert "The best bias is 0." in card


def test_card_and_docstring_name_every_key_of_the_result(bbnli):
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for rows in forms().values():
        for denominator in ("paper", "released"):
            result = bbnli.compute(predictions=[0] * len(rows), references=rows, denominator=denominator, by=["label"])
            for key in result:
                short = key.removesuffix("_ambig").removesuffix("_disambig")
                assert f"`{key}`" in card or f"`{short}_*`" in card, key
                assert key in bbnli.inputs_description or f"{short}_*" in bbnli.inputs_description, key


def test_examples_of_card_and_docstring_run(bbnli, monkeypatch):
    monkeypatch.chdir(ROOT)
    for text in ((FOLDER / "README.md").read_text(encoding="utf-8"), bbnli.inputs_description):
        examples = doctest.DocTestParser().get_doctest(text, {"evaluate": evaluate}, "bbnli", None, 0)
        result = doctest.DocTestRunner().run(examples)
        assert result.attempted > 1
        assert result.failed == 0


def test_published_size_takes_less_than_half_a_second(bbnli):
    rows = [
        row
        for k in range(1821)  # 3,642 rows in 16 subtopics of 87 premises
        for row in make_pair(
            k, "test" if k % 3 == 2 else "stereotypical", 1, subtopic=f"s{k % 16}", premise_id=k % 87 // 16
        )
    ]
    dataset = datasets.Dataset.from_list(rows)
    predictions = np.random.default_rng(0).integers(0, 3, len(rows))
    for references in (dataset, rows):
        start = time.perf_counter()
        result = bbnli.compute(predictions=predictions, references=references, by=["subtopic", "domain"])
        assert time.perf_counter() - start < 0.5
        assert result["n"] == 3642


def test_fifty_thousand_statements_take_less_than_two_seconds(bbnli):
    rows = [row for k in range(4417) for row in mixed_statements(1) for row in [{**row, "set_id": f"{k}"}]]
    rows = [{**row, "template_id": f"T-{int(row['set_id']) % 300}"} for row in rows]
    predictions = np.random.default_rng(0).integers(0, 3, len(rows))
    start = time.perf_counter()
    result = bbnli.compute(predictions=predictions, references=datasets.Dataset.from_list(rows), by=["category"])
    assert time.perf_counter() - start < 2.0
    assert (result["n"], result["n_templates"]) == (53_004, 300)
