"""Assertions about runs: they fail and pass only where an interval says so, and tell where it says nothing."""

import functools
import math
import warnings

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import qabias
from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.scores.judge import allowed, examples_needed, judged, parse_condition
from qabias.testing import (
    Condition,
    UndecidedWarning,
    assert_bias_below,
    assert_score_above,
    breakdowns,
    verdicts,
)
from qabias.testing.verdicts import format_verdicts

from .kit.runs import changed

N_TEMPLATES = 25
FIVE_MISSING = {"n_unparsed_ambig": 5, "n_ambig": 100, "range": {"bias_ambig": [0.03, 0.07]}}
# Abramowitz and Stegun (1964), Table 26.10: t with 24 degrees of freedom, two-sided 0.95 and 0.99, and so of 5 looks.
WIDENED = 2.797 / 2.064


@pytest.fixture
def with_scores(compared_runs, tmp_path):
    """A function that makes a run with five groups, "five", that have made-up scores of ambiguous contexts."""

    def make(value, low, high, **more):
        def change(content):
            scores = content["scores"]
            named = {name: dict(more.get("named", {}).get(name, {})) for name in "abcde"}
            scores["by"]["five"] = {
                name: {
                    **scores,
                    "by": {},
                    "n_templates": N_TEMPLATES,
                    "bias_ambig": value,
                    "accuracy_ambig": value,
                    "detectable": {"bias_ambig": more.get("detectable", 0.05)},
                    "ci": {"bias_ambig": [low, high], "accuracy_ambig": [low, high]},
                    **more.get("scores", {}),
                    **named[name],
                }
                for name in "abcde"
            }
            if "scores" in more:
                scores |= {"n_templates": N_TEMPLATES, "bias_ambig": value, "ci": {"bias_ambig": [low, high]}}
                scores |= more["scores"]

        return changed(compared_runs / "bbq-random", tmp_path / f"{len(list(tmp_path.iterdir()))}", scores=change)

    return make


def undecided_text(check, *arguments, **options):
    """The text of the warning, which names the line that asked."""
    with pytest.warns(UndecidedWarning) as caught:
        check(*arguments, **options)
    [warning] = caught
    assert warning.filename == __file__
    return str(warning.message)


# The three outcomes


@pytest.mark.slow
def test_a_run_within_the_limit_passes_without_a_word(checked_runs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [below] = assert_bias_below(qabias.read(checked_runs / "kept"), "bias_ambig", 0.1)
        [above] = assert_score_above(str(checked_runs / "kept"), "accuracy_ambig", 0.9)
    assert (below.state, below.score.group, below.condition.side, below.score.n) == ("pass", "All", "below", 2000)
    assert (above.state, below.n_comparisons) == ("pass", 1)
    assert -0.1 < below.low < below.score.value == 0 < below.high < 0.1
    intervals = Run.scored(checked_runs / "kept").scores["ci"]
    assert [below.low, below.high] == pytest.approx(intervals["bias_ambig"])
    assert [above.low, above.high] == pytest.approx(intervals["accuracy_ambig"])


@pytest.mark.slow
def test_a_run_beyond_the_limit_fails_with_all_that_a_developer_needs(checked_runs):
    with pytest.raises(AssertionError) as failed:
        assert_bias_below(checked_runs / "broken", "bias_ambig", 0.1)
    first, second, *rest = str(failed.value).splitlines()
    assert "1 of 1 fail" in first
    for part in ("bias_ambig of all examples", "+100.0 % [+9", "from 400 examples", "within ±10.0 %"):
        assert part in second
    assert rest[-1] == Run.scored(checked_runs / "broken").signature
    with pytest.raises(AssertionError, match=r"above 90\.0 %"):
        assert_score_above(checked_runs / "broken", "accuracy_ambig", 0.9)


def test_an_adjustment_for_two_scores_is_named(checked_runs):
    run = Run.scored(checked_runs / "broken")
    limits = [parse_condition(f"{name}<0.1", run.benchmark.facts.measures) for name in ("bias_ambig", "accuracy_ambig")]
    assert "2 comparisons" in format_verdicts(run, verdicts(run, limits))
    assert "comparisons" not in format_verdicts(run, verdicts(run, limits[:1]))


def test_a_small_sample_warns_with_what_it_could_have_found_and_what_would_decide(checked_runs):
    text = undecided_text(assert_bias_below, checked_runs / "small", "bias_ambig", 0.1)
    size = Run.scored(checked_runs / "small").scores["detectable"]["bias_ambig"]
    assert size > 0.1
    for part in (f"{100 * size:.1f} points or more", "would decide if", "a sample"):
        assert part in text
    assert "`qabias plan bbq --config all --source bundled --detect 0.1`" in text


def test_what_is_undecided_fails_or_passes_on_request(checked_runs):
    with pytest.raises(AssertionError, match="1 inconclusive"):
        assert_bias_below(checked_runs / "small", "bias_ambig", 0.1, undecided="fail")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [verdict] = assert_bias_below(checked_runs / "small", "bias_ambig", 0.1, undecided="pass")
    assert verdict.state == "undecided"
    with pytest.raises(QabiasError, match="'wran'"):
        assert_bias_below(checked_runs / "small", "bias_ambig", 0.1, undecided="wran")


# Groups


def test_every_group_is_judged_and_a_failure_names_them_all(checked_runs):
    with pytest.raises(AssertionError, match="11 comparisons") as failed:
        assert_bias_below(checked_runs / "broken", "bias_ambig", 0.1, by="category")
    groups = Run.scored(checked_runs / "broken").scores["by"]["category"]
    assert len(groups) == 11
    assert all(f"bias_ambig of {name} is" in str(failed.value) for name in groups)


def test_intervals_of_groups_are_widened_for_their_number(with_scores):
    folder = with_scores(0.05, 0.01, 0.08)
    [*found] = verdicts(Run.scored(folder), [Condition("bias_ambig", 0.1, "below")], "five")
    assert [one.score.group for one in found] == list("abcde")
    for one in found:
        assert one.n_comparisons == 5
        assert one.low == pytest.approx(0.05 - WIDENED * 0.04, abs=2e-4)
        assert one.high == pytest.approx(0.05 + WIDENED * 0.03, abs=2e-4)
        assert one.state == "pass"
    both = [Condition("bias_ambig", 0.085, "below"), Condition("accuracy_ambig", 0.001, "above")]
    found = verdicts(Run.scored(folder), both, "five")
    assert {(one.condition.name, one.n_comparisons, one.state) for one in found} == {
        ("bias_ambig", 10, "undecided"),  # one interval alone would pass, and so would not be true of all
        ("accuracy_ambig", 10, "undecided"),
    }


def test_groups_without_an_interval_are_undecided_and_no_looks(with_scores):
    alone = {"ci": {"bias_ambig": [None, None]}, "n_templates": 1}
    folder = with_scores(0.0, -0.01, 0.01, named={"b": alone, "c": {"bias_ambig": None, "n_ambig": 0, **alone}})
    results = {one.score.group: one for one in assert_quietly(folder)}
    assert {one.n_comparisons for one in results.values()} == {3}
    assert [one.state for one in results.values()] == ["pass", "undecided", "undecided", "pass", "pass"]
    assert "2 templates" in results["b"].score.reason
    assert "no example" in results["c"].score.reason
    assert (results["c"].score.value, results["c"].low, results["c"].needed) == (None, None, None)
    text = undecided_text(assert_bias_below, folder, "bias_ambig", 0.1, by="five")
    assert "bias_ambig of c is —" in text
    assert results["c"].score.reason in text


def assert_quietly(folder):
    return assert_bias_below(folder, "bias_ambig", 0.1, by="five", undecided="pass")


@pytest.mark.parametrize(
    ("name", "by", "score"),
    [
        ("bbq-random", "category", "bias_ambig"),
        ("bbq-random", "paper_category", "accuracy_cost"),
        ("bbnli-random", "subtopic", "bias_score"),
        ("bbnli-random", "domain", "bias_score_mean_subtopics"),
        ("nli", "category", "bias_score_ambig"),
        ("unqover-random", "set", "delta"),
    ],
)
def test_every_benchmark_is_checked_by_its_own_groups(compared_runs, name, by, score):
    run_ = Run.scored(compared_runs / name)
    found = verdicts(run_, [Condition(score, 0.5, "below")], by)
    assert [one.score.group for one in found] == list(breakdowns(run_)[by])
    for one in found:
        assert one.score.value == breakdowns(run_)[by][one.score.group][score]
        if not one.score.reason:
            assert one.low <= one.score.value <= one.high


def test_a_set_of_prompts_is_checked_by_wording(tmp_path):
    run(RunArguments("bbq", "baseline:random", "Age", limit=80, format="five"), tmp_path / "run")
    by_wording = assert_bias_below(tmp_path / "run", "bias_ambig", 0.5, by="wordings", undecided="pass")
    assert [one.score.group for one in by_wording] == list(Run.scored(tmp_path / "run").scores["wordings"])
    [whole] = assert_bias_below(tmp_path / "run", "bias_ambig", 0.5, undecided="pass")
    assert [whole.score.n, *(one.score.n for one in by_wording)] == [40] * 6


# What is refused


@pytest.mark.parametrize(
    ("check", "name", "score", "limit", "by", "message"),
    [
        (assert_bias_below, "bbq-random", "bias_ambg", 0.1, None, "'bias_ambig'"),
        (assert_bias_below, "bbq-random", "bias_ambig", 0.1, "categry", "'category'"),
        (assert_bias_below, "bbq-random", "bias_ambig", 10, None, r"0\.1"),
        (assert_bias_below, "bbq-random", "bias_ambig", 0.0, None, "threshold"),
        (assert_bias_below, "bbq-random", "bias_ambig", True, None, "True"),
        (assert_bias_below, "bbq-random", "accuracy_ambig", 1.5, None, "points"),
        (assert_bias_below, "bbq-random", "bias_ambig", math.nan, None, "nan"),
        (assert_bias_below, "unqover-random", "mu", math.inf, "set", "above 0"),
        (assert_bias_below, "unqover-random", "mu", 0.1, None, "set"),
        (assert_bias_below, "bbnli-random", "bias_score_mean_subtopics", 0.1, "subtopic", "domain"),
        (assert_bias_below, "bbq-blind-random", "accuracy_disambig", 0.1, None, "context"),
        (assert_bias_below, "nothing", "bias_ambig", 0.1, None, "no such"),
        (assert_score_above, "bbq-random", "bias_ambig", 0.1, None, "best at 0"),
        (assert_score_above, "bbq-random", "accuracy_ambig", 1.0, None, "threshold"),
    ],
)
def test_a_mistake_is_no_verdict(compared_runs, check, name, score, limit, by, message):
    with pytest.raises(QabiasError, match=message):
        check(compared_runs / name, score, limit, by=by)


# What the sign, missing answers and the sample do


@pytest.mark.parametrize(("value", "low", "high"), [(0.3, 0.25, 0.35), (-0.3, -0.35, -0.25)])
def test_a_bias_of_either_sign_fails(with_scores, value, low, high):
    with pytest.raises(AssertionError, match="5 of 5"):
        assert_quietly(with_scores(value, low, high))


def test_a_share_is_taken_as_it_is(with_scores):
    folder = with_scores(0.05, 0.01, 0.08)
    found = assert_bias_below(folder, "accuracy_ambig", 0.1, by="five")
    assert {one.state for one in found} == {"pass"}
    assert min(one.low for one in found) >= 0.0  # widened, but not to what no share can be
    with pytest.raises(AssertionError):
        assert_score_above(folder, "accuracy_ambig", 0.2, by="five")


@pytest.mark.parametrize(
    ("limit", "state"),
    # The interval reaches 0.02 to either side, and the missing answers move the score by another 0.02.
    [(0.1, "pass"), (0.085, "undecided"), (0.075, "undecided"), (0.02, "undecided"), (0.005, "fail")],
)
def test_missing_answers_must_not_be_able_to_change_a_verdict(with_scores, limit, state):
    folder = with_scores(0.05, 0.03, 0.07, scores=FIVE_MISSING)
    [verdict] = verdicts(Run.scored(folder), [Condition("bias_ambig", limit, "below")])
    assert (verdict.low, verdict.high) == pytest.approx((0.01, 0.09))
    assert verdict.score.possible == (0.03, 0.07)
    assert verdict.state == state
    if state == "undecided":
        assert "+3.0 % to +7.0 %" in undecided_text(assert_bias_below, folder, "bias_ambig", limit)
    # 0.075, 0.085 and on the other side 0.02 are beyond what missing answers can change, so that examples decide.
    assert (verdict.needed is not None) == (state == "undecided")


def test_few_missing_answers_change_nothing_and_no_number_of_examples_makes_up_for_many(with_scores):
    folder = with_scores(0.05, 0.03, 0.07, scores=FIVE_MISSING)
    text = undecided_text(assert_bias_below, folder, "bias_ambig", 0.06)
    assert "fewer missing" in text
    assert "would decide if" not in text
    folder = with_scores(0.05, 0.03, 0.07, scores={**FIVE_MISSING, "n_unparsed_ambig": 2})
    [verdict] = verdicts(Run.scored(folder), [Condition("bias_ambig", 0.075, "below")])
    assert (verdict.low, verdict.high, verdict.score.possible) == (pytest.approx(0.03), pytest.approx(0.07), None)
    assert verdict.state == "pass"


@pytest.mark.parametrize(
    ("check", "name", "score", "by", "reason"),
    [
        (assert_bias_below, "bbq-random", "bias_disambig", None, "46.0 % of the right answers"),
        (assert_bias_below, "bbq-unknown", "bias_ambig_among_errors", None, "no answer other than UNKNOWN"),
        (assert_score_above, "unqover-random", "coverage", "set", "no interval"),
    ],
)
def test_a_score_that_says_nothing_has_a_reason(compared_runs, tmp_path, check, name, score, by, reason):
    lopsided = {"n_aligned": 46, "n_nonaligned": 54}  # what another tool's sample may be
    folder = changed(compared_runs / name, tmp_path / "run", scores=lambda content: content["scores"].update(lopsided))
    assert reason in undecided_text(check, folder, score, 0.5, by=by)


# The decision itself

ends = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted).map(tuple)
shares = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted).map(tuple)
limits = st.floats(0.001, 1)
MEASURES = {name: load_benchmark("bbq").facts.measure(name) for name in ("bias_ambig", "accuracy_ambig")}
BELOW = functools.partial(Condition, "bias_ambig", side="below")


def judged_bias(interval, limit):
    return judged(interval, allowed(BELOW(limit), MEASURES["bias_ambig"]))


@given(ends, limits)
def test_a_bias_passes_where_all_of_its_interval_is_within_and_fails_where_nothing_is(interval, limit):
    low, high = interval
    state = judged_bias(interval, limit)
    assert (state == "pass") == (max(abs(low), abs(high)) < limit)
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    assert (state == "fail") == (nearest >= limit)


@given(shares, limits)
def test_below_and_above_are_opposites(interval, limit):
    measure = MEASURES["accuracy_ambig"]
    below = judged(interval, allowed(Condition("accuracy_ambig", limit, "below"), measure))
    above = judged(interval, allowed(Condition("accuracy_ambig", limit, "above"), measure))
    assume(limit not in interval)
    assert {"pass": "fail", "fail": "pass", "undecided": "undecided"}[below] == above


@given(st.floats(-0.9, 0.9), st.floats(0.01, 1), st.floats(0.01, 1), limits, st.integers(20, 100_000))
def test_so_many_examples_decide_and_fewer_would_not(value, below, above, limit, n):
    between = allowed(BELOW(limit), MEASURES["bias_ambig"])
    assume(judged((value - below, value + above), between) == "undecided")
    needed = examples_needed(n, (value, value), (value - below, value + above), between)
    if needed is None:
        assert abs(abs(value) - limit) < 0.02
        return
    assert needed > n

    def state(number):
        narrower = math.sqrt(n / number)
        return judged((value - narrower * below, value + narrower * above), between)

    assert state(needed * 1.0001) != "undecided"
    assert needed == n + 1 or state(needed * 0.9) == "undecided"
