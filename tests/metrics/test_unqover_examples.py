"""The UnQover metric: the worked example, known responders and the paper's propositions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .helpers import quiet, same, unsigned
from .unqover_rows import (
    FIGURE_2,
    HEADLINES,
    RELIGIONS,
    SCORE_COLUMNS,
    columns_of,
    make_row,
    make_rows,
    random_scores,
    respond,
)

# The worked example


def worked_score(first: int, second: int, template: int, attribute: int, negated: int, slot: int) -> float:
    """S of the subject in `slot` (0 is the one named first) of the context that names `first`, then `second`."""
    i, j, t, a, q, k = first, second, template, attribute, negated, slot
    start = ((7 * i + 11 * j + 13 * t + 17 * a + 19 * q + 23 * k + 5) % 37 + 1) / 100
    end = ((3 * i + 5 * j + 29 * t + 2 * a + 31 * q + 41 * k + 7) % 43 + 1) / 100
    return math.sqrt(start * end)


def worked_example(subjects, pairs=None, cluster=None) -> tuple[list[dict[str, Any]], list[dict[str, float]]]:
    rows = make_rows(subjects, 2, ("X", "Y"), pairs, cluster)

    def score(row, subject, other, is_first, negated):
        own, its = subjects.index(subject), subjects.index(other)
        first, second = (own, its) if is_first else (its, own)
        return worked_score(first, second, row["template_id"], "XY".index(row["attribute"]), negated, int(not is_first))

    return rows, respond(rows, score)


def test_worked_example(unqover):
    rows, scores = worked_example(("Alpha", "Beta", "Gamma"))
    result = unqover.compute(predictions=scores, references=rows)
    expected = {"delta": 0.104781, "epsilon": 0.120548, "mu": 0.034019, "eta": 0.5, "avg_score": 0.182436}
    assert {name: round(result[name], 6) for name in HEADLINES} == expected
    released = unqover.compute(predictions=scores, references=rows, delta="released")
    assert round(released["delta"], 6) == 0.107572
    assert same({**unsigned(released), "delta": 0, "ci": 0}, {**unsigned(result), "delta": 0, "ci": 0})
    rounded = {
        subject: {a: round(v, 6) for a, v in table.items()} for subject, table in result["gamma_attribute"].items()
    }
    assert rounded == {
        "Alpha": {"X": 0.007327, "Y": -0.002935},
        "Beta": {"X": -0.037161, "Y": 0.048832},
        "Gamma": {"X": 0.029834, "Y": -0.045897},
    }
    assert result["eta_attribute"] == {
        "Alpha": {"X": -0.5, "Y": -0.5},
        "Beta": {"X": -0.5, "Y": 0.5},
        "Gamma": {"X": 1.0, "Y": 0.0},
    }
    gamma = {subject: round(value, 6) for subject, value in result["gamma"].items()}
    assert gamma == {"Alpha": 0.002196, "Beta": 0.005835, "Gamma": -0.008031}
    assert result["eta_subject"] == {"Alpha": -0.5, "Beta": 0.0, "Gamma": 0.5}
    assert result["rank"] == {"Alpha": 2, "Beta": 1, "Gamma": 3}
    assert [entry[:2] for entry in result["top"][:3]] == [["Beta", "Y"], ["Gamma", "Y"], ["Beta", "X"]]
    assert result["top"][0][3] == 0.5
    assert (result["n"], result["n_subjects"], result["n_attributes"], result["n_templates"]) == (12, 3, 2, 2)
    assert result["coverage"] == 1.0
    assert "cluster" not in result


def test_worked_example_row_by_row(unqover):
    rows, scores = worked_example(("Alpha", "Beta", "Gamma"))
    expected = [  # C of (t0, X), (t0, Y), (t1, X), (t1, Y) for Alpha-Beta, Alpha-Gamma, Beta-Gamma
        *(+0.123471, -0.101034, -0.004472, -0.038240),
        *(-0.069522, -0.044173, -0.020169, +0.171709),
        *(-0.029493, +0.060339, -0.000154, -0.004287),
    ]
    for row, score, comparative in zip(rows, scores, expected, strict=True):
        result = unqover.compute(predictions=[score], references=[row], confidence=None)
        assert round(result["gamma"][row["subject1"]], 6) == comparative
        assert result["gamma"][row["subject2"]] == -result["gamma"][row["subject1"]]


def test_worked_example_of_gender(unqover):
    names = ("Mary", "Linda", "James", "John")
    cluster = {"Mary": "female", "Linda": "female", "James": "male", "John": "male"}
    rows, scores = worked_example(names, list(itertools.product(names[:2], names[2:])), cluster)
    result = unqover.compute(predictions=scores, references=rows)
    released = unqover.compute(predictions=scores, references=rows, delta="released")
    assert (round(result["delta"], 6), round(released["delta"], 6)) == (0.078197, 0.085951)
    assert (round(result["mu"], 6), result["eta"], round(result["epsilon"], 6)) == (0.034286, 0.25, 0.120676)
    female, male = result["cluster"]["female"], result["cluster"]["male"]
    assert {a: (round(v["gamma"], 6), v["eta"]) for a, v in female.items()} == {
        "X": (-0.006953, -0.25),
        "Y": (0.031132, 0),
    }
    for attribute in ("X", "Y"):
        assert male[attribute] == {key: -value for key, value in female[attribute].items()}  # exactly


def test_female_is_exactly_minus_male_whatever_the_order_of_rows_and_subjects(unqover):
    cluster = {f"f{k}": "female" for k in range(5)} | {f"m{k}": "male" for k in range(5)}
    pairs = [
        (x, y) if (int(x[1]) + 2 * int(y[1])) % 3 else (y, x) for x in list(cluster)[:5] for y in list(cluster)[5:]
    ]
    rows = make_rows(None, 3, ("X", "Y"), pairs, cluster)
    order = np.random.default_rng(1).permutation(len(rows))
    scores = random_scores(len(rows))
    result = unqover.compute(
        predictions=[scores[k] for k in order], references=[rows[k] for k in order], confidence=None
    )
    for attribute, values in result["cluster"]["female"].items():
        assert {key: -value for key, value in values.items()} == result["cluster"]["male"][attribute]


def test_example_of_the_papers_figure_2(unqover):
    # B(Gerald) = (0.26 + 0.54)/2 - (0.35 + 0.12)/2 = 0.165; B(Jennifer) = (0.73 + 0.45)/2 - (0.62 + 0.86)/2 = -0.15
    # C = (0.165 + 0.15)/2 = 0.1575, printed 0.16 with the 1/2 of Eq. 6; the text's 0.31 is without it
    row = make_row(subject1="Gerald", subject2="Jennifer")
    result = unqover.compute(predictions=[FIGURE_2], references=[row])
    assert result["gamma"]["Gerald"] == pytest.approx(0.1575, abs=1e-15)
    assert f"{result['gamma']['Gerald']:.2f}" == "0.16"
    assert result["mu"] == pytest.approx(0.1575, abs=1e-15)
    assert result["eta"] == 1.0
    # delta: (|0.26 - 0.54| + |0.73 - 0.45|)/2 = 0.28; negated: (|0.35 - 0.12| + |0.62 - 0.86|)/2 = 0.235
    assert result["delta"] == pytest.approx(0.28, abs=1e-15)
    released = unqover.compute(predictions=[FIGURE_2], references=[row], delta="released")
    assert released["delta"] == pytest.approx((0.28 + 0.235) / 2, abs=1e-15)
    # epsilon: |0.26 - 0.62|, |0.73 - 0.35|, |0.54 - 0.86|, |0.45 - 0.12| -> 1.39 / 4
    assert result["epsilon"] == pytest.approx(1.39 / 4, abs=1e-15)
    assert result["avg_score"] == pytest.approx(3.93 / 8, abs=1e-15)


# Responders whose scores are known


def religion_rows() -> list[dict[str, Any]]:
    return make_rows(RELIGIONS, 14, [f"attribute {k:02d}" for k in range(50)])


def test_responders_on_the_religion_set(unqover):
    rows = columns_of(religion_rows())
    n = len(rows["example_id"])
    assert n == 38_500  # 55 pairs x 14 templates x 50 attributes

    def ask(s1_12, s1_21, s1_12_neg, s1_21_neg):
        first = {"s1_12": s1_12, "s1_21": s1_21, "s1_12_neg": s1_12_neg, "s1_21_neg": s1_21_neg}
        full = {name: np.full(n, value) for name, value in first.items()}
        full |= {name.replace("s1", "s2"): np.full(n, 0.9 if value == 0.1 else 0.1) for name, value in first.items()}
        result = unqover.compute(predictions=full, references=rows)
        return {name: result[name] for name in HEADLINES}, result

    # Always the first: 0.9 for whoever is named first. Every score moves by 0.8 with the order, and
    # |S(x, a) - S(y, not-a)| is |0.9 - 0.1| too; both orders average to 0.5, so B = C = 0.
    first, _ = ask(0.9, 0.1, 0.9, 0.1)
    assert same(first, {"delta": 0.8, "epsilon": 0.8, "mu": 0.0, "eta": 0.0, "avg_score": 0.5})
    assert (first["mu"], first["eta"]) == (0.0, 0.0)
    # Ignores the negation: subject1 in all four contexts. No order matters; B(x) = 0.9 - 0.9 = 0.
    blind, _ = ask(0.9, 0.9, 0.9, 0.9)
    assert same(blind, {"delta": 0.0, "epsilon": 0.8, "mu": 0.0, "eta": 0.0, "avg_score": 0.5})
    assert (blind["mu"], blind["eta"]) == (0.0, 0.0)
    # Prefers the earlier name, and the later one for the negated question: B = 0.8 and -0.8, C = 0.8 for the earlier.
    # The k-th of 11 names (k from 0) wins 10 - k and loses k of its 10 pairs: eta(x, a) = (10 - 2k)/10. The mean of
    # |10 - 2k|/10 over k = 0..10 is 2 (10 + 8 + 6 + 4 + 2)/(10 * 11) = 60/110 = 6/11; mu = 0.8 * 6/11 = 24/55.
    consistent, result = ask(0.9, 0.9, 0.1, 0.1)
    assert same(consistent, {"delta": 0.0, "epsilon": 0.0, "mu": 24 / 55, "eta": 6 / 11, "avg_score": 0.5})
    assert (round(consistent["mu"], 4), round(consistent["eta"], 4)) == (0.4364, 0.5455)
    assert same(result["gamma"], {name: 0.8 * (10 - 2 * k) / 10 for k, name in enumerate(RELIGIONS)})
    assert list(result["rank"].values()) == list(range(1, 12))
    low, high = result["ci"]["mu"]
    assert 0 < low < 24 / 55 < high < 1  # all templates are alike, and there are 14 of them


@pytest.mark.parametrize("value", [1.0, 0.37, 1e-9])
def test_limit_all_scores_equal(unqover, value):
    rows = make_rows("abcd", 3, ("X", "Y"))
    result = unqover.compute(predictions=respond(rows, lambda *_: value), references=rows)
    assert [result[name] for name in ("delta", "epsilon", "mu", "eta")] == [0.0] * 4
    assert result["avg_score"] == pytest.approx(value, rel=1e-12)
    assert set(result["gamma"].values()) == {0.0}
    assert result["rank"] == dict.fromkeys("abcd", 1)
    low, high = result["ci"]["mu"]
    assert (low, 0 < high < 1) == (0.0, True)  # three templates that are alike say little of others


def test_position_only_responder_is_unbiased_but_dependent(unqover):
    rows = make_rows("abc", 2, ("X",))
    scores = respond(rows, lambda row, x, y, is_first, negated: (0.7 if is_first else 0.2) / (1 + negated))
    result = unqover.compute(predictions=scores, references=rows, confidence=None)
    assert (result["mu"], result["eta"]) == (0.0, 0.0)
    assert result["delta"] == pytest.approx(0.5)


def test_ties_in_decimals_are_ties_and_small_scores_keep_their_sign(unqover):
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in floating point: a tie, not a win.
    zero = dict.fromkeys(SCORE_COLUMNS, 0.0)
    tie = {**zero, "s1_12": 0.1, "s1_21": 0.2, "s2_12": 0.3}
    result = quiet(unqover, predictions=[tie], references=[make_row()])
    assert (result["eta"], result["mu"]) == (0.0, 0.0)
    rare = {**zero, "s1_12": 3e-300, "s2_12": 2e-300}
    assert quiet(unqover, predictions=[rare], references=[make_row()])["eta_subject"] == {"Ada": 1.0, "Bea": -1.0}


# The propositions of Section 4.2

scores_8 = st.lists(st.floats(0.0, 1.0, width=32), min_size=8, max_size=8)
property_settings = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def comparative(unqover, scores, subject1="x1", subject2="x2") -> dict[str, float]:
    row = make_row(subject1=subject1, subject2=subject2)
    return quiet(unqover, predictions=[scores], references=[row], confidence=None)["gamma"]


@property_settings
@given(scores_8)
def test_proposition_range_and_complementarity(unqover, values):
    gamma = comparative(unqover, dict(zip(SCORE_COLUMNS, values, strict=True)))
    assert -1.0 <= gamma["x1"] <= 1.0
    assert gamma["x1"] == -gamma["x2"]


@property_settings
@given(scores_8)
def test_proposition_positional_independence(unqover, values):
    # C of the template whose subjects are filled in the other order: the scores of (12) and (21) change places.
    scores = dict(zip(SCORE_COLUMNS, values, strict=True))
    turned = {name: scores[name.replace("_12", "_xx").replace("_21", "_12").replace("_xx", "_21")] for name in scores}
    assert comparative(unqover, turned) == comparative(unqover, scores)


@property_settings
@given(scores_8)
def test_proposition_attribute_negation_dependence(unqover, values):
    # C(x1, x2, a) = C(x2, x1, not-a): question and negation change places.
    scores = dict(zip(SCORE_COLUMNS, values, strict=True))
    negated = {name: scores[name.removesuffix("_neg") if "_neg" in name else f"{name}_neg"] for name in scores}
    assert comparative(unqover, negated)["x2"] == comparative(unqover, scores)["x1"]


@property_settings
@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4))
def test_proposition_zero_centrality(unqover, values):
    # A model that scores both subjects alike, whatever the order and the question do to both.
    scores = {
        f"s{k}_{name}": value
        for k in (1, 2)
        for name, value in zip(("12", "21", "12_neg", "21_neg"), values, strict=True)
    }
    assert set(comparative(unqover, scores).values()) == {0.0}


@property_settings
@given(scores_8)
def test_swapping_the_subjects_of_a_row_changes_nothing(unqover, values):
    scores = dict(zip(SCORE_COLUMNS, values, strict=True))
    swap = str.maketrans("12", "21")
    swapped = {name: scores[name.translate(swap)] for name in scores}  # s1_12 <-> s2_21, s1_21 <-> s2_12
    for delta in ("paper", "released"):
        left = quiet(unqover, predictions=[scores], references=[make_row()], delta=delta)
        right = quiet(
            unqover, predictions=[swapped], references=[make_row(subject1="Bea", subject2="Ada")], delta=delta
        )
        assert same(left, right)
