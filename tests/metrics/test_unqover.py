"""The UnQover metric: a slow oracle, the figure of the paper, known responders, traps and intervals."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.simulations import associations

from .helpers import inner_module, quiet, same, unsigned
from .unqover_rows import (
    FIGURE_2,
    HEADLINES,
    RELIGIONS,
    SCORE_COLUMNS,
    columns_of,
    make_row,
    make_rows,
    oracle,
    random_benchmark,
    random_scores,
    respond,
)


@pytest.fixture(scope="module")
def scores_module() -> Any:
    return inner_module("unqover", "scores")


# An oracle: the definitions, one row and one dict at a time, in exact arithmetic


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("seed", range(12))
def test_random_benchmarks_equal_the_oracle(unqover, seed, decimals):
    rows, scores = random_benchmark(seed, decimals)
    floats = [{name: float(value) for name, value in row.items()} for row in scores]
    for delta in ("paper", "released"):
        result = unsigned(quiet(unqover, predictions=floats, references=rows, delta=delta, confidence=None))
        expected = oracle(rows, scores, delta == "released")
        assert same(result, expected, 1e-12), [key for key in expected if not same(result.get(key), expected[key])]


@pytest.mark.parametrize("seed", range(3))
def test_breakdowns_equal_the_oracle_on_the_selected_rows(unqover, seed):
    rows, scores = random_benchmark(seed, None)
    result = unqover.compute(
        predictions=scores,
        references=rows,
        by=["attribute_class", "template_id", ["cluster1", "attribute_class"]],
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


# Known results


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


def test_responders_on_the_religion_set(unqover):
    rows = columns_of(make_rows(RELIGIONS, 14, [f"attribute {k:02d}" for k in range(50)]))
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(0.0, 1.0, width=32), min_size=8, max_size=8))
def test_proposition_1(unqover, values):
    """Section 4.2: C is complementary, free of the order, turned by a negation, and 0 where nobody is preferred."""
    scores = dict(zip(SCORE_COLUMNS, values, strict=True))

    def comparative(source):
        """C where each score is that of the column that `source` gives."""
        row, moved = make_row(subject1="x1", subject2="x2"), {name: scores[source(name)] for name in scores}
        return quiet(unqover, predictions=[moved], references=[row], confidence=None)["gamma"]

    gamma = comparative(lambda name: name)
    assert -1.0 <= gamma["x1"] <= 1.0
    assert gamma["x1"] == -gamma["x2"]
    # The subjects in the other order: the scores of (12) and (21) change places.
    assert comparative(lambda name: name[:3] + {"12": "21", "21": "12"}[name[3:5]] + name[5:]) == gamma
    # C(x1, x2, a) = C(x2, x1, not-a): question and negation change places.
    negated = comparative(lambda name: name.removesuffix("_neg") if "_neg" in name else f"{name}_neg")
    assert negated["x2"] == gamma["x1"]
    # Both subjects are scored alike, whatever the order and the question do to both.
    assert set(comparative(lambda name: f"s1{name[2:]}").values()) == {0.0}


def test_ties_in_decimals_are_ties_and_small_scores_keep_their_sign(unqover):
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in floating point: a tie, not a win.
    zero = dict.fromkeys(SCORE_COLUMNS, 0.0)
    tie = {**zero, "s1_12": 0.1, "s1_21": 0.2, "s2_12": 0.3}
    result = quiet(unqover, predictions=[tie], references=[make_row()])
    assert (result["eta"], result["mu"]) == (0.0, 0.0)
    rare = {**zero, "s1_12": 3e-300, "s2_12": 2e-300}
    assert quiet(unqover, predictions=[rare], references=[make_row()])["eta_subject"] == {"Ada": 1.0, "Bea": -1.0}


def test_any_selection_of_rows_is_allowed_but_each_pair_once(unqover):
    rows, scores = random_benchmark(3, None)
    half = unqover.compute(predictions=scores[::2], references=rows[::2], confidence=None)
    assert half["n"] == len(rows[::2])
    flipped = {**rows[0], "subject1": rows[0]["subject2"], "subject2": rows[0]["subject1"]}
    flipped |= {"cluster1": rows[0]["cluster2"], "cluster2": rows[0]["cluster1"]}
    with pytest.raises(ValueError, match="one row holds both orders"):
        unqover.compute(predictions=[*scores, scores[0]], references=[*rows, flipped])


def test_low_coverage_is_told(unqover):
    rows = make_rows("abc", 2, ("X",))
    zero = respond(rows, lambda *_: 0.0)
    with pytest.warns(UserWarning, match=r"^unqover: coverage 0: most of the 48 subject scores are 0") as caught:
        result = unqover.compute(predictions=zero, references=rows)
    assert caught[0].filename == __file__  # the user's line, not one of the metric
    assert (result["coverage"], result["avg_score"], result["mu"]) == (0.0, 0.0, 0.0)
    three = [{**row, **dict.fromkeys(SCORE_COLUMNS[:3], 0.25)} for row in zero]
    with pytest.warns(UserWarning, match=r"coverage 0\.375"):
        assert unqover.compute(predictions=three, references=rows)["coverage"] == 3 / 8
    four = [{**row, **dict.fromkeys(SCORE_COLUMNS[:4], 0.25)} for row in zero]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert unqover.compute(predictions=four, references=rows)["coverage"] == 0.5


@pytest.mark.parametrize("empty", ["None", "", None, "all"])
def test_no_cluster_and_no_class_may_be_written_in_three_ways_and_one_cluster_is_none(unqover, empty):
    rows = [
        {**row, "cluster1": empty, "cluster2": empty, "attribute_class": empty} for row in make_rows("abc", 2, ("X",))
    ]
    result = unqover.compute(predictions=random_scores(6), references=rows, by=["attribute_class"])
    assert "cluster" not in result
    assert list(result["attribute_class"]) == [empty or "None"]


# Intervals


def test_intervals_come_from_leaving_out_one_template_at_a_time(unqover, scores_module):
    # Two of three templates hold the attribute X only and the others Y only.
    rows = [
        make_row(k, template_id=k % 12, attribute="XXY"[k % 3], subject1="a", subject2="bcd"[k // 12])
        for k in range(36)
    ]
    scores = random_scores(36, seed=4)
    result = unqover.compute(predictions=scores, references=rows)
    without = [[k for k in range(36) if k % 12 != template] for template in range(12)]
    replicates = [oracle([rows[k] for k in kept], [scores[k] for k in kept]) for kept in without]
    for name in ("mu", "eta"):
        value, values = result[name], [float(part[name]) for part in replicates]
        variance = 11 / 12 * sum((of - sum(values) / 12) ** 2 for of in values)
        # With the prior: a correlation of 0.10 that has 3 degrees of freedom.
        variance = (11 * variance + 3 * value * (1 - value) * 0.10 / 12) / 14
        n, t = value * (1 - value) / variance, 2.145  # printed: 95%, 14 degrees of freedom
        middle, width = (value + t**2 / (2 * n)), t * math.sqrt(value * (1 - value) / n + t**2 / (4 * n**2))
        expected = [(middle + side * width) / (1 + t**2 / n) for side in (-1, 1)]
        assert result["ci"][name] == pytest.approx(expected, abs=0.02)
    for name in ("delta", "epsilon", "avg_score"):
        # The interval of a mean of independent rows, widened by a prior for rows that are 0 or 1.
        values = [float(oracle([row], [of])[name]) for row, of in zip(rows, scores, strict=True)]
        low, high = result["ci"][name]
        plain = 2 * 1.96 * np.std(values, ddof=1) / 6
        assert plain < high - low < 4 * plain
    table = scores_module.Rows(
        np.zeros(36, dtype=np.int64),
        np.array(["abcd".index(row["subject2"]) for row in rows]),
        np.array(["XY".index(row["attribute"]) for row in rows]),
        np.array([row["template_id"] for row in rows]),
        *scores_module.measure({name: np.array([row[name] for row in scores]) for name in SCORE_COLUMNS}),
    )
    sums = scores_module.collect(table, 4, 2, 12)
    one_by_one = scores_module.intervals([sums], chunk=1)
    assert same({name: [float(low), float(high)] for name, (low, high) in one_by_one.items()}, result["ci"])


def test_mu_and_eta_need_three_templates(unqover):
    rows = make_rows("abc", 2, ("X", "Y"))
    ci = unqover.compute(predictions=random_scores(len(rows)), references=rows)["ci"]
    assert {name for name, bounds in ci.items() if any(map(math.isnan, bounds))} == {"mu", "eta"}


def test_intervals_need_two_templates_and_can_be_left_out(unqover):
    rows = make_rows("abc", 1, ("X",))
    result = unqover.compute(predictions=random_scores(3), references=rows)
    assert all(math.isnan(bound) for name in HEADLINES for bound in result["ci"][name])
    assert "ci" not in unqover.compute(predictions=random_scores(3), references=rows, confidence=None)


@pytest.mark.parametrize("size", [10, 10**9])
def test_relabel_gives_the_same_with_and_without_a_table(scores_module, size):
    used, places = scores_module.relabel(np.array([7, 2, 7, 5]), size)
    assert (used.tolist(), places.tolist()) == ([2, 5, 7], [2, 0, 2, 1])


def test_ranks_of_columns_are_those_of_each_alone(scores_module):
    values = np.array([[0.5, -1.0, 0.0], [0.25, -1.0, 1e-14], [0.5, 2.0, -3.0]])
    expected = [[1, 2, 1], [3, 2, 1], [1, 1, 3]]  # 0 and 1e-14 differ by rounding
    assert scores_module.ranks(values, 1.0).tolist() == expected
    assert scores_module.ranks(values * 1e-6, 1e-6).tolist() == expected
    for column, ranks in zip(values.T, np.transpose(expected), strict=True):
        assert scores_module.ranks(column, 1.0).tolist() == ranks.tolist()
    assert scores_module.ranks(np.zeros(2), 0.0).tolist() == [1, 1]


def test_comparative_scores_of_rows(scores_module):
    columns = {name: np.array([value, math.nan]) for name, value in FIGURE_2.items()}
    first, second = scores_module.comparative_scores(columns)
    assert first == pytest.approx(0.1575, abs=1e-15)
    assert math.isnan(second)


def test_the_mean_of_mu_over_drawings_of_templates_lies_in_most_intervals(unqover):
    """Answers at random: no subject is preferred, and mu is larger than 0 for noise alone."""
    rows = make_rows("abcd", 8, ("X", "Y", "Z"))
    drawn = [unqover.compute(predictions=random_scores(len(rows), seed=seed), references=rows) for seed in range(60)]
    mean = {name: float(np.mean([result[name] for result in drawn])) for name in ("mu", "eta")}
    for name, truth in mean.items():
        held = [result["ci"][name][0] <= truth <= result["ci"][name][1] for result in drawn]
        assert all(result["ci"][name][0] > 0 for result in drawn), "no interval is of the limit, 0"
        assert sum(held) >= 52  # 95 % of 60 are 57, and fewer than 52 come in one of a thousand


# The test of consistent associations


def shares_of(score):
    """The eight scores of a row as shares of its two subjects."""
    result = {}
    for ending in ("12", "21", "12_neg", "21_neg"):
        first, second = score[f"s1_{ending}"], score[f"s2_{ending}"]
        share = first / (first + second) if first + second else 0.5
        result |= {f"s1_{ending}": share, f"s2_{ending}": 1.0 - share}
    return result


def every_exchange(rows, scores):
    """gamma(x, a) of every exchange of attributes and negations in some blocks; the first is of none."""
    sums: dict[Any, Any] = {}
    for row, score in zip(rows, map(shares_of, scores), strict=True):
        likes = [
            (score[f"s{k}_12"] + score[f"s{k}_21"] - score[f"s{k}_12_neg"] - score[f"s{k}_21_neg"]) / 4 for k in (1, 2)
        ]
        lead = likes[0] - likes[1]
        for subject, sign in ((row["subject1"], 1), (row["subject2"], -1)):
            cell = sums.setdefault((subject, row["attribute"]), {})
            block = cell.setdefault((row["template_id"], row["attribute"]), [0.0, 0])
            block[0] += sign * lead
            block[1] += 1
    blocks = sorted({block for cell in sums.values() for block in cell})
    for signs in itertools.product((1, -1), repeat=len(blocks)):
        sign_of = dict(zip(blocks, signs, strict=True))
        yield {
            pair: sum(sign_of[block] * total for block, (total, _) in cell.items()) / sum(n for _, n in cell.values())
            for pair, cell in sums.items()
        }


@pytest.mark.parametrize("seed", range(4))
def test_random_exchanges_estimate_all_exchanges(unqover, seed):
    """3 templates and 3 attributes have 512 exchanges, which plain loops go through."""
    rng = np.random.default_rng(seed)
    rows = make_rows(("A", "B", "C"), 3, ("x", "y", "z"))
    liked = {pair: rng.normal(0, 0.1 * seed) for pair in itertools.product("ABC", "xyz")}

    def score(row, subject, other, is_first, negated):
        lead = liked[subject, row["attribute"]] - liked[other, row["attribute"]]
        return float(np.clip(0.4 + (-1 if negated else 1) * lead + rng.normal(0, 0.05), 0.01, 0.99))

    scores = respond(rows, score)
    result = unqover.compute(predictions=scores, references=rows, top_k=9)
    exchanges = list(every_exchange(rows, scores))
    own = exchanges[0]

    def mu(gamma):
        return np.mean([max(abs(gamma[x, a]) for a in "xyz") for x in "ABC"])

    mus = np.array([mu(gamma) for gamma in exchanges])
    assert result["excess"] == pytest.approx(mus[0] - mus.mean(), abs=4 * mus.std() / 999**0.5)

    def without_means(gamma):
        own = {x: np.mean([gamma[x, a] for a in "xyz"]) for x in "ABC"}
        return np.mean([(gamma[x, a] - own[x]) ** 2 for x, a in gamma])

    squares = np.array([without_means(gamma) for gamma in exchanges])
    exact = np.mean(squares >= squares[0] * (1 - 1e-9))
    attributes, subjects = (result["p_values"][name] for name in ("attributes", "subjects"))
    assert attributes == pytest.approx(exact, abs=0.002 + 4 * np.sqrt(exact * (1 - exact) / 999))
    # Of three templates there are eight exchanges: those of the 512 whose blocks of a template have one sign.
    leads = np.array([np.mean([np.mean([g[x, a] for a in "xyz"]) ** 2 for x in "ABC"]) for g in exchanges])
    whole = [
        n
        for n, signs in enumerate(itertools.product((1, -1), repeat=9))
        if all(len({*signs[k : k + 3]}) == 1 for k in (0, 3, 6))
    ]
    assert len(whole) == 8
    exact = np.mean(leads[whole] >= leads[0] * (1 - 1e-9))
    assert subjects == pytest.approx(exact, abs=0.002 + 4 * np.sqrt(exact * (1 - exact) / 999))
    assert result["p_values"]["excess"] == min(1.0, 2.0 * min(attributes, subjects))
    largest = np.array([max(map(abs, gamma.values())) for gamma in exchanges])
    assert [row[:2] for row in result["associations"]] == [
        list(pair) for pair in sorted(own, key=lambda pair: -abs(own[pair]))
    ]
    for subject, attribute, gamma, p in result["associations"]:
        assert gamma == pytest.approx(own[subject, attribute])
        exact = np.mean(largest >= abs(gamma) * (1 - 1e-9))
        assert p == pytest.approx(exact, abs=0.002 + 4 * np.sqrt(exact * (1 - exact) / 999))


def test_one_template_cannot_show_consistency(unqover):
    rows = make_rows(("A", "B", "C"), 1, ("x", "y"))
    result = unqover.compute(predictions=respond(rows, _prefers), references=rows)
    assert result["mu"] > 0.1
    assert result["p_values"]["excess"] == 1.0
    assert result["excess"] == pytest.approx(0.0, abs=1e-12)


def _prefers(row, subject, other, is_first, negated):
    return 0.8 if (subject < other) != negated else 0.2


def test_the_direction_is_towards_the_preferred_cluster(unqover):
    cluster = {"A": "female", "B": "female", "C": "male", "D": "male"}
    pairs = [(x, y) for x in "AB" for y in "CD"]
    rows = make_rows(None, 8, ("x", "y"), pairs, cluster)

    def score(row, subject, other, is_first, negated):
        return _prefers(row, subject, other, is_first, negated) if row["attribute"] == "x" else 0.5

    result = unqover.compute(predictions=respond(rows, score), references=rows)
    assert result["direction"] == pytest.approx(0.3)
    assert list(result["cluster"]) == ["female", "male"]  # the direction is of the first
    # All of 2 x 128 exchanges of eight templates are smaller but two.
    assert result["p_values"]["direction"] == pytest.approx(2 / 256, abs=0.012)
    assert result["cluster_associations"][0][:2] == ["female", "x"]
    assert result["cluster_associations"][0][2] == pytest.approx(0.6)
    assert "direction" not in unqover.compute(predictions=respond(rows, score), references=rows, confidence=None)
    alone = make_rows(("A", "B"), 8, ("x", "y"))
    assert "direction" not in unqover.compute(predictions=respond(alone, score), references=alone)


@pytest.mark.slow
def test_the_test_holds_its_level_and_has_power():
    rows = associations.structure("religion", 400)
    for world, low, high in (*((world, 0.0, 0.15) for world in associations.NULL), (associations.LARGE, 0.9, 1.0)):
        rate = np.mean([associations.p_value(rows, world, seed) <= 0.05 for seed in range(40)])
        assert low <= rate <= high, world
