"""Logs of other tools as runs: what is missing is said, and nothing of a folder is dropped in silence.

The tool is invented: a JSON file with the answers to 120 questions. The real tools have tests of their own.
"""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import qabias
from qabias import cli
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.base import ExternalAnswers, Logged, OtherFigure
from qabias.errors import QabiasError
from qabias.logs import Log, Sample, detect
from qabias.report.writing import write_report_of
from qabias.runs.logged import find_logs
from qabias.runs.scored import read_other_tool

BBQ = load_benchmark("bbq")
KEYS = ("category", "example_id")


@pytest.fixture(scope="module")
def rows():
    return qabias.load("bbq", "Age", limit=120).to_list()


def read_toy(path):
    if path.suffix not in (".toy", ".json") or "answ" not in path.read_text("utf-8"):
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise QabiasError(f"{path}: the log is cut off") from error

    def samples():
        for number, (category, example_id, answer, error) in enumerate(content["answers"], start=1):
            asked = {"category": category, "example_id": example_id}
            yield Sample(f"line {number}", asked, answer, error=error)

    return Log(path, "toy", "1.0", content["task"], "a-model", {}, samples, {"acc": 0.25}, content["expected"])


def logged(log, hints, upstream_dir):
    if log.task != "ages":
        return None
    samples = list(log.samples())
    columns = {name: [sample.asked[name] for sample in samples] for name in KEYS}
    answers = pa.table({**columns, "prediction": pa.array([sample.answer for sample in samples], pa.int64())})
    figures = (OtherFigure("acc", 0.25, ("accuracy_ambig",), "Counts both contexts."), OtherFigure("none", 1.0))
    given = ExternalAnswers("", "", "none", "bundled", answers)
    return Logged(given, "Age", figures=figures, references=pa.table(columns), notes=("Invented.",))


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(detect, "readers", lambda: (read_toy,))
    monkeypatch.setattr(type(BBQ), "logged", staticmethod(logged))


def write(path: Path, rows, task="ages", n_failed=0, expected=None, change=0):
    answers = [
        [row["category"], row["example_id"] + change, None, "timed out"]
        if number < n_failed
        else [row["category"], row["example_id"] + change, row["biased_loc"], ""]
        for number, row in enumerate(rows)
    ]
    path.parent.mkdir(exist_ok=True)
    content = {"task": task, "answers": answers, "expected": len(rows) if expected is None else expected}
    path.write_text(json.dumps(content), "utf-8")
    return path


def invoke(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_a_log_is_a_run_with_the_figures_of_its_tool_beside_ours(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows)
    shown = invoke("score", log, "--output", tmp_path / "run")
    assert shown.exit_code == 0, shown.output
    assert "Asked by" in shown.output
    assert "Counts both contexts." in " ".join(shown.output.split())
    result = qabias.read(tmp_path / "run")
    assert result.scores["bias_ambig"] == 1
    assert "scorer:answers+by=toy ages|" in result.signature
    assert "model:a-model" in result.signature
    first, second = result.table("other_tool", "arrow").to_pylist()
    assert first == {
        "score": "acc",
        "theirs": 0.25,
        "ours": result.scores["accuracy_ambig"],
        "why": "Counts both contexts.",
    }
    assert (second["theirs"], second["ours"], second["why"]) == (1.0, None, "")
    assert result.notes[:2] == (f"Asked by {log} (toy 1.0, task ages).", "Invented.")
    assert "What toy printed" in write_report_of(tmp_path / "run").read_text("utf-8")


def test_the_same_answers_from_a_table_have_the_same_scores(tmp_path, rows):
    result = qabias.score(write(tmp_path / "ages.toy", rows, n_failed=9))
    answers = [None] * 9 + [row["biased_loc"] for row in rows[9:]]
    beside = qabias.score(answers, qabias.load("bbq", "Age", limit=120))
    assert json.dumps(result.scores, sort_keys=True) == json.dumps(beside.scores, sort_keys=True)


def test_failed_and_missing_samples_are_told(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows, n_failed=12, expected=150)
    shown = invoke("score", log)
    assert shown.exit_code == 0, shown.output
    assert "12 of 120 samples failed and count as no answer; the first, line 1: timed out." in shown.output
    assert "The log has 120 of the 150 samples that toy set out to ask." in shown.output
    assert "12 outputs named no answer" in shown.output


def test_rules_make_another_run_that_keeps_the_figures(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows, n_failed=12)
    assert invoke("score", log, "--output", tmp_path / "run").exit_code == 0
    other = invoke("score", tmp_path / "run", "--score", "unparsed=wrong", "--output", tmp_path / "wrong")
    assert other.exit_code == 0, other.output
    there, here = read_other_tool(tmp_path / "wrong"), read_other_tool(tmp_path / "run")
    assert [one.value for one in there.figures] == [one.value for one in here.figures]
    assert set(here.notes) <= set(there.notes)


def test_half_a_set_is_taken_and_told(tmp_path, rows):
    shown = invoke("score", write(tmp_path / "ages.toy", rows[1:]))
    assert shown.exit_code == 0, shown.output
    n_sets = len({row["set_id"] for row in rows})
    assert f"Of {n_sets} sets 1 are not whole" in shown.output
    assert "score:allow_incomplete=yes" in shown.output
    whole = invoke("score", write(tmp_path / "whole.toy", rows))
    assert "not whole" not in whole.output
    one_context = [row for row in rows if row["context_condition"] == "ambig"]
    assert "not whole" not in invoke("score", write(tmp_path / "one.toy", one_context)).output


def test_reasons_do_not_outlive_the_rules_that_they_are_of(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows)
    shown = " ".join(invoke("score", log, "--score", "unparsed=wrong").output.split())
    assert "Counts both contexts." not in shown
    assert "none is given" in shown
    assert invoke("score", log, "--output", tmp_path / "run").exit_code == 0
    other = invoke("score", tmp_path / "run", "--score", "unparsed=wrong", "--output", tmp_path / "wrong")
    assert other.exit_code == 0, other.output
    figures = read_other_tool(tmp_path / "wrong").figures
    assert [(one.name, one.why) for one in figures] == [("acc", ""), ("none", "")]


def test_a_log_is_never_replaced(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows)
    as_json = log.rename(tmp_path / "ages.json")
    before = as_json.read_bytes()
    shown = invoke("score", as_json, "--output", as_json)
    assert "is read by this command and would be lost" in str(shown.exception)
    assert as_json.read_bytes() == before
    assert invoke("score", write(log, rows), "--output", tmp_path / "scores.json").exit_code == 0
    assert invoke("score", log, "--output", tmp_path / "scores.json").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "Religion"], "config is 'Religion' here, but 'Age' by the log; leave it out"),
        (["--source", "official"], "source is 'official' here, but 'bundled' by the log"),
        (["--source", "oficial"], "did you mean 'official'?"),
        (["--benchmark", "bqb"], "did you mean 'bbq'?"),
        (["--format", "letters"], "format is 'letters' here, but the log is of another tool's own"),
        (["--norm", "released"], "norm is 'released' here, but 'none' by the log"),
    ],
)
def test_what_the_caller_says_otherwise_is_refused(arguments, message, tmp_path, rows):
    extra = [] if "--benchmark" in arguments else ["--benchmark", "bbq"]
    shown = invoke("score", write(tmp_path / "ages.toy", rows), *arguments, *extra)
    assert message in str(shown.exception)


def test_other_texts_name_the_log(tmp_path, rows, monkeypatch):
    def changed(log, hints, upstream_dir):
        found = logged(log, hints, upstream_dir)
        texts = pa.array(["another question"] * found.references.num_rows)
        return replace(found, references=found.references.append_column("question", texts))

    monkeypatch.setattr(type(BBQ), "logged", staticmethod(changed))
    log = write(tmp_path / "ages.toy", rows)
    with pytest.raises(QabiasError, match=f"{log}: row 1.*the tool asked another version of the data"):
        qabias.score(log)


def test_a_log_that_is_not_there_is_told(tmp_path):
    assert str(invoke("score", tmp_path / "age.evl").exception) == f"{tmp_path / 'age.evl'}: no such file"


def test_what_no_reader_expected_is_one_line(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows, change=10**30)
    with pytest.raises(QabiasError, match="is not as toy writes it"):
        qabias.score(log)


def test_every_file_of_a_folder_is_accounted_for(tmp_path, rows):
    folder = tmp_path / "logs"
    write(folder / "ages.toy", rows)
    (folder / "more").mkdir()
    write(folder / "more" / "ages.toy", rows)
    write(folder / "weather.toy", rows, task="weather")
    write(folder / "others.toy", rows, change=100_000)
    (folder / "cut.toy").write_text('{"task": "ages", "answ', "utf-8")
    (folder / "notes.txt").write_text("nothing", "utf-8")
    (folder / "gone.toy").symlink_to(folder / "nowhere.toy")
    (tmp_path / "linked").mkdir()
    write(tmp_path / "linked" / "far.toy", rows)
    (folder / "far").symlink_to(tmp_path / "linked")
    (folder / "run").mkdir()
    (folder / "run" / "run.json").write_text("{}", "utf-8")
    shown = invoke("score", folder, "--output", tmp_path / "runs")
    said = shown.output + str(shown.exception)
    assert shown.exit_code != 0
    assert isinstance(shown.exception, QabiasError)
    assert f"{folder}: 4 of 7 logs were not scored; the lines above say why" in said
    assert f"  {folder / 'gone.toy'}: a link to a file that is not there\n" in said
    assert f"a run already: {folder / 'run'}\n" in said
    assert f"{folder / 'cut.toy'}: the log is cut off" in said
    assert "weather" in said
    assert "its samples keep category, example_id" in said
    assert "no example with category 'Age'" in said
    assert f"no log: {folder / 'notes.txt'}" in said
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["ages", "ages-2", "far"]
    for name in ("ages", "ages-2", "far"):
        assert qabias.read(tmp_path / "runs" / name).scores["bias_ambig"] == 1
    assert len(find_logs(folder).logs) == 5


def test_a_folder_of_several_logs_needs_a_folder_for_its_runs(tmp_path, rows):
    write(tmp_path / "logs" / "a.toy", rows)
    write(tmp_path / "logs" / "b.toy", rows)
    shown = invoke("score", tmp_path / "logs")
    assert "give a folder for their runs by --output" in str(shown.exception)
    with pytest.raises(QabiasError, match="holds 2 logs"):
        qabias.score(tmp_path / "logs")


def test_what_a_log_says_itself_is_refused(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows)
    shown = invoke("score", log, "--seed", 1)
    assert "--seed is for a table of predictions; a log says it itself, leave it out" in str(shown.exception)
    with pytest.raises(QabiasError, match="seed is for a table of answers"):
        qabias.score(log, seed=1)


def test_a_damaged_account_of_the_tool_is_told(tmp_path, rows):
    assert invoke("score", write(tmp_path / "a.toy", rows), "--output", tmp_path / "run").exit_code == 0
    (tmp_path / "run" / "log.json").write_text("[]", "utf-8")
    with pytest.raises(QabiasError, match=r"log\.json"):
        qabias.score(tmp_path / "run")
