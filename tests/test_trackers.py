"""Headline scores reach the experiment that is open in the caller's tracker, once, and no tracker is imported."""

import math
import sys
from types import SimpleNamespace

import pytest
from transformers import TrainerCallback

import qabias
from qabias.callbacks import BiasCallback
from qabias.support.trackers import log_scores

from .conftest import ROOT
from .kit.commands import python
from .trained_models import CONFIG, make_trainer

RUN = {"model": "baseline:stereotyped", "config": "Age", "limit": 40, "progress": False}


@pytest.fixture
def logged(monkeypatch):
    """What stand-ins of the three trackers hold; the run of each is open."""
    trackio, wandb, mlflow = logged = {}, {}, {}
    run = SimpleNamespace(get=lambda: "run")
    config = SimpleNamespace(update=lambda texts, allow_val_change: wandb.update(texts))
    modules = {
        "trackio": SimpleNamespace(
            context_vars=SimpleNamespace(current_run=run),
            log=lambda values, step: trackio.update({**values, "step": step}),
        ),
        "wandb": SimpleNamespace(run="run", config=config, log=wandb.update),
        "mlflow": SimpleNamespace(
            active_run=lambda: "run",
            set_tags=mlflow.update,
            log_metrics=lambda values, step: mlflow.update({**values, "step": step}),
        ),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return dict(zip(modules, logged, strict=True))


def test_a_run_and_collected_answers_are_logged_with_ends_and_signature(logged):
    result = qabias.run("bbq", **RUN)
    expected = {"bbq/signature": result.signature, "bbq/missing": 0.0}
    for name in ("bias_ambig", "accuracy_ambig", "accuracy_cost", "accuracy_disambig"):
        ends = zip(("", "_low", "_high"), (result.scores[name], *result.scores["ci"][name]), strict=True)
        expected |= {f"bbq/{name}{end}": value for end, value in ends}
    assert all(expected.items() <= entries.items() for entries in logged.values())
    rows = qabias.load("bbq", "Age", limit=40)
    assert qabias.score(rows["label"], rows).scores["accuracy"] == 1
    assert all(entries["bbq/accuracy_ambig"] == 1 for entries in logged.values())


def test_undefined_scores_are_left_out_and_a_failing_tracker_is_a_warning(logged):
    log_scores("x", {"a": math.nan, "b": 0.5}, "s")
    assert all("x/a" not in entries and entries["x/b"] == 0.5 for entries in logged.values())
    sys.modules["wandb"].log = None
    with pytest.warns(UserWarning, match="did not reach every tracker: 'NoneType' object is not callable"):
        log_scores("x", {"b": 0.25}, "s")


class MLflowCallback(TrainerCallback):
    """Has the name of the trainer's own logger for MLflow."""


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings("ignore:'pin_memory':UserWarning")
def test_the_callback_logs_what_no_logger_of_the_trainer_logs(logged, tmp_path):
    trainer = make_trainer(tmp_path, steps=1, callbacks=[MLflowCallback()])
    callback = BiasCallback(trainer, "bbq", config=CONFIG, limit=8, every=1, at_start=False)
    trainer.add_callback(callback)
    trainer.train()
    score = callback.curve().loc[1, "bias_ambig"]
    for name, step in (("trackio", "step"), ("wandb", "train/global_step")):
        assert logged[name].items() >= {f"bbq_{CONFIG}/bias_ambig": score, step: 1}.items()
    assert logged["mlflow"] == {}


@pytest.mark.slow
@pytest.mark.parametrize("tracker", ["trackio", "wandb", "mlflow"])
def test_the_examples_reach_the_real_trackers(tracker, tmp_path):
    pytest.importorskip(tracker)
    places = {"TRACKIO_DIR": str(tmp_path), "MLFLOW_TRACKING_URI": "sqlite:///mlflow.db", "WANDB_MODE": "offline"}
    ended = python(ROOT / "docs" / "examples" / f"track_with_{tracker}.py", cwd=tmp_path, **places)
    assert ended.returncode == 0, ended.stderr
    assert any(b"bbq/bias_ambig_low" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
