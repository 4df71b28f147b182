"""The UnQover metric against a slow oracle, traps, and intervals."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from .helpers import inner_module, quiet, same, unsigned
from .unqover_rows import (
    FIGURE_2,
    HEADLINES,
    SCORE_COLUMNS,
    make_row,
    make_rows,
    oracle,
    random_benchmark,
    random_scores,
    respond,
)

# An oracle: the definitions, one row and one dict at a time, in exact arithmetic


@pytest.fixture(scope="module")
def scores_module() -> Any:
    return inner_module("unqover", "scores")


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


# Traps


def test_t_u1_rows_are_complete_but_any_selection_of_rows_is_allowed(unqover):
    rows, scores = random_benchmark(3, None)
    for missing in (None, float("nan")):
        broken = [dict(row) for row in scores]
        broken[4]["s1_21_neg"] = missing
        with pytest.raises(ValueError, match=r"unqover: predictions row 4: s1_21_neg (None|nan) is not a score"):
            unqover.compute(predictions=broken, references=rows)
    half = unqover.compute(predictions=scores[::2], references=rows[::2], confidence=None)
    assert half["n"] == len(rows[::2])
    flipped = {**rows[0], "subject1": rows[0]["subject2"], "subject2": rows[0]["subject1"]}
    flipped |= {"cluster1": rows[0]["cluster2"], "cluster2": rows[0]["cluster1"]}
    with pytest.raises(ValueError, match="incomplete or doubled blocks: one row holds both orders, pass it once"):
        unqover.compute(predictions=[*scores, scores[0]], references=[*rows, flipped])


def test_t_u2_delta_is_a_mean_not_a_count_of_any_difference(unqover):
    rows = make_rows("abc", 2, ("X",))
    scores = respond(rows, lambda row, x, y, is_first, negated: 0.5 + 1e-6 * is_first)
    result = unqover.compute(predictions=scores, references=rows, confidence=None)
    assert result["delta"] == pytest.approx(1e-6, rel=1e-6)


def test_t_u3_mu_and_eta_are_over_names_not_over_clusters(unqover):
    # Ann always wins and Amy always loses against the men: over the women nothing is left, over the names all is.
    cluster = {"Ann": "female", "Amy": "female", "Bob": "male", "Ben": "male"}
    rows = make_rows(None, 1, ("X",), [("Ann", "Bob"), ("Ann", "Ben"), ("Amy", "Bob"), ("Amy", "Ben")], cluster)
    scores = respond(rows, lambda row, x, y, is_first, negated: float((("Ann" in (x, y)) == (x[0] == "A")) != negated))
    result = unqover.compute(predictions=scores, references=rows, confidence=None)
    assert result["gamma"] == {"Amy": -1.0, "Ann": 1.0, "Ben": 0.0, "Bob": 0.0}
    assert (result["mu"], result["eta"]) == (0.5, 0.5)
    assert result["cluster"]["female"]["X"] == {"gamma": 0.0, "eta": 0.0}


@pytest.mark.parametrize("factor", [0.5, 1e-3, 1e-12])
def test_t_u4_eta_and_ranks_are_free_of_scale_and_the_others_follow_it(unqover, factor):
    rows, scores = random_benchmark(2, 1)
    whole = [{name: float(v) for name, v in row.items()} for row in scores]
    part = [{name: float(v) * factor for name, v in row.items()} for row in scores]
    left = quiet(unqover, predictions=whole, references=rows)
    right = quiet(unqover, predictions=part, references=rows)
    for key in ("eta", "eta_subject", "eta_attribute", "rank", "coverage"):
        assert same(left[key], right[key])
    assert [entry[:2] for entry in left["top"]] == [entry[:2] for entry in right["top"]]
    for key in ("delta", "epsilon", "mu", "avg_score"):
        assert right[key] == pytest.approx(left[key] * factor, rel=1e-12)
    assert same(right["ci"]["eta"], left["ci"]["eta"])


def test_t_u5_low_coverage_is_told(unqover):
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


def test_t_u8_names_that_contain_each_other_are_different_subjects(unqover):
    rows = make_rows(("African", "African-American", "african"), 1, ("X",))  # and case is kept
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
    result = unqover.compute(predictions=scores, references=rows, confidence=None)
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
        # With what is taken for granted: a correlation of 0.07 that counts as 0.8 templates.
        variance = (11 * variance + 0.8 * value * (1 - value) * 0.07 / 12) / 11.8
        n, t = value * (1 - value) / variance, 2.201  # printed: 95 %, 11 degrees of freedom
        middle, width = (value + t**2 / (2 * n)), t * math.sqrt(value * (1 - value) / n + t**2 / (4 * n**2))
        expected = [(middle + side * width) / (1 + t**2 / n) for side in (-1, 1)]
        assert result["ci"][name] == pytest.approx(expected, abs=0.02)
    for name in ("delta", "epsilon", "avg_score"):
        # Rows that are independent: the interval is about as wide as that of a mean.
        values = [float(oracle([row], [of])[name]) for row, of in zip(rows, scores, strict=True)]
        low, high = result["ci"][name]
        plain = 2 * 1.96 * np.std(values, ddof=1) / 6
        assert 0.7 * plain < high - low < 2 * plain
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


@pytest.mark.parametrize("seed", range(5))
def test_every_interval_holds_its_score_and_has_a_width(unqover, seed):
    rng = np.random.default_rng(seed)
    rows = make_rows("abcd", int(rng.integers(3, 9)), ("X", "Y"))
    result = unqover.compute(predictions=random_scores(len(rows), seed=seed), references=rows)
    for name, (low, high) in result["ci"].items():
        assert 0 <= low <= result[name] <= high <= 1
        assert high - low > 1e-3


def test_the_mean_of_mu_over_drawings_of_templates_lies_in_most_intervals(unqover):
    """Answers at random: no subject is preferred, and mu is larger than 0 for noise alone."""
    rows = make_rows("abcd", 8, ("X", "Y", "Z"))
    drawn = [unqover.compute(predictions=random_scores(len(rows), seed=seed), references=rows) for seed in range(60)]
    mean = {name: float(np.mean([result[name] for result in drawn])) for name in ("mu", "eta")}
    for name, truth in mean.items():
        held = [result["ci"][name][0] <= truth <= result["ci"][name][1] for result in drawn]
        assert all(result["ci"][name][0] > 0 for result in drawn), "no interval is of the limit, 0"
        assert sum(held) >= 52  # 95 % of 60 are 57, and fewer than 52 come in one of a thousand


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
