"""Missing answers in comparisons, pools and results for the Hub: counted, and no score of a few answers alone."""

import json

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from typer.testing import CliRunner

from qabias.benchmarks.facts import Measure
from qabias.cli import app
from qabias.comparison import compare
from qabias.hub.results import headlines, model_index, result_files
from qabias.pooling import pool
from qabias.report.writing import write_comparison, write_pool
from qabias.runs.arguments import RunArguments
from qabias.runs.outcomes import (
    answered_in_words,
    answered_share,
    outcomes_tables,
    with_ranges_in_cells,
)
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.runs.scored import read_scored
from qabias.tables.model import Column, Estimate, Table, find, read_analysis

REFUSAL = "I'm sorry, but I can't help with that."
MODEL, DATASET = "somebody/some-model", "somebody/questions"
N = 48
COUNTS = {"answered": 16, "refused": 31, "truncated": 1, "filtered": 0, "unread": 0}
WORDS = "33.3\u00a0% of 48 answered (31 refused, 1 truncated)"
ACCURACY = Measure("accuracy", "Accuracy", "share")


def invoke(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "250"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """Written answers to the same questions, a third of them there, all of them there, and a baseline."""
    folder = tmp_path_factory.mktemp("runs")
    rows = load_examples(RunArguments("bbq", config="Age", limit=N)).table.to_pylist()
    right = [row["ans" + str(row["label"])] for row in rows]
    few = [text if number % 3 == 0 else REFUSAL for number, text in enumerate(right)]
    few[1] = "<think>The text names two"
    for name, texts in (("few", few), ("all", right), ("again", [*few[:-1], right[-1]])):
        given = [{"example_id": row["example_id"], "prediction": text} for row, text in zip(rows, texts, strict=True)]
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
        invoke("score", path, "--config", "Age", "--model", f"org/{name}", "--output", folder / name)
    run(RunArguments("bbq", "baseline:random", "Age", limit=N), folder / "baseline")
    return folder


def test_outcomes_are_counted_and_told_in_words():
    scores = {"outcomes": COUNTS}
    assert answered_share(scores) == pytest.approx(1 / 3)
    assert answered_in_words(scores) == WORDS
    assert answered_in_words({"outcomes": {**COUNTS, "refused": 0, "truncated": 0}}) == "100.0\u00a0% of 16 answered"
    assert answered_share({}) is None
    assert answered_in_words({"outcomes": dict.fromkeys(COUNTS, 0)}) == ""


def test_a_terminal_shows_ranges_behind_their_scores():
    columns = (
        Column("group", "Group", "text"),
        Column("run_1", "one", "share"),
        Column("range_run_1", "Possible, one", "text"),
        Column("run_2", "two", "share"),
    )
    rows = (("Age", Estimate(0.5), "25.0 to 75.0", Estimate(0.5, 0.4, 0.6)), ("SES", Estimate(0.5), None, None))
    shown = with_ranges_in_cells(Table("t", "Accuracy", "", "", columns, rows))
    assert [column.name for column in shown.columns] == ["group", "run_1", "run_2"]
    assert shown.rows[0] == ("Age", "50.0\u00a0% (25.0 to 75.0)", Estimate(0.5, 0.4, 0.6))
    assert shown.rows[1] == ("SES", Estimate(0.5), None)
    plain = Table("t", "Accuracy", "", "", (columns[0], columns[3]), (("Age", Estimate(0.5)),))
    assert with_ranges_in_cells(plain) is plain


# Comparisons


def test_a_comparison_counts_the_outcomes_of_every_run(where):
    comparison = compare([where / name for name in ("few", "all", "baseline")], allow_mixed=True)
    names = comparison.names
    table = find(comparison.analysis.tables, "answers_by_run")
    by_run = {row[0]: row[1:] for row in table.rows}
    assert by_run[names[0]] == (pytest.approx(1 / 3), *COUNTS.values())
    assert by_run[names[1]] == (1, N, 0, 0, 0, 0)
    assert by_run[names[2]] == (None,) * 6  # likelihoods are no texts
    (note,) = [note for note in comparison.analysis.notes if "answered" in note]
    assert note.startswith(f"{names[0]}: only {WORDS}")
    alone = compare([where / "baseline", where / "baseline"], allow_mixed=True).analysis
    assert "answers_by_run" not in {table.name for table in alone.tables}
    assert outcomes_tables(["a"], [{}]) == []


def test_scores_of_a_few_answers_stand_with_their_range(where):
    comparison = compare([where / "few", where / "all"], allow_mixed=True)
    table = find(comparison.analysis.tables, "accuracy_ambig")
    assert [column.name for column in table.columns] == ["group", "run_1", "range_run_1", "run_2", "n"]
    (row,) = [row for row in table.rows if row[0] == "All"]
    low, high = read_scored(where / "few").scores["range"]["accuracy_ambig"]
    assert low < 0.5
    assert row[1] == Estimate(1.0)
    assert row[2] == f"{100 * low:.1f} to {100 * high:.1f}\u00a0%"
    assert row[3].low is not None
    assert "the range that it could take with the missing answers" in table.note


def test_the_page_and_the_terminal_of_a_comparison_say_so(where, tmp_path):
    page = write_comparison(compare([where / "few", where / "all"], allow_mixed=True), tmp_path / "compared")
    assert find(read_analysis(tmp_path / "compared" / "analysis.json").tables, "answers_by_run").rows
    html = page.read_text(encoding="utf-8")
    assert "What became of the written answers" in html
    assert "33.3\u00a0% of 48 answered (31 refused, 1 truncated)" in html
    output = invoke("compare", where / "few", where / "all", "--allow-mixed", "--output", tmp_path / "again")
    low, high = read_scored(where / "few").scores["range"]["accuracy_ambig"]
    assert f"100.0 % ({100 * low:.1f} to {100 * high:.1f} %)" in output
    assert "only 33.3 % of 48 answered" in output
    assert "What became of the written answers" in output


# Pools


def test_a_pool_counts_the_outcomes_of_its_runs_and_shows_the_range_of_their_mean(where, tmp_path):
    found = pool([where / "few", where / "again"], allow_mixed=True)
    counts = [row[2:] for row in find(found.analysis.tables, "answers_by_run").rows]
    assert counts == [tuple(COUNTS.values()), (17, 30, 1, 0, 0)]
    table = find(found.analysis.tables, "pooled_accuracy_ambig")
    assert [column.name for column in table.columns[:3]] == ["group", "mean", "range_mean"]
    ranges = [read_scored(where / name).scores["range"]["accuracy_ambig"] for name in ("few", "again")]
    low, high = (sum(ends) / 2 for ends in zip(*ranges, strict=True))
    (row,) = [row for row in table.rows if row[0] == "All"]
    assert row[1].low is None
    assert row[2] == f"{100 * low:.1f} to {100 * high:.1f}\u00a0%"
    assert "What became of the written answers" in write_pool(found, tmp_path / "pool").read_text(encoding="utf-8")
    output = invoke("pool", where / "few", where / "again", "--allow-mixed", "--output", tmp_path / "again")
    assert f"({100 * low:.1f} to {100 * high:.1f} %)" in output
    assert "What became of the written answers" in output


# Results for the Hub


def test_results_say_how_many_answers_a_score_is_of(where):
    found = {score.name: score for score in headlines(where / "few")}
    scores = read_scored(where / "few").scores
    accuracy = found["accuracy_ambig"]
    assert accuracy.answered == pytest.approx(1 / 3)
    assert accuracy.possible == pytest.approx(scores["range"]["accuracy_ambig"])
    low, high = (100 * end for end in accuracy.possible)
    words = f"{WORDS}; with the missing answers {low:.1f} to {high:.1f}\u00a0%"
    assert accuracy.note == words

    [text] = result_files(where / "few", MODEL, DATASET, sample=True).values()
    entries = {entry.task_id: entry for entry in parse_eval_result_entries(yaml.safe_load(text))}
    signature = read_scored(where / "few").signature
    assert entries["Age/accuracy_ambig"].notes == f"{signature}; {words}"
    [text] = result_files(where / "all", MODEL, DATASET, sample=True).values()
    notes = {entry.notes for entry in parse_eval_result_entries(yaml.safe_load(text))}
    assert notes == {f"{read_scored(where / 'all').signature}; 100.0\u00a0% of 48 answered"}
    [text] = result_files(where / "baseline", MODEL, DATASET, sample=True).values()
    notes = {entry.notes for entry in parse_eval_result_entries(yaml.safe_load(text))}
    assert notes == {read_scored(where / "baseline").signature}


def test_the_older_form_has_share_and_range_as_numbers(where):
    found = {
        result.metric_type: result.metric_args for result in model_index(where / "few", MODEL, DATASET, sample=True)
    }
    scores = read_scored(where / "few").scores
    about = found["accuracy_ambig"]
    assert set(about) == {"signature", "answered", "range"}
    assert (about["answered"], about["range"]) == (pytest.approx(1 / 3), scores["range"]["accuracy_ambig"])
    whole = model_index(where / "all", MODEL, DATASET, sample=True)[0].metric_args
    assert set(whole) == {"signature", "answered", "interval"}
    baseline = model_index(where / "baseline", MODEL, DATASET, sample=True)[0].metric_args
    assert set(baseline) == {"signature", "interval"}
