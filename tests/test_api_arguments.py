"""Arguments from Python: what is wrong with one is said in one sentence, and what is left out has a meaning."""

import copy
import csv
import inspect
import pickle
import warnings

import pytest
from typer.testing import CliRunner

import qabias
from qabias.cli import app
from qabias.errors import QabiasError, flag
from qabias.testing import assert_bias_below

from .kit.commands import refused
from .test_api_models import HEADS

AGE = {"benchmark": "bbq", "model": "baseline:random", "config": "Age", "limit": 40, "progress": False}


def run(**changes):
    return qabias.run(**{**AGE, **changes})


@pytest.fixture(scope="module")
def result():
    return run()


# Wrong values


@pytest.mark.parametrize(
    ("changes", "token"),
    [
        *(({"limit": value}, "limit") for value in (2.5, True, "x", 0)),
        *(({"seed": value}, "seed") for value in ("a", -1, None)),
        ({"permutations": True}, "permutations"),
        ({"batch_tokens": "x"}, "batch_tokens"),
        ({"option": {"batch": {1}}}, "option 'batch'"),
    ],
)
def test_run_names_an_argument_of_a_wrong_value(changes, token):
    with pytest.raises(QabiasError, match=f"^{token} is "):
        run(**changes)


@pytest.mark.parametrize(
    ("call", "token"),
    [
        (lambda result: qabias.load("bbq", limit=2.5), "limit"),
        (lambda result: qabias.load("bbq", option={"x": 1}), "'x'"),
        (lambda result: qabias.load("unqover", option={"subject": 1}), "'subjects'"),
        (lambda result: qabias.score({"category": ["Age"], "example_id": [0], "prediction": [1]}, seed="a"), "seed"),
        (lambda result: qabias.compare(result), "results"),
        (lambda result: qabias.compare("runs/x"), "results"),
        (lambda result: result.table("x"), "'x'"),
        (lambda result: result.figure("x"), "'x'"),
        (lambda result: assert_bias_below(result, "bias_ambig", "x"), "limit"),
    ],
)
def test_every_function_names_what_is_wrong(result, call, token):
    with pytest.raises(QabiasError, match=token):
        call(result)


@pytest.mark.parametrize(
    ("changes", "token"),
    [
        ({"limit": 0}, "limit"),
        ({"seed": -1}, "seed"),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"shard": "x"}, "shard"),
        ({"length_norm": "tokens"}, "length_norm"),
        ({"until": ["bias_ambig"]}, "until"),
        ({"by": "category"}, "by"),
        ({"rules": {"unparsed": "wron"}}, "rules"),
    ],
)
def test_an_error_names_an_argument_as_the_asker_does(changes, token):
    with pytest.raises(QabiasError, match=rf"(?<!-)\b{token}\b"):
        run(**changes)
    words = ["run", "bbq", "--model", "baseline:random", "--no-report"]
    for name, value in changes.items():
        for text in [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else [value]:
            words.append(f"{flag(name)}={text[0] if isinstance(text, list) else text}")
    assert flag(token) in refused(*words)


# What is left out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "config"),
    [("bbq", "all"), ("bbq_nli", "all_nli"), ("bbq_qa", "all_qa"), ("bbnli", "all"), ("unqover", "all")],
)
def test_without_a_configuration_all_examples_are_meant(benchmark, config):
    assert run(benchmark=benchmark, config=None, limit=1).arguments["config"] == config
    rows = qabias.load(benchmark, limit=4)
    assert rows.info.config_name == config


def test_all_examples_are_those_that_the_model_can_be_asked():
    made, tokenizer = HEADS["masked"][0]()
    from qabias.runs.arguments import RunArguments

    given = qabias.api.given_models.given_model(made, tokenizer, "m")
    assert RunArguments("unqover", "m", config="").resolve(handed_over=given.handed_over).config == "all_mlm"


# Temporary folders


def test_a_copy_of_a_result_lives_in_the_same_folder():
    first = run()
    second = copy.deepcopy(first)
    folder = first.folder
    del first
    assert second.folder == folder
    assert folder.exists()
    assert second.predictions().num_rows == 40


def test_a_temporary_result_is_not_pickled_and_one_that_stays_is(result, tmp_path):
    with pytest.raises(QabiasError, match="cannot be pickled"):
        pickle.dumps(result)
    kept = result.save(tmp_path / "kept")
    again = pickle.loads(pickle.dumps(kept))
    assert (again.folder, again.signature, again.scores["n"]) == (kept.folder, kept.signature, 40)


def test_the_report_of_a_temporary_result_must_go_somewhere(result, tmp_path):
    with pytest.raises(QabiasError, match="in a temporary folder"):
        result.report()
    assert result.report(tmp_path / "page.html").exists()
    assert result.save(tmp_path / "kept").report() == tmp_path / "kept" / "report.html"


# The gate of a release


def test_a_misspelled_argument_is_named_with_its_function():
    with pytest.raises(TypeError, match=r"qabias\.run\(\) .*'limt'"):
        qabias.run("bbq", limt=3)


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
