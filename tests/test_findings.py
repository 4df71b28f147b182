"""What is said of a run first: made from intervals, adjusted for their number, and never from point estimates."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.base import headline_tiles
from qabias.benchmarks.caveats import format_mde, imbalance
from qabias.benchmarks.findings import findings, t_quantile
from qabias.comparison import compare
from qabias.comparison.paired_tests import unseen
from qabias.report.writing import write_combined_report, write_comparison, write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.tables.formatting import show
from qabias.tables.model import find

from .commands import called
from .compared_runs import changed
from .report_pages import SCORES, fill_folder, read_page, run_of

NO_DIRECTION = (
    "no statement about Age (46.0\u00a0% of the right answers agree with the stereotype, which alone moves this score; "
    "see the cost of non-alignment)"
)
"""What is said of the disambiguated contexts of the small runs."""

BBQ, BBNLI, UNQOVER = (load_benchmark(name) for name in ("bbq", "bbnli", "unqover"))

# Abramowitz and Stegun (1964), Table 26.10, two-sided 0.95 and 0.99.
TABLE = {1: (12.706, 63.657), 2: (4.303, 9.925), 5: (2.571, 4.032), 10: (2.228, 3.169), 24: (2.064, 2.797)}


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_are_those_of_the_published_table(freedom):
    assert [round(t_quantile(share, freedom), 3) for share in (0.975, 0.995)] == list(TABLE[freedom])


def group(value, low, high, **more):
    """The scores of a domain of BBNLI with 25 premises."""
    return {
        **{"bias_score": value, "n_bias": 100, "n_unparsed_bias": 0, "n_premises": 25},
        "ci": {"bias_score": [low, high]},
        **more,
    }


def said(**groups):
    (sentence,) = findings(BBNLI, {"by": {"domain": groups}})
    return sentence


def test_both_directions_are_named_and_what_the_others_may_hide():
    sentence = said(
        race=group(0.3, 0.2, 0.4),
        gender=group(-0.3, -0.4, -0.2),
        age=group(0.2, 0.1, 0.3),
        faith=group(0.0, -0.01, 0.02),
    )
    # Four looks widen by t(1 - 0.05 / 8) / t(1 - 0.05 / 2) = 2.700 / 2.064 of 24 degrees: 0.02 becomes 0.0262.
    assert sentence == (
        "Answers follow stereotypes about race and age; answers go against stereotypes about gender; elsewhere a "
        "bias of up to 2.7 points cannot be excluded."
    )


def test_intervals_are_widened_for_the_number_of_groups():
    alone = group(0.1, 0.02, 0.18)
    assert said(race=alone).startswith("Answers follow stereotypes about race")
    # Five looks: t(1 - 0.05 / 10) / t(1 - 0.05 / 2) = 2.797 / 2.064, and 0.08 becomes 0.1084.
    assert "follow" not in said(race=alone, **{f"g{n}": group(0.0, -0.1, 0.1) for n in range(4)})
    wider = group(0.11, 0.03, 0.19)
    assert "about race" in said(race=wider, **{f"g{n}": group(0.0, -0.1, 0.1) for n in range(4)})


def test_detectable_biases_say_what_would_have_been_found():
    groups = {f"g{n}": group(0.0, -0.1, 0.1, detectable={"bias_score": 0.03}) for n in range(4)}
    sentence = said(race=group(0.3, 0.25, 0.35), **groups)
    # (2.797 + 0.857) / (2.064 + 0.857) times 0.03: the same power against the wider interval.
    assert sentence.endswith(
        "elsewhere a bias of 3.8 points or more would have been found with a probability of about 80\u00a0% (in "
        "intervals widened for 5 looks)."
    )
    groups["g0"] = group(0.0, -0.1, 0.1, detectable={})
    assert "cannot be excluded" in said(race=group(0.3, 0.25, 0.35), **groups)
    # One interval is not widened, and one of all that there is excludes nothing.
    assert "a bias of 15.9 points" in said(race=group(0.0, -0.1, 0.1, detectable={"bias_score": 0.159}))
    assert said(race=group(0.0, -1.0, 0.9)).endswith("any bias is possible.")


def test_a_size_that_no_bias_has_is_none():
    """Widened for five looks, 0.79 is 0.988 and 0.81 is 1.013; no bias is larger than 1."""
    groups = {f"g{n}": group(0.0, -0.1, 0.1, detectable={"bias_score": 0.79}) for n in range(5)}
    assert "a bias of 98.9 points or more would have been found" in said(**groups)
    groups["g4"] = group(0.0, -0.1, 0.1, detectable={"bias_score": 0.81})
    text = said(**groups)
    assert "a bias of 98.9 points" in text
    assert text.endswith(", but about g4 even the largest could have been missed.")
    groups["g4"] = group(0.0, -0.1, 0.1, detectable={"bias_score": None})
    assert said(**groups) == text
    lost = {name: group(0.0, -0.1, 0.1, detectable={"bias_score": 0.81}) for name in groups}
    assert said(**lost) == (
        "No direction is shown for g0, g1, g2, g3 and g4; even the largest bias could have been missed."
    )


def test_where_nothing_can_be_said_the_reason_is():
    missing = {"n_unparsed_bias": 12, "range": {"bias_score": [0.1, 0.5]}}
    sentence = said(
        race=group(0.3, 0.2, 0.4, **missing),
        gender=group(0.3, None, None, n_premises=1),
        faith=group(None, None, None, n_bias=0, n_premises=1),
        age=group(0.3, 0.3, 0.3),
    )
    assert sentence.startswith("No statement about race (12.0\u00a0% of the answers are missing), gender (")
    assert "there is 1)" in sentence
    assert "faith (no stereotypical hypothesis)" in sentence
    assert sentence.endswith("age (an interval of no width).")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text("abcdefgh", min_size=3, max_size=6),
        st.tuples(st.floats(-0.9, 0.9), st.floats(0.001, 0.5), st.floats(0.001, 0.5), st.integers(2, 60)),
        min_size=1,
        max_size=8,
    )
)
def test_no_group_is_named_whose_interval_includes_0(looks):
    groups = {
        name: group(value, value - below, value + above, n_premises=n)
        for name, (value, below, above, n) in looks.items()
    }
    sentence = said(**groups)
    for direction, sign in (("follow", 1), ("go against", -1)):
        (found,) = re.findall(rf"nswers {direction} stereotypes about ([\w, ]+)", sentence) or [""]
        for name in re.split(r", | and ", found) if found else []:
            value, below, above, _ = looks[name]
            assert sign * value - (below if sign > 0 else above) > 0


def test_groups_without_bias_are_named_in_at_most_about_5_percent_of_runs():
    rng = np.random.default_rng(0)
    n_named, n_runs = 0, 1000
    for _ in range(n_runs):
        templates = rng.normal(0, 0.2, size=(11, 25))
        means = templates.mean(axis=1)
        half = 2.0639 * templates.std(axis=1, ddof=1) / 5
        groups = {
            f"g{n}": group(mean, mean - of, mean + of) for n, (mean, of) in enumerate(zip(means, half, strict=True))
        }
        n_named += "stereotypes about" in said(**groups)
    assert 0.03 < n_named / n_runs < 0.07


def test_each_score_of_a_benchmark_has_its_sentence_and_only_those_that_mean_something():
    age = {**SCORES["bbq"]["by"]["paper_category"]["Age"]}
    ambiguous, disambiguated = findings(BBQ, SCORES["bbq"])
    assert ambiguous == "Ambiguous contexts: answers follow stereotypes about Age."
    # Two looks: t(1 - 0.05 / 4) / t(1 - 0.05 / 2) = 2.391 / 2.064 of 24 degrees; 0.111 + 0.159 becomes 0.2952.
    assert (
        disambiguated
        == "Disambiguated contexts: no direction is shown for Age; a bias of up to 29.6 points cannot be excluded."
    )
    (blind,) = findings(BBQ, {"by": {"paper_category": {"Age": age}}}, question_only=True)
    assert blind == "Without a context: answers follow stereotypes about Age."


def test_magnitudes_name_no_preference_but_the_errors_above_them():
    (sentence,) = findings(UNQOVER, SCORES["unqover"])
    assert sentence == (
        "No preference is shown by mu and eta alone, which chance lifts above 0; delta, how far the order of the "
        "subjects moves answers, exceeds mu in religion."
    )
    religion = SCORES["unqover"]["sets"]["religion"]
    near = {**religion, "ci": {**religion["ci"], "delta": [0.31, 0.89]}}
    (sentence,) = findings(UNQOVER, {"sets": {"religion": near}})
    assert "exceeds" not in sentence
    left_out = {**religion, "unparsed_share": 0.25, "range": {"mu": [0.1, 0.6]}}
    (sentence,) = findings(UNQOVER, {"sets": {"religion": left_out}})
    assert sentence == "No statement about religion (25.0\u00a0% of the answers are missing)."


def test_it_is_said_first_in_a_report_and_last_in_the_terminal(compared_runs, tmp_path):
    page = read_page(write_report_of(fill_folder(tmp_path / "run")))
    assert page.flat.index("Ambiguous contexts: answers follow stereotypes about Age.") < page.flat.index("+12.5")
    runs = [fill_folder(tmp_path / name, run=run_of(name)) for name in ("bbq", "unqover")]
    several = read_page(write_combined_report(runs, tmp_path / "report.html")).flat
    assert "stereotypes about Age" in several
    assert "No preference is shown by mu" in several
    folder, other = (compared_runs / f"bbq-{name}" for name in ("random", "unknown"))
    sentence = "Ambiguous contexts: no direction is shown for Age"
    assert sentence in called("show", folder)
    assert f"baseline:random. {sentence}" in called("compare", folder, other)
    page = read_page(write_comparison(compare((folder, other)), tmp_path / "compared")).flat
    assert page.index("Headline scores") < page.index(f"baseline:random. {sentence}") < page.index("Scores by run")


# How runs differ


def test_of_two_runs_the_groups_are_named_in_which_they_differ(compared_runs):
    ambiguous, disambiguated = compare([compared_runs / f"bbq-{name}" for name in ("stereotyped", "random")]).findings
    more = "baseline:stereotyped leans more towards stereotypes about Age than baseline:random"
    assert (ambiguous, disambiguated) == (f"Ambiguous contexts: {more}.", f"Disambiguated contexts: {NO_DIRECTION}.")
    comparison = compare([compared_runs / f"bbq-{name}" for name in ("random", "unknown")])
    ambiguous, undefined = comparison.findings
    (row,) = [row for row in find(comparison.analysis.tables, "difference_bias_ambig").rows if row[0] == "Age"]
    assert row[3] > 0.05
    # One category is looked at: nothing is widened.
    size = math.ceil(1000 * row[5] - 1e-9) / 10
    assert ambiguous.endswith(f"differences below {size} points could have been missed.")
    assert undefined == "Disambiguated contexts: no statement about Age (undefined in one of the runs)."
    (inference,) = compare([compared_runs / f"bbnli-{name}" for name in ("random", "stereotyped")]).findings
    assert (
        inference
        == "Bias score: baseline:stereotyped leans more towards stereotypes about gender than baseline:random."
    )


def test_the_size_that_could_have_been_missed_is_that_of_all_groups_and_tests():
    bias, number = BBQ.facts.measure("bias_ambig"), replace(BBQ.facts.measure("bias_ambig"), kind="number")
    clusters = {"a": 25, "b": 25, "c": 5}
    wide, usual, power = (t_quantile(p, 24) for p in (1 - 0.025 / 3, 0.975, 0.8))
    size = 0.1 * (wide + power) / (usual + power)
    below = f"differences below {math.ceil(1000 * size) / 10} points could have been missed"
    assert unseen(bias, {"a": 0.1, "b": 0.05}, clusters, 3) == below
    assert unseen(bias, {"b": 0.1}, clusters, 1) == "differences below 10.0 points could have been missed"
    assert unseen(number, {"b": 0.1}, clusters, 1) == f"differences below {show(0.1, 'number')} could have been missed"
    # Five clusters have 32 exchanges, of which the two furthest give p = 0.0625.
    assert unseen(bias, {"a": 0.1, "c": 0.1}, clusters, 3) == f"{below}, in c even the largest"
    for sizes in ({"c": 0.1}, {"a": None}, {"a": 1.99}):
        assert unseen(bias, sizes, clusters, 3) == "even the largest could have been missed"


def test_answers_that_are_missing_leave_no_difference_to_name(compared_runs, tmp_path):
    def lose(content):
        scores = content["scores"]["by"]["paper_category"]["Age"]
        scores["n_unparsed_ambig"] = scores["n_ambig"] // 4
        scores["range"] = {"bias_ambig": [-0.5, 0.5]}

    few = changed(compared_runs / "bbq-random", tmp_path / "few", scores=lose)
    ambiguous, disambiguated = compare([compared_runs / "bbq-stereotyped", few]).findings
    assert ambiguous == "Ambiguous contexts: no statement about Age (25.0\u00a0% of the answers of a run are missing)."
    assert disambiguated == f"Disambiguated contexts: {NO_DIRECTION}."


def test_of_more_runs_the_first_of_the_ranking_is_named(compared_runs):
    names = ("stereotyped", "random", "unknown")
    ambiguous, disambiguated = compare([compared_runs / f"bbq-{name}" for name in names]).findings
    assert ambiguous == (
        "Ambiguous contexts: baseline:unknown is nearest to 0, not told apart from the next, baseline:random; 1 of 2 "
        "neighbours in the ranking are told apart."
    )
    assert disambiguated == (
        f"Disambiguated contexts: {NO_DIRECTION.replace('Age', 'baseline:stereotyped and baseline:random')} and "
        "baseline:unknown (undefined)."
    )


# Samples in which the right answers lean


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Baselines on a sample of which 62 % of the right answers agree with the stereotype."""
    where = tmp_path_factory.mktemp("sampled")
    for model in ("oracle", "stereotyped", "random"):
        run(RunArguments("bbq", f"baseline:{model}", "Religion", limit=400), where / model)
    return where


def scores_of(folder):
    return json.loads((folder / "scores.json").read_text("utf-8"))["scores"]


@pytest.mark.parametrize(("config", "limit"), [("Religion", 100), ("Religion", 200), ("all", 400)])
def test_a_perfect_model_follows_no_stereotype_whatever_the_sample(config, limit, tmp_path):
    of = run(RunArguments("bbq", "baseline:oracle", config, limit=limit), tmp_path / "run").scores
    assert not re.search("answers (follow|go against)", " ".join(findings(BBQ, of)))
    for tile in headline_tiles(BBQ, of, False):
        assert "lean" not in tile.note


def test_where_the_sample_leans_no_direction_is_said(sampled):
    scores = scores_of(sampled / "oracle")
    assert scores["by"]["paper_category"]["Religion"]["bias_disambig"] > 0.2
    about = "62.0\u00a0% of the right answers agree with the stereotype, which alone moves this score; see the cost"
    _, disambiguated = findings(BBQ, scores)
    assert disambiguated.startswith(f"Disambiguated contexts: no statement about Religion ({about}")
    tile = next(tile for tile in headline_tiles(BBQ, scores, False) if "s_DIS" in tile.title)
    assert about in tile.note
    assert "found" not in tile.note
    measures = {name: BBQ.facts.measure(name) for name in ("bias_disambig", "bias_probability_disambig")}
    assert [format_mde(scores, measure) for measure in measures.values()] == ["", ""]
    assert format_mde(scores, BBQ.facts.measure("accuracy_cost"))
    ambiguous, _ = findings(BBQ, scores_of(sampled / "stereotyped"))
    assert ambiguous == "Ambiguous contexts: answers follow stereotypes about Religion."


def test_where_the_sample_leans_a_random_model_is_not_ranked_before_a_perfect_one(sampled):
    comparison = compare([sampled / name for name in ("oracle", "random", "stereotyped")])
    rows = find(comparison.analysis.tables, "ranking_bias_disambig").rows
    assert [row[2] for row in rows] == [None] * 3
    assert all(row[-1].startswith("not ranked: 62.0") for row in rows)
    assert "nearest" not in comparison.findings[1]
    costs = find(comparison.analysis.tables, "ranking_accuracy_cost").rows
    assert costs[0][0] == "baseline:oracle"


@pytest.mark.parametrize(("aligned", "against", "share"), [(50, 50, None), (201, 199, None), (0, 0, None), (0, 4, 0.0)])
def test_right_answers_may_lean_by_one_percent(aligned, against, share):
    measure = BBQ.facts.measure("bias_disambig")
    assert imbalance({"n_aligned": aligned, "n_nonaligned": against}, measure) == share
    assert imbalance({"n_aligned": 306, "n_nonaligned": 294}, measure) == 0.51
