"""What a metric warns of names the line of the call; the terminal says it once, beside the scores."""

import csv
import inspect
import warnings

import pytest
from typer.testing import CliRunner

import qabias
from qabias.cli import app

TOLD = "40 of 40 predictions are unparseable"


def line_of_caller():
    return inspect.stack()[1].lineno


def silent(prompts):
    return ["?"] * len(prompts)


def test_missing_answers_of_a_run_are_a_warning_at_its_call():
    with pytest.warns(UserWarning, match=TOLD) as told:
        line, _ = line_of_caller(), qabias.run("bbq", model=silent, name="silent", config="Age", limit=40)
    assert [(one.filename, one.lineno) for one in told] == [(__file__, line)]


def test_missing_answers_that_are_scored_are_a_warning_at_the_call():
    rows = qabias.load("bbq", "Age", limit=40)
    with pytest.warns(UserWarning, match=TOLD) as told:
        line, result = line_of_caller(), qabias.score([-1] * 40, rows)
    assert [(one.filename, one.lineno) for one in told] == [(__file__, line)]
    with pytest.warns(UserWarning, match=TOLD) as told:
        line, _ = line_of_caller(), qabias.score(result)
    assert [(one.filename, one.lineno) for one in told] == [(__file__, line)]
    with pytest.warns(UserWarning, match="count as wrong") as told:
        line, _ = line_of_caller(), qabias.score(result, rules={"unparsed": "wrong"})
    assert [(one.filename, one.lineno) for one in told] == [(__file__, line)]


def test_the_command_line_says_it_beside_the_scores_alone(tmp_path):
    rows = qabias.load("bbq", "Age", limit=40)
    with (tmp_path / "answers.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("category", "example_id", "prediction"))
        table.writerows((row["category"], row["example_id"], -1) for row in rows)
    command = ["score", str(tmp_path / "answers.csv"), "--config", "Age", "--output", str(tmp_path / "run")]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "100% of answers are missing" in done.output
    assert not [one for one in told if "no answer" in str(one.message)]
