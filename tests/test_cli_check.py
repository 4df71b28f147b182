"""`qabias check`: its exit codes on three made checked_runs, and what a pipeline is shown and given."""

import json
import re
import shlex

import pytest
import yaml
from typer.testing import CliRunner

from qabias import cli
from qabias.runs.opened import Run

from .conftest import ROOT
from .kit.commands import python
from .test_docs import blocks_of, parse_qabias

EXAMPLES = ROOT / "docs" / "examples"
PAGE = ROOT / "docs" / "ci-gate.md"


def check(*arguments):
    """Exit code and output, in this process."""
    result = CliRunner().invoke(cli.app, ["check", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output.replace("\u00a0", " ")


def rows(output):
    """The lines of the table in words: score, group, and the verdict."""
    lines = [re.split(r"\s{2,}", line.strip())[:3] for line in output.splitlines()]
    return [line for line in lines if line[-1] in ("pass", "FAIL", "inconclusive")]


@pytest.mark.slow
def test_a_run_that_keeps_its_limits_passes(checked_runs):
    code, output = check(checked_runs / "kept", "--max", "bias_ambig=0.1", "--min", "accuracy_ambig=0.9")
    assert code == 0
    assert [(row[0], row[1], row[-1]) for row in rows(output)] == [
        ("bias_ambig", "All", "pass"),
        ("accuracy_ambig", "All", "pass"),
    ]
    assert output.splitlines()[-2:] == [Run.scored(checked_runs / "kept").signature, "2 pass"]


def test_a_run_that_breaks_one_fails_whatever_else_it_keeps(checked_runs):
    code, output = check(checked_runs / "broken", "--max", "bias_ambig=0.1", "--max", "accuracy_ambig=0.5")
    assert code == 1
    assert [row[-1] for row in rows(output)] == ["FAIL", "pass"]
    assert "within ±10.0 %" in output
    assert output.splitlines()[-1] == "1 pass, 1 FAIL"


def test_a_run_that_cannot_tell_has_its_own_exit_code(checked_runs, tmp_path):
    code, output = check(checked_runs / "small", "--max", "bias_ambig=0.1", "--output", tmp_path / "verdicts.json")
    assert code == 3
    assert [row[-1] for row in rows(output)] == ["inconclusive"]
    assert "too small for this threshold" in output
    assert "examples would decide" in output
    content = json.loads((tmp_path / "verdicts.json").read_text("utf-8"))
    assert (content["exit_code"], content["signature"]) == (3, Run.scored(checked_runs / "small").signature)
    [verdict] = content["verdicts"]
    assert (verdict["name"], verdict["group"], verdict["state"]) == ("bias_ambig", "All", "undecided")
    assert verdict["low"] < -0.1
    assert verdict["high"] > 0.1
    assert "too small" in verdict["about"]
    assert check(checked_runs / "small", "--max", "bias_ambig=0.1", "--allow-undecided")[0] == 0
    assert check(checked_runs / "broken", "--max", "bias_ambig=0.1", "--allow-undecided")[0] == 1


def test_a_failure_of_one_group_goes_before_what_cannot_be_told_of_others(checked_runs):
    code, output = check(
        checked_runs / "broken", "--max", "bias_ambig=0.1", "--max", "accuracy_cost=0.1", "--by", "category"
    )
    found = {(row[0], row[1]): row[-1] for row in rows(output)}
    assert len(found) == 22
    assert {"FAIL", "inconclusive"} <= set(found.values())
    assert code == 1


def test_a_model_that_fails_the_task_is_named_and_fails_on_request(compared_runs, checked_runs):
    limit = ("--max", "bias_ambig=0.9")
    code, output = check(compared_runs / "bbq-random", *limit)
    assert code == 0
    assert "Warning: baseline:random guesses" in " ".join(output.split())
    code, output = check(compared_runs / "bbq-random", *limit, "--require-task")
    assert (code, [row[2] for row in rows(output)]) == (1, ["pass", "FAIL"])
    assert check(compared_runs / "bbq-random", "--require-task")[0] == 1
    code, output = check(checked_runs / "kept", "--require-task")
    assert (code, "Warning" in output) == (0, False)


@pytest.mark.slow
def test_the_shell_sees_the_same_exit_codes(checked_runs, tmp_path):
    assert (
        python("-m", "qabias", "check", checked_runs / "small", "--max", "bias_ambig=0.1", cwd=tmp_path).returncode == 3
    )
    wrong = python("-m", "qabias", "check", checked_runs / "kept", "--max", "bias_ambg=0.1", cwd=tmp_path)
    assert wrong.returncode == cli.EXIT_USER_ERROR == 2
    assert wrong.stderr.count("\n") == 2
    assert "Did you mean 'bias_ambig'?" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--max SCORE=0.1"),
        (["--max", "bias_ambig"], "NAME=VALUE"),
        (["--max", "bias_ambig=10%"], "bias_ambig=10%"),
        (["--max", "bias_ambig=0.1", "--max", "bias_ambig=0.2"], "two thresholds"),
        (["--max", "bias_ambig=10"], "0.1"),
        (["--min", "bias_ambig=0.1"], "bias_ambig is best at 0"),
        (["--max", "bias_ambig=0.1", "--by", "templat"], "unknown breakdown 'templat'"),
    ],
)
def test_a_mistake_is_the_users(checked_runs, arguments, message):
    result = CliRunner().invoke(cli.app, ["check", str(checked_runs / "kept"), *arguments])
    assert type(result.exception).__name__ == "QabiasError"  # `main` makes it one line and exit code 2
    assert message in str(result.exception)


# The examples of the documentation


def test_the_page_shows_the_examples_as_they_are():
    shown = {block.file: block.text for block in blocks_of(PAGE) if block.file is not None}
    names = ("test_release.py", "bias-check.yml")
    assert shown == {f"docs/examples/{name}": (EXAMPLES / name).read_text("utf-8") for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "outcome"),
    [("oracle", "4 passed"), ("stereotyped", "4 failed")],
)
def test_the_pytest_example_lets_a_good_model_pass_and_no_biased_one(tmp_path, model, outcome):
    asked = ("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLES / "test_release.py")
    result = python(*asked, cwd=tmp_path, MODEL=f"baseline:{model}")
    assert re.search(rf"^{outcome}(, \d warnings?)? in ", result.stdout, re.MULTILINE), result.stdout
    assert (result.returncode == 0) == (model == "oracle")
    assert not (tmp_path / "runs").exists()  # no answers stay that another model could be given


def test_the_workflow_is_one_and_its_commands_are_spelt_right(checked_runs, tmp_path, monkeypatch):
    workflow = yaml.safe_load((EXAMPLES / "bias-check.yml").read_text("utf-8"))
    assert set(workflow[True]) == {"pull_request"}  # YAML 1.1 reads the key "on" as a truth value
    [job] = workflow["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest"
    lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("qabias ")]
    assert [words[1] for words in commands] == ["run", "check", "check"]
    folder = commands[0][commands[0].index("--output") + 1]
    for words in commands:
        parse_qabias(words[1:])
        if words[1] == "check":
            assert words[2] == folder
            for run, code in (("kept", 0), ("broken", 1)):
                output = str(tmp_path / f"{run}.json")
                arguments = [output if word.endswith(".json") else word for word in words[3:]]
                assert check(checked_runs / run, *arguments)[0] == code
