"""Comparisons: the statistics against exhaustive and independent computation, and runs through the command line."""

import itertools
import json
import random
import shutil
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qabias.comparison.differences import Pair, differences, holm, p_value
from qabias.comparison.measures import MEASURES

from qabias import cli
from qabias.benchmarks import BENCHMARKS, load_benchmark, locate
from qabias.comparison import compare, read_runs, write_comparison
from qabias.comparison.comparable import ScoredRun, are_question_only, run_names
from qabias.comparison.joined import MOST_ROWS, SECTION, joined_tables
from qabias.comparison.paired import _PAIRED, Answers, _pair_of_counts
from qabias.errors import QabiasError
from qabias.measuring.run import RunArguments, load_examples, run
from qabias.support.arrow import column_codes
from qabias.tables.model import Analysis, Column, Figure, Table, find, read_analysis

bbq_scores = locate.metric_module("bbq", "scores")


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


def test_few_clusters_have_no_small_p_value():
    for n in range(1, 6):
        assert differences(pair_of([0] * n, [10] * n), ["mean"])["mean"].p == 2.0 ** (1 - n)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.04; never falling: the last is 0.06 too.
    assert holm([0.04, 0.01, None, 0.03, 0.02]) == pytest.approx([0.06, 0.04, None, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


# The metrics' own scores of exchanged answers

LOADED = {"bbq": "Gender_identity", "bbnli": "gender", "bbq_nli": "Age_nli", "unqover": "religion"}


def loaded(name, limit=120):
    """Examples of a benchmark, and the number of the cluster of every row."""
    table = load_examples(load_benchmark(name), RunArguments(benchmark=name, config=LOADED[name], limit=limit))
    if name in ("bbq", "unqover"):  # templates in the order of the file
        return table, np.unique(column_codes(table["template_id"]), return_inverse=True)[1]
    columns = ("subtopic", "premise_id") if name == "bbnli" else ("category", "template_id")
    keys = list(zip(*(table[column].to_pylist() for column in columns), strict=True))
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return table, np.array([place[key] for key in keys])


def random_answers(name, n, rng):
    if name != "unqover":
        return pa.table({"prediction": pa.array(rng.integers(-1, 3, n), pa.int8())})
    columns = locate.metric_module("unqover", "scores").SCORE_COLUMNS
    return pa.table({column: pa.array(rng.random(n), pa.float32()) for column in columns})


@pytest.mark.filterwarnings("ignore:bb")
@pytest.mark.parametrize("name", sorted(LOADED))
def test_exchanged_scores_are_those_of_exchanged_answers(name):
    rng = np.random.default_rng(2)
    table, cluster = loaded(name)
    ours, theirs = (random_answers(name, table.num_rows, rng) for _ in range(2))
    n = cluster.max() + 1
    kept = np.stack([np.ones(n), np.zeros(n), rng.integers(0, 2, n)]).astype(float)
    assert 0 < kept[2].sum() < n
    group = "religion" if name == "unqover" else "All"
    pair = _PAIRED[name](table, ours, theirs)[group]
    assert pair.n_clusters == n
    found = pair.exchanged(kept)
    for turn, keeps in enumerate(kept.astype(bool)):
        for run_number, (one, other) in enumerate(((ours, theirs), (theirs, ours))):
            mask = pa.array(keeps[cluster])
            mixed = pa.table({column: pc.if_else(mask, one[column], other[column]) for column in one.column_names})
            expected = load_benchmark(name).score(table, mixed)
            expected = expected["sets"][group] if name == "unqover" else expected
            for measure in MEASURES[name]:
                assert found[run_number][measure.name][turn] == pytest.approx(expected[measure.name], abs=1e-9)
    once = np.ones((1, n))
    for measure in MEASURES[name]:
        for run_number, scores in enumerate((pair.first(once), pair.second(once))):
            assert found[run_number][measure.name][0] == pytest.approx(scores[measure.name][0], abs=1e-12)
            assert found[1 - run_number][measure.name][1] == pytest.approx(scores[measure.name][0], abs=1e-12)


def test_a_run_of_many_samples_weighs_no_more_than_one_of_a_single_sample():
    rng = np.random.default_rng(4)
    table, cluster = loaded("bbnli")
    single, other = (random_answers("bbnli", table.num_rows, rng) for _ in range(2))
    five = pa.table({"predictions": pa.array(np.repeat(single["prediction"].to_numpy()[:, None], 5, 1).tolist())})
    kept = rng.integers(0, 2, (20, cluster.max() + 1)).astype(float)
    plain, sampled = (_PAIRED["bbnli"](table, answers, other)["All"].exchanged(kept) for answers in (single, five))
    for one, of_samples in zip(plain, sampled, strict=True):
        for measure in MEASURES["bbnli"]:
            np.testing.assert_allclose(of_samples[measure.name], one[measure.name], atol=1e-12)


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
        make("bbq-all", "bbq", "random", limit=400)
        for model in ("stereotyped", "random"):
            make(f"bbq-blind-{model}", "bbq", model, config="Age", limit=200, format="question_only")
        make("nli", "bbq_nli", "stereotyped", config="Age_nli", limit=240)
        make("nli-one-order", "bbq_nli", "random", config="Gender_identity_nli_context", limit=240)
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


def called(capsys, monkeypatch, *arguments):
    """What a command printed, with single blanks, for titles are wrapped."""
    monkeypatch.setattr(sys, "argv", ["qabias", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("names", "only_first"),
    [
        (("bbq-all", "bbq-random"), "Race_ethnicity (names)"),
        (("bbq-random", "bbq-all"), None),
        (("nli-one-order", "nli"), "context_length: long"),
        (("bbq-stereotyped", "nli"), None),
    ],
)
def test_groups_that_one_run_lacks_are_printed_as_on_the_page(folder, capsys, monkeypatch, names, only_first):
    folders = [folder / name for name in names]
    output = called(capsys, monkeypatch, "compare", "--allow-mixed", *folders)
    comparison = compare(folders, allow_mixed=True)
    table = next(table for table in comparison.analysis.tables if table.section == "Scores by run")
    groups = [row[0] for row in table.rows]
    for group in groups:
        assert group in output
    for number, name in enumerate(comparison.names, start=1):
        assert f"run {number}" in output
        assert name.split(",")[0] in output
    if only_first:
        (row,) = (row for row in table.rows if row[0] == only_first)
        examples = {column.name: value for column, value in zip(table.columns, row, strict=True)}
        assert row[1].value is not None
        assert "not asked" in output
        assert (row[2], examples["n_run_2"]) == (None, 0)
        assert "not asked" in table.note
        heat = find(comparison.analysis.tables, f"{table.name}_by_model").rows
        assert [of[1] for of in heat if of[0] == only_first] == [comparison.names[0]]


def asked_rows(folder):
    """The examples of a run as dicts, each with its prediction."""
    (one,) = {of.folder: of for of in read_runs([folder, folder])}.values()
    answers = Answers()
    table = answers.examples(one)
    return [
        {**row, "prediction": prediction}
        for row, prediction in zip(table.to_pylist(), answers.of(one)["prediction"].to_pylist(), strict=True)
    ]


def test_the_examples_beside_a_score_are_those_that_it_is_of(folder):
    of_bbq = {
        "bias_ambig": lambda row: row["context_condition"] == "ambig",
        "accuracy_ambig": lambda row: row["context_condition"] == "ambig",
        "bias_disambig": lambda row: row["context_condition"] == "disambig",
        "accuracy_disambig": lambda row: row["context_condition"] == "disambig",
        "accuracy_cost": lambda row: row["context_condition"] == "disambig" and row["biased_loc"] >= 0,
    }
    of_bbnli = {
        "bias_score": lambda row: row["kind"] == "stereotypical",
        "bias_score_mean_subtopics": lambda row: row["kind"] == "stereotypical",
        "accuracy_pro": lambda row: (row["kind"], row["stance"]) == ("test", "pro"),
        "accuracy_anti": lambda row: (row["kind"], row["stance"]) == ("test", "anti"),
        "accuracy_gap": lambda row: row["kind"] == "test",
    }
    of_nli = {
        "bias_score_ambig": lambda row: row["context_condition"] == "ambig",
        "accuracy_ambig": lambda row: row["context_condition"] == "ambig",
        "bias_score_disambig": lambda row: row["context_condition"] == "disambig",
        "table5_style": lambda row: row["context_condition"] == "disambig",
        "accuracy_pro": lambda row: row["context_stance"] == "pro",
        "accuracy_anti": lambda row: row["context_stance"] == "anti",
        "accuracy_gap": lambda row: row["context_condition"] == "disambig",
    }
    of_unqover = {measure.name: lambda row: True for measure in MEASURES["unqover"]}
    for names, counted, columns in (
        (("bbq-stereotyped", "bbq-random"), of_bbq, ("category",)),
        (("bbnli-stereotyped", "bbnli-random"), of_bbnli, ("subtopic", "domain")),
        (("nli", "nli"), of_nli, ("category",)),
    ):
        comparison = compare([folder / name for name in names])
        assert set(counted) == {measure.name for measure in MEASURES[comparison.benchmark]}
        rows = asked_rows(folder / names[0])
        for name, belongs in counted.items():
            expected = Counter(row[column] for row in rows for column in columns if belongs(row))
            expected["All"] = sum(map(belongs, rows))
            table = find(comparison.analysis.tables, name)
            assert table.columns[-1].name == "n"
            for group, *_, n in table.rows:
                if ": " not in group:
                    assert n == expected[group]
    comparison = compare([folder / "unqover-random", folder / "unqover-consistent"])
    for name in of_unqover:
        assert [row[-1] for row in find(comparison.analysis.tables, name).rows] == [600]


def test_the_mean_of_subtopics_is_that_of_the_domains(folder):
    comparison = compare([folder / "bbnli-stereotyped", folder / "bbnli-random"])
    rows = find(comparison.analysis.tables, "bias_score_mean_subtopics").rows
    domains = set(comparison.scores[0]["by"]["domain"])
    assert {row[0] for row in rows} == {*domains, "All"}
    subtopics = [of["bias_score"] for of in comparison.scores[1]["by"]["subtopic"].values() if of["n_bias"]]
    assert rows[-1][2].value == pytest.approx(np.mean(subtopics), abs=1e-12)
    assert set(differing(comparison.analysis, "bias_score_mean_subtopics")) == {*domains, "All"}


def test_sums_of_two_scores_are_no_percentages(folder):
    tables = compare([folder / "nli", folder / "nli"]).analysis.tables
    assert find(tables, "table5_style").columns[1].kind == "number"
    assert find(tables, "difference_table5_style").columns[1].kind == "number"


def test_runs_without_a_context_have_scores_of_ambiguous_contexts_only(folder, capsys, monkeypatch):
    folders = [folder / "bbq-blind-stereotyped", folder / "bbq-blind-random"]
    tables = compare(folders).analysis.tables
    scores = [table for table in tables if table.section == "Scores by run" and table.figure.kind == "intervals"]
    assert [table.name for table in scores] == ["bias_ambig", "accuracy_ambig"]
    assert {table.source for table in scores} == {"Figure 6 of Parrish et al. (2022)"}
    differences_shown = [table.name for table in tables if table.name.startswith("difference_")]
    assert differences_shown == ["difference_bias_ambig", "difference_accuracy_ambig"]
    assert "disambiguated" not in called(capsys, monkeypatch, "compare", *folders)
    with_context = compare([folder / "bbq-stereotyped", folder / "bbq-random"]).analysis.tables
    assert {"bias_disambig", "accuracy_cost"} <= {table.name for table in with_context}


def described(model, prompt_format, **arguments):
    """A run of which only the description matters."""
    asked = {"benchmark": "bbq", "model": model, "config": "Religion", "source": "bundled", "fixes": False}
    asked |= {"limit": None, "seed": 0, **arguments}
    signature = f"bbq|source:bundled@1|format:{prompt_format}@1|model:{model}"
    return ScoredRun(None, asked, signature, {}, "", 64)


def test_a_baseline_does_not_decide_whether_models_saw_a_context():
    blind, sighted, baseline = described("a", "race_question_only"), described("b", "qa"), described("baseline:x", "qa")
    assert are_question_only([blind, baseline])
    assert not are_question_only([blind, sighted])
    assert not are_question_only([baseline])


def test_runs_of_other_seeds_share_the_bundled_examples_but_no_sample():
    answers = Answers()
    whole = [answers.examples(described("a", "qa", seed=seed)) for seed in (0, 1)]
    assert whole[0] is whole[1]
    samples = [answers.examples(described("a", "qa", seed=seed, limit=40)) for seed in (0, 1)]
    assert samples[0]["example_id"].to_pylist() != samples[1]["example_id"].to_pylist()


def test_a_mistake_is_one_line(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qabias", "compare", str(folder / "bbq-random"), str(folder / "bbq-more")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_is_not_overwritten_by_a_comparison(folder, tmp_path, capsys, monkeypatch):
    shutil.copytree(folder / "bbq-random", tmp_path / "copy")
    before = (tmp_path / "copy" / "analysis.json").read_bytes()
    command = ["compare", tmp_path / "copy", folder / "bbq-unknown", "--output", tmp_path / "copy"]
    monkeypatch.setattr(sys, "argv", ["qabias", *map(str, command)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "holds a run" in capsys.readouterr().err
    with pytest.raises(QabiasError, match="holds a run"):
        write_comparison(compare([tmp_path / "copy", folder / "bbq-unknown"]), tmp_path / "copy")
    assert (tmp_path / "copy" / "analysis.json").read_bytes() == before


def changed(folder, copy, **changes):
    """A copy of a run with other contents of its files."""
    shutil.copytree(folder, copy)
    for name, change in changes.items():
        path = copy / f"{name}.json"
        content = json.loads(path.read_text("utf-8"))
        change(content)
        path.write_text(json.dumps(content), "utf-8")
    return copy


def test_scores_of_another_run_are_refused(folder, tmp_path):
    def other(content):
        content["signature"] += "2"

    stale = changed(folder / "bbq-random", tmp_path / "copy", scores=other)
    with pytest.raises(QabiasError, match=r"scores.json: its signature .*2' is not that of run.json, .*qabias score"):
        compare([folder / "bbq-stereotyped", stale])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("by", "paper_category"), r"without by\.paper_category; score the run again with `qabias score "),
        (("by",), r"without by\.paper_category;"),
        (("bias_ambig",), "without bias_ambig;"),
        (("by", "paper_category", "Age", "n_nonaligned"), "without n_nonaligned;"),
    ],
)
def test_scores_without_what_is_compared_are_refused(folder, tmp_path, path, message):
    def shorten(content):
        *outer, last = ("scores", *path)
        for key in outer:
            content = content[key]
        del content[last]

    old = changed(folder / "bbq-random", tmp_path / "copy", scores=shorten)
    with pytest.raises(QabiasError, match=rf"copy/scores\.json: made by another version of qabias, {message}"):
        compare([folder / "bbq-stereotyped", old])


def test_half_a_surrogate_pair_does_not_cost_the_page(folder, tmp_path):
    def rename(content):
        content["signature"] = content["signature"].replace("baseline:random", "odd\ud800")
        if "arguments" in content:
            content["arguments"]["model"] = "odd\ud800"

    odd = changed(folder / "bbq-random", tmp_path / "copy", run=rename, scores=rename)
    comparison = compare([folder / "bbq-stereotyped", odd], allow_mixed=True)
    assert "odd?" in write_comparison(comparison, tmp_path / "out").read_text("utf-8")
    assert read_analysis(tmp_path / "out" / "analysis.json").tables == comparison.analysis.tables


def test_missing_parts_are_named(folder, tmp_path):
    shutil.copytree(folder / "bbq-random", tmp_path / "copy")
    next((tmp_path / "copy" / "predictions").iterdir()).unlink()
    with pytest.raises(QabiasError, match="parts are missing"):
        compare([folder / "bbq-stereotyped", tmp_path / "copy"])


def test_shared_attributes_are_those_among_the_first_ten_of_several_runs():
    from qabias.benchmarks.unqover.across import shared_tables

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


# Tables of the runs


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """Runs with all their tables."""
    where = tmp_path_factory.mktemp("analysed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qabias.report.write_report", lambda folder: None)
        for name, arguments in {
            "bbq": {"benchmark": "bbq", "config": "Race_x_gender", "limit": 120},
            "nli": {"benchmark": "bbq_nli", "config": "Gender_identity_nli_context", "limit": 240},
            "unqover": {"benchmark": "unqover", "config": "gender", "limit": 200},
        }.items():
            for number, model in enumerate(("random", "consistent" if name == "unqover" else "stereotyped")):
                run(RunArguments(model=f"baseline:{model}", **arguments), where / f"{name}-{number}")
    return where


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (  # Figures 4, 7, 8 and 9, footnote 7 and Table 2 of Parrish et al.
            "bbq",
            (
                *("stereotypes_Race_x_gender", "unknown_texts", "comparisons_Race_x_gender", "labels_Race_x_gender"),
                *("aligned_errors", "template_rates"),
            ),
        ),
        ("nli", ("bias_by_name_order", "bias_by_length")),  # Figure 3 of Akyurek et al.
        (
            "unqover",
            ("subjects_gender", "pairs_gender", "top_by_group_gender", "coverage"),
        ),  # Tables 2, 4 and 14 of Li et al.
    ],
)
def test_joined_tables_are_the_rows_of_the_runs(analysed, tmp_path, name, expected):
    folders = [analysed / f"{name}-{number}" for number in range(2)]
    comparison = compare(folders)
    joined = {table.name: table for table in comparison.analysis.tables if table.section == SECTION}
    assert set(expected) <= set(joined)
    for table in joined.values():
        own = [find(read_analysis(folder / "analysis.json").tables, table.name) for folder in folders]
        assert table.columns[1:] == own[0].columns == own[1].columns
        rows = [(run_name, *row) for run_name, of in zip(comparison.names, own, strict=True) for row in of.rows]
        assert list(table.rows) == rows
    names = [table.name for table in comparison.analysis.tables]
    assert len(set(names)) == len(names)
    html = write_comparison(comparison, tmp_path / "out").read_text("utf-8")
    assert all(table.title in html.replace("<wbr>", "") for table in joined.values() if "&" not in table.title)


def small_table(name, values, note="", extra=()):
    columns = (Column("text", "Text", "text"), Column("share", "Share", "share"), *extra)
    rows = tuple((f"row {number}", value, *(0 for _ in extra)) for number, value in enumerate(values))
    return Table(name, "A title", "", note, columns, rows, Figure("bars", "text", ("share",)))


def test_tables_are_joined_on_what_all_of_them_have():
    n = Column("n", "Number", "count")
    one = Analysis((small_table("both", [0.1, None], "Of 12 answers. Read with care."), small_table("alone", [1.0])))
    other = Analysis((small_table("both", [0.3], "Of 9 answers. Read with care.", (n,)),))
    (table,) = joined_tables(["a", "b"], [one, other])
    assert table.name == "both"
    assert [column.name for column in table.columns] == ["run", "text", "share"]
    assert table.rows == (("a", "row 0", 0.1), ("a", "row 1", None), ("b", "row 0", 0.3))
    assert table.note == "Read with care."
    assert table.figure == Figure("heatmap", "text", ("share",), "run")


def test_long_tables_are_joined_by_the_first_rows_of_every_run():
    values = [number / 1000 for number in range(MOST_ROWS)]
    one, other = (Analysis((small_table("long", some, "Read."),)) for some in (values, values[:120]))
    (table,) = joined_tables(["a", "b"], [one, other])
    half = MOST_ROWS // 2
    assert [row[2] for row in table.rows] == values[:half] + values[:120]
    assert table.note == f"Read. Here are the first {half} rows of every run; its report has all."
    (whole,) = joined_tables(["a", "b"], [other, other])
    assert len(whole.rows) == 240
    assert whole.note == "Read."


def test_tables_of_items_and_of_compared_scores_are_not_joined():
    names = ("bias_by_hypothesis", "bias_by_category")
    analysis = Analysis(tuple(small_table(name, [0.5]) for name in names))
    assert joined_tables(["a", "b"], [analysis, analysis]) == []
