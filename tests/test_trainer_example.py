"""`evaluate.load` in `Trainer(compute_metrics=...)`: the example of docs/training.md with a tiny model."""

import argparse
import importlib.util
import sys

import numpy as np
import pytest
import torch
import transformers
from transformers import EvalPrediction

import qabias

from .conftest import ROOT
from .saved_models import save
from .tiny_models import make_encoder_tokenizer

SCRIPT = ROOT / "docs" / "examples" / "bias_in_compute_metrics.py"
ARGUMENTS = {"config": "Age", "limit": 40, "steps": 30, "every": 30, "batch_size": 10, "learning_rate": 2e-3}

_spec = importlib.util.spec_from_file_location("bias_in_compute_metrics", SCRIPT)
example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def tokenizer():
    """One that knows the words of the questions."""
    rows = qabias.load("bbq", "Age", limit=200)
    texts = [row[name] for row in rows for name in ("context", "question", "ans0", "ans1", "ans2")]
    return make_encoder_tokenizer("wordpiece").train_new_from_iterator(texts, 2000, show_progress=False)


def make_model(tokenizer):
    torch.manual_seed(0)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    # Large weights and no dropout, so that it learns in a moment.
    quick = {"initializer_range": 0.2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **size, **quick)
    return transformers.BertForMultipleChoice(config)


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory, one_thread):
    """The trainer after its training."""
    folder = tmp_path_factory.mktemp("trained")
    trainer = example.make_trainer(make_model(tokenizer), tokenizer, folder, argparse.Namespace(**ARGUMENTS))
    trainer.train()
    return trainer


def evaluations(trainer):
    return [logged for logged in trainer.state.log_history if "eval_bias_ambig" in logged]


@pytest.mark.slow
def test_the_bias_rises_in_the_log_of_a_model_that_learns_stereotypes(trained):
    first, last = evaluations(trained)
    assert (first["step"], last["step"]) == (0, 30)
    assert last["eval_bias_probability_ambig"] > 0.5 > first["eval_bias_probability_ambig"]
    assert last["eval_bias_ambig_low"] <= last["eval_bias_ambig"] <= last["eval_bias_ambig_high"]
    assert last["eval_unparsed_share"] == 0


@pytest.mark.slow
def test_the_scores_are_those_of_a_run_of_the_same_model(trained, tokenizer, tmp_path):
    result = qabias.run(
        *("bbq",), model=trained.model, tokenizer=tokenizer, name="trained", config="Age", limit=40, format="pair",
        output=tmp_path / "run", progress=False,
    )  # fmt: skip
    last = evaluations(trained)[-1]
    for name in example.SCORES:
        assert last[f"eval_{name}"] == pytest.approx(result.scores[name], abs=1e-5, nan_ok=True), name
        ends = [last[f"eval_{name}_{end}"] for end in ("low", "high")]
        assert ends == pytest.approx(result.scores["ci"][name], abs=1e-5, nan_ok=True), name


def test_ties_are_no_answers_and_other_rows_are_refused():
    rows = qabias.load("bbq", "Age", limit=40)
    compute, labels = example.bias_metrics(rows), np.array(rows["label"])
    with pytest.warns(UserWarning, match="unparseable"):
        scores = compute(EvalPrediction(np.zeros((40, 3)), labels))
    assert scores["unparsed_share"] == 1
    assert np.isnan(scores["bias_ambig"])
    with pytest.raises(ValueError, match="another order"):
        compute(EvalPrediction(np.zeros((40, 3)), labels[::-1]))


@pytest.mark.slow
def test_the_script_prints_a_line_for_each_evaluation(tokenizer, tmp_path, monkeypatch, capsys):
    folder = save(tmp_path / "encoder", make_model(tokenizer), tokenizer)
    arguments = ["--model", folder, "--steps", "2", "--every", "1", "--limit", "8"]
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, *arguments])
    example.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step")]
    assert [line.split(":")[0] for line in lines] == ["step 0", "step 1", "step 2"]
    assert "bias_ambig" in lines[0]
