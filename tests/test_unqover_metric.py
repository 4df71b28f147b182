"""The UnQover metric: the worked example, known responders, the paper's propositions, and a slow oracle."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import itertools
import json
import math
import shutil
import sys
import time
import warnings
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "metrics" / "unqover"

SCORE_COLUMNS = (
    *("s1_12", "s2_12", "s1_21", "s2_21"),
    *("s1_12_neg", "s2_12_neg", "s1_21_neg", "s2_21_neg"),
)
HEADLINES = ("delta", "epsilon", "mu", "eta", "avg_score")
RELIGIONS = (
    *("Atheist", "Buddhist", "Catholic", "Christian", "Hindu", "Jewish"),
    *("Mormon", "Muslim", "Orthodox", "Protestant", "Sikh"),
)


@pytest.fixture(scope="module")
def unqover() -> Any:
    return evaluate.load(str(FOLDER))


@pytest.fixture(scope="module")
def scores_module() -> Any:
    spec = importlib.util.spec_from_file_location("unqover_scores_alone", FOLDER / "scores.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_row(number: int = 0, **columns: Any) -> dict[str, Any]:
    return {
        **{"example_id": number, "template_id": 0, "subject1": "Ada", "subject2": "Bea"},
        **{"cluster1": "None", "cluster2": "None", "attribute": "was late", "attribute_class": "rude"},
        **columns,
    }


def make_rows(subjects, n_templates: int, attributes, pairs=None, cluster=None) -> list[dict[str, Any]]:
    """All unordered pairs x templates x attributes."""
    cells = itertools.product(pairs or itertools.combinations(subjects, 2), range(n_templates), attributes)
    return [
        make_row(
            number,
            template_id=template,
            subject1=x,
            subject2=y,
            cluster1=cluster[x] if cluster else "None",
            cluster2=cluster[y] if cluster else "None",
            attribute=attribute,
        )
        for number, ((x, y), template, attribute) in enumerate(cells)
    ]


def respond(rows, score) -> list[dict[str, float]]:
    """The eight scores of a model: `score(row, subject, other, is_first, negated)`."""
    return [
        {
            f"s{k}_{order}{question}": score(
                row, row[f"subject{k}"], row[f"subject{3 - k}"], (k == 1) == (order == "12"), bool(question)
            )
            for question in ("", "_neg")
            for order in ("12", "21")
            for k in (1, 2)
        }
        for row in rows
    ]


def random_scores(n: int, seed: int = 0) -> list[dict[str, float]]:
    values = np.random.default_rng(seed).random((n, 8))
    return [dict(zip(SCORE_COLUMNS, row, strict=True)) for row in values.tolist()]


def columns_of(rows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def quiet(metric: Any, **arguments: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return metric.compute(**arguments)


def same(left: Any, right: Any, tolerance: float = 1e-12) -> bool:
    """Whether two results are equal but for rounding, NaN being equal to itself."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key], tolerance) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(same(a, b, tolerance) for a, b in zip(left, right, strict=True))
    if isinstance(left, str):
        return left == right
    return math.isclose(left, right, abs_tol=tolerance) or (math.isnan(left) and math.isnan(right))


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
    assert same({**released, "delta": 0, "ci": 0}, {**result, "delta": 0, "ci": 0})
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
        result = unqover.compute(predictions=[score], references=[row], n_bootstrap=0)
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
    pairs = [(x, y) if hash((x[1], y[1])) % 2 else (y, x) for x in list(cluster)[:5] for y in list(cluster)[5:]]
    rows = make_rows(None, 3, ("X", "Y"), pairs, cluster)
    order = np.random.default_rng(1).permutation(len(rows))
    scores = random_scores(len(rows))
    result = unqover.compute(predictions=[scores[k] for k in order], references=[rows[k] for k in order], n_bootstrap=0)
    for attribute, values in result["cluster"]["female"].items():
        assert {key: -value for key, value in values.items()} == result["cluster"]["male"][attribute]


FIGURE_2 = {  # subject1 Gerald, subject2 Jennifer
    **{"s1_12": 0.26, "s2_12": 0.73, "s1_21": 0.54, "s2_21": 0.45},
    **{"s1_12_neg": 0.35, "s2_12_neg": 0.62, "s1_21_neg": 0.12, "s2_21_neg": 0.86},
}


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
        result = unqover.compute(predictions=full, references=rows, n_bootstrap=20)
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
    assert same(result["ci"]["mu"], [24 / 55, 24 / 55])  # all templates are alike


@pytest.mark.parametrize("value", [1.0, 0.37, 1e-9])
def test_limit_all_scores_equal(unqover, value):
    rows = make_rows("abcd", 3, ("X", "Y"))
    result = unqover.compute(predictions=respond(rows, lambda *_: value), references=rows)
    assert [result[name] for name in ("delta", "epsilon", "mu", "eta")] == [0.0] * 4
    assert result["avg_score"] == pytest.approx(value, rel=1e-12)
    assert set(result["gamma"].values()) == {0.0}
    assert result["rank"] == dict.fromkeys("abcd", 1)
    assert result["ci"]["mu"] == [0.0, 0.0]


def test_position_only_responder_is_unbiased_but_dependent(unqover):
    rows = make_rows("abc", 2, ("X",))
    scores = respond(rows, lambda row, x, y, is_first, negated: (0.7 if is_first else 0.2) / (1 + negated))
    result = unqover.compute(predictions=scores, references=rows, n_bootstrap=0)
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
    return quiet(unqover, predictions=[scores], references=[row], n_bootstrap=0)["gamma"]


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


# An oracle: the definitions, one row and one dict at a time, in exact arithmetic


def mean(values) -> Any:
    values = list(values)
    return sum(values) / len(values)


def oracle(rows, scores, released: bool = False) -> dict[str, Any]:
    deltas, epsilons, averages = [], [], []
    by_pair, by_subject, by_class = defaultdict(list), defaultdict(list), defaultdict(list)
    by_cluster = defaultdict(list)
    for row, eight in zip(rows, scores, strict=True):
        s = {(int(k[1]), k[3:5], k.endswith("neg")): Fraction(v) for k, v in eight.items()}
        bias = {
            x: mean(s[x, o, False] for o in ("12", "21")) - mean(s[x, o, True] for o in ("12", "21")) for x in (1, 2)
        }
        questions = (False, True) if released else (False,)
        deltas.append(mean(abs(s[x, "12", q] - s[x, "21", q]) for x in (1, 2) for q in questions))
        epsilons.append(mean(abs(s[x, o, False] - s[3 - x, o, True]) for x in (1, 2) for o in ("12", "21")))
        averages.append(mean(s.values()))
        for x in (1, 2):
            c = (bias[x] - bias[3 - x]) / 2
            subject = row[f"subject{x}"]
            by_pair[subject, row["attribute"]].append(c)
            by_subject[subject].append(c)
            by_class[row["attribute_class"], subject].append(c)
            if row[f"cluster{x}"] != "None":
                by_cluster[row[f"cluster{x}"], row["attribute"]].append(c)

    def sign(c):
        return (c > 0) - (c < 0)

    gamma = {pair: mean(values) for pair, values in by_pair.items()}
    eta = {pair: Fraction(sum(map(sign, values)), len(values)) for pair, values in by_pair.items()}
    subjects = sorted(by_subject)
    gamma_subject = {x: mean(by_subject[x]) for x in subjects}

    def nested(flat) -> dict[str, dict[str, float]]:
        out: dict[str, dict[str, float]] = defaultdict(dict)
        for (outer, inner), value in flat.items():
            out[outer][inner] = value
        return dict(out)

    return {
        "delta": mean(deltas),
        "epsilon": mean(epsilons),
        "mu": mean(max(abs(v) for (x, _), v in gamma.items() if x == subject) for subject in subjects),
        "eta": mean(mean(abs(v) for (x, _), v in eta.items() if x == subject) for subject in subjects),
        "avg_score": mean(averages),
        "coverage": mean(int(v != 0) for eight in scores for v in eight.values()),
        "n": len(rows),
        "n_subjects": len(subjects),
        "n_attributes": len({row["attribute"] for row in rows}),
        "n_templates": len({row["template_id"] for row in rows}),
        "gamma": gamma_subject,
        "eta_subject": {x: Fraction(sum(map(sign, by_subject[x])), len(by_subject[x])) for x in subjects},
        "rank": {x: 1 + sum(gamma_subject[y] > gamma_subject[x] for y in subjects) for x in subjects},
        "top": [
            [*pair, gamma[pair], eta[pair]] for pair in sorted(gamma, key=lambda pair: (-abs(gamma[pair]), pair))[:10]
        ],
        "gamma_attribute": nested(gamma),
        "eta_attribute": nested(eta),
        "attribute_class": nested({key: mean(values) for key, values in by_class.items()}),
        "eta_attribute_class": nested({k: Fraction(sum(map(sign, v)), len(v)) for k, v in by_class.items()}),
        "cluster": nested(
            {k: {"gamma": mean(v), "eta": Fraction(sum(map(sign, v)), len(v))} for k, v in by_cluster.items()}
        ),
    }


def random_benchmark(seed: int, decimals: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A random part of a benchmark with clusters, classes, unequal templates, swapped subjects and shuffled rows."""
    rng = np.random.default_rng(seed)
    subjects = [f"s{k}" for k in range(rng.integers(2, 8))]
    cluster = {name: ["None", "east", "west"][rng.integers(3)] for name in subjects}
    cluster |= {"s0": "east", "s1": "west"}
    attributes = [f"a{k}" for k in range(rng.integers(1, 6))]
    rows = make_rows(subjects, int(rng.integers(1, 5)), attributes, None, cluster)
    kept = {0} | set(rng.choice(len(rows), size=max(1, len(rows) * 2 // 3), replace=False).tolist())
    kept = rng.permutation(sorted(kept)).tolist()
    rows = [{**rows[k], "attribute_class": ["rude", "poor"][int(rows[k]["attribute"][1:]) % 2]} for k in kept]
    for row in rows:
        if rng.random() < 0.5:
            for name in ("subject", "cluster"):
                row[f"{name}1"], row[f"{name}2"] = row[f"{name}2"], row[f"{name}1"]
    values = rng.random((len(rows), 8))
    if decimals is None:
        exact = [[float(v) for v in row] for row in values]
    else:  # many ties and zeros; the oracle reads 0.3 as 3/10
        exact = [[Fraction(int(v * 11), 10) for v in row] for row in values]
    return rows, [dict(zip(SCORE_COLUMNS, row, strict=True)) for row in exact]


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("seed", range(12))
def test_random_benchmarks_equal_the_oracle(unqover, seed, decimals):
    rows, scores = random_benchmark(seed, decimals)
    floats = [{name: float(value) for name, value in row.items()} for row in scores]
    for delta in ("paper", "released"):
        result = quiet(unqover, predictions=floats, references=rows, delta=delta, n_bootstrap=0)
        expected = oracle(rows, scores, delta == "released")
        assert same(result, expected, 1e-12), [key for key in expected if not same(result.get(key), expected[key])]


@pytest.mark.parametrize("seed", range(3))
def test_breakdowns_equal_the_oracle_on_the_selected_rows(unqover, seed):
    rows, scores = random_benchmark(seed, None)
    result = unqover.compute(
        predictions=scores,
        references=rows,
        by=["attribute_class", "template_id", ["cluster1", "attribute_class"]],
        n_bootstrap=10,
    )
    assert list(result["by"]) == ["attribute_class", "template_id", "cluster1,attribute_class"]
    for columns, groups in result["by"].items():
        names = columns.split(",")
        keys = [",".join(str(row[name]) for name in names) for row in rows]
        assert list(groups) == sorted(set(keys))
        for value, found in groups.items():
            inside = [k for k, key in enumerate(keys) if key == value]
            expected = oracle([rows[k] for k in inside], [scores[k] for k in inside])
            for name in (*HEADLINES, "n", "n_subjects", "n_attributes", "n_templates"):
                assert found[name] == pytest.approx(float(expected[name]), abs=1e-12)
            assert set(found) == {*HEADLINES, "n", "n_subjects", "n_attributes", "n_templates", "ci"}


def test_row_order_does_not_matter(unqover):
    rows, scores = random_benchmark(5, None)
    order = np.random.default_rng(9).permutation(len(rows)).tolist()
    left = unqover.compute(predictions=scores, references=rows, by=["template_id"])
    right = unqover.compute(
        predictions=[scores[k] for k in order], references=[rows[k] for k in order], by=["template_id"]
    )
    assert same(left, right)


# Traps


def test_t_u1_rows_are_complete_but_any_selection_of_rows_is_allowed(unqover):
    rows, scores = random_benchmark(3, None)
    for missing in (None, float("nan")):
        broken = [dict(row) for row in scores]
        broken[4]["s1_21_neg"] = missing
        with pytest.raises(ValueError, match=r"unqover: predictions row 4: s1_21_neg (None|nan) is not a score"):
            unqover.compute(predictions=broken, references=rows)
    half = unqover.compute(predictions=scores[::2], references=rows[::2], n_bootstrap=0)
    assert half["n"] == len(rows[::2])
    flipped = {**rows[0], "subject1": rows[0]["subject2"], "subject2": rows[0]["subject1"]}
    flipped |= {"cluster1": rows[0]["cluster2"], "cluster2": rows[0]["cluster1"]}
    with pytest.raises(ValueError, match="incomplete or doubled blocks: one row holds both orders, pass it once"):
        unqover.compute(predictions=[*scores, scores[0]], references=[*rows, flipped])


def test_t_u2_delta_is_a_mean_not_a_count_of_any_difference(unqover):
    rows = make_rows("abc", 2, ("X",))
    scores = respond(rows, lambda row, x, y, is_first, negated: 0.5 + 1e-6 * is_first)
    result = unqover.compute(predictions=scores, references=rows, n_bootstrap=0)
    assert result["delta"] == pytest.approx(1e-6, rel=1e-6)


def test_t_u3_mu_and_eta_are_over_names_not_over_clusters(unqover):
    # Ann always wins and Amy always loses against the men: over the women nothing is left, over the names all is.
    cluster = {"Ann": "female", "Amy": "female", "Bob": "male", "Ben": "male"}
    rows = make_rows(None, 1, ("X",), [("Ann", "Bob"), ("Ann", "Ben"), ("Amy", "Bob"), ("Amy", "Ben")], cluster)
    scores = respond(rows, lambda row, x, y, is_first, negated: float((("Ann" in (x, y)) == (x[0] == "A")) != negated))
    result = unqover.compute(predictions=scores, references=rows, n_bootstrap=0)
    assert result["gamma"] == {"Amy": -1.0, "Ann": 1.0, "Ben": 0.0, "Bob": 0.0}
    assert (result["mu"], result["eta"]) == (0.5, 0.5)
    assert result["cluster"]["female"]["X"] == {"gamma": 0.0, "eta": 0.0}


@pytest.mark.parametrize("factor", [0.5, 1e-3, 1e-12])
def test_t_u4_eta_and_ranks_are_free_of_scale_and_the_others_follow_it(unqover, factor):
    rows, scores = random_benchmark(2, 1)
    whole = [{name: float(v) for name, v in row.items()} for row in scores]
    part = [{name: float(v) * factor for name, v in row.items()} for row in scores]
    left = quiet(unqover, predictions=whole, references=rows, n_bootstrap=50)
    right = quiet(unqover, predictions=part, references=rows, n_bootstrap=50)
    for key in ("eta", "eta_subject", "eta_attribute", "rank", "coverage"):
        assert same(left[key], right[key])
    assert [entry[:2] for entry in left["top"]] == [entry[:2] for entry in right["top"]]
    for key in ("delta", "epsilon", "mu", "avg_score"):
        assert right[key] == pytest.approx(left[key] * factor, rel=1e-12)
    assert right["ci"]["mu"] == pytest.approx([bound * factor for bound in left["ci"]["mu"]], rel=1e-9)


def test_t_u5_low_coverage_is_told(unqover):
    rows = make_rows("abc", 2, ("X",))
    zero = respond(rows, lambda *_: 0.0)
    with pytest.warns(UserWarning, match=r"^unqover: coverage 0: most of the 48 subject scores are 0"):
        result = unqover.compute(predictions=zero, references=rows)
    assert (result["coverage"], result["avg_score"], result["mu"]) == (0.0, 0.0, 0.0)
    three = [{**row, **dict.fromkeys(SCORE_COLUMNS[:3], 0.25)} for row in zero]
    with pytest.warns(UserWarning, match=r"coverage 0\.375"):
        assert unqover.compute(predictions=three, references=rows)["coverage"] == 3 / 8
    four = [{**row, **dict.fromkeys(SCORE_COLUMNS[:4], 0.25)} for row in zero]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert unqover.compute(predictions=four, references=rows)["coverage"] == 0.5


def test_t_u8_names_that_contain_each_other_are_different_subjects(unqover):
    rows = make_rows(("African", "African-American", "african"), 1, ("X",))  # and T-U10: case is kept
    result = unqover.compute(predictions=random_scores(3), references=rows)
    assert set(result["gamma"]) == {"African", "African-American", "african"}


def test_t_u9_means_are_taken_over_attributes_then_over_subjects(unqover):
    # Pairs a-b on X and Y, c-d on X only. a beats b on X (C = 1), ties on Y; c beats d on X.
    rows = [
        make_row(0, subject1="a", subject2="b", attribute="X"),
        make_row(1, subject1="a", subject2="b", attribute="Y"),
        make_row(2, subject1="c", subject2="d", attribute="X"),
    ]
    scores = respond(rows, lambda row, x, y, f, neg: 0.5 if row["attribute"] == "Y" else float((x in "ac") != neg))
    result = unqover.compute(predictions=scores, references=rows, n_bootstrap=0)
    # |eta|: a, b: (1 + 0)/2; c, d: 1 (Y does not count for them) -> (0.5 + 0.5 + 1 + 1)/4; over all pairs it were 4/6.
    assert result["eta"] == 0.75
    assert result["mu"] == 1.0  # the maximum over attributes, then the mean; the mean over pairs were 4/6
    assert "Y" not in result["gamma_attribute"]["c"]


def test_gamma_of_a_subject_is_weighted_by_examples(unqover):
    # X in three templates with C = 1, Y in one with C = 0: 3/4, not (1 + 0)/2.
    rows = [make_row(k, template_id=k, attribute="X") for k in range(3)] + [make_row(3, template_id=3, attribute="Y")]
    scores = respond(rows, lambda row, x, y, f, neg: 0.5 if row["attribute"] == "Y" else float((x == "Ada") != neg))
    assert unqover.compute(predictions=scores, references=rows)["gamma"] == {"Ada": 0.75, "Bea": -0.75}


def test_equal_attribute_texts_of_different_blocks_are_one_attribute(unqover):
    rows = [make_row(0, template_id=0, attribute="X"), make_row(1, template_id=6, attribute="X")]
    result = unqover.compute(predictions=random_scores(2), references=rows)
    assert (result["n_attributes"], result["n_templates"]) == (1, 2)


def test_rows_within_a_cluster_cancel_and_dilute(unqover):
    # a beats every one (C = 1), b and c tie. East is a, b; west is c.
    cluster = {"a": "east", "b": "east", "c": "west"}
    rows = make_rows("abc", 1, ("X",), None, cluster)
    scores = respond(rows, lambda row, x, y, f, neg: float((x == "a") != neg) if "a" in (x, y) else 0.5)
    result = unqover.compute(predictions=scores, references=rows)
    # east: a-b gives +1 and -1, a-c gives +1, b-c gives 0 -> 1/4; west: c-a gives -1, c-b gives 0 -> -1/2
    assert result["cluster"] == {
        "east": {"X": {"gamma": 0.25, "eta": 0.25}},
        "west": {"X": {"gamma": -0.5, "eta": -0.5}},
    }
    one = [{**row, "cluster1": "all", "cluster2": "all"} for row in rows]
    assert "cluster" not in unqover.compute(predictions=scores, references=one)


@pytest.mark.parametrize("empty", ["None", "", None])
def test_no_cluster_and_no_class_may_be_written_in_three_ways(unqover, empty):
    rows = [
        {**row, "cluster1": empty, "cluster2": empty, "attribute_class": empty} for row in make_rows("abc", 2, ("X",))
    ]
    result = unqover.compute(predictions=random_scores(6), references=rows, by=["attribute_class"])
    assert "cluster" not in result
    assert list(result["attribute_class"]) == ["None"]


# Intervals


def test_intervals_are_those_of_a_bootstrap_that_repeats_templates(unqover, scores_module):
    # Templates 0, 1 hold the attribute X only and 2 holds Y only: some replicates lack one of them.
    rows = [
        make_row(k, template_id=k % 3, attribute="XXY"[k % 3], subject1="a", subject2="bcd"[k // 3]) for k in range(9)
    ]
    scores = random_scores(9, seed=4)
    result = unqover.compute(predictions=scores, references=rows, n_bootstrap=200, seed=3, confidence=0.8)
    weights = np.random.default_rng(3).multinomial(3, np.full(3, 1 / 3), size=200)
    replicates = {name: [] for name in HEADLINES}
    for weight in weights:
        # A template drawn twice is twice in the data, under another name.
        drawn = [(k, copy) for k in range(9) for copy in range(weight[k % 3])]
        part = oracle(
            [{**rows[k], "template_id": f"{k % 3}-{copy}"} for k, copy in drawn], [scores[k] for k, _ in drawn]
        )
        for name in HEADLINES:
            replicates[name].append(float(part[name]))
    expected = {name: np.quantile(values, [0.1, 0.9]).tolist() for name, values in replicates.items()}
    assert same(result["ci"], expected)
    scores_module._CHUNK = 1  # one replicate at a time
    try:
        codes = {key: np.array([row[name] for row in rows]) for key, name in (("t", "template_id"),)}
        columns = {name: np.array([row[name] for row in scores]) for name in SCORE_COLUMNS}
        table = scores_module.Rows(
            np.zeros(9, dtype=np.int64),
            np.array(["abcd".index(row["subject2"]) for row in rows]),
            np.array(["XY".index(row["attribute"]) for row in rows]),
            codes["t"],
            *scores_module.measure(columns),
        )
        assert same(scores_module.bootstrap(scores_module.collect(table, 4, 2, 3), 200, 3, 0.8), expected)
    finally:
        scores_module._CHUNK = 2_000_000


def test_intervals_need_two_templates_and_can_be_left_out(unqover):
    rows = make_rows("abc", 1, ("X",))
    result = unqover.compute(predictions=random_scores(3), references=rows)
    assert all(math.isnan(bound) for name in HEADLINES for bound in result["ci"][name])
    assert "ci" not in unqover.compute(predictions=random_scores(3), references=rows, n_bootstrap=0)


def test_seed_fixes_the_intervals(unqover):
    rows = make_rows("abc", 12, ("X", "Y"))
    scores = random_scores(len(rows))
    runs = [unqover.compute(predictions=scores, references=rows, seed=seed, n_bootstrap=30)["ci"] for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    low, high = runs[0]["delta"]
    assert low < unqover.compute(predictions=scores, references=rows)["delta"] < high


# Shapes of input


def as_dataset(rows) -> datasets.Dataset:
    return datasets.Dataset.from_list(rows)


def as_dictionary_table(rows) -> pa.Table:
    """Strings dictionary-encoded in two chunks with dictionaries of their own."""
    halves = [pa.Table.from_pylist(part) for part in (rows[:7], rows[7:])]
    encoded = [
        pa.table(
            {
                n: c.dictionary_encode() if pa.types.is_string(c.type) else c
                for n, c in zip(t.column_names, t.columns, strict=True)
            }
        )
        for t in halves
    ]
    return pa.concat_tables(encoded)


@pytest.mark.parametrize(
    "shape",
    [
        columns_of,
        as_dataset,
        pa.Table.from_pylist,
        as_dictionary_table,
        tuple,
        lambda rows: {name: np.array(values) for name, values in columns_of(rows).items()},
        lambda rows: {name: np.array(values, dtype=object) for name, values in columns_of(rows).items()},
        lambda rows: as_dataset(rows).to_pandas(),
        lambda rows: {name: as_dataset(rows)[name] for name in rows[0]},
        lambda rows: as_dataset(rows).with_format("numpy"),
        lambda rows: datasets.concatenate_datasets([as_dataset(rows[:5]), as_dataset(rows[5:])]),
        lambda rows: as_dataset([*rows[::-1], *rows]).select([*range(len(rows))][::-1]),
    ],
)
def test_every_shape_of_input_gives_the_same(unqover, shape):
    rows, scores = random_benchmark(6, None)
    rows = [{**row, "context": "not read"} for row in rows]
    expected = unqover.compute(predictions=scores, references=rows, by=["attribute_class"])
    result = unqover.compute(predictions=shape(scores), references=shape(rows), by=["attribute_class"])
    assert same(result, expected)


def test_categories_and_nullable_columns_of_pandas_are_read(unqover):
    rows, scores = random_benchmark(6, None)
    texts = dict.fromkeys(set(rows[0]) - {"example_id"}, "category")
    references = as_dataset(rows).to_pandas().astype(texts)
    predictions = as_dataset(scores).to_pandas().astype("Float64")
    expected = unqover.compute(predictions=scores, references=rows, by=["attribute_class"])
    result = unqover.compute(predictions=predictions, references=references, by=["attribute_class"])
    assert same(result, expected)
    predictions.loc[2, "s1_12"] = None
    with pytest.raises(ValueError, match=r"predictions row 2: s1_12 .* is not a score"):
        unqover.compute(predictions=predictions, references=references)


def test_shuffled_and_selected_datasets_keep_their_order(unqover):
    rows, scores = random_benchmark(6, None)
    rows = [{**row, **score} for row, score in zip(rows, scores, strict=True)]
    dataset = datasets.Dataset.from_list(rows)
    expected = unqover.compute(predictions=scores, references=rows)
    shuffled = dataset.shuffle(seed=2)
    assert same(unqover.compute(predictions=shuffled, references=shuffled), expected)
    part = dataset.filter(lambda row: row["template_id"] != 0)
    kept = [k for k, row in enumerate(rows) if row["template_id"] != 0]
    assert same(
        unqover.compute(predictions=part, references=part),
        unqover.compute(predictions=[scores[k] for k in kept], references=[rows[k] for k in kept]),
    )


def test_class_labels_are_read_by_name(unqover):
    rows, scores = random_benchmark(6, None)
    dataset = datasets.Dataset.from_list(rows).class_encode_column("attribute_class").class_encode_column("subject1")
    by = ["attribute_class"]
    assert same(
        unqover.compute(predictions=scores, references=dataset, by=by),
        unqover.compute(predictions=scores, references=rows, by=by),
    )


def test_float32_is_summed_in_float64_and_template_ids_may_be_texts(unqover):
    rows, scores = random_benchmark(6, None)
    single = {name: np.array([row[name] for row in scores], dtype=np.float32) for name in SCORE_COLUMNS}
    widened = {name: values.astype(np.float64) for name, values in single.items()}
    named = [{**row, "template_id": str(row["template_id"])} for row in rows]
    result = unqover.compute(predictions=single, references=named)
    assert same(result, unqover.compute(predictions=widened, references=rows))
    assert single["s1_12"].dtype == np.float32  # what the user passed stays as it is


def test_noise_above_one_is_clipped_and_inputs_stay_as_they_are(unqover):
    scores = {name: np.array([1.0 + 1e-6]) for name in SCORE_COLUMNS}
    result = unqover.compute(predictions=scores, references=[make_row()])
    assert result["avg_score"] == 1.0
    assert scores["s1_12"][0] > 1.0


def test_unused_categories_do_not_count(unqover):
    rows = columns_of(make_rows("abc", 1, ("X",)))
    rows["attribute"] = pa.DictionaryArray.from_arrays(pa.array([1, 1, 1]), pa.array(["W", "X"]))
    result = unqover.compute(predictions=random_scores(3), references=rows)
    assert result["n_attributes"] == 1


def test_added_batches_give_the_result_of_one_call(unqover):
    rows, scores = random_benchmark(6, None)
    expected = unqover.compute(predictions=scores, references=rows, by=["template_id"])
    buffer = {name: np.array([row[name] for row in scores[:5]]) for name in SCORE_COLUMNS}
    metric = evaluate.load(str(FOLDER))
    metric.add_batch(predictions=buffer, references=columns_of(rows[:5]))
    buffer["s1_12"][:] = 0.0  # batches are copies
    metric.add_batch(predictions=as_dataset(scores[5:9]), references=as_dataset(rows[5:9]))
    metric.add(prediction=scores[9], reference=rows[9])
    with pytest.raises(ValueError, match="is not one of"):
        metric.compute(delta="eq2")  # batches survive an error
    assert same(metric.compute(predictions=scores[10:], references=rows[10:], by=["template_id"]), expected)
    with pytest.raises(ValueError, match="predictions are missing"):
        metric.compute()
    metric.add_batch(predictions=scores[:5], references=rows[:5])
    metric.add(prediction=scores[5], reference={k: v for k, v in rows[5].items() if k != "attribute"})
    with pytest.raises(ValueError, match=r"references row 0: column 'attribute' is missing"):
        metric.compute()


def test_result_can_be_written_as_json_and_holds_plain_numbers(unqover):
    rows, scores = random_benchmark(6, None)
    columns = {name: np.array([row[name] for row in scores]) for name in SCORE_COLUMNS}
    result = unqover.compute(predictions=columns, references=rows, by=["template_id"])
    assert same(json.loads(json.dumps(result)), result, 0.0)


def test_top_k(unqover):
    rows, scores = random_benchmark(6, None)
    for k in (0, 1, 3, 1000):
        top = unqover.compute(predictions=scores, references=rows, top_k=k, n_bootstrap=0)["top"]
        gammas = [abs(entry[2]) for entry in top]
        assert len(top) <= k
        assert gammas == sorted(gammas, reverse=True)


# Errors


def changed(row: int, **columns: Any) -> list[dict[str, Any]]:
    rows = make_rows("abc", 2, ("X",))
    rows[row] = {**rows[row], **columns}
    return rows


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (changed(3, subject1=7), "3: subject1 7 is not a string"),
        (changed(3, attribute=None), "3: attribute None is not a string"),
        (changed(2, attribute=["X"]), "2: attribute ['X'] is not a string"),
        (changed(2, cluster2=1), "2: cluster2 1 is not a string"),
        (changed(5, attribute_class=2.5), "5: attribute_class 2.5 is not a string"),
        (changed(1, template_id=None), "1: template_id None is neither a string nor an integer"),
        (changed(0, template_id=0.5), "0: template_id 0.5 is neither a string nor an integer"),
        (changed(1, template_id=True), "1: template_id True is neither a string nor an integer"),
        (changed(1, example_id="1"), "1: example_id '1' is not an integer"),
        (changed(1, example_id=None), "1: example_id None is not an integer"),
        (changed(0, subject2="a"), "0: subject1 'a' is also subject2; a row compares two different subjects"),
        (
            changed(3, template_id=0),
            "3: the subjects ('a', 'c') with template_id '0' and attribute 'X' repeat row 2; incomplete or doubled",
        ),
        (
            changed(4, subject1="c", subject2="a", template_id=0),
            "4: the subjects ('c', 'a') with template_id '0' and attribute 'X' repeat row 2; incomplete or doubled",
        ),
        (changed(1, cluster1="east"), "1: cluster1 'east' of subject 'a' is 'None' in another row; a subject has one"),
        (changed(5, cluster2="east"), "5: cluster2 'east' of subject 'c' is 'None' in another row; a subject has one"),
        ([*changed(0)[:5], "row"], "5: 'row' is not a dict; pass dataset rows"),
    ],
)
def test_a_bad_row_is_named(unqover, references, message):
    with pytest.raises(ValueError, match=r"^unqover: references row \d+: ") as error:
        unqover.compute(predictions=random_scores(6), references=references)
    assert str(error.value).removeprefix("unqover: references row ").startswith(message)


@pytest.mark.parametrize("value", [-1e-9, 1.0001, float("nan"), float("inf"), None, "0.5", [0.5]])
@pytest.mark.parametrize("shape", [list, columns_of])
def test_a_bad_score_is_named(unqover, value, shape):
    scores = random_scores(6)
    scores[4]["s2_12_neg"] = value
    with pytest.raises(
        ValueError, match=r"^unqover: predictions row 4: s2_12_neg .* is not a score from 0 to 1"
    ) as error:
        unqover.compute(predictions=shape(scores), references=changed(0))
    assert repr(value) in str(error.value) or value is None


@pytest.mark.parametrize("name", SCORE_COLUMNS)
def test_a_missing_score_is_named(unqover, name):
    scores = random_scores(6)
    columns = columns_of(scores)
    del scores[2][name], columns[name]
    with pytest.raises(ValueError, match=f"unqover: predictions row 2: score '{name}' is missing; pass all eight"):
        unqover.compute(predictions=scores, references=changed(0))
    for short in (columns, datasets.Dataset.from_dict(columns)):
        with pytest.raises(ValueError, match=f"unqover: predictions: score '{name}' is missing; pass all eight scores"):
            unqover.compute(predictions=short, references=changed(0))


@pytest.mark.parametrize("name", list(make_row()))
def test_a_missing_column_is_named(unqover, name):
    rows = changed(0)
    dataset = datasets.Dataset.from_list(rows).remove_columns(name)
    del rows[3][name]
    with pytest.raises(ValueError, match=f"unqover: references row 3: column '{name}' is missing"):
        unqover.compute(predictions=random_scores(6), references=rows)
    with pytest.raises(ValueError, match=f"unqover: references: column '{name}' is missing"):
        unqover.compute(predictions=random_scores(6), references=dataset)


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (random_scores(5), changed(0), "unqover: 5 predictions but 6 references; pass eight scores a row, in the same"),
        (
            random_scores(6),
            "rows",
            "unqover: references are a str; pass a list of dicts, a dict of columns or a Dataset",
        ),
        (random_scores(6), {"subject1": "a"}, "unqover: references column 'subject1' is a str; pass one value a row"),
        (random_scores(1)[0], changed(0), "unqover: predictions column 's1_12' is a float; pass one value a row"),
        ([0.5] * 6, changed(0), "unqover: predictions row 0: 0.5 is not a dict; pass the eight scores of each row by"),
        (random_scores(6), {"a": [1], "b": []}, "unqover: references: the columns differ in length ({'a': 1, 'b': 0})"),
        (random_scores(6), None, "unqover: references are missing; pass predictions and references together"),
        (None, changed(0), "unqover: predictions are missing; pass predictions and references together"),
        (
            [{**row, "example_id": k // 5} for k, row in enumerate(random_scores(6))],
            [{**row, "example_id": k // 4} for k, row in enumerate(changed(0))],
            "unqover: predictions row 4: example_id 0 differs from that of the references, 1; pass one prediction",
        ),
        (
            random_scores(6),
            datasets.DatasetDict({"test": datasets.Dataset.from_list(changed(0))}),
            "unqover: references hold the splits ['test']; pass one of them",
        ),
    ],
)
def test_bad_inputs_are_named(unqover, predictions, references, message):
    with pytest.raises(ValueError, match=r"^unqover: ") as error:
        unqover.compute(predictions=predictions, references=references)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("empty", [[], {}, datasets.Dataset.from_dict({})])
def test_limit_empty_input_is_refused(unqover, empty):
    with pytest.raises(
        ValueError, match="unqover: predictions and references are empty; pass at least one dataset row"
    ):
        unqover.compute(predictions=[], references=empty)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": "eq2"}, "unqover: delta 'eq2' is not one of ('paper', 'released')"),
        ({"top_k": -1}, "unqover: top_k -1 is not an integer of 0 or more"),
        ({"n_bootstrap": 1.5}, "unqover: n_bootstrap 1.5 is not an integer of 0 or more"),
        ({"seed": None}, "unqover: seed None is not an integer of 0 or more"),
        ({"confidence": 95}, "unqover: confidence 95 is not above 0 and below 1"),
        ({"by": ["topic"]}, "unqover: references: column 'topic' is missing"),
        ({"by": [3]}, "unqover: by entry 3 is neither a column name nor a list of column names"),
        ({"by": [[]]}, "unqover: by entry [] is neither"),
        ({"by": "tags"}, "unqover: references row 0: tags ['a'] is not a single value; leave it out of by"),
    ],
)
def test_bad_options_are_named(unqover, options, message):
    rows = [{**row, "tags": ["a"]} for row in changed(0)]
    with pytest.raises(ValueError, match=r"^unqover: ") as error:
        unqover.compute(predictions=random_scores(6), references=rows, **options)
    assert str(error.value).startswith(message)


def test_a_template_for_every_row_is_refused_and_so_are_several_processes(unqover):
    n = 20_000
    rows = columns_of([make_row()] * n)
    rows |= {"template_id": np.arange(n), "subject1": [f"x{k % 100}" for k in range(n)]}
    rows["attribute"] = [f"a{k % 99}" for k in range(n)]
    scores = {name: np.full(n, 0.5) for name in SCORE_COLUMNS}
    with pytest.raises(
        ValueError, match="template_id has 20000 values beside 101 subjects and 99 attributes, too many"
    ):
        unqover.compute(predictions=scores, references=rows)
    several = evaluate.load(str(FOLDER), num_process=2, process_id=0, experiment_id="unqover-test")
    with pytest.raises(ValueError, match="num_process 2 is not supported"):
        several.compute(predictions=random_scores(6), references=changed(0))
    with pytest.raises(TypeError, match="unexpected keyword argument 'normalise'"):
        unqover.compute(predictions=random_scores(6), references=changed(0), normalise=True)


# The module folder


def test_scores_need_nothing_but_numpy(scores_module):
    tree = ast.parse((FOLDER / "scores.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} == {"__future__", "collections", "typing", "numpy"}
    assert scores_module.SCORE_COLUMNS == SCORE_COLUMNS
    assert scores_module.HEADLINES == HEADLINES
    with pytest.raises(ValueError, match="measure: delta 'x' is not one of"):
        scores_module.measure({}, "x")


@pytest.mark.parametrize("size", [10, 10**9])
def test_relabel_gives_the_same_with_and_without_a_table(scores_module, size):
    used, places = scores_module.relabel(np.array([7, 2, 7, 5]), size)
    assert (used.tolist(), places.tolist()) == ([2, 5, 7], [2, 0, 2, 1])


def test_a_copied_folder_loads_away_from_the_checkout(tmp_path, monkeypatch):
    copy = tmp_path / "elsewhere" / "unqover"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT])
    for path in (copy, copy / "unqover.py"):
        metric = evaluate.load(str(path))
        assert metric.compute(predictions=[FIGURE_2], references=[make_row()])["eta"] == 1.0


def test_module_describes_itself(unqover):
    assert "Li, Tao" in unqover.citation
    assert "Args:" in unqover.inputs_description
    for features in unqover.features:
        assert set(features["references"]) == set(make_row())
        assert tuple(features["predictions"]) == SCORE_COLUMNS


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


def test_card_names_every_key_of_the_result(unqover):
    rows = make_rows("abc", 2, ("X",), None, {"a": "east", "b": "east", "c": "west"})
    result = unqover.compute(predictions=random_scores(6), references=rows, by=["template_id"])
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for key in result:
        assert f"`{key}`" in card
        assert key in unqover.inputs_description


def test_examples_of_card_and_docstring_run(unqover, monkeypatch):
    monkeypatch.chdir(ROOT)
    for text in ((FOLDER / "README.md").read_text(encoding="utf-8"), unqover.inputs_description):
        examples = doctest.DocTestParser().get_doctest(text, {"evaluate": evaluate}, "unqover", None, 0)
        result = doctest.DocTestRunner().run(examples)
        assert result.attempted > 1
        assert result.failed == 0


# Speed


def test_t_u11_the_gender_set_takes_less_than_five_seconds(unqover):
    place = np.arange(70 * 70 * 4 * 70)  # 1,372,000 rows, as in the paper

    def text(codes: np.ndarray, levels: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(levels)).cast(pa.string())

    rows = pa.table(
        {
            "example_id": place,
            "template_id": place // 70 % 4,
            "subject1": text(place // 19_600, [f"Female {k}" for k in range(70)]),
            "subject2": text(place // 280 % 70, [f"Male {k}" for k in range(70)]),
            "cluster1": text(np.zeros_like(place), ["female"]),
            "cluster2": text(np.zeros_like(place), ["male"]),
            "attribute": text(place % 70, [f"was an occupation of number {k}" for k in range(70)]),
            "attribute_class": text(np.zeros_like(place), ["None"]),
        }
    )
    rng = np.random.default_rng(0)
    scores = {name: rng.random(len(place), dtype=np.float32) for name in SCORE_COLUMNS}
    for references in (datasets.Dataset(rows), datasets.Dataset(rows).shuffle(seed=0)):
        start = time.perf_counter()
        result = unqover.compute(predictions=scores, references=references, n_bootstrap=0)
        assert time.perf_counter() - start < 5.0
        assert (result["n"], result["n_subjects"], result["n_attributes"]) == (1_372_000, 140, 70)
    start = time.perf_counter()
    ci = unqover.compute(predictions=scores, references=rows, by=["attribute"])["ci"]
    assert time.perf_counter() - start < 10.0
    assert ci["avg_score"][0] < 0.5 < ci["avg_score"][1]
