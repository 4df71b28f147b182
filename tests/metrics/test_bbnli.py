"""The BBNLI metric: an oracle, figures of the paper, forms of input and ranges."""

from __future__ import annotations

import itertools
import math

import datasets
import evaluate
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .bbnli_rows import (
    LABELS,
    forms,
    make_pair,
    make_pairs,
    mixed_questions,
    mixed_statements,
    oracle,
    questions,
    scored,
    statements,
)
from .helpers import ROOT, inner_module, quiet, same

NAN = math.nan
SMALL = {
    "bbnli": [
        *make_pairs(2, subtopic="a"),
        *make_pairs(1, subtopic="b"),
        *make_pairs(1, "test", 0, subtopic="a"),
        *make_pairs(1, "test", 2, subtopic="b"),
    ],
    "bbq_nli": [*statements(0, "ambig"), *statements(0, "disambig")],
    "bbq": [*questions(0, "ambig"), *questions(0, "disambig", "pro"), *questions(1, "disambig", "anti")],
}
often = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


# Scores


@pytest.mark.parametrize("denominator", ["paper", "released"])
@pytest.mark.parametrize("form", SMALL)
@often
@given(seed=st.integers(0, 2**32 - 1), unparsed=st.sampled_from(["wrong", "exclude"]), small=st.booleans())
def test_random_answers_equal_the_oracle(bbnli, form, denominator, seed, unparsed, small):
    random = np.random.default_rng(seed)
    rows = SMALL[form] if small else forms()[form]
    kept = random.choice([0, 1, 2]) if small else 0  # also one kind of row alone
    parts = {"bbnli": "kind", "bbq_nli": "context_condition", "bbq": "context_condition"}[form]
    values = sorted({row[parts] for row in rows})
    rows = [row for row in rows if not kept or row[parts] == values[kept - 1]]
    answers = [[-1, 0, 1, 2], [1], [0, 2], [1, 1, 1, 2]][random.integers(4)]
    said = random.choice(answers, len(rows)).tolist()
    options = {"denominator": denominator, "unparsed": unparsed}
    result = scored(bbnli, said, rows, form=form, **options)
    expected = oracle(rows, said, **options)
    assert same({name: result.get(name) for name in expected}, expected), (result, expected)
    assert set(result) - set(expected) == {"signature"} | ({"range"} if -1 in said else set())
    assert result["signature"] == f"bbnli|form:{form}|denominator:{denominator}|unparsed:{unparsed}|version:1"


# Figures of the paper


def test_released_counts_test_hypotheses(bbnli):
    # The published counts: 2,290 stereotypical and 1,352 test rows; neutral on 1,088 (47.5 %), aligned on the others.
    # paper 1202/2290 = 0.525; script (1 - 1088/3642) 1 = 0.701.
    rows = make_pairs(1145) + make_pairs(676, "test", 2)
    predictions = [1] * 1088 + [2, 0] * 601 + [2] * 1352
    assert round(scored(bbnli, predictions, rows)["bias_score"], 3) == 0.525
    assert round(scored(bbnli, predictions, rows, denominator="released")["bias_score"], 3) == 0.701


@pytest.mark.parametrize(
    ("pairs", "test_pairs", "samples", "neutral", "lean", "paper", "released"),
    [
        # black_is_to_criminal, QAn: 144 rows x 20 answers. Script: (1 - 5/2880) 575/2395; paper: 575/2400.
        (60, 12, 20, 5, 575, 23.96, 23.97),
        # man_is_to_programmer, QA: 510 rows x 3 prompts. Script: (1 - 61/1530) 3/1079; paper: 3/1140.
        (190, 65, 3, 61, 3, 0.26, 0.27),
    ],
)
def test_cells_of_table_3_that_only_the_released_formula_reaches(
    bbnli, pairs, test_pairs, samples, neutral, lean, paper, released
):
    one = make_pairs(pairs) + make_pairs(test_pairs, "test", 0)
    rows = [{**row, "sample": sample} for sample in range(samples) for row in one]
    n_bias = 2 * pairs * samples
    n_agreeing = (n_bias - neutral + lean) // 2
    predictions, bias_rows = [], 0
    for row in rows:
        if row["kind"] == "test":
            predictions.append(0)
            continue
        aligned = 2 if row["stance"] == "pro" else 0
        predictions.append(1 if bias_rows < neutral else aligned if bias_rows < neutral + n_agreeing else 2 - aligned)
        bias_rows += 1
    result = scored(bbnli, predictions, rows)
    assert (result["n"], result["n_bias"], result["n_neutral"]) == (len(rows), n_bias, neutral)
    assert result["n_aligned"] - result["n_opposed"] == lean
    assert round(100 * result["bias_score"], 2) == paper
    assert round(100 * scored(bbnli, predictions, rows, denominator="released")["bias_score"], 2) == released


def test_the_mean_over_subtopics_is_undefined_where_that_of_one_is(bbnli):
    rows = make_pairs(1, subtopic="a") + make_pairs(3, subtopic="b") + make_pairs(2, "test", 2, subtopic="c")
    neutral = bbnli.compute(predictions=[1, 1] + [2, 0] * 3 + [2] * 4, references=rows, denominator="released")
    assert math.isnan(neutral["bias_score_mean_subtopics"])
    assert all(map(math.isnan, neutral["ci"]["bias_score_mean_subtopics"]))  # though without a there is one
    assert not math.isnan(neutral["bias_score"])
    # Two subtopics of one premise each, +1 and -1: without one of them the mean is that of the other.
    result = bbnli.compute(
        predictions=[2, 0, 0, 2], references=make_pairs(1, subtopic="a") + make_pairs(1, subtopic="b")
    )
    assert (result["bias_score_mean_subtopics"], result["ci"]["bias_score_mean_subtopics"]) == (0.0, [-1.0, 1.0])


# Forms of input


def test_labels_are_told_by_name(bbnli):
    rows = make_pairs(1) + make_pairs(2, "test", 0)
    predictions = [2, 0, 0, 0, 2, 0]
    expected = scored(bbnli, predictions, rows)
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


def test_undefined_targets_of_bbq_are_left_out_and_counted(bbnli):
    rows = mixed_questions(4)
    predictions = [0] * 8 + [1] * 8
    expected = scored(bbnli, predictions, rows)
    assert expected.pop("n_undefined_target") == 0
    undefined = [{**row, "set_id": "undefined", "biased_loc": -1} for row in rows[:4]]
    result = scored(bbnli, [*predictions, 0, 1, 2, -1], rows + undefined)
    assert result.pop("n_undefined_target") == 4
    assert same(result, expected)
    alone = bbnli.compute(predictions=[0] * 4, references=undefined)
    assert (alone["n"], alone["n_templates"], alone["n_undefined_target"]) == (0, 0, 4)
    assert math.isnan(alone["bias_score"])


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


def test_clusters_are_templates_of_a_category(bbnli):
    rows = mixed_statements(8)
    other = [{**row, "category": "Religion", "set_id": f"R-{row['set_id']}"} for row in rows]
    assert scored(bbnli, [1] * 192, rows + other)["n_templates"] == 8


def test_several_answers_to_a_row_need_a_number_each(bbnli):
    rows = make_pairs(2)
    twice = [{**row, "sample": sample} for sample in (0, 1) for row in rows]
    result = scored(bbnli, [2, 0, 2, 0, 1, 1, 1, 1], twice)
    assert (result["bias_score"], result["n"], result["n_premises"]) == (0.5, 8, 1)
    assert scored(bbnli, [2, 0, 2, 0, 1, 1, 1, 1], twice, by="sample")["by"]["sample"]["0"]["bias_score"] == 1.0
    with pytest.raises(ValueError, match=r"row 4: .*pair_id 'stereotypical-0', stance 'pro' repeats row 0\n.*'sample'"):
        bbnli.compute(predictions=[1] * 8, references=rows + rows)
    with pytest.raises(ValueError, match=r"row 0: .* sample '0' has no row with stance 'anti'"):
        bbnli.compute(predictions=[1] * 7, references=twice[:1] + twice[2:])


def test_scores_of_counts_keep_leading_axes():
    scores = inner_module("bbnli", "scores")
    # Clusters 0 and 1, strata 0 and 1, all parts: leading axes are kept, so that leaving out a cluster needs no loop.
    codes = np.arange(12)
    counts = scores.count(codes % 3, codes % 3, codes % 2 * 2, codes % 3, codes // 6, codes % 2, 2)
    assert counts.shape == (2, 2, 3, 7)
    for function in (scores.bbnli_scores, scores.bbq_scores):
        assert all(value.shape == (2,) for value in function(counts).values())
        with pytest.raises(ValueError, match="denominator 'Paper'"):
            function(counts, denominator="Paper")
        with pytest.raises(ValueError, match="unparsed 'drop'"):
            function(counts, unparsed="drop")


# Ranges


few_answers = st.lists(st.sampled_from([-1, -1, 0, 1, 1, 2]), min_size=12, max_size=12)
RANGED = {
    "bbnli": {"bias_score", "bias_score_mean_subtopics", "accuracy_pro", "accuracy_anti", "accuracy_gap"},
    "bbq": {
        *("bias_score", "bias_score_ambig", "bias_score_disambig", "table5_style", "accuracy_ambig"),
        *("accuracy_pro", "accuracy_anti", "accuracy_gap"),
    },
}


@pytest.mark.parametrize("denominator", ["paper", "released"])
@pytest.mark.parametrize("form", SMALL)
@often
@given(said=few_answers)
def test_the_range_is_that_of_all_ways_to_fill_what_is_missing(bbnli, form, denominator, said):
    """Every completion is tried: none leaves the range, and some reach its ends; the rule for the missing is idle."""
    rows = SMALL[form]
    missing = [place for place, answer in enumerate(said[: len(rows)]) if answer < 0][:4]
    said = [1 if answer < 0 and place not in missing else answer for place, answer in enumerate(said[: len(rows)])]
    options = {"form": form, "denominator": denominator}
    results = [scored(bbnli, said, rows, unparsed=unparsed, **options) for unparsed in ("wrong", "exclude")]
    if not missing:
        assert all("range" not in result for result in results)
        return
    ends = results[0]["range"]
    assert same(ends, results[1]["range"])
    assert set(ends) == RANGED["bbnli" if form == "bbnli" else "bbq"]
    possible = []
    for filling in itertools.product(range(3), repeat=len(missing)):
        whole = list(said)
        for place, answer in zip(missing, filling, strict=True):
            whole[place] = answer
        possible.append(oracle(rows, whole, denominator))
    for name, (low, high) in ends.items():
        values = [scores[name] for scores in possible if scores[name] == scores[name]] or [NAN]
        assert same([low, high], [float(min(values)), float(max(values))]), name
        for result, rule in zip(results, ("wrong", "exclude"), strict=True):
            # The script counts fewer rows where the missing are left out.
            if (denominator, rule) != ("released", "exclude"):
                assert not result[name] < low - 1e-12, (name, rule)
                assert not result[name] > high + 1e-12, (name, rule)


@often
@given(first=few_answers, second=few_answers)
def test_the_range_of_several_runs_is_that_of_their_mean(bbnli, first, second):
    said = [answers[: len(SMALL["bbnli"])] for answers in (first, second)]
    rows = [{**row, "run": run} for run in "ab" for row in SMALL["bbnli"]]
    whole = scored(bbnli, [answer for of_run in said for answer in of_run], rows, mean_over="run")
    assert ("range" in whole) == any(answer < 0 for of_run in said for answer in of_run)
    alone = [scored(bbnli, of_run, SMALL["bbnli"]) for of_run in said]
    for name, ends in whole.get("range", {}).items():
        of_runs = [result["range"][name] if "range" in result else [result[name]] * 2 for result in alone]
        assert ends == pytest.approx(np.mean(of_runs, axis=0).tolist(), abs=1e-12, nan_ok=True), name


def test_samples_and_groups_have_ranges_of_their_own(bbnli):
    rows = [{**row, "sample": sample} for row in make_pairs(1) for sample in range(2)]
    result = scored(bbnli, [2, -1, -1, 1], rows)  # the pro form twice, then the anti form twice
    assert result["range"]["bias_score"] == [-1 / 4, 3 / 4]
    rows = make_pair(0, subtopic="a") + make_pair(1, subtopic="b")
    result = scored(bbnli, [2, -1, 2, 0], rows, by="subtopic")
    assert result["range"]["bias_score"] == [1 / 2, 1]
    assert np.isnan(result["range"]["accuracy_pro"]).all()
    assert result["by"]["subtopic"]["a"]["range"]["bias_score"] == [0, 1]
    assert "range" not in result["by"]["subtopic"]["b"]


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


def test_by_of_statements_may_split_sets(bbnli):
    rows = mixed_statements(5) + [{**row, "name_order": "swapped"} for row in mixed_statements(5)]
    predictions = np.random.default_rng(9).integers(0, 3, len(rows)).tolist()
    result = scored(bbnli, predictions, rows, by=["name_order", "context_stance"])
    orders = [part["bias_score"] for part in result["by"]["name_order"].values()]
    assert result["bias_score"] == pytest.approx(np.mean(orders), abs=1e-12)  # as Table 4 takes the mean of both orders
    for stance in ("pro", "anti"):
        chosen = [k for k, row in enumerate(rows) if row["context_stance"] == stance]
        expected = oracle([rows[k] for k in chosen], [predictions[k] for k in chosen])
        part = result["by"]["context_stance"][stance]
        assert same({name: part[name] for name in expected}, expected)
