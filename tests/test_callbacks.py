"""Bias measured while a model is trained: it is logged, it rises where it is taught, and training goes on untouched."""

import io
import json
import logging
import random
import runpy
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import torch
from transformers import TrainerCallback

import qabias
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.callbacks import BiasCallback
from qabias.callbacks.bias_callback import chosen_measures, point_of, preserve_state
from qabias.callbacks.drawing import draw_curve
from qabias.errors import QabiasError

from .kit.commands import python
from .trained_models import CONFIG, LIMIT, example, make_model, make_tokenizer, make_trainer

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore:'pin_memory':UserWarning")]

SMALL = {"config": CONFIG, "limit": 8}
MEASURE = BENCHMARK.facts.measure("bias_probability_ambig")
SCORES = ("bias_ambig", "bias_probability_ambig", "accuracy_disambig")


class Logger(TrainerCallback):
    """What a logger of the trainer is given."""

    def __init__(self):
        self.logged = []

    def on_log(self, args, state, control, logs=None, **given):
        self.logged.append((state.global_step, dict(logs)))


def train(folder, *, model=None, steps=4, trainer=None, resume=None, **measured):
    trainer = trainer or make_trainer(folder, model, steps)
    callback = BiasCallback(trainer, "bbq", **{**SMALL, "every": 2, **measured})
    trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=resume)
    return trainer, callback


def measured_training(folder, every):
    """A training on stereotyped answers that is measured three times, its logger and its callback."""
    logger = Logger()
    trainer = make_trainer(folder, steps=2 * every, callbacks=[logger], logging_steps=every)
    train(folder, trainer=trainer, every=every, limit=LIMIT, scores=SCORES)
    return SimpleNamespace(trainer=trainer, logger=logger, callback=trainer.callback_handler.callbacks[-1])


@pytest.fixture(scope="module")
def brief(tmp_path_factory):
    """One of four steps."""
    return measured_training(tmp_path_factory.mktemp("brief"), 2)


# What it shows.


@pytest.mark.slow
def test_the_curve_of_a_model_that_learns_stereotypes_rises(tmp_path):
    curve = measured_training(tmp_path, 60).callback.curve()
    assert list(curve.index) == [0, 60, 120]
    assert curve["bias_probability_ambig"].is_monotonic_increasing
    for score in ("bias_ambig", "bias_probability_ambig"):
        first, last = curve.loc[0], curve.loc[120]
        assert first[f"{score}_low"] < 0 < first[f"{score}_high"]  # random weights have no bias
        assert last[f"{score}_low"] > first[f"{score}_high"] + 0.3


@pytest.mark.slow
def test_scores_with_their_ends_and_what_is_missing_reach_every_logger(brief):
    names = [f"{score}{end}" for score in SCORES for end in ("", "_low", "_high")]
    keys = {f"eval_bbq_Age_{name}" for name in [*names, "missing"]}
    logged = [(step, logs) for step, logs in brief.logger.logged if keys & set(logs)]
    assert [step for step, _ in logged] == [0, 2, 4]
    curve = brief.callback.curve()
    for step, logs in logged:
        assert set(logs) == {*keys, "epoch"}
        for name in [*names, "missing"]:
            assert logs[f"eval_bbq_Age_{name}"] == curve.loc[step, name]
    in_history = [entry["step"] for entry in brief.trainer.state.log_history if "eval_bbq_Age_bias_ambig" in entry]
    assert in_history == [0, 2, 4]
    assert [step for step, logs in brief.logger.logged if "loss" in logs] == [2, 4]


@pytest.mark.slow
def test_every_measurement_is_a_run_that_can_be_opened_and_compared(brief):
    results = brief.callback.results
    assert list(results) == [0, 2, 4]
    assert len({result.signature for result in results.values()}) == 3  # the weights are in it
    for step, result in results.items():
        assert (result.folder / "analysis.json").exists()
        assert f"step-{step:08d}-" in str(result.folder)
        assert qabias.read(result.folder).scores["bias_ambig"] == brief.callback.curve().loc[step, "bias_ambig"]
    compared = qabias.compare([results[0].folder, results[4].folder])
    assert compared.headline


def test_the_last_point_is_what_a_run_of_the_same_model_finds(brief):
    again = qabias.run(
        "bbq", model=brief.trainer.model, tokenizer=make_tokenizer(), name="again", config=CONFIG, limit=LIMIT
    )
    np.testing.assert_equal(again.scores, brief.callback.results[4].scores)


def test_the_figure_shows_the_points_of_the_curve_and_their_band(brief):
    curve = brief.callback.curve()
    drawing = brief.callback.figure("bias_probability_ambig")
    assert drawing.svg() == draw_curve(curve, "bias_probability_ambig", MEASURE, "templates").svg()
    assert brief.callback.figure().svg() != drawing.svg()
    with pytest.raises(QabiasError, match="Did you mean 'bias_ambig'"):
        brief.callback.figure("bias_ambg")


# Training goes on as without it.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "arguments", "measured"),
    [
        ({"attention_dropout": 0.2}, {"gradient_checkpointing": True, "gradient_accumulation_steps": 2}, {}),
        ({"attention_dropout": 0.2}, {}, {"ask": "letter"}),
        pytest.param({}, {"bf16": True}, {}, marks=pytest.mark.slow),
    ],
    ids=["dropout and checkpointing", "written answers", "mixed precision"],
)
def test_the_weights_are_those_of_a_training_without_it(tmp_path, model, arguments, measured):
    plain = make_trainer(tmp_path / "plain", make_model(**model), 2, **arguments)
    plain.train()
    trainer = make_trainer(tmp_path / "measured", make_model(**model), 2, **arguments)
    _, callback = train(tmp_path, trainer=trainer, every=1, **measured)
    assert list(callback.curve().index) == [0, 1, 2]
    assert callback.failures == {}
    first, second = plain.model.state_dict(), trainer.model.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not any(tensor.is_inference() for tensor in (*trainer.model.buffers(), *trainer.model.parameters()))


class Remembering(torch.nn.Module):
    """A layer that keeps what it has seen, in the three ways in which layers do."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("table", torch.ones(2))
        self.longest = 2

    def forward(self, values):
        self.longest = len(values)
        self.table = torch.arange(len(values)).float()
        self.cache = self.table * 2
        return values


def random_states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002


def use_and_fail(network):
    with preserve_state(network), torch.inference_mode():
        assert not any(module.training for module in network.modules())
        network[0](torch.ones(7))
        random.random(), np.random.random(), torch.rand(1)  # noqa: NPY002
        raise RuntimeError("meanwhile")


def test_modes_buffers_gradients_and_random_numbers_are_put_back():
    network = torch.nn.Sequential(Remembering(), torch.nn.Dropout(), torch.nn.Linear(2, 2))
    network.train()
    network[2].eval()  # a part that training keeps in evaluation mode
    network(torch.ones(2)).sum().backward()
    table, gradient = network[0].table, network[2].weight.grad
    modes = [module.training for module in network.modules()]
    states = random_states()
    with pytest.raises(RuntimeError, match="meanwhile"):
        use_and_fail(network)
    assert random_states() == states
    assert [module.training for module in network.modules()] == modes
    assert network[0].table is table
    assert not network[0].table.is_inference()
    assert network[0].longest == 2
    assert network[2].weight.grad is gradient


def test_the_random_numbers_of_all_devices_are_put_back(monkeypatch):
    states = {0: torch.tensor([1]), 1: torch.tensor([2])}
    of_mps = [torch.tensor([3])]
    for module, name, replacement in (
        (torch.cuda, "is_initialized", lambda: True),
        (torch.cuda, "device_count", lambda: len(states)),
        (torch.cuda, "get_rng_state", lambda device: states[device].clone()),
        (torch.cuda, "set_rng_state", lambda state, device: states.update({device: state})),
        (torch.backends.mps, "is_available", lambda: True),
        (torch.mps, "get_rng_state", lambda: of_mps[-1].clone()),
        (torch.mps, "set_rng_state", of_mps.append),
    ):
        monkeypatch.setattr(module, name, replacement)
    with preserve_state(torch.nn.Linear(1, 1)):
        states.update({0: torch.tensor([7]), 1: torch.tensor([8])})
        of_mps.append(torch.tensor([9]))
    assert {device: state.item() for device, state in states.items()} == {0: 1, 1: 2}
    assert of_mps[-1].item() == 3


def test_an_optimizer_with_modes_of_its_own_is_asked_to_evaluate():
    modes = []
    optimizer = SimpleNamespace(eval=lambda: modes.append("eval"), train=lambda: modes.append("train"))
    with preserve_state(torch.nn.Linear(1, 1), optimizer):
        assert modes == ["eval"]
    assert modes == ["eval", "train"]


@pytest.mark.slow
def test_mixed_precision_of_the_training_has_no_say_and_trees_are_used(tmp_path):
    trainer = make_trainer(tmp_path / "run", steps=2, bf16=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*does not support trees.*")
        _, callback = train(tmp_path, trainer=trainer, limit=40, at_start=False)
    assert callback.failures == {}
    assert "_original_forward" in vars(trainer.model)  # the training itself computes in mixed precision
    trainer.save_model(tmp_path / "saved")
    saved = qabias.run("bbq", model=tmp_path / "saved", config=CONFIG, limit=40)
    np.testing.assert_equal(saved.scores, callback.results[2].scores)


# Where and when.


@pytest.mark.slow
def test_a_training_that_is_resumed_goes_on_with_its_curve(tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 2, "logging_steps": 1}
    trainer = make_trainer(tmp_path, steps=4, **saving)
    _, first = train(tmp_path, trainer=trainer, every="save")
    assert list(first.curve().index) == [0, 2, 4]
    answered = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("part-*.parquet")}
    # In another order of the texts the same step has other weights.
    again = make_trainer(tmp_path, steps=6, data_seed=5, **saving)
    _, second = train(tmp_path, trainer=again, every="save", resume=str(tmp_path / "checkpoint-2"))
    assert second.failures == {}
    assert list(second.curve().index) == [0, 2, 4, 6]
    assert len(list((tmp_path / "qabias").glob("*/step-00000004-*"))) == 2
    assert second.curve().loc[[0, 2]].equals(first.curve().loc[[0, 2]])
    assert {path: path.stat().st_mtime_ns for path in answered} == answered  # nothing is asked twice
    assert second.results[6].folder.parent == first.results[4].folder.parent
    assert second.results[0].folder == first.results[0].folder


@pytest.mark.slow
def test_a_new_training_in_the_same_folder_begins_a_new_curve(tmp_path):
    _, first = train(tmp_path, steps=3, every=2)
    assert list(first.curve().index) == [0, 2, 3]  # the last step is measured too
    _, second = train(tmp_path, steps=1)
    assert list(second.curve().index) == [0, 1]
    assert second.curve().loc[0].equals(first.curve().loc[0])


@pytest.mark.slow
def test_two_callbacks_keep_apart(tmp_path):
    trainer = make_trainer(tmp_path, steps=2)
    callbacks = [
        BiasCallback(trainer, "bbq", every=2, at_start=False, **SMALL),
        BiasCallback(trainer, "bbq", every=2, at_start=False, **SMALL, format="five", name="five"),
    ]
    for callback in callbacks:
        trainer.add_callback(callback)
    trainer.train()
    names = {name for entry in trainer.state.log_history for name in entry}
    assert {"eval_bbq_Age_bias_ambig", "eval_five_bias_ambig"} <= names
    assert len({callback.results[2].folder.parent for callback in callbacks}) == 2
    point, scores = callbacks[1].curve().loc[2], callbacks[1].results[2].scores
    assert "wordings" in scores
    for name in ("bias_ambig", "accuracy_disambig"):
        shown = [point[name], point[f"{name}_low"], point[f"{name}_high"]]
        np.testing.assert_equal(shown, [scores[name], *scores["ci"][name]])  # one template has no interval
    callbacks[1].name = "bbq_Age"
    with pytest.raises(QabiasError, match="two callbacks log under the name 'bbq_Age'"):
        trainer.train()


@pytest.mark.parametrize(
    ("benchmark", "name"),
    [
        pytest.param("unqover", "eval_unqover_religion_mu", marks=pytest.mark.slow),
        ("bbnli", "eval_bbnli_bias_score"),
    ],
)
def test_other_benchmarks_log_their_headline_scores(tmp_path, benchmark, name):
    trainer = make_trainer(tmp_path, steps=1)
    callback = BiasCallback(trainer, benchmark, every=1, at_start=False, limit=16)
    trainer.add_callback(callback)
    trainer.train()
    assert callback.failures == {}
    logged = next(entry for entry in trainer.state.log_history if name in entry)
    assert {f"{name}_low", f"{name}_high", f"eval_{callback.name}_missing"} <= set(logged)
    assert callback.figure(name.removeprefix(f"eval_{callback.name}_"))


# What is missing and what fails.


@pytest.mark.slow
def test_missing_answers_are_logged_beside_the_scores(tmp_path):
    _, callback = train(tmp_path, steps=1, ask="letter")
    curve = callback.curve()
    assert (curve["missing"] == 1.0).all()  # random weights write no letter
    assert curve["bias_ambig"].isna().all()
    assert curve["bias_ambig_low"].isna().all()


def test_a_score_with_many_missing_answers_has_a_range_in_place_of_an_interval():
    ranges = {"ci": {"bias_ambig": (0.1, 0.3)}, "range": {"bias_ambig": (-0.1, 0.4)}}
    scores = {"bias_ambig": 0.2, **ranges, "n_ambig": 10, "n_unparsed_ambig": 3, "by": {}}
    point = point_of(BENCHMARK, scores, chosen_measures(BENCHMARK, ["bias_ambig"], question_only=False))
    assert point.pop("bias_ambig_low") != point.pop("bias_ambig_high")  # NaN
    possible = {"bias_ambig_possible_low": -0.1, "bias_ambig_possible_high": 0.4}
    assert point == {"bias_ambig": 0.2, **possible, "missing": 0.3}


def test_what_fails_later_is_a_warning_and_training_goes_on(tmp_path, monkeypatch, caplog):
    answer = type(BENCHMARK).answer
    asked = []

    def failing(self, *arguments):
        asked.append(1)
        if len(asked) == 2:
            raise OSError("no space left")
        return answer(self, *arguments)

    monkeypatch.setattr(type(BENCHMARK), "answer", failing)
    trainer = make_trainer(tmp_path)
    with caplog.at_level(logging.WARNING, "qabias"):
        _, callback = train(tmp_path, trainer=trainer)
    assert trainer.state.global_step == 4
    assert callback.failures == {2: "OSError: no space left"}
    assert "bbq_Age was not measured at step 2 (training continues): OSError: no space left" in caplog.text
    curve = callback.curve()
    assert list(curve.index) == [0, 2, 4]
    assert curve.loc[2].isna().all()
    assert not curve["bias_ambig"].drop(2).isna().any()
    assert list(callback.results) == [0, 4]
    svg = callback.figure("bias_ambig").svg()
    assert svg.count('data-part="failed"') == 1
    assert 'data-part="undefined"' not in svg


def test_what_is_wrong_before_the_first_step_is_an_error(tmp_path):
    trainer = make_trainer(tmp_path)
    for arguments, message in (
        ({"every": 0}, "every is 0"),
        ({"every": "epoch"}, "every is 'epoch'"),
        ({"every": True}, "every is True"),
        ({"scores": "bias_ambig"}, r"scores=\['bias_ambig'\]"),
        ({"scores": ["bias_ambg"]}, "Did you mean 'bias_ambig'"),
        ({"format": "qqa"}, "qqa"),
        ({"model_name": "a|b"}, r"model_name is 'a\|b'"),
        ({"model_name": "a\nb"}, "model_name is"),
        ({"model_name": "baseline:random"}, "model_name is 'baseline:random'"),
        ({"name": 3}, "name is 3"),
        ({"name": "a b/c"}, "name is 'a b/c'"),
        ({"name": ""}, "name is ''"),
    ):
        with pytest.raises(QabiasError, match=message):
            BiasCallback(trainer, "bbq", **{**SMALL, **arguments})
    with pytest.raises(TypeError, match="formt"):
        BiasCallback(trainer, "bbq", formt="qa")
    with pytest.raises(QabiasError, match="a transformers Trainer"):
        BiasCallback("bbq", "bbq")
    trainer.processing_class = None
    with pytest.raises(QabiasError, match="processing_class"):
        BiasCallback(trainer, "bbq", **SMALL)
    callback = BiasCallback(trainer, "bbq", **{**SMALL, "config": "Age,Religion"}, tokenizer=make_tokenizer())
    assert (callback.name, callback.failures) == ("bbq_Age_Religion", {})  # a name that every logger takes
    assert callback.curve().empty
    with pytest.raises(QabiasError, match="no step was measured"):
        callback.figure()
    model = make_model()
    model.name_or_path = "runs/a|b"
    with pytest.raises(QabiasError, match=r"model_name is 'runs/a\|b'"):
        train(tmp_path, model=model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": "nli"}, "does not work with the backend nli"),
        ({"backend": "multiple_choice"}, "not a model trained for multiple choice"),
        ({"option": {"layot": "flat"}}, "layout"),
        ({"format": "question_only", "scores": ["bias_disambig"]}, "no context"),
    ],
    ids=["backend", "scorer", "option", "score"],
)
def test_what_only_the_model_shows_is_an_error_when_training_begins(tmp_path, arguments, message):
    with pytest.raises(QabiasError, match=message):
        train(tmp_path, at_start=False, **arguments)


def test_sharded_weights_are_refused_with_a_way_out(tmp_path):
    trainer = make_trainer(tmp_path)
    trainer.is_fsdp_enabled = True
    with pytest.raises(QabiasError, match="FSDP"):
        BiasCallback(trainer, "bbq", **SMALL)
    trainer.is_fsdp_enabled, trainer.is_deepspeed_enabled = False, True
    state = SimpleNamespace(deepspeed_plugin=SimpleNamespace(zero_stage=3))
    trainer.accelerator = SimpleNamespace(state=state)
    with pytest.raises(QabiasError, match="ZeRO-3"):
        BiasCallback(trainer, "bbq", **SMALL)
    state.deepspeed_plugin.zero_stage = 2
    assert BiasCallback(trainer, "bbq", **SMALL).failures == {}


# Several processes.

SHARED = """
import json, os, sys
import torch
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.callbacks import BiasCallback
from tests.trained_models import make_trainer

folder, rank = sys.argv[1], os.environ.get("RANK", "0")
plain = make_trainer(folder, steps=3)
plain.train()
trainer = make_trainer(folder, steps=3)
callback = BiasCallback(trainer, "bbq", every=1, config="Age", limit=40)
trainer.add_callback(callback)
answer, asked = type(BENCHMARK).answer, []

def failing(self, *arguments):
    asked.append(1)
    if (rank, len(asked)) == ("1", 3):
        raise OSError("no space left")
    return answer(self, *arguments)

type(BENCHMARK).answer = failing
trainer.train()
first, second = plain.model.state_dict(), trainer.model.state_dict()
found = {
    "curve": callback.curve().to_json(orient="split"),
    "failures": callback.failures,
    "equal": all(torch.equal(first[name], second[name]) for name in first),
    "wrapped": type(trainer.model_wrapped).__name__,
    "asked": len(asked),
}
with open(f"{folder}/rank-{rank}.json", "w") as file:
    json.dump(found, file)
"""


@pytest.mark.slow
def test_two_processes_share_out_a_measurement_and_survive_the_failure_of_one(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text(SHARED)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(type(BENCHMARK), "answer", type(BENCHMARK).answer)  # the script replaces it
        patch.setattr(sys, "argv", [script.name, str(tmp_path / "one")])
        runpy.run_path(str(script))
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2)
    done = python(*launch, script, tmp_path / "two", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    one, *two = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("one/rank-0", "two/rank-0", "two/rank-1")
    )
    assert [found["wrapped"] for found in two] == ["DistributedDataParallel"] * 2
    assert all(found["equal"] for found in (one, *two))
    assert one["failures"] == {}
    assert "no space left" in two[0]["failures"]["2"]
    assert set(two[1]["failures"]) == {"2"}
    assert two[0]["curve"] == two[1]["curve"]
    assert [found["asked"] for found in (one, *two)] == [4, 4, 4]  # halves of 20 examples each
    whole, shared = (pandas.read_json(io.StringIO(found["curve"]), orient="split") for found in (one, two[0]))
    assert list(shared.index) == [0, 1, 2, 3]
    pandas.testing.assert_series_equal(shared.loc[0], whole.loc[0])  # the same weights: the same scores
    assert shared.loc[2].isna().all()


# The example of the documentation.


def test_the_example_draws_a_curve(tmp_path, monkeypatch, capsys):
    make_model().save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    words = ["--limit", "8", "--steps", "2", "--every", "2", "--learning-rate", "3e-3"]
    monkeypatch.setattr(
        sys, "argv", ["example", "--model", str(tmp_path / "model"), *words, "--output", str(tmp_path / "bias.svg")]
    )
    example.main()
    assert (tmp_path / "bias.svg").read_bytes().startswith(b"<?xml")
    assert "bias_probability_ambig" in capsys.readouterr().out
