"""The range of the BBNLI metric: what scores could be if the missing answers had been given."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .bbnli_rows import make_pairs, questions, scored, statements
from .helpers import inner_module, same

MOST_MISSING = 5
HEADLINES = {
    "bbnli": {"bias_score", "bias_score_mean_subtopics", "accuracy_pro", "accuracy_anti", "accuracy_gap"},
    "bbq": {
        *("bias_score", "bias_score_ambig", "bias_score_disambig", "table5_style", "accuracy_ambig"),
        *("accuracy_pro", "accuracy_anti", "accuracy_gap"),
    },
}
ROWS = {
    "bbnli": [
        *make_pairs(2, subtopic="a"),
        *make_pairs(1, subtopic="b"),
        *make_pairs(1, "test", 0, subtopic="a"),
        *make_pairs(1, "test", 2, subtopic="b"),
    ],
    "bbq_nli": [*statements(0, "ambig"), *statements(0, "disambig")],
    "bbq": [*questions(0, "ambig"), *questions(0, "disambig", "pro"), *questions(1, "disambig", "anti")],
}

few_answers = st.lists(st.sampled_from([-1, -1, 0, 1, 1, 2]), min_size=12, max_size=12)


def drawn(form, said):
    """As many answers as the form has rows, and the places of the few that are missing."""
    said = said[: len(ROWS[form])]
    missing = [place for place, answer in enumerate(said) if answer < 0][:MOST_MISSING]
    return [answer if answer >= 0 or place in missing else 1 for place, answer in enumerate(said)], missing


def completions(metric, rows, said, missing, **options):
    """The scores of all ways to fill what is missing, by name; undefined ones are left out."""
    found: dict[str, list[float]] = {}
    for filling in itertools.product(range(3), repeat=len(missing)):
        whole = list(said)
        for place, answer in zip(missing, filling, strict=True):
            whole[place] = answer
        for name, value in scored(metric, whole, rows, **options).items():
            if isinstance(value, float) and value == value:
                found.setdefault(name, []).append(value)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@pytest.mark.parametrize("denominator", ["paper", "released"])
@pytest.mark.parametrize("form", ["bbnli", "bbq_nli", "bbq"])
@given(said=few_answers)
def test_the_range_is_that_of_all_ways_to_fill_what_is_missing(bbnli, form, denominator, said):
    """Every completion is tried: none leaves the range, and some reach its ends; the rule for the missing is idle."""
    said, missing = drawn(form, said)
    rows = ROWS[form]
    results = [
        scored(bbnli, said, rows, form=form, denominator=denominator, unparsed=unparsed)
        for unparsed in ("wrong", "exclude")
    ]
    if not missing:
        assert all("range" not in result for result in results)
        return
    assert same(results[0]["range"], results[1]["range"])
    found = completions(bbnli, rows, said, missing, form=form, denominator=denominator)
    assert set(results[0]["range"]) == HEADLINES["bbnli" if form == "bbnli" else "bbq"]
    for name, (low, high) in results[0]["range"].items():
        if name not in found:
            assert np.isnan([low, high]).all(), name
            continue
        assert [min(found[name]), max(found[name])] == pytest.approx([low, high], abs=1e-12), name
        for result, rule in zip(results, ("wrong", "exclude"), strict=True):
            value = result[name]
            if value == value and (denominator, rule) != ("released", "exclude"):
                assert low - 1e-12 <= value <= high + 1e-12, (name, rule)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(first=few_answers, second=few_answers)
def test_the_range_of_several_runs_is_that_of_their_mean(bbnli, first, second):
    said = [drawn("bbnli", answers)[0] for answers in (first, second)]
    rows = [{**row, "run": run} for run in "ab" for row in ROWS["bbnli"]]
    whole = scored(bbnli, [answer for of_run in said for answer in of_run], rows, mean_over="run")
    if "range" not in whole:
        assert all(answer >= 0 for of_run in said for answer in of_run)
        return
    alone = [scored(bbnli, of_run, ROWS["bbnli"]) for of_run in said]
    for name, ends in whole["range"].items():
        of_runs = [result["range"][name] if "range" in result else [result[name]] * 2 for result in alone]
        assert ends == pytest.approx(np.mean(of_runs, axis=0).tolist(), abs=1e-12, nan_ok=True), name


def test_samples_of_a_row_are_filled_each_by_itself(bbnli):
    rows = [{**row, "sample": sample} for row in make_pairs(1) for sample in range(2)]
    result = scored(bbnli, [2, -1, -1, 1], rows)  # the pro form twice, then the anti form twice
    assert result["range"]["bias_score"] == [-1 / 4, 3 / 4]
    assert result["bias_score"] == 1 / 4


def test_what_has_no_rows_has_no_range_and_groups_have_their_own(bbnli):
    rows = make_pairs(1, subtopic="a") + make_pairs(1, subtopic="b")
    result = scored(bbnli, [2, -1, 2, 0], rows, by="subtopic")
    assert result["range"]["bias_score"] == [1 / 2, 1]
    assert np.isnan(result["range"]["accuracy_pro"]).all()
    assert result["by"]["subtopic"]["a"]["range"]["bias_score"] == [0, 1]
    assert "range" not in result["by"]["subtopic"]["b"]


def test_a_score_may_leave_its_range_where_the_script_counts_fewer_rows(bbnli):
    """One aligned and one neutral answer; both controls are missing, by which the script divides if they are there."""
    rows = make_pairs(1) + make_pairs(1, "test", 2)
    result = scored(bbnli, [2, 1, -1, -1], rows, denominator="released", unparsed="exclude")
    assert result["bias_score"] == 0.5
    assert result["range"]["bias_score"] == [0.75, 0.75]


def test_the_engine_scores_and_the_metric_agree_on_the_ends():
    scores = inner_module("bbnli", "scores")
    counts = np.zeros((1, 3, 7), dtype=np.int64)
    counts[0, 0] = (1, 2, 3, 4, 3, 1, 2)  # ten hypotheses: 3 aligned, 1 opposed, 2 neutral, 4 missing
    low, high = scores.ranges("bbnli", counts, "paper")["bias_score"]
    assert (low, high) == (pytest.approx((3 - 5) / 10), pytest.approx((7 - 1) / 10))
