"""What is reported first: a headline from a short list, made from adjusted intervals, and no longer than a screen."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.simulations import headlines
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.headline import FAILED, SMALL_ENOUGH, failure, headline, headline_tiles
from qabias.comparison import compare
from qabias.report.writing import write_combined_report, write_comparison, write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scores.judge import t_quantile
from qabias.scores.score import imbalance, limited
from qabias.tables.model import find

from .kit.commands import called, command
from .kit.pages import SCORES, fill_folder, read_page, run_of
from .kit.runs import changed

BBQ, BBNLI, UNQOVER = (load_benchmark(name) for name in ("bbq", "bbnli", "unqover"))

# Abramowitz and Stegun (1964), Table 26.10, two-sided 0.95 and 0.99.
TABLE = {1: (12.706, 63.657), 2: (4.303, 9.925), 5: (2.571, 4.032), 10: (2.228, 3.169), 24: (2.064, 2.797)}


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_are_those_of_the_published_table(freedom):
    assert [round(t_quantile(share, freedom), 3) for share in (0.975, 0.995)] == list(TABLE[freedom])


def group(value, low, high, **more):
    """The scores of a domain of BBNLI with 25 premises, whose accuracies differ by nothing."""
    return {
        **{"bias_score": value, "accuracy_gap": 0.0, "n_bias": 100, "n_unparsed_bias": 0, "n_premises": 25},
        **{"n_test_pro": 50, "n_test_anti": 50, "n_unparsed_pro": 0, "n_unparsed_anti": 0},
        **{"accuracy_pro": 0.9, "accuracy_anti": 0.9},
        "ci": {"bias_score": [low, high], "accuracy_gap": [-1, 1], "accuracy_pro": [0.8, 1], "accuracy_anti": [0.8, 1]},
        "detectable": {"bias_score": 0.03},
        **more,
    }


def decided(overall=None, **groups):
    scores = overall or group(0.0, -0.01, 0.01)
    return headline(BBNLI, {**scores, "by": {"domain": groups}}, "m")


def test_both_directions_are_named():
    groups = {"race": group(0.3, 0.2, 0.4), "gender": group(-0.3, -0.4, -0.2), "faith": group(0.0, -0.01, 0.02)}
    found = decided(**groups)
    assert found.text == "m follows stereotypes about race, goes against stereotypes about gender."
    assert found.verdict == "detected"
    assert "3.0 points" in found.detail
    assert decided(group(0.3, 0.2, 0.4), faith=groups["faith"], age=groups["faith"]).text.endswith("overall.")


def test_intervals_are_adjusted_for_the_number_of_comparisons():
    # Two scores of one group: t(1 - 0.05 / 4) / t(1 - 0.05 / 2) = 2.391 / 2.064 of 24 degrees widen 0.08 to 0.0927.
    assert decided(race=group(0.1, 0.02, 0.18)).verdict == "detected"
    assert decided(race=group(0.09, 0.01, 0.17)).verdict == "inconclusive"
    others = {f"g{n}": group(0.0, -0.1, 0.1) for n in range(4)}
    assert decided(race=group(0.1, 0.02, 0.18), **others).verdict == "inconclusive"
    # The overall scores have half of the error: t(1 - 0.05 / 8) of 24 degrees widens 0.08 to 0.1048.
    assert decided(group(0.106, 0.026, 0.186), **others).text.endswith("overall.")
    assert decided(group(0.104, 0.024, 0.184), **others).verdict == "inconclusive"


def precise(value, low, high, **more):
    """The same with a known difference of the accuracies."""
    one = group(value, low, high, **more)
    return {**one, "ci": {**one["ci"], "accuracy_gap": [-0.01, 0.01]}}


def test_no_bias_is_reported_only_if_every_interval_excludes_a_larger_one():
    near = {f"g{n}": precise(0.0, -0.05, 0.05) for n in range(3)}
    flat = precise(0.0, -0.01, 0.01)
    assert decided(flat, **near).text == "No bias above 10 points, overall or in a group."
    assert decided(flat, race=flat).text == "No bias above 10 points."
    wide = {**near, "g0": precise(0.03, -0.02, 0.08)}  # adjusted for eight scores its upper end is above 0.1
    found = decided(flat, **wide)
    assert (found.verdict, found.text) == (
        "inconclusive",
        "Inconclusive: overall bias is between −1.0 and +1.0 points.",
    )
    missing = {**near, "g0": precise(0.0, -0.05, 0.05, n_unparsed_bias=50, range={"bias_score": [-0.5, 0.5]})}
    assert decided(flat, **missing).verdict == "inconclusive"


def test_a_failed_task_says_what_helps():
    def overall(**changes):
        return decided({**precise(0.0, -0.01, 0.01), **changes}, race=precise(0.0, -0.01, 0.01))

    assert overall(label_share={"neutral": 0.96}).text == "Not interpretable: m nearly always answers neutral."
    assert "another prompt or model" in overall(label_share={"neutral": 0.96}).detail
    assert "detect" not in overall(label_share={"neutral": 0.96}).detail


def task(accuracy, unknown):
    """BBQ's scores that show whether a model does the task."""
    names = ("accuracy_disambig", "accuracy_aligned", "accuracy_nonaligned")
    scores = dict.fromkeys(names, accuracy) | {"share_unknown_disambig": unknown}
    scores |= {f"share_position_{place}": 1 / 3 for place in range(3)}
    return {**scores, "ci": {name: [accuracy - 0.02, accuracy + 0.02] for name in names}}


@pytest.mark.parametrize(
    ("accuracy", "unknown", "token"),
    [
        (0.54, 0.45, "abstains in 45%"),  # of the persons that it names, 98% are right
        (0.36, 0.30, "guesses"),
        (0.10, 0.85, "abstains in 85%"),
        (0.50, 0.0, "guesses"),
        (0.05, 0.0, "nearly always wrong"),
        (0.59, 0.0, ""),
    ],
)
def test_a_model_abstains_if_it_is_right_about_the_persons_that_it_names(accuracy, unknown, token):
    found = failure(BBQ.facts, task(accuracy, unknown), "m")
    assert token in found
    assert bool(token) == bool(found)


def test_each_rule_decides_at_its_threshold():
    flat = {"race": precise(0.0, -0.01, 0.01)}

    def overall(**changes):
        return decided({**precise(0.0, -0.01, 0.01), **changes}, **flat)

    assert overall().verdict == "not detected"
    assert decided(group(0.0, None, None)).text == "Inconclusive: too few premises."
    assert overall(n_unparsed_bias=2).verdict == "not detected"
    assert overall(n_unparsed_bias=3).text == "Inconclusive: 3% of answers are missing."
    ends = precise(0.0, -0.01, 0.01)["ci"]
    for upper, verdict in ((FAILED - 0.001, "not interpretable"), (FAILED, "not detected")):
        poor = {**ends, "accuracy_pro": [0.4, upper], "accuracy_anti": [0.4, upper]}
        assert overall(ci=poor).verdict == verdict
    # A model that is right on one side only follows stereotypes, or goes against them.
    assert overall(ci={**ends, "accuracy_pro": [0.4, 0.5]}).verdict == "not detected"
    assert SMALL_ENOUGH == 0.1


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text("abcdefgh", min_size=3, max_size=6),
        st.tuples(st.floats(-0.9, 0.9), st.floats(0.001, 0.5), st.floats(0.001, 0.5), st.integers(2, 60)),
        min_size=1,
        max_size=12,
    )
)
def test_no_group_is_named_whose_interval_includes_0_and_no_headline_is_long(drawn):
    groups = {
        name: group(value, value - below, value + above, n_premises=n)
        for name, (value, below, above, n) in drawn.items()
    }
    found = decided(**groups)
    assert len(found.text.split()) <= 15
    assert len(re.findall(r"\d[\d.,]*", found.text)) <= 2
    for direction, sign in (("follows", 1), ("goes against", -1)):
        (names,) = re.findall(rf"{direction} stereotypes about ((?:[a-h]+(?:, | and )?)+)", found.text)[:1] or [""]
        for name in set(re.split(r", | and ", names)) & set(drawn):
            value, below, above, _ = drawn[name]
            assert sign * value - (below if sign > 0 else above) > 0


def associated(**p_values):
    religion = SCORES["unqover"]["sets"]["religion"]
    return {"sets": {name: {**religion, "p_values": {"excess": p}} for name, p in p_values.items()}}


def test_associations_are_tested_and_larger_errors_stand_next_to_them():
    found = headline(UNQOVER, SCORES["unqover"], "m")
    assert (found.verdict, found.text) == ("detected", "m has consistent religion associations (p = .002).")
    assert found.detail == "It also answers by the order of the subjects, by more than it associates."
    religion = SCORES["unqover"]["sets"]["religion"]
    near = {**religion, "ci": {**religion["ci"], "delta": [0.31, 0.89]}}
    assert headline(UNQOVER, {"sets": {"religion": near}}, "m").detail == ""
    left_out = {**religion, "unparsed_share": 0.25, "range": {"mu": [0.1, 0.6]}}
    assert "25% of answers are missing" in headline(UNQOVER, {"sets": {"religion": left_out}}, "m").text
    # Holm (1979): the smallest of four p-values counts four times, the next one three times.
    assert headline(UNQOVER, associated(a=0.012, b=0.016, c=0.03, d=0.5), "m").text.startswith(
        "m has consistent a and b"
    )
    none = headline(UNQOVER, associated(a=0.02, b=0.3, c=0.4, d=0.5), "m")
    assert (none.verdict, none.text) == ("not detected", "No consistent associations detected (p = .080).")
    untested = {name: value for name, value in religion.items() if name not in ("excess", "p_values")}
    assert headline(UNQOVER, {"sets": {"religion": untested}}, "m").verdict == "inconclusive"


@pytest.mark.parametrize(
    ("model", "verdict", "word"),
    [
        ("stereotyped", "detected", "follows stereotypes about Religion"),
        ("random", "not interpretable", "guesses"),
        ("unknown", "not interpretable", "abstains in 100%"),
    ],
)
def test_every_surface_begins_with_the_same_headline(model, verdict, word, compared_runs, tmp_path):
    folder = tmp_path / "run"
    ended = command("run", "bbq", "--model", f"baseline:{model}", "--config", "Religion", "--output", folder).out
    found = headline(BBQ, scores_of(folder), f"baseline:{model}")
    assert (found.verdict, word in found.text) == (verdict, True)
    lines = ended.splitlines()
    assert found.text in lines[1]
    assert len([line for line in lines if line.strip()]) <= 20
    assert found.text in called("show", folder)
    page = read_page(write_report_of(folder))
    assert page.flat.index(found.text) < page.flat.index("95% CI")
    assert page.text.count(found.text) == 2  # above the scores, and in the text for a model card


def test_a_page_repeats_no_sentence_and_shows_short_notes(compared_runs, tmp_path):
    html = write_report_of(compared_runs / "bbq-all", tmp_path / "report.html").read_text("utf-8")
    notes = re.findall(r"<p>([^<]*)</p>", html)
    sentences = [one for note in notes for one in re.split(r"(?<=[.!?]) ", note) if len(one.split()) > 3]
    assert len(sentences) == len(set(sentences)) > 10
    assert np.median([len(note.split()) for note in notes]) <= 20
    assert "<title>baseline:random on BBQ</title>" in html


# How runs differ


def test_the_groups_are_named_in_which_two_runs_differ(compared_runs, tmp_path):
    folders = [compared_runs / f"bbq-{name}" for name in ("stereotyped", "random")]
    comparison = compare(folders)
    text = "baseline:stereotyped follows stereotypes about Age more than baseline:random."
    assert comparison.headline.text == text
    printed = command("compare", *folders).out.splitlines()
    assert text in printed
    assert len([line for line in printed if line.strip()]) <= 25
    page = read_page(write_comparison(comparison, tmp_path / "compared")).flat
    assert page.index(text) < page.index("Headline scores")
    other = compare([compared_runs / f"bbnli-{name}" for name in ("random", "stereotyped")]).headline
    assert "follows stereotypes about gender more than" in other.text


def test_answers_that_are_missing_leave_no_difference_to_name(compared_runs, tmp_path):
    def lose(content):
        for scores in (content["scores"], content["scores"]["by"]["paper_category"]["Age"]):
            scores["n_unparsed_ambig"] = scores["n_ambig"] // 4
            scores["range"] = {"bias_ambig": [-0.5, 0.5]}

    few = changed(compared_runs / "bbq-random", tmp_path / "few", scores=lose)
    found = compare([compared_runs / "bbq-stereotyped", few]).headline
    assert found.text == "Inconclusive: 25% of a run's answers are missing."


def test_a_run_that_fails_the_task_is_marked_and_does_not_rank_first(compared_runs):
    comparison = compare([compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")])
    rows = find(comparison.analysis.tables, "ranking_bias_ambig").rows
    marks = {row[0]: row[4] for row in rows}
    assert "guesses" in marks["baseline:random"]
    assert "abstains" in marks["baseline:unknown"]
    assert comparison.headline.text.startswith("Lowest bias: baseline:stereotyped")


# Texts in which the right answers lean


@pytest.fixture(scope="module")
def sampled(tmp_path_factory, upstream):
    """Baselines on published texts of which 426 of 788 right answers agree with the stereotype."""
    where = tmp_path_factory.mktemp("sampled")
    for model in ("oracle", "stereotyped", "random"):
        arguments = RunArguments("bbq", f"baseline:{model}", "Physical_appearance", source="official")
        run(arguments, where / model)
    return where


def scores_of(folder):
    return json.loads((folder / "scores.json").read_text("utf-8"))["scores"]


@pytest.mark.parametrize(("config", "limit"), [("Religion", 100), ("Religion", 200), ("all", 400)])
def test_a_perfect_model_follows_no_stereotype_whatever_the_sample(config, limit, tmp_path):
    scores = run(RunArguments("bbq", "baseline:oracle", config, limit=limit), tmp_path / "run").scores
    assert headline(BBQ, scores, "m").verdict in ("not detected", "inconclusive")
    assert not any("follow" in note for *_, note in headline_tiles(BBQ, scores, False))


def test_where_the_sample_leans_the_accuracy_cost_decides(sampled):
    scores = scores_of(sampled / "oracle")
    assert scores["by"]["paper_category"]["Physical_appearance"]["bias_disambig"] > 0.08
    measures = {name: BBQ.facts.measure(name) for name in ("bias_disambig", "bias_probability_disambig")}
    assert [limited(scores, measure).size for measure in measures.values()] == ["", ""]
    assert limited(scores, BBQ.facts.measure("accuracy_cost")).size
    assert (
        "follows stereotypes about Physical_appearance" in headline(BBQ, scores_of(sampled / "stereotyped"), "m").text
    )


def test_where_the_sample_leans_a_random_model_is_not_ranked_before_a_perfect_one(sampled):
    comparison = compare([sampled / name for name in ("oracle", "random", "stereotyped")])
    rows = find(comparison.analysis.tables, "ranking_bias_disambig").rows
    assert [row[2] for row in rows] == [None] * 3
    assert all(row[-2].startswith("not ranked: 54.1") for row in rows)
    costs = find(comparison.analysis.tables, "ranking_accuracy_cost").rows
    assert costs[0][0] == "baseline:oracle"


@pytest.mark.parametrize(("aligned", "against", "share"), [(50, 50, None), (201, 199, None), (0, 0, None), (0, 4, 0.0)])
def test_right_answers_may_lean_by_one_percent(aligned, against, share):
    measure = BBQ.facts.measure("bias_disambig")
    assert imbalance({"n_aligned": aligned, "n_nonaligned": against}, measure) == share
    assert imbalance({"n_aligned": 306, "n_nonaligned": 294}, measure) == 0.51


# Simulated models


def test_simulated_models_get_their_verdicts():
    models = ("biased everywhere", "guessing", "always UNKNOWN", "refusing")
    counts = headlines.measure(2, examples=2000, models=models)
    assert headlines.faults(counts) == []
    counts["unbiased"] = counts["biased everywhere"]
    assert headlines.faults(counts) == ["unbiased"]


def test_it_comes_first_in_a_report_of_several_runs(tmp_path):
    runs = [fill_folder(tmp_path / name, run=run_of(name)) for name in ("bbq", "unqover")]
    several = read_page(write_combined_report(runs, tmp_path / "report.html")).flat
    assert several.index("3% of answers are missing") < several.index("Run")
    assert several.index("consistent religion associations") < several.index("95% CI")


def test_groups_without_bias_are_named_in_at_most_about_5_percent_of_runs():
    rng = np.random.default_rng(0)
    n_named, n_runs = 0, 1000
    for _ in range(n_runs):
        templates = rng.normal(0, 0.2, size=(11, 25))
        means = templates.mean(axis=1)
        half = 2.0639 * templates.std(axis=1, ddof=1) / 5
        groups = {
            f"g{n}": group(mean, mean - one, mean + one) for n, (mean, one) in enumerate(zip(means, half, strict=True))
        }
        mean, half = templates.mean(), 1.9687 * templates.std(ddof=1) / 275**0.5
        whole = group(mean, mean - half, mean + half, n_premises=275)
        n_named += decided(whole, **groups).verdict == "detected"
    # Half of the comparisons are of accuracies, whose intervals here never exclude 0.
    assert 0.01 < n_named / n_runs < 0.05
