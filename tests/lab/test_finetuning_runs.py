"""Fine-tuning learns what it is shown, goes on where it stopped, and says what is wrong with its options."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from lab.finetuning import qa, race
from lab.finetuning.rows import Row
from lab.finetuning.training import KEEP, Settings, last_checkpoint, train
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.registry import default_scorer

from ..conftest import ROOT
from ..tiny_models import make_encoder, make_encoder_tokenizer
from .training_rows import (
    call,
    command,
    qa_rows,
    race_rows,
    save_pretrained,
    windows_of,
    write_lines,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "epochs"), [("bert", 10), ("roberta", 10), pytest.param("deberta-v2", 20, marks=pytest.mark.slow)]
)
def test_a_model_trained_on_race_answers_its_rule_and_is_measured_on_bbq(tmp_path, monkeypatch, capsys, kind, epochs):
    data = write_lines(tmp_path / "race.jsonl", race_rows(200))
    model = save_pretrained(tmp_path / "pretrained", kind)
    options = command(data, model, tmp_path / "out", epochs=epochs, learning_rate=2e-3, batch_size=16)
    printed = call(race, options, monkeypatch, capsys)
    record = json.loads((tmp_path / "out" / "finetuning.json").read_text("utf-8"))
    assert record["score"]["accuracy"] > 0.9
    assert record["score"]["n"] == 200
    assert "on 200 questions" in printed
    assert (record["run"]["task"], record["run"]["train"], record["run"]["train_rows"]) == ("race", str(data), 200)
    assert not (tmp_path / "out" / "checkpoints").exists()
    # Independently: the model reads each pair by itself.
    loaded = transformers.AutoModelForMultipleChoice.from_pretrained(tmp_path / "out").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    right = 0
    for row in itertools.islice(race_rows(200), 40):
        example = race.parse(Row("f", 1, row))
        with torch.no_grad():
            logits = [
                loaded(
                    **{name: torch.tensor([[values]]) for name, values in tokenizer(example.article, candidate).items()}
                ).logits.item()
                for candidate in example.candidates
            ]
        right += int(np.argmax(logits) == example.label)
    assert right > 36
    before = (tmp_path / "out" / "model.safetensors").stat().st_mtime_ns
    # Done: nothing is trained again.
    assert call(race, options, monkeypatch, capsys).splitlines() == printed.splitlines()[-1:]
    assert (tmp_path / "out" / "model.safetensors").stat().st_mtime_ns == before

    assert default_scorer(str(tmp_path / "out")) == "multiple_choice"
    measured = run(RunArguments("bbq", str(tmp_path / "out"), config="Age", limit=8), tmp_path / "run")
    assert measured.scores["n"] >= 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_model_trained_on_spans_answers_its_rule_and_is_measured_on_unqover(tmp_path, monkeypatch, capsys, kind):
    data = write_lines(tmp_path / "squad.jsonl", qa_rows(200))
    model = save_pretrained(tmp_path / "roberta-base", kind)
    options = command(data, model, tmp_path / "out", epochs=6, learning_rate=2e-3, batch_size=16, stride=8)
    printed = call(qa, options, monkeypatch, capsys)
    score = json.loads((tmp_path / "out" / "finetuning.json").read_text("utf-8"))["score"]
    assert score["exact_match"] > 0.9
    assert score["f1"] >= score["exact_match"]
    assert score["f1_answer_windows"] == score["f1"]  # each context is one window
    assert f"exact match {100 * score['exact_match']:.1f}" in printed
    assert "(Li et al. 2020, squad: 90.9)" in printed
    assert default_scorer(str(tmp_path / "out")) == "extractive_qa"
    measured = run(RunArguments("unqover", str(tmp_path / "out"), config="religion", limit=8), tmp_path / "run")
    assert measured.scores["sets"]["religion"]["coverage"] > 0


def test_data_of_an_unknown_name_need_a_recipe(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["qa", "--train", "mine.jsonl", "--dev", "mine.jsonl", "--output", "out"])
    with pytest.raises(SystemExit) as end:
        qa.main()
    assert end.value.code == 2
    assert "mine.jsonl contains neither squad nor newsqa" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("squad.jsonl", (), ("squad", "from the name", 384, "answer")),
        ("newsqa.jsonl", (), ("newsqa", "from the name", 336, "first")),
        ("mine.jsonl", ("--recipe", "newsqa"), ("newsqa", "from --recipe", 336, "first")),
        ("newsqa.jsonl", ("--recipe", "squad", "--windows", "all"), ("squad", "from --recipe", 384, "all")),
        ("newsqa.jsonl", ("--max-length", "300"), ("newsqa", "from the name", 300, "first")),
    ],
)
def test_the_authors_settings_are_the_defaults(tmp_path, monkeypatch, capsys, name, options, expected):
    passed = {}

    def record(arguments, *_, **choices):
        passed.update({**vars(arguments), **choices})
        return {"exact_match": 0.5, "f1": 0.5, "f1_answer_windows": 0.5, "n": 1}

    monkeypatch.setattr(qa, "finetune", record)
    data = str(tmp_path / name)
    command = ["--train", data, "--dev", data, "--model", "x/roberta-base", "--output", "out", *options]
    printed = call(qa, command, monkeypatch, capsys)
    recipe, how, max_length, windows = expected
    assert re.match(f"recipe {recipe} .*{how}.* of {max_length} tokens that begin 128 apart, .*: {windows}", printed)
    assert (passed["max_length"], passed["windows"], passed["stride"]) == (max_length, windows, 128)
    settings = {
        name: passed[name] for name in ("batch_size", "learning_rate", "epochs", "seed", "warmup_ratio", "keep")
    }
    assert settings == {
        **{"batch_size": 20, "learning_rate": 3e-5, "epochs": 2, "seed": 3435},
        **{"warmup_ratio": 0, "keep": "last"},
    }
    published = {"squad": "squad: 90.9", "newsqa": "newsqa: 73.8"}
    assert published[recipe] in printed


def test_the_recipe_that_bbq_links_to_is_the_default(monkeypatch, capsys):
    passed = {}

    def record(arguments, name, auto_class, parse, make_task, noted):
        passed.update({**vars(arguments), **noted, "parse": parse})
        return {"accuracy": 0.5, "n": 1}

    monkeypatch.setattr(race, "finetune", record)
    call(race, ["--output", "out"], monkeypatch, capsys)
    assert (passed["epochs"], passed["learning_rate"], passed["batch_size"], passed["max_length"]) == (3, 1e-5, 16, 512)
    assert (passed["warmup_ratio"], passed["keep"], passed["gaps"]) == (0.1, "best", "append")
    row = Row("f", 1, {**next(iter(race_rows(1))), "question": "It was _ ."})
    assert passed["parse"](row) == race.parse(row, "append")
    call(race, ["--output", "out", "--keep", "last", "--gaps", "fill"], monkeypatch, capsys)
    assert (passed["keep"], passed["parse"](row)) == ("last", race.parse(row, "fill"))


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEP)
def test_the_kept_weights_are_those_of_the_checkpoint_that_was_asked_for(tmp_path, keep):
    """Scores are written down beforehand; losses are computed here from the weights at every checkpoint."""
    examples = [race.parse(Row("f", 1, row)) for row in race_rows(24)]
    tokenizer = make_encoder_tokenizer("wordpiece")
    model = make_encoder("bert", "AutoModelForMultipleChoice", max_position_embeddings=256)
    scripted, seen = [0.2, 0.9, 0.5, 0.9, 0.1], []

    def evaluate(_):
        seen.append({name: value.detach().clone() for name, value in model.state_dict().items()})
        return {"accuracy": scripted[len(seen) - 1] if len(seen) <= len(scripted) else 0.7}

    task = replace(race.make_task(model, tokenizer, examples, examples, 64), evaluate=evaluate)
    chosen = Settings(2, 5e-2, 6, 1, seed=0, max_length=64, warmup_ratio=0, bf16=False, deterministic=False, keep=keep)
    score = train(model, tokenizer, task, chosen, {}, tmp_path / "out", save_steps=2)
    written = transformers.AutoModelForMultipleChoice.from_pretrained(tmp_path / "out").state_dict()
    *checkpoints, final = seen
    # Eight steps: four checkpoints, and the score of what is written.
    assert len(checkpoints) == (0 if keep == "last" else 4)
    assert not (tmp_path / "out" / "checkpoints").exists()

    def same(weights):
        return all(torch.equal(weights[name], value) for name, value in written.items())

    assert same(final)
    if keep == "best":
        assert [same(weights) for weights in checkpoints] == [False, True, False, False]
    if keep == "lowest-loss":
        batch = task.collate(examples)
        losses = []
        for weights in checkpoints:
            model.load_state_dict(weights)
            with torch.no_grad():
                losses.append(model.eval()(**batch).loss.item())
        assert len(set(losses)) == 4
        assert [same(weights) for weights in checkpoints] == [loss == min(losses) for loss in losses]
    assert score == {"accuracy": scripted[len(checkpoints)]}


def test_training_on_all_windows_labels_those_without_an_answer():
    tokenizer = make_encoder_tokenizer("wordpiece")
    model = make_encoder("bert", "AutoModelForQuestionAnswering")
    rows = [qa.QAExample("Mary left Ann . " * 40, "Who ?", ("Mary",), (0,))]
    counts = {kind: len(qa.make_task(model, tokenizer, rows, rows, 32, 8, kind).train) for kind in ("answer", "all")}
    assert counts["answer"] == 1
    assert counts["all"] == len(windows_of(rows, max_length=32)) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 1e-4}, "learning_rate"),
        ({"limit": 3}, "train_rows"),
        ({"save_steps": 0}, "--save-steps"),
        ({"epochs": 0}, "--epochs"),
        ({"warmup_ratio": 1}, "--warmup-ratio"),
        ({"max_length": 300}, "max_length"),
        ({"max_length": 400, "output": "fresh"}, "--max-length 400"),
        ({"model": "nowhere", "output": "fresh"}, "'nowhere'"),
    ],
)
def test_a_wrong_option_or_folder_is_one_line(tmp_path, monkeypatch, capsys, changes, message):
    data = write_lines(tmp_path / "race.jsonl", race_rows(4))
    model = save_pretrained(tmp_path / "pretrained", "bert")
    monkeypatch.chdir(tmp_path)
    begun = command(data, model, "out", epochs=1, learning_rate=1e-3, batch_size=4)
    call(race, begun, monkeypatch, capsys)
    options = [part for name, value in changes.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    with pytest.raises(SystemExit) as stop:
        call(race, [*begun, *options], monkeypatch, capsys)
    assert stop.value.code == 2
    problem, fix = capsys.readouterr().err.splitlines()[-2:]
    assert fix.startswith("  fix: ")
    assert re.match(f"error: .*{message}", problem + fix)


def test_changed_rows_and_foreign_folders_are_refused(tmp_path, monkeypatch, capsys):
    data = write_lines(tmp_path / "race.jsonl", race_rows(4))
    model = save_pretrained(tmp_path / "pretrained", "bert")
    options = command(data, model, tmp_path / "out", epochs=1)
    call(race, options, monkeypatch, capsys)
    write_lines(data, reversed(list(race_rows(4))))
    with pytest.raises(SystemExit):
        call(race, options, monkeypatch, capsys)
    assert "holds another run (train_sha256" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        call(race, command(data, model, model, epochs=1), monkeypatch, capsys)
    assert "exists and holds no run" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        call(race, ["--train", str(data), "--output", str(tmp_path / "new")], monkeypatch, capsys)
    assert "--train without --dev" in capsys.readouterr().err


def test_a_model_without_its_body_is_refused(tmp_path, monkeypatch, capsys):
    data = write_lines(tmp_path / "race.jsonl", race_rows(4))
    model = make_encoder("bert", "AutoModelForMaskedLM", max_position_embeddings=256)
    weights = {name: value for name, value in model.state_dict().items() if "layer.1" not in name}
    model.save_pretrained(tmp_path / "torn", state_dict=weights)
    make_encoder_tokenizer("wordpiece").save_pretrained(tmp_path / "torn")
    with pytest.raises(SystemExit):
        call(race, command(data, tmp_path / "torn", tmp_path / "out"), monkeypatch, capsys)
    assert "has no weights for bert.encoder.layer.1" in capsys.readouterr().err


def test_an_unfinished_checkpoint_is_not_used(tmp_path):
    assert last_checkpoint(tmp_path) is None
    for step, state in ((9, "{}"), (10, "{}"), (11, '{"cut'), (12, None)):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        if state is not None:
            (folder / "trainer_state.json").write_text(state)
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-9"]


@pytest.mark.slow
def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(tmp_path, monkeypatch, capsys, caplog):
    """Both runners train and resume by one function."""
    data = write_lines(tmp_path / "data.jsonl", qa_rows(200))
    model = save_pretrained(tmp_path / "pretrained", "bert")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

    def options(output):
        most = command(data, model, output, epochs=3, batch_size=4, gradient_accumulation=2, save_steps=20)
        return [*most, "--warmup-ratio", "0.1", "--stride", "8", "--recipe", "squad"]

    def finish(output):
        call(qa, options(output), monkeypatch, capsys)

    finish(tmp_path / "whole")
    assert "resuming" not in caplog.text
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.finetuning.qa", *options(tmp_path / "killed")],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    checkpoint = tmp_path / "killed" / "checkpoints" / "checkpoint-20" / "trainer_state.json"
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert json.loads((tmp_path / "killed" / "finetuning.json").read_text("utf-8"))["score"] is None
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    finish(tmp_path / "killed")
    assert int(re.search(r"resuming after step (\d+)", caplog.text)[1]) >= 20
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]
