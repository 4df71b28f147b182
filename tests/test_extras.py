"""What works without torch and the other extras, and what says which extra it needs."""

import configparser
import importlib
import json
import re
import shlex
import subprocess
import sys

import pytest

from qabias.errors import QabiasError
from qabias.support.suggest import EXTRAS, install

from .conftest import ROOT
from .kit.commands import python

WITHOUT = """
import json, sys
from importlib.machinery import PathFinder

missing, commands = map(json.loads, sys.argv[1:])

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in missing else super().find_spec(name, path, target)

sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
from qabias.cli import main
for words in commands:
    sys.argv = ["qabias", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
MISSING = sorted({name for names in EXTRAS.values() for name in names} | {"tokenizers", "safetensors"})


def qabias_without(missing, *commands):
    """Commands in one process, which ends with the first that fails."""
    return python("-c", WITHOUT, json.dumps(missing), json.dumps(commands, default=str))


def test_the_extras_of_the_code_are_those_of_the_package():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    needed = {
        name: re.findall(r"^[\w-]+", text.strip(), re.M) for name, text in setup["options.extras_require"].items()
    }
    core = re.findall(r"^[\w-]+", setup["options"]["install_requires"].strip(), re.M)
    for extra, modules in EXTRAS.items():
        own = {*needed[extra], *(needed["local"] if "qabias" in needed[extra] else [])}
        assert set(modules) <= own, extra
        assert not set(modules) & set(core), extra


def test_the_callback_names_its_extra(monkeypatch):
    """On import, in place of a ModuleNotFoundError of its own imports."""
    monkeypatch.setitem(EXTRAS, "local", ("no_such_module",))
    monkeypatch.delitem(sys.modules, "qabias.callbacks", raising=False)
    monkeypatch.setitem(sys.modules, "qabias.callbacks.bias_callback", None)
    with pytest.raises(QabiasError, match=r"BiasCallback needs no_such_module(?s:.*)\[local\]"):
        importlib.import_module("qabias.callbacks")


@pytest.mark.slow
def test_what_asks_no_model_works_without_any_extra(tmp_path):
    run = tmp_path / "run"
    small = ("run", "bbq", "--config", "Religion", "--limit", "40")
    result = qabias_without(
        MISSING,
        ("--help",),
        ("list",),
        (*small, "--model", "baseline:stereotyped", "--output", run),
        (*small, "--model", "baseline:random", "--output", tmp_path / "b"),
        ("score", run),
        ("show", run),
        ("report", run),
        ("compare", run, tmp_path / "b"),
        ("export", run, "--format", "csv", "--output", tmp_path / "tables"),
        ("plan", "bbq", "--detect", "0.1"),
        ("build", "bbnli", "--config", "gender", "--output", tmp_path / "built"),
        (*small, "--base-url", "http://localhost:1/v1", "--model", "m", "--dry-run"),
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        (("run", "bbq", "--model", "some/model"), MISSING, "local"),
        (("run", "bbq", "--model", "smollm2"), MISSING, "demo"),
        (("run", "bbq", "--model", "smollm2"), ["gguf"], "demo"),
    ],
)
def test_what_needs_an_extra_says_in_one_line_which_and_leaves_nothing(tmp_path, words, missing, extra):
    words = [tmp_path / word if word == "folder" else word for word in words]
    result = qabias_without(missing, words)
    assert result.returncode == 2, result.stderr
    assert result.stderr.rstrip().endswith(f'Run: pip install "qabias[{extra}]"')
    assert "fault" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_that_adds_an_extra_needs_no_index_that_has_qabias():
    """It is the fix in messages, before and after the release."""
    command = shlex.split(install("demo").removeprefix("Run: pip "))
    pip = [sys.executable, "-m", "pip", "--no-input", *command, "--dry-run", "--no-index"]
    result = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "gguf" in result.stdout
