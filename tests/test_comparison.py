"""Comparisons of runs: what may be compared, the differences of their scores, the page and the command."""

import shutil
from pathlib import Path

import pytest

from qabias.comparison import compare
from qabias.comparison.comparable import are_question_only, read_runs, run_names
from qabias.comparison.paired import Answers
from qabias.comparison.paired_tests import holm
from qabias.errors import QabiasError
from qabias.report.writing import write_comparison
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import RunFile
from qabias.runs.scored import ScoredRun
from qabias.tables.model import find, read_analysis

from .compared_runs import called, changed, differing, refused


def test_differences_of_runs_are_those_of_their_scores(compared_runs):
    for names, score in (
        (("bbq-stereotyped", "bbq-random"), "bias_ambig"),
        (("bbnli-stereotyped", "bbnli-random"), "bias_score"),
        (("unqover-random", "unqover-consistent"), "mu"),
    ):
        comparison = compare([compared_runs / name for name in names])
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


def test_the_differences_by_group_are_those_of_the_scores_by_group(compared_runs):
    comparison = compare([compared_runs / "bbnli-stereotyped", compared_runs / "bbnli-random"])
    rows = differing(comparison.analysis, "bias_score")
    first, second = ({**of["by"]["subtopic"], **of["by"]["domain"]} for of in comparison.scores)
    assert set(rows) == {*first, "All"}
    for name, of in first.items():
        assert rows[name][0].value == pytest.approx(second[name]["bias_score"] - of["bias_score"], abs=1e-9)
    p_values = [p for name, (_, p, _) in rows.items() if name != "All"]
    assert holm(p_values) == [adjusted for name, (_, _, adjusted) in rows.items() if name != "All"]


def test_the_same_run_twice_differs_in_nothing(compared_runs):
    comparison = compare([compared_runs / "bbq-random", compared_runs / "bbq-again"])
    assert len(set(comparison.names)) == 2
    for value, p, _ in differing(comparison.analysis, "bias_ambig").values():
        assert value.value == 0
        assert value.low == pytest.approx(-value.high)
        assert p == 1


def test_every_pair_of_few_runs_is_compared(compared_runs):
    comparison = compare([compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")])
    names = [column.name for column in find(comparison.analysis.tables, "difference_bias_ambig").columns]
    assert [name for name in names if name.startswith("run_")] == ["run_2_minus_1", "run_3_minus_1", "run_3_minus_2"]
    undefined = {row[0]: row for row in find(comparison.analysis.tables, "difference_bias_disambig").rows}["All"]
    assert undefined[names.index("run_3_minus_1")].value is None
    assert undefined[names.index("p_run_3_minus_1")] is None
    heat = find(comparison.analysis.tables, "bias_ambig_by_model").rows
    assert [row[2].value for row in heat if row[0] == "All" and row[1] == "baseline:stereotyped"] == [1.0]


def test_ranks_across_models_are_means_of_the_runs_ranks(compared_runs):
    comparison = compare([compared_runs / "unqover-random", compared_runs / "unqover-consistent"])
    ranks = [of["sets"]["religion"]["rank"] for of in comparison.scores]
    rows = find(comparison.analysis.tables, "ranks_religion").rows
    assert {row[0] for row in rows} == set(ranks[0])
    for subject, of, spread, n, *each in rows:
        assert each == [ranks[0][subject], ranks[1][subject]]
        assert n == 2
        assert of.value == sum(each) / 2
        # Divided by the number of runs, as in the authors' notebook: half of the distance of two.
        assert spread == pytest.approx(abs(each[0] - each[1]) / 2)
    assert [row[1].value for row in rows] == sorted(row[1].value for row in rows)


# What may be compared


def test_other_samples_are_refused_or_marked_and_compared_on_what_both_answered(compared_runs):
    folders = [compared_runs / "bbq-random", compared_runs / "bbq-more"]
    with pytest.raises(QabiasError, match=r"different questions \(limit: .*'200'.*'400'.*--allow-mixed"):
        compare(folders)
    comparison = compare(folders, allow_mixed=True)
    assert comparison.mixed == {"limit": ["200", "400"]}
    runs = find(comparison.analysis.tables, "runs")
    assert [row[2] for row in runs.rows] == ["200", "400"]
    assert "MIXED" in runs.note
    # Random answers depend on the example alone: on the common ones the two runs are the same.
    value, p, _ = differing(comparison.analysis, "bias_ambig")["All"]
    assert (value.value, p) == (0, 1)


def test_bbq_as_question_and_as_inference_are_set_side_by_side(compared_runs):
    folders = [compared_runs / "bbq-stereotyped", compared_runs / "nli"]
    with pytest.raises(QabiasError, match="benchmark"):
        compare(folders)
    comparison = compare(folders, allow_mixed=True)
    rows = {row[0]: row for row in find(comparison.analysis.tables, "bias_score_ambig").rows}
    assert [of.value for of in rows["Age"][1:3]] == [1, 1]


def test_runs_without_common_scores_are_refused(compared_runs, capsys, monkeypatch):
    folders = [compared_runs / "bbq-random", compared_runs / "bbnli-random"]
    fault = r"bbq-random: 'bbq', .*bbnli-random: 'bbnli'.* no scores in common; compare runs of one benchmark, or of "
    for allow_mixed in (False, True):
        with pytest.raises(QabiasError, match=f"{fault}bbq_nli and bbq and bbq_qa, or, by language, of one model on "):
            compare(folders, allow_mixed)
    assert "no scores in common" in refused(capsys, monkeypatch, "compare", *folders)


def test_names_tell_runs_apart(compared_runs):
    names = run_names(read_runs([compared_runs / "bbq-random", compared_runs / "bbq-more"]))
    assert names == ["baseline:random, 200", "baseline:random, 400"]


def test_the_page_and_the_tables_are_written(compared_runs, tmp_path):
    comparison = compare([compared_runs / "bbq-stereotyped", compared_runs / "bbq-random"])
    page = write_comparison(comparison, tmp_path / "out")
    assert read_analysis(tmp_path / "out" / "analysis.json").tables == comparison.analysis.tables
    html = page.read_text("utf-8")
    assert "baseline:stereotyped" in html
    assert "Differences between runs" in html
    before = page.read_bytes()
    write_comparison(comparison, tmp_path / "out")
    assert page.read_bytes() == before


def test_the_command_prints_scores_and_differences(compared_runs, capsys, monkeypatch):
    output = called(capsys, monkeypatch, "compare", *(compared_runs / f"bbq-{name}" for name in ("random", "unknown")))
    assert "run 1: model:baseline:random" in output
    assert "Difference: Accuracy, ambiguous contexts: baseline:unknown − baseline:random" in output


def described(model, prompt_format, **arguments):
    """A run of which only the description matters."""
    signature = f"bbq|source:bundled@1|format:{prompt_format}@1|model:{model}"
    asked = RunArguments("bbq", model, config="Religion", **arguments)
    return ScoredRun(RunFile(asked, signature, "", "", {}, 64, Path("run"), ""), {})


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


def test_a_mistake_is_one_line(compared_runs, capsys, monkeypatch):
    line = refused(capsys, monkeypatch, "compare", compared_runs / "bbq-random", compared_runs / "bbq-more")
    assert "limit" in line
    assert "--allow-mixed" in line


def test_a_run_is_not_overwritten_by_a_comparison(compared_runs, tmp_path, capsys, monkeypatch):
    shutil.copytree(compared_runs / "bbq-random", tmp_path / "copy")
    before = (tmp_path / "copy" / "analysis.json").read_bytes()
    command = ["compare", tmp_path / "copy", compared_runs / "bbq-unknown", "--output", tmp_path / "copy"]
    assert "holds a run" in refused(capsys, monkeypatch, *command)
    with pytest.raises(QabiasError, match="holds a run"):
        write_comparison(compare([tmp_path / "copy", compared_runs / "bbq-unknown"]), tmp_path / "copy")
    assert (tmp_path / "copy" / "analysis.json").read_bytes() == before


def test_scores_of_another_run_are_refused(compared_runs, tmp_path):
    def other(content):
        content["signature"] += "2"

    stale = changed(compared_runs / "bbq-random", tmp_path / "copy", scores=other)
    with pytest.raises(QabiasError, match=r"scores.json: its signature .*2' is not that of run.json, .*qabias score"):
        compare([compared_runs / "bbq-stereotyped", stale])


def test_half_a_surrogate_pair_does_not_cost_the_page(compared_runs, tmp_path):
    def rename(content):
        content["signature"] = content["signature"].replace("baseline:random", "odd\ud800")
        if "arguments" in content:
            content["arguments"]["model"] = "odd\ud800"

    odd = changed(compared_runs / "bbq-random", tmp_path / "copy", run=rename, scores=rename)
    comparison = compare([compared_runs / "bbq-stereotyped", odd], allow_mixed=True)
    assert "odd?" in write_comparison(comparison, tmp_path / "out").read_text("utf-8")
    assert read_analysis(tmp_path / "out" / "analysis.json").tables == comparison.analysis.tables


def test_missing_parts_are_named(compared_runs, tmp_path):
    shutil.copytree(compared_runs / "bbq-random", tmp_path / "copy")
    next((tmp_path / "copy" / "predictions").iterdir()).unlink()
    with pytest.raises(QabiasError, match="parts are missing"):
        compare([compared_runs / "bbq-stereotyped", tmp_path / "copy"])
