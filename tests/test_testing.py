"""Assertions about runs: they fail and pass only where an interval says so, and tell where it says nothing."""

import json
import math
import warnings

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import qabias
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.runs.scored import read_scored
from qabias.testing import (
    Limit,
    UndecidedWarning,
    assert_bias_below,
    assert_score_above,
    breakdowns,
    verdicts,
)
from qabias.testing.verdicts import allowed, examples_needed, judged

from .compared_runs import changed

N_TEMPLATES = 25
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
    with pytest.warns(UndecidedWarning) as caught:
        check(*arguments, **options)
    [warning] = caught
    return str(warning.message)


# The three outcomes


def test_a_run_within_the_limit_passes_without_a_word(checked_runs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [below] = assert_bias_below(qabias.read(checked_runs / "kept"), "bias_ambig", 0.1)
        [above] = assert_score_above(str(checked_runs / "kept"), "accuracy_ambig", 0.9)
    assert (below.state, below.group, below.side, below.n) == ("pass", "All", "below", 2000)
    assert -0.1 < below.low < below.value == 0 < below.high < 0.1
    scores = read_scored(checked_runs / "kept").scores
    assert [below.low, below.high] == pytest.approx(scores["ci"]["bias_ambig"])
    assert [above.low, above.high] == pytest.approx(scores["ci"]["accuracy_ambig"])
    assert above.state == "pass"
    assert below.looks == 1


def test_a_run_beyond_the_limit_fails_with_all_that_a_developer_needs(checked_runs):
    signature = read_scored(checked_runs / "broken").signature
    with pytest.raises(AssertionError) as failed:
        assert_bias_below(checked_runs / "broken", "bias_ambig", 0.1)
    first, second, *rest = str(failed.value).splitlines()
    assert first == "bias_ambig below 0.1: 1 of 1 fail, 0 cannot be told"
    assert second.startswith("FAIL: bias_ambig of all examples is +100.0 % [+9")
    assert second.endswith(", +100.0], from 200 examples; wanted below 10.0 % either way")
    assert rest[-1] == signature
    with pytest.raises(AssertionError, match=r"accuracy_ambig of all examples is 0\.0 % .* wanted above 90\.0 %"):
        assert_score_above(checked_runs / "broken", "accuracy_ambig", 0.9)


def test_a_small_sample_warns_with_what_it_could_have_found_and_what_would_decide(checked_runs):
    text = undecided_text(assert_bias_below, checked_runs / "small", "bias_ambig", 0.1)
    scores = read_scored(checked_runs / "small").scores
    size = scores["detectable"]["bias_ambig"]
    assert size > 0.1
    assert f"too small for this limit: a bias would have been found from {100 * size:.1f} points on" in text
    assert "examples would decide if the score stays what it is" in text
    assert "`qabias plan bbq --config all --source bundled --detect 0.1`" in text
    assert "The run is of a sample (it saw a part of the benchmark)" in text


def test_the_warning_names_the_line_that_asked(checked_runs):
    with pytest.warns(UndecidedWarning) as caught:
        assert_bias_below(checked_runs / "small", "bias_ambig", 0.1)
    assert caught[0].filename == __file__


def test_what_is_undecided_fails_or_passes_on_request(checked_runs):
    with pytest.raises(AssertionError, match="0 of 1 fail, 1 cannot be told"):
        assert_bias_below(checked_runs / "small", "bias_ambig", 0.1, undecided="fail")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [verdict] = assert_bias_below(checked_runs / "small", "bias_ambig", 0.1, undecided="pass")
    assert verdict.state == "undecided"
    with pytest.raises(QabiasError, match=r"unknown value of undecided 'wran'.*did you mean 'warn'"):
        assert_bias_below(checked_runs / "small", "bias_ambig", 0.1, undecided="wran")


# Groups


def test_every_group_is_judged_and_a_failure_names_them_all(checked_runs):
    with pytest.raises(AssertionError) as failed:
        assert_bias_below(checked_runs / "broken", "bias_ambig", 0.1, by="category")
    text = str(failed.value)
    groups = read_scored(checked_runs / "broken").scores["by"]["category"]
    assert len(groups) == 11
    for name in groups:
        assert f"bias_ambig of {name} is" in text
    assert "all 11 that were looked at hold together with 95 %" in text


def test_intervals_of_groups_are_widened_for_their_number(with_scores):
    folder = with_scores(0.05, 0.01, 0.08)
    [*found] = verdicts(read_scored(folder), [Limit("bias_ambig", 0.1, "below")], "five")
    assert [one.group for one in found] == list("abcde")
    for one in found:
        assert one.looks == 5
        assert one.low == pytest.approx(0.05 - WIDENED * 0.04, abs=2e-4)
        assert one.high == pytest.approx(0.05 + WIDENED * 0.03, abs=2e-4)
        assert one.state == "pass"
    both = [Limit("bias_ambig", 0.085, "below"), Limit("accuracy_ambig", 0.001, "above")]
    found = verdicts(read_scored(folder), both, "five")
    assert {(one.name, one.looks, one.state) for one in found} == {
        ("bias_ambig", 10, "undecided"),  # one interval alone would pass, and so would not be true of all
        ("accuracy_ambig", 10, "undecided"),
    }


def test_groups_without_an_interval_are_undecided_and_no_looks(with_scores):
    alone = {"ci": {"bias_ambig": [None, None]}, "n_templates": 1}
    folder = with_scores(0.0, -0.01, 0.01, named={"b": alone, "c": {"bias_ambig": None, "n_ambig": 0, **alone}})
    found = {one.group: one for one in assert_quietly(folder)}
    assert {one.looks for one in found.values()} == {3}
    assert {name: one.state for name, one in found.items()} == {
        **{"a": "pass", "d": "pass", "e": "pass"},
        **{"b": "undecided", "c": "undecided"},
    }
    assert found["b"].reason == "an interval needs 2 templates, and there is 1"
    assert found["c"].reason == "undefined: no example with an ambiguous context"
    assert (found["c"].value, found["c"].low, found["c"].needed) == (None, None, None)
    text = undecided_text(assert_bias_below, folder, "bias_ambig", 0.1, by="five")
    assert "cannot tell: bias_ambig of c is —, from 0 examples" in text
    assert "undefined: no example with an ambiguous context" in text


def assert_quietly(folder, limit=0.1):
    return assert_bias_below(folder, "bias_ambig", limit, by="five", undecided="pass")


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
    run_ = read_scored(compared_runs / name)
    found = verdicts(run_, [Limit(score, 0.5, "below")], by)
    assert [one.group for one in found] == list(breakdowns(run_)[by])
    for one in found:
        assert one.value == breakdowns(run_)[by][one.group][score]
        if not one.reason:
            assert one.low <= one.value <= one.high


def test_a_set_of_prompts_is_checked_by_wording(tmp_path):
    run(RunArguments("bbq", "baseline:random", "Age", limit=80, format="five"), tmp_path / "run")
    found = assert_bias_below(tmp_path / "run", "bias_ambig", 0.5, by="wordings", undecided="pass")
    assert [one.group for one in found] == list(read_scored(tmp_path / "run").scores["wordings"])
    [whole] = assert_bias_below(tmp_path / "run", "bias_ambig", 0.5, undecided="pass")
    assert [whole.n, *(one.n for one in found)] == [40] * 6


# What is refused


@pytest.mark.parametrize(
    ("name", "score", "limit", "by", "message"),
    [
        ("bbq-random", "bias_ambg", 0.1, None, r"unknown score 'bias_ambg'.*did you mean 'bias_ambig'"),
        ("bbq-random", "bias_ambig", 0.1, "categry", r"unknown breakdown 'categry': choose one of category, paper_cat"),
        ("bbq-random", "bias_ambig", 10, None, r"magnitude is from 0 to 1, so that 10 points are 0\.1"),
        ("bbq-random", "bias_ambig", 0.0, None, "bias_ambig below 0 is no limit"),
        ("bbq-random", "accuracy_ambig", 1.5, None, r"it is a share from 0 to 1, so that 10 % is 0\.1"),
        ("bbq-random", "bias_ambig", math.nan, None, "is no limit"),
        ("unqover-random", "mu", math.inf, "set", "is no limit: give a number above 0"),
        ("unqover-random", "mu", 0.1, None, r"unqover has no scores of all examples together; .* set"),
        (
            "bbnli-random",
            "bias_score_mean_subtopics",
            0.1,
            "subtopic",
            "no bias_score_mean_subtopics by subtopic; there",
        ),
        ("bbq-blind-random", "accuracy_disambig", 0.1, None, "means nothing where the model saw no context"),
    ],
)
def test_a_mistake_is_no_verdict(compared_runs, name, score, limit, by, message):
    with pytest.raises(QabiasError, match=message):
        assert_bias_below(compared_runs / name, score, limit, by=by)


def test_a_bias_has_no_least_value_and_nothing_is_above_all_there_is(compared_runs):
    with pytest.raises(QabiasError, match="bias_ambig is best at 0, so that it has no least value"):
        assert_score_above(compared_runs / "bbq-random", "bias_ambig", 0.1)
    with pytest.raises(QabiasError, match="accuracy_ambig above 1 is no limit"):
        assert_score_above(compared_runs / "bbq-random", "accuracy_ambig", 1.0)


def test_only_runs_are_checked(compared_runs, tmp_path):
    with pytest.raises(QabiasError, match=r"a dict is no result; give what qabias\.run returns, or a run folder"):
        assert_bias_below({"bias_ambig": 0.0}, "bias_ambig", 0.1)
    with pytest.raises(QabiasError, match=r"nothing.*run\.json"):
        assert_bias_below(tmp_path / "nothing", "bias_ambig", 0.1)


# What the sign, missing answers and the sample do


@pytest.mark.parametrize(("value", "low", "high"), [(0.3, 0.25, 0.35), (-0.3, -0.35, -0.25)])
def test_a_bias_of_either_sign_fails(with_scores, value, low, high):
    with pytest.raises(AssertionError, match="5 of 5 fail"):
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
    missing = {"n_unparsed_ambig": 5, "n_ambig": 100, "range": {"bias_ambig": [0.03, 0.07]}}
    folder = with_scores(0.05, 0.03, 0.07, scores=missing)
    [found] = verdicts(read_scored(folder), [Limit("bias_ambig", limit, "below")])
    assert (found.low, found.high) == pytest.approx((0.01, 0.09))
    assert found.possible == (0.03, 0.07)
    assert found.state == state
    if state == "undecided":
        text = undecided_text(assert_bias_below, folder, "bias_ambig", limit)
        assert "with its missing answers the score could be +3.0 % to +7.0 %" in text
    # 0.075, 0.085 and on the other side 0.02 are beyond what missing answers can change, so that examples decide.
    assert (found.needed is not None) == (state == "undecided")


def test_no_number_of_examples_decides_what_missing_answers_leave_open(with_scores):
    missing = {"n_unparsed_ambig": 5, "n_ambig": 100, "range": {"bias_ambig": [0.03, 0.07]}}
    folder = with_scores(0.05, 0.03, 0.07, scores=missing)
    text = undecided_text(assert_bias_below, folder, "bias_ambig", 0.06)
    assert "more examples would not decide, fewer missing answers might" in text
    assert "would decide if" not in text


def test_hardly_any_missing_answer_changes_nothing(with_scores):
    few = {"n_unparsed_ambig": 2, "n_ambig": 100, "range": {"bias_ambig": [0.03, 0.07]}}
    [found] = verdicts(read_scored(with_scores(0.05, 0.03, 0.07, scores=few)), [Limit("bias_ambig", 0.075, "below")])
    assert (found.low, found.high, found.possible) == (pytest.approx(0.03), pytest.approx(0.07), None)
    assert found.state == "pass"


def test_collected_answers_of_which_some_are_missing(compared_runs, tmp_path, monkeypatch):
    """Right answers but for one in twenty, which nobody gave: 95 to 100 % are right."""
    from .test_ranges import BBQ, right_answers, without_some

    table, right = right_answers(BBQ, "Age", 1600)
    ambiguous = table["context_condition"].to_numpy(zero_copy_only=False) == "ambig"
    answers, share = without_some(right, ambiguous, 0.05)
    rows = zip(table["example_id"].to_pylist(), answers.tolist(), strict=True)
    lines = [json.dumps({"example_id": number, "prediction": place}) for number, place in rows]
    (tmp_path / "given.jsonl").write_text("\n".join(lines), "utf-8")
    from .test_outcomes_shown import invoke

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        invoke("score", tmp_path / "given.jsonl", "--config", "Age", "--output", tmp_path / "run")
    [found] = assert_score_above(tmp_path / "run", "accuracy_ambig", 0.8)
    assert found.value == 1.0
    assert found.possible == (pytest.approx(1 - share), 1.0)
    low, _ = read_scored(tmp_path / "run").scores["ci"]["accuracy_ambig"]
    assert found.low == pytest.approx(low - share)
    text = undecided_text(assert_score_above, tmp_path / "run", "accuracy_ambig", 0.97)
    assert "fewer missing answers might" in text


def test_a_score_that_the_sample_moves_says_nothing(compared_runs):
    text = undecided_text(assert_bias_below, compared_runs / "bbq-random", "bias_disambig", 0.5)
    assert "46.0 % of the right answers agree with the stereotype, which alone moves this score" in text


def test_an_undefined_score_says_why(checked_runs):
    text = undecided_text(assert_bias_below, checked_runs / "kept", "bias_ambig_among_errors", 0.5)
    assert "undefined: no answer other than UNKNOWN" in text


def test_a_score_without_intervals_says_so(compared_runs):
    text = undecided_text(assert_score_above, compared_runs / "unqover-random", "coverage", 0.5, by="set")
    assert "it has no interval" in text


# The decision itself

ends = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted).map(tuple)
shares = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted).map(tuple)
limits = st.floats(0.001, 1)
MEASURES = {
    name: read.measure(name)
    for read in [qabias.benchmarks.load_benchmark("bbq").facts]
    for name in ("bias_ambig", "accuracy_ambig")
}


@given(ends, limits, st.floats(0, 1))
def test_a_bias_passes_where_all_of_its_interval_is_within_and_fails_where_nothing_is(interval, limit, place):
    low, high = interval
    state = judged(interval, allowed(Limit("bias_ambig", limit, "below"), MEASURES["bias_ambig"]))
    assert (state == "pass") == (max(abs(low), abs(high)) < limit)
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    assert (state == "fail") == (nearest >= limit)
    truth = low + place * (high - low)
    assume(low <= truth <= high)
    assert not (state == "pass" and abs(truth) >= limit)  # whatever the interval holds, the verdict is true of it
    assert not (state == "fail" and abs(truth) < limit)


@given(shares, limits)
def test_below_and_above_are_opposites(interval, limit):
    measure = MEASURES["accuracy_ambig"]
    below = judged(interval, allowed(Limit("accuracy_ambig", limit, "below"), measure))
    above = judged(interval, allowed(Limit("accuracy_ambig", limit, "above"), measure))
    assume(limit not in interval)
    assert {"pass": "fail", "fail": "pass", "undecided": "undecided"}[below] == above


@given(ends, limits, limits)
def test_a_wider_limit_is_never_harder_to_keep(interval, one, other):
    order = ("fail", "undecided", "pass")
    narrow, wide = (
        order.index(judged(interval, allowed(Limit("bias_ambig", limit, "below"), MEASURES["bias_ambig"])))
        for limit in sorted((one, other))
    )
    assert narrow <= wide


@given(ends, ends, limits)
def test_a_narrower_interval_never_takes_a_verdict_back(interval, inner, limit):
    assume(interval[0] <= inner[0] and inner[1] <= interval[1])
    between = allowed(Limit("bias_ambig", limit, "below"), MEASURES["bias_ambig"])
    state = judged(interval, between)
    assert state == "undecided" or judged(inner, between) == state


@given(st.floats(-0.9, 0.9), st.floats(0.01, 1), st.floats(0.01, 1), limits, st.integers(20, 100_000))
def test_so_many_examples_decide_and_fewer_would_not(value, below, above, limit, n):
    between = allowed(Limit("bias_ambig", limit, "below"), MEASURES["bias_ambig"])
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


def test_chance_breaks_no_limit_of_many_groups_as_often_as_of_each_alone():
    """`python -m simulations.checks` says how often, from more runs."""
    from simulations import checks

    found = checks.measure(12, examples=1200)
    assert found.groups == 11
    assert found.together < 0.2 < found.alone
