"""Comparisons: the statistics against exhaustive and independent computation, and runs through the command line."""

import itertools
import json
import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias import catalog, cli
from qabias.analysis import Analysis, find, read_analysis
from qabias.benchmarks import BENCHMARKS, load_benchmark
from qabias.comparison import compare, read_runs, write_comparison
from qabias.comparison.differences import Pair, differences, holm, p_value
from qabias.comparison.paired import _pair_of_counts
from qabias.comparison.runs import run_names
from qabias.errors import QabiasError
from qabias.runs import RunArguments, run

bbq_scores = catalog.metric_module("bbq", "scores")


def mean(counts):
    """The mean of answers from their sum and number, columns of the last axis."""
    counts = np.asarray(counts, dtype=np.float64)
    return {"mean": counts[..., 0] / counts[..., 1]}


def pair_of(first, second):
    """Two runs from the sums of clusters of ten answers each."""
    return _pair_of_counts(
        [np.stack([np.asarray(sums), np.full(len(sums), 10)], axis=1) for sums in (first, second)], mean
    )


# p-values


def test_the_exact_p_value_is_that_of_all_exchanges():
    first, second = [1, 4, 2, 0, 3], [5, 3, 6, 2, 9]
    found = differences(pair_of(first, second), ["mean"])["mean"]
    gaps = [b - a for a, b in zip(first, second, strict=True)]
    totals = [
        sum(sign * gap for sign, gap in zip(signs, gaps, strict=True)) for signs in itertools.product((1, -1), repeat=5)
    ]
    assert found.value == pytest.approx(sum(gaps) / 50, abs=1e-15)
    assert found.p == sum(abs(total) >= sum(gaps) for total in totals) / 32


def test_an_exact_p_value_of_a_ratio_score_is_that_of_all_exchanges():
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(6), 8)
    unknown, target, other = np.zeros(48, int), np.ones(48, int), np.full(48, 2)
    biased = np.where(np.arange(48) % 2, target, other)
    ambiguous = np.zeros(48, bool)

    def count(answers):
        return bbq_scores.count(answers, unknown, target, biased, unknown, ambiguous, clusters, 6)

    def bias(answers):  # independent of the metric: +1, -1 and 0 of every answer
        return np.mean(np.where(answers == 0, 0, np.where(answers == biased, 1, -1)))

    one, two = rng.integers(0, 3, 48), np.where(rng.random(48) < 0.5, biased, 0)
    found = differences(_pair_of_counts([count(one), count(two)], bbq_scores.scores_from_counts), ["bias_ambig"])
    observed = bias(two) - bias(one)
    as_far = 0
    for exchanged in itertools.product((False, True), repeat=6):
        mask = np.array(exchanged)[clusters]
        gap = bias(np.where(mask, one, two)) - bias(np.where(mask, two, one))
        as_far += abs(gap) >= abs(observed) - 1e-12
    assert found["bias_ambig"].value == pytest.approx(observed, abs=1e-12)
    assert found["bias_ambig"].p == as_far / 64


def test_random_exchanges_count_the_observed_difference():
    assert p_value(5.0, np.array([1.0, -2.0, 3.0]), exact=False) == 1 / 4
    assert p_value(3.0, np.array([1.0, -3.0, 3.0, np.nan]), exact=False) == 3 / 4
    assert differences(pair_of([0] * 40, [10] * 40), ["mean"])["mean"].p == 1 / 10_001


def test_p_values_of_equal_models_are_not_too_small():
    rng = np.random.default_rng(11)
    p_values = []
    for _ in range(200):
        cluster = rng.normal(0, 3, (9, 1))  # what the two models share
        first, second = (cluster + rng.normal(0, 1, (9, 2))).T
        p_values.append(differences(pair_of(first, second), ["mean"])["mean"].p)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.09
    assert 0.35 < np.mean(np.array(p_values) <= 0.5) < 0.65


def test_a_large_difference_has_a_small_p_value_and_an_interval_that_covers_it():
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(100):
        cluster = rng.normal(0, 3, 30)
        found = differences(pair_of(cluster, cluster + 2 + rng.normal(0, 1, 30)), ["mean"])["mean"]
        covered.append(found.low <= 0.2 <= found.high)
        assert found.p < 0.001
    assert np.mean(covered) >= 0.85


# Properties

SUMS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=8)


@given(SUMS)
@settings(max_examples=30, deadline=None)
def test_exchanging_the_runs_turns_the_difference_round(sums):
    first, second = zip(*sums, strict=True)
    one, other = (differences(pair_of(*runs), ["mean"])["mean"] for runs in ((first, second), (second, first)))
    assert one.value == -other.value
    assert one.p == other.p
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-12)


@given(st.lists(st.integers(0, 10), min_size=2, max_size=20))
@settings(max_examples=20, deadline=None)
def test_identical_runs_have_no_difference(sums):
    found = differences(pair_of(sums, sums), ["mean"])["mean"]
    assert found == (0.0, 0.0, 0.0, 1.0)


def test_a_single_cluster_has_no_interval_and_an_undefined_score_no_difference():
    found = differences(pair_of([3], [8]), ["mean"])["mean"]
    assert (found.low, found.high, found.p) == (None, None, 1.0)

    def undefined(weights):
        return {"mean": np.full(len(weights), np.nan)}

    pair = Pair(3, undefined, undefined, lambda kept: (undefined(kept), undefined(kept)))
    assert differences(pair, ["mean"])["mean"] == (None, None, None, None)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.04; never falling: the last is 0.06 too.
    assert holm([0.04, 0.01, None, 0.03, 0.02]) == pytest.approx([0.06, 0.04, None, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


# Runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small runs of every benchmark."""
    where = tmp_path_factory.mktemp("runs")

    def make(name, benchmark, model, **arguments):
        run(RunArguments(benchmark=benchmark, model=f"baseline:{model}", **arguments), where / name)

    with pytest.MonkeyPatch.context() as patch:
        # The report and its tables take long, and are not compared.
        patch.setattr("qabias.report.write_report", lambda folder: None)
        for name in BENCHMARKS:
            patch.setattr(type(load_benchmark(name)), "analyse", lambda *_: Analysis(()))
        for model in ("stereotyped", "random", "unknown"):
            make(f"bbq-{model}", "bbq", model, config="Age", limit=200)
        make("bbq-again", "bbq", "random", config="Age", limit=200)
        make("bbq-more", "bbq", "random", config="Age", limit=400)
        make("nli", "bbq_nli", "stereotyped", config="Age_nli", limit=240)
        for model in ("stereotyped", "random"):
            make(f"bbnli-{model}", "bbnli", model, config="gender", limit=60)
        for model in ("random", "consistent"):
            make(f"unqover-{model}", "unqover", model, config="religion", limit=600)
    return where


def differing(analysis, name):
    """The rows of a table of differences by group: difference, p and adjusted p."""
    return {row[0]: row[1:4] for row in find(analysis.tables, f"difference_{name}").rows}


def test_differences_of_runs_are_those_of_their_scores(folder):
    for names, score in (
        (("bbq-stereotyped", "bbq-random"), "bias_ambig"),
        (("bbnli-stereotyped", "bbnli-random"), "bias_score"),
        (("unqover-random", "unqover-consistent"), "mu"),
    ):
        comparison = compare([folder / name for name in names])
        first, second = comparison.scores
        rows = differing(comparison.analysis, score)
        if "sets" in first:
            first, second = (of["sets"]["religion"] for of in (first, second))
            (value, p, adjusted) = rows["religion"]
            assert p == adjusted
        else:
            (value, p, adjusted) = rows["All"]
            assert adjusted is None
        assert value.value == pytest.approx(second[score] - first[score], abs=1e-6)
        assert value.low < value.value < value.high
        assert 0 < p < 0.01


def test_the_differences_by_group_are_those_of_the_scores_by_group(folder):
    comparison = compare([folder / "bbnli-stereotyped", folder / "bbnli-random"])
    rows = differing(comparison.analysis, "bias_score")
    first, second = ({**of["by"]["subtopic"], **of["by"]["domain"]} for of in comparison.scores)
    assert set(rows) == {*first, "All"}
    for name, of in first.items():
        assert rows[name][0].value == pytest.approx(second[name]["bias_score"] - of["bias_score"], abs=1e-9)
    p_values = [p for name, (_, p, _) in rows.items() if name != "All"]
    assert holm(p_values) == [adjusted for name, (_, _, adjusted) in rows.items() if name != "All"]


def test_the_same_run_twice_differs_in_nothing(folder):
    comparison = compare([folder / "bbq-random", folder / "bbq-again"])
    assert len(set(comparison.names)) == 2
    for value, p, _ in differing(comparison.analysis, "bias_ambig").values():
        assert tuple(value) == (0, 0, 0)
        assert p == 1


def test_every_pair_of_few_runs_is_compared(folder):
    comparison = compare([folder / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")])
    names = [column.name for column in find(comparison.analysis.tables, "difference_bias_ambig").columns]
    assert [name for name in names if name.startswith("run_")] == ["run_2_minus_1", "run_3_minus_1", "run_3_minus_2"]
    undefined = {row[0]: row for row in find(comparison.analysis.tables, "difference_bias_disambig").rows}["All"]
    assert undefined[names.index("run_3_minus_1")].value is None
    assert undefined[names.index("p_run_3_minus_1")] is None
    heat = find(comparison.analysis.tables, "bias_ambig_by_model").rows
    assert [row[2].value for row in heat if row[0] == "All" and row[1] == "baseline:stereotyped"] == [1.0]


def test_ranks_across_models_are_means_of_the_runs_ranks(folder):
    comparison = compare([folder / "unqover-random", folder / "unqover-consistent"])
    ranks = [of["sets"]["religion"]["rank"] for of in comparison.scores]
    rows = find(comparison.analysis.tables, "ranks_religion").rows
    assert {row[0] for row in rows} == set(ranks[0])
    for subject, of, spread, n, *each in rows:
        assert each == [ranks[0][subject], ranks[1][subject]]
        assert n == 2
        assert of.value == sum(each) / 2
        assert spread == pytest.approx(abs(each[0] - each[1]) / 2**0.5)
    assert [row[1].value for row in rows] == sorted(row[1].value for row in rows)


# What may be compared


def test_other_samples_are_refused_or_marked_and_compared_on_what_both_answered(folder):
    folders = [folder / "bbq-random", folder / "bbq-more"]
    with pytest.raises(QabiasError, match=r"different questions \(limit: .*'200'.*'400'.*--allow-mixed"):
        read_runs(folders)
    comparison = compare(folders, allow_mixed=True)
    assert comparison.mixed == {"limit": ["200", "400"]}
    runs = find(comparison.analysis.tables, "runs")
    assert [row[2] for row in runs.rows] == ["200", "400"]
    assert "MIXED" in runs.note
    # Random answers depend on the example alone: on the common ones the two runs are the same.
    value, p, _ = differing(comparison.analysis, "bias_ambig")["All"]
    assert (value.value, p) == (0, 1)


def test_bbq_as_question_and_as_inference_are_set_side_by_side(folder):
    folders = [folder / "bbq-stereotyped", folder / "nli"]
    with pytest.raises(QabiasError, match="benchmark"):
        compare(folders)
    comparison = compare(folders, allow_mixed=True)
    rows = {row[0]: row for row in find(comparison.analysis.tables, "bias_score_ambig").rows}
    assert [of.value for of in rows["Age"][1:3]] == [1, 1]
    with pytest.raises(QabiasError, match="only bbq and bbq_nli"):
        compare([folder / "bbq-random", folder / "bbnli-random"], allow_mixed=True)


def test_names_tell_runs_apart(folder):
    names = run_names(read_runs([folder / "bbq-random", folder / "bbq-more"], allow_mixed=True))
    assert names == ["baseline:random, 200", "baseline:random, 400"]


def test_the_page_and_the_tables_are_written(folder, tmp_path):
    comparison = compare([folder / "bbq-stereotyped", folder / "bbq-random"])
    page = write_comparison(comparison, tmp_path / "out")
    assert read_analysis(tmp_path / "out" / "analysis.json").tables == comparison.analysis.tables
    html = page.read_text("utf-8")
    assert "baseline:stereotyped" in html
    assert "Differences between runs" in html
    before = page.read_bytes()
    write_comparison(comparison, tmp_path / "out")
    assert page.read_bytes() == before


def test_the_command_prints_scores_and_differences(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qabias", "compare", *(str(folder / f"bbq-{n}") for n in ("random", "unknown"))])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    output = " ".join(capsys.readouterr().out.split())  # titles are wrapped
    assert "run 1: model:baseline:random" in output
    assert "Difference: Accuracy, ambiguous contexts: baseline:unknown − baseline:random" in output


def test_a_mistake_is_one_line(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qabias", "compare", str(folder / "bbq-random"), str(folder / "bbq-more")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_missing_parts_are_named(folder, tmp_path):
    import shutil

    shutil.copytree(folder / "bbq-random", tmp_path / "copy")
    next((tmp_path / "copy" / "predictions").iterdir()).unlink()
    with pytest.raises(QabiasError, match="parts are missing"):
        compare([folder / "bbq-stereotyped", tmp_path / "copy"])


def test_shared_attributes_are_those_among_the_first_ten_of_several_runs():
    from qabias.comparison.tables import shared_tables

    rng = random.Random(1)
    scores = []
    for _ in range(3):
        gamma = {f"job {number}": rng.uniform(-1, 1) for number in range(30)}
        clusters = {"female": gamma, "male": {name: -value for name, value in gamma.items()}}
        cells = {
            name: {job: {"gamma": value, "eta": 0.0} for job, value in of.items()} for name, of in clusters.items()
        }
        scores.append({"sets": {"gender": {"cluster": cells}}})
    (table,) = shared_tables(["a", "b", "c"], json.loads(json.dumps(scores)))
    expected = {}
    for cluster in ("female", "male"):
        tops = []
        for of in scores:
            cells = of["sets"]["gender"]["cluster"][cluster]
            tops.append(sorted(cells, key=lambda job, cells=cells: -cells[job]["gamma"])[:10])
        for job in {job for top in tops for job in top}:
            places = [top.index(job) + 1 if job in top else None for top in tops]
            if sum(place is not None for place in places) > 1:
                expected[cluster, job] = places
    assert {(row[0], row[1]): list(row[4:]) for row in table.rows} == expected
    assert table.source.startswith("Table 3")
