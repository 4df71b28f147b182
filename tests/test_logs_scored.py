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
from qabias.benchmarks.base import External, ReportedScore
from qabias.errors import QabiasError
from qabias.logs import Log, Sample, detect
from qabias.logs.detect import find_logs
from qabias.report.writing import write_report_of
from qabias.runs.external import log_at
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


def logged(log, benchmark, asked):
    if log.task != "ages":
        return None
    samples = list(log.samples())
    columns = {name: [sample.asked[name] for sample in samples] for name in KEYS}
    answers = pa.table({**columns, "prediction": pa.array([sample.answer for sample in samples], pa.int64())})
    figures = (ReportedScore("acc", 0.25, ("accuracy_ambig",), "Counts both contexts."), ReportedScore("none", 1.0))
    references = pa.table(columns)
    return External(answers, config="Age", figures=figures, references=references, notes=("Invented.",))


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(detect, "readers", lambda: (read_toy,))
    monkeypatch.setattr(type(BBQ), "log_readers", (logged,))


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


def test_failed_and_missing_samples_are_told(tmp_path, rows):
    notes = " ".join(qabias.score(write(tmp_path / "ages.toy", rows, n_failed=12, expected=150)).notes)
    assert "12 of 120 samples failed" in notes
    assert "line 1: timed out" in notes
    assert "120 of the 150" in notes


def test_rules_make_another_run_that_keeps_the_figures_and_not_their_reasons(tmp_path, rows):
    log = write(tmp_path / "ages.toy", rows, n_failed=12)
    assert invoke("score", log, "--output", tmp_path / "run").exit_code == 0
    other = invoke("score", tmp_path / "run", "--rule", "unparsed=wrong", "--output", tmp_path / "wrong")
    assert other.exit_code == 0, other.output
    there, here = read_other_tool(tmp_path / "wrong"), read_other_tool(tmp_path / "run")
    assert [(one.name, one.value) for one in there.figures] == [(one.name, one.value) for one in here.figures]
    assert [one.why for one in there.figures] == ["", ""] != [one.why for one in here.figures]
    assert set(here.notes) <= set(there.notes)
    assert "Counts both contexts." not in " ".join(invoke("score", log, "--rule", "unparsed=wrong").output.split())


def test_half_a_set_is_taken_and_told(tmp_path, rows):
    shown = invoke("score", write(tmp_path / "ages.toy", rows[1:])).output
    assert f"1 of {len({row['set_id'] for row in rows})} sets" in shown
    assert "score:allow_incomplete=yes" in shown
    for kept in (rows, [row for row in rows if row["context_condition"] == "ambig"]):
        assert not any("incomplete" in note for note in qabias.score(write(tmp_path / "whole.toy", kept)).notes)


def test_a_log_is_never_replaced(tmp_path, rows):
    as_json = write(tmp_path / "ages.toy", rows).rename(tmp_path / "ages.json")
    before = as_json.read_bytes()
    assert "lost" in str(invoke("score", as_json, "--output", as_json).exception)
    assert as_json.read_bytes() == before
    for _ in range(2):
        assert invoke("score", as_json, "--output", tmp_path / "scores.json").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "token"),
    [
        (["--config", "Religion"], "'Age' in the log"),
        (["--source", "official"], "'bundled' in the log"),
        (["--source", "oficial"], "'official'"),
        (["--benchmark", "bqb"], "'bbq'"),
        (["--format", "letters"], "format"),
        (["--parser", "released"], "'none' in the log"),
        (["--seed", 1], "--seed"),
    ],
)
def test_what_the_caller_says_otherwise_is_refused(arguments, token, tmp_path, rows):
    extra = [] if "--benchmark" in arguments else ["--benchmark", "bbq"]
    shown = invoke("score", write(tmp_path / "ages.toy", rows), *arguments, *extra)
    assert isinstance(shown.exception, QabiasError)
    assert token in str(shown.exception)


def test_what_cannot_be_scored_is_refused(tmp_path, rows):
    log = write(tmp_path / "logs" / "a.toy", rows)
    with pytest.raises(QabiasError, match="seed"):
        qabias.score(log, seed=1)
    assert invoke("score", log, "--output", tmp_path / "run").exit_code == 0
    (tmp_path / "run" / "log.json").write_text("[]", "utf-8")
    for path, token in (
        (tmp_path / "run", "log.json"),
        (tmp_path / "age.evl", "no such file"),
        (write(tmp_path / "logs" / "b.toy", rows, change=10**30), "toy writes"),
        (tmp_path / "logs", "2 logs"),
    ):
        with pytest.raises(QabiasError, match=token):
            qabias.score(path)
    assert "--output" in str(invoke("score", tmp_path / "logs").exception)


def test_other_texts_name_the_log(tmp_path, rows, monkeypatch):
    def changed(log, benchmark, asked):
        found = logged(log, benchmark, asked)
        texts = pa.array(["another question"] * found.references.num_rows)
        return replace(found, references=found.references.append_column("question", texts))

    monkeypatch.setattr(type(BBQ), "log_readers", (changed,))
    log = write(tmp_path / "ages.toy", rows)
    with pytest.raises(QabiasError, match=rf"{log}: row 1[\s\S]*another version"):
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
    assert isinstance(shown.exception, QabiasError)
    for token in (
        *("4 of 7 logs", str(folder / "gone.toy"), f"a run already: {folder / 'run'}\n"),
        *(f"{folder / 'cut.toy'}: the log is cut off", "weather", "no example has category 'Age'"),
        f"no log: {folder / 'notes.txt'}",
    ):
        assert token in said
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["ages", "ages-2", "far"]
    for name in ("ages", "ages-2", "far"):
        assert qabias.read(tmp_path / "runs" / name).scores["bias_ambig"] == 1
    assert len(find_logs(folder).logs) == 5


OTHERS = {
    "HELM": '{\n "adapter_spec": {"method": "x"},\n "request_states": []\n}',
    "promptfoo": '{"evalId": "e", "results": {"results": [{"response": {"output": "A"}}]}}',
    "Every Eval Ever": '{"schema_version": "0.2", "evaluation_id": "x", "evaluation_results": []}',
    "Gemini": '{"key": "Age/8", "response": {"candidates": [{"content": {"parts": [{"text": "A"}]}}]}}\n',
}


@pytest.mark.parametrize("tool", OTHERS)
def test_a_file_of_a_tool_that_is_not_read_names_it_and_the_way(tmp_path, tool):
    (tmp_path / "results.json").write_text(OTHERS[tool], encoding="utf-8")
    with pytest.raises(QabiasError, match=rf"results\.json: a file of {tool}(?s:.*)The answers are in"):
        log_at(tmp_path / "results.json")
    with pytest.raises(QabiasError, match="none of its 1 files is a log"):
        find_logs(tmp_path)
