"""Scorers are found by name, by a model's head and by entry points, and say what they are before they are loaded."""

import importlib.metadata
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from qabias.errors import QabiasError
from qabias.scorers.base import Request
from qabias.scorers.kind import INTERFACES, Loading
from qabias.scorers.registry import (
    GROUP,
    check_options,
    check_rule,
    default_scorer,
    kind_of,
    kinds,
    lasting_options,
    load_kind,
    load_scorer,
    scorers_for,
)

from .conftest import ROOT
from .toy_scorer import qabias_longest
from .toy_scorer.qabias_longest import LengthScorer

LONGEST = replace(qabias_longest.KIND, heads=("ForLongAnswers",))


@pytest.fixture
def install(monkeypatch):
    """Installs descriptions as packages of others would, by entry points of this module."""
    own = importlib.metadata.entry_points

    def install(**found):
        entries = []
        for name, kind in found.items():
            attribute = f"INSTALLED_{name}"
            monkeypatch.setitem(globals(), attribute, kind)
            entries.append(importlib.metadata.EntryPoint(name, f"{__name__}:{attribute}", GROUP))
        monkeypatch.setattr(
            importlib.metadata, "entry_points", lambda **by: entries if by.get("group") == GROUP else own(**by)
        )
        kinds.cache_clear()

    yield install
    kinds.cache_clear()


# Descriptions


@pytest.mark.parametrize("name", kinds())
def test_a_description_is_whole(name):
    kind = load_kind(name)
    assert kind.name == name
    assert kind.summary
    assert kind.interfaces
    assert set(kind.interfaces) <= set(INTERFACES)
    assert all(shown["help"] for shown in kind.known_options.values())
    assert (kind.auto_class == "") == (name in ("server", "function", "baseline"))


def test_every_way_has_a_scorer_and_every_head_one():
    assert all(scorers_for([way]) for way in INTERFACES)
    heads = [head for kind in kinds().values() for head in kind.heads]
    assert len(set(heads)) == len(heads) > 0
    assert scorers_for(["pairs", "masks"]) == ("nli", "masked_lm")
    assert scorers_for([]) == ()


def test_descriptions_are_read_without_the_libraries_of_models():
    """A command that lists scorers, or refuses an option, does not wait seconds for an import."""
    code = (
        "import sys, json; from qabias.scorers.registry import check_options, kinds; "
        "server = {'base_url': 'http://h/v1'}; "
        "[check_options(kind, server if name == 'server' else {}) for name, kind in kinds().items()]; "
        "print(json.dumps([name for name in sys.modules if '.' not in name]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"torch", "transformers", "pyarrow", "datasets", "evaluate", "pandas", "httpx2"}
    assert heavy & set(json.loads(done.stdout)) == set()


# Options


@pytest.mark.parametrize(
    ("scorer", "option", "meant"),
    [
        ("server", "boddy.x", "body.x"),
        ("server", "bdy", "body.NAME"),
        ("server", "body_x", "body.NAME"),
        ("causal", "templat.enable_thinking", "template.enable_thinking"),
        ("causal", "chatt", "chat"),
        ("causal", "layuot", "layout"),
    ],
)
def test_an_option_that_may_be_meant_is_offered(scorer, option, meant):
    with pytest.raises(QabiasError, match=f"'{option}'.*'{meant}'"):
        check_options(load_kind(scorer), {option: "5"})
    with pytest.raises(QabiasError, match="unknown option"):
        check_options(load_kind("causal"), {"xyz.enable_thinking": "5"})
    with pytest.raises(QabiasError, match=r"'casual'.*'causal'"):
        load_scorer("casual", "smollm2")


# Of an option that reads a text itself, or takes any.
OWN = {"batch": "", "labels": "yes,no", "base_url": "host", "template.": None, "body.": None}
TEXTS = {"system": "two\nlines", "header": None, "tokenizer": None}
OPTIONS = [(kind.name, option) for kind in kinds().values() for option in kind.known_options]


@pytest.mark.parametrize(("scorer", "option"), OPTIONS)
def test_a_wrong_value_of_any_option_names_it_and_what_to_give(scorer, option):
    own = {"server": {"base_url": "http://h/v1"}, "causal": {"chat": "yes"}}.get(scorer, {})
    text = {**(OWN if scorer != "function" else {}), **TEXTS}.get(option, "nonsense")
    if text is not None:
        with pytest.raises(QabiasError, match=rf"(?s){option}|URL|system.*\n?") as error:
            check_options(load_kind(scorer), {**own, option: text})
        assert error.value.args[1]


def test_only_options_that_determine_answers_last():
    options = {"base_url": "http://h/v1", "mode": "echo", "max_connections": "3"}
    assert lasting_options("server", options) == {"mode": "echo"}
    assert lasting_options("causal", {"chat": "yes"}) == {"chat": "yes"}


# Rules


def test_a_rule_fits_what_a_scorer_gives():
    class Writer:
        name, model_signature, samples = "causal", "", 1

        def generate(self, prompts, keys):
            raise AssertionError("asked")

    class Classifier:
        name, model_signature = "unheard of", ""

        def classify(self, pairs):
            raise AssertionError("asked")

    class Chooser(LengthScorer):
        name = "multiple_choice"

    fitting = {
        LengthScorer(): ("none", "token", "byte"),
        Writer(): ("none", "released"),
        Classifier(): ("none",),
        Chooser(): ("none",),
    }
    for scorer, known in fitting.items():
        for norm in ("none", "token", "byte", "released"):
            if norm in known:
                check_rule(scorer, norm)
            else:
                with pytest.raises(QabiasError, match="does not work"):
                    check_rule(scorer, norm)


def test_a_scorer_that_is_not_registered_has_the_way_that_its_methods_show():
    kind = kind_of(LengthScorer())
    assert (kind.name, kind.interfaces, kind.has_lengths) == ("longest", ("options",), True)
    assert kind_of(load_scorer(None, "baseline:random")) is load_kind("baseline")


# Scorers of others


def test_an_installed_scorer_needs_no_edit_here(install, tmp_path):
    loadings = []
    load = LONGEST.load
    install(longest=replace(LONGEST, load=lambda given: loadings.append(given) or load(replace(given, revision=None))))
    assert "longest" in scorers_for(["options"])
    options = {"prefer": "longest"}
    more = {"device": "cpu", "batch_tokens": 7, "seed": 3, "journal": tmp_path / "j"}
    scorer = load_scorer("longest", "anything", scorer_options=options, revision="main", **more)
    assert loadings == [Loading("anything", options, "main", **more)]
    (score,) = scorer.score([Request("Who?", (" A", " The old man"))])
    assert score.loglikelihoods.argmax() == 1
    assert score.n_tokens.tolist() == [1, 3]
    assert kind_of(scorer) is kinds()["longest"]
    for options, message in (
        ({"prefer": "lines"}, "unknown prefer of longest"),
        ({"prefers": "longest"}, "Did you mean 'prefer'"),
    ):
        with pytest.raises(QabiasError, match=message):
            load_scorer("longest", "anything", scorer_options=options)
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForLongAnswers"]}')
    assert default_scorer(str(tmp_path)) == "longest"
    install(longest=replace(LONGEST, heads=(), made_for=lambda config: config.model_type == "gpt2"))
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}')
    assert default_scorer(str(tmp_path)) == "longest"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"longest": "no description"}, "ScorerKind named 'longest'"),
        ({"shortest": LONGEST}, "ScorerKind named 'shortest'"),
        ({"longest": replace(LONGEST, interfaces=("telepathy",))}, "interfaces among"),
        ({"causal": replace(LONGEST, name="causal")}, "two scorers have the name 'causal'"),
    ],
)
def test_an_installed_scorer_that_is_none_is_refused(install, monkeypatch, found, message):
    install(**found)
    with pytest.raises(QabiasError, match=message):
        kinds()
    entry = importlib.metadata.EntryPoint("broken", "no_such_module:KIND", GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **by: [entry])
    kinds.cache_clear()
    with pytest.raises(QabiasError, match=r"no_such_module:KIND"):
        kinds()
