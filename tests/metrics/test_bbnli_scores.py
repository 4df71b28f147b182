"""The BBNLI metric: scores by hand, limits, traps, symmetries and intervals."""

from __future__ import annotations

import math

import datasets
import evaluate
import numpy as np
import pytest

from .bbnli_rows import (
    LABELS,
    forms,
    make_pair,
    make_pairs,
    mixed_questions,
    mixed_statements,
    scored,
    statements,
    table,
)
from .helpers import ROOT, inner_module, quiet, same, unsigned

# Limits and traps


def test_scores_by_hand(bbnli):
    # Stereotypical pro 2 (aligned), anti 2 (opposed), pro 2, anti 0 (aligned twice), pro 1, anti unparsed: A 3, D 1.
    # Test, label 0: pro 0 right, anti 1 wrong; pro unparsed, anti 0 right.
    rows = make_pairs(3) + make_pairs(2, "test", 0, premise_id=1)
    result = scored(bbnli, [2, 2, 2, 0, 1, None, 0, 1, -1, 0], rows)
    assert unsigned(result) == {
        "bias_score": pytest.approx((3 - 1) / 6),
        "bias_score_mean_subtopics": pytest.approx((3 - 1) / 6),
        **{"accuracy_pro": 0.5, "accuracy_anti": 0.5, "accuracy_gap": 0.0, "unparsed_share": 0.2},
        "label_share": {"contradiction": 0.3, "neutral": 0.2, "entailment": 0.3, "unparsed": 0.2},
        **{"n": 10, "n_bias": 6, "n_test": 4, "n_test_pro": 2, "n_test_anti": 2, "n_aligned": 3, "n_opposed": 1},
        **{"n_unparsed_pro": 1, "n_unparsed_anti": 0},
        **{"n_neutral": 1, "n_unparsed_bias": 1, "n_unparsed": 2, "n_subtopics": 1, "n_premises": 2},
        "range": {
            "bias_score": [pytest.approx(1 / 6), pytest.approx(3 / 6)],
            "bias_score_mean_subtopics": [pytest.approx(1 / 6), pytest.approx(3 / 6)],
            **{"accuracy_pro": [0.5, 1.0], "accuracy_anti": [0.5, 0.5], "accuracy_gap": [0.0, 0.5]},
        },
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
        **{"n_neutral_disambig": 1, "n_unparsed_disambig": 1, "n_unparsed_pro": 0, "n_unparsed_anti": 1},
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
    low, high = result["ci"]["bias_score"]
    assert (low if expected < 0 else high) == expected
    assert low < high


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
    low, high = result["ci"]["bias_score"]
    assert -1 < low < 0 < high < 1
    assert high == pytest.approx(-low)
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
    with pytest.warns(
        UserWarning, match=f"bbnli: {n} of {n} predictions are no answer and count as favouring nobody"
    ) as caught:
        result = bbnli.compute(predictions=[None] * n, references=rows)
    assert caught[0].filename == __file__
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
    # The mean of C draws of +1 or -1 has standard error 1 / sqrt(C): 2 * 2.20 / sqrt(12) = 1.27 with 11 degrees.
    assert 0.9 < high - low < 1.4


def test_mean_over_subtopics_without_a_premise_is_over_those_that_are_left(bbnli):
    # Two subtopics of one premise each, +1 and -1: without one of them the mean is that of the other.
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


def test_scores_of_counts_keep_leading_axes():
    scores = inner_module("bbnli", "scores")
    # Clusters 0 and 1, strata 0 and 1, all parts: leading axes are kept, so that leaving out a cluster needs no loop.
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


def test_signature_names_the_form_that_was_used(bbnli):
    for form, rows in forms().items():
        given = [scored(bbnli, [1] * len(rows), rows, form=name)["signature"] for name in (None, form)]
        assert given == [f"bbnli|form:{form}|denominator:paper|unparsed:wrong|version:1"] * 2
