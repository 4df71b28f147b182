"""The scripts give the scores of `qabias run` on the same rows, from any folder."""

import json
import runpy
import subprocess
import sys

import datasets
import numpy as np
import pytest

from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run

from .conftest import ROOT
from .saved_models import save
from .tiny_models import make_model, make_tokenizer

# A tiny model knows few subjects, and answers with one side more often.
pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore::UserWarning")]
ROWS = {"bbq": ("Age", "qa"), "unqover": ("religion", "qa"), "bbnli": ("man_is_to_surgeon", "can_we_infer")}
N_ROWS = 24


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a tiny causal language model."""
    return save(tmp_path_factory.mktemp("causal"), make_model("llama", max_position_embeddings=1024), make_tokenizer())


@pytest.mark.parametrize("name", ROWS)
def test_a_script_gives_the_scores_of_the_run_on_the_same_rows(tmp_path, monkeypatch, capsys, model, name):
    config, prompt_format = ROWS[name]
    arguments = RunArguments(name, model, config=config, limit=N_ROWS, format=prompt_format)
    scores = json.loads((run(arguments, tmp_path / "run").folder / "scores.json").read_text("utf-8"))["scores"]
    rows = datasets.Dataset(load_examples(arguments).table)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", f"--model={model}", f"--config={config}"])
    made = runpy.run_path(str(ROOT / "runners" / f"{name}.py"))
    assert made["rows"].to_list() == rows.to_list()
    expected = scores["sets"][config] if name == "unqover" else scores
    for score, ends in made["scores"]["ci"].items():
        stored = np.array([expected[score], *expected["ci"][score]], float)  # None becomes NaN
        np.testing.assert_allclose([made["scores"][score], *ends], stored, rtol=0, atol=1e-6, err_msg=score)
    assert 5 <= len(capsys.readouterr().out.splitlines()) <= 20


@pytest.mark.slow
def test_a_script_runs_from_any_folder(tmp_path, model):
    command = [sys.executable, str(ROOT / "runners" / "bbq.py"), f"--model={model}", "--config=Religion", "--limit=10"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("bias_ambig ")
    assert list(tmp_path.iterdir()) == []
