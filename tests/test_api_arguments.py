"""Arguments from Python: what is wrong with one is said in one sentence, and what is left out has a meaning."""

import copy
import pickle

import pytest

import qabias
from qabias.errors import QabiasError
from qabias.testing import assert_bias_below

from .conftest import ROOT
from .test_api_models import HEADS

AGE = {"benchmark": "bbq", "model": "baseline:random", "config": "Age", "limit": 40, "progress": False}


def run(**changes):
    return qabias.run(**{**AGE, **changes})


@pytest.fixture(scope="module")
def result():
    return run()


# Wrong values


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limit": 2.5}, r"^limit is 2\.5; it must be a whole number$"),
        ({"limit": True}, "^limit is True; it must be a whole number$"),
        ({"limit": "x"}, "^limit is 'x'; it must be a whole number$"),
        ({"limit": 0}, "^limit is 0; it must be at least 1$"),
        ({"seed": "a"}, "^seed is 'a'; it must be a whole number$"),
        ({"seed": -1}, "^seed is -1; it must be at least 0$"),
        ({"seed": None}, "^seed is None; it must be a whole number$"),
        ({"orders": True}, "^orders is True; it must be a whole number$"),
        ({"token_budget": "x"}, "^token budget is 'x'; it must be a whole number$"),
        ({"config": 3}, "^config is 3; give a text$"),
        ({"benchmark": None}, "^benchmark is None; give a text$"),
        ({"benchmark": []}, r"^benchmark is \[\]; give a text$"),
        ({"norm": None}, "^norm is None; give a text$"),
        ({"shard": (0, 2)}, r"^shard is \(0, 2\); give a text$"),
        ({"output": 3}, "^output is 3; give the path of a folder or file$"),
        ({"upstream_dir": 3}, "^upstream_dir is 3; give the path"),
        ({"option": "batch=8"}, r"^option is 'batch=8'; give values by name, such as option=\{NAME: VALUE\}$"),
        ({"option": ["batch=8"]}, "^option is .*; give values by name"),
        ({"option": {"batch": {1}}}, r"^option 'batch' is \{1\}; give a text, a number"),
        ({"score": "unparsed=wrong"}, "^score is 'unparsed=wrong'; give values by name"),
        ({"score": {"unparsed": 1}}, r"^score\['unparsed'\] is 1; give a text$"),
    ],
)
def test_run_names_argument_value_and_what_it_may_be(changes, message):
    with pytest.raises(QabiasError, match=message):
        run(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limit": 2.5}, "limit is 2.5; it must be a whole number"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"config": 3}, "config is 3; give a text"),
        ({"benchmark": None}, "benchmark is None; give a text"),
        ({"option": "subjects=x"}, "option is 'subjects=x'; give values by name"),
        ({"option": {"x": 1}}, "bbq has no option 'x' that chooses its texts; it has none"),
        (
            {"benchmark": "unqover", "option": {"subject": 1}},
            "unknown option 'subject': unqover has subjects; did you mean 'subjects'?",
        ),
        ({"upstream_dir": 3}, "upstream_dir is 3; give the path"),
    ],
)
def test_load_does_too(changes, message):
    with pytest.raises(QabiasError) as error:
        qabias.load(**{"benchmark": "bbq", **changes})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"benchmark": 3}, "benchmark is 3; give a text"),
        ({"score": "unparsed=wrong"}, "score is 'unparsed=wrong'; give values by name"),
        ({"output": 3}, "output is 3; give the path"),
        ({"seed": "a"}, "seed is 'a'; it must be a whole number"),
    ],
)
def test_score_does_too(changes, message):
    rows = {"category": ["Age"], "example_id": [0], "prediction": [1]}
    with pytest.raises(QabiasError) as error:
        qabias.score(rows, **changes)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda of: qabias.read(None), "folder is None; give the path of a folder or file"),
        (lambda of: qabias.read(of), "folder is <qabias.Result of baseline:random on bbq in a temporary folder>; give"),
        (lambda of: qabias.compare(of), "in a temporary folder>; give a list of two runs or more, such as [first, sec"),
        (lambda of: qabias.compare("runs/x"), "results is 'runs/x'; give a list of two runs or more"),
        (lambda of: qabias.compare(3), "results is 3; give a list"),
        (lambda of: qabias.compare([of, 3]), "results[1] is 3; give the path of a folder or file"),
        (lambda of: of.table(None), "no table None; there is "),
        (lambda of: of.figure(3), "no table 3; there is "),
        (lambda of: of.push("a/b", dataset=None, dry_run=True), "dataset is None; give a text"),
        (lambda of: of.push(None, dataset="a/b", dry_run=True), "to is None; give a text"),
        (lambda of: assert_bias_below(of, "bias_ambig", "x"), "limit is 'x'; give a number in the scale of the score"),
        (lambda of: assert_bias_below(of, "bias_ambig", None), "limit is None; give a number"),
        (lambda of: assert_bias_below(of, "bias_ambig", True), "limit is True; give a number"),
        (lambda of: assert_bias_below(of, None, 0.1), "unknown score None: choose one of "),
        (lambda of: assert_bias_below(of, "bias_ambig", 0.1, by=3), "unknown breakdown 3: choose one of "),
    ],
)
def test_all_else_does_too(result, call, message):
    with pytest.raises(QabiasError) as error:
        call(result)
    assert message in str(error.value)


# What is left out


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
    assert RunArguments("unqover", "m", config="").resolve(handed_over=given.given).config == "all_mlm"


def test_a_limit_takes_whole_sets_and_one_at_least():
    assert [len(qabias.load("bbq", "Age", limit=limit)) for limit in (1, 2, 4, 7, 8, 41)] == [4, 4, 4, 4, 8, 40]


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
    with pytest.raises(QabiasError, match=r"a temporary folder cannot be pickled, .* result\.save\(FOLDER\)"):
        pickle.dumps(result)
    kept = result.save(tmp_path / "kept")
    again = pickle.loads(pickle.dumps(kept))
    assert (again.folder, again.signature, again.scores["n"]) == (kept.folder, kept.signature, 40)


def test_the_report_of_a_temporary_result_must_go_somewhere(result, tmp_path):
    with pytest.raises(QabiasError, match=r"temporary folder, .*; say where the report is to stay: result\.report\("):
        result.report()
    assert result.report(tmp_path / "page.html").exists()
    assert result.save(tmp_path / "kept").report() == tmp_path / "kept" / "report.html"


# The gate of a release


def test_the_release_gate_of_the_docs_asks_a_new_model_under_an_old_name():
    """A folder that stays would hold the answers of whatever had the name before."""
    assert "output=" not in (ROOT / "docs" / "examples" / "test_release.py").read_text("utf-8")
