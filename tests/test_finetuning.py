"""Fine-tuning learns what it is shown, goes on where it stopped, and says what is wrong with its input."""

import csv
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from qabias.errors import QabiasError
from qabias.finetuning import qa, race
from qabias.finetuning.rows import Row, read_dataset, read_file
from qabias.finetuning.squad_scores import average, exact_match, f1
from qabias.finetuning.training import last_checkpoint
from qabias.measuring.run import run
from qabias.runs.arguments import RunArguments
from qabias.scorers.registry import default_scorer
from runners import finetune_qa, finetune_race

from .conftest import ROOT
from .tiny_models import make_encoder, make_encoder_tokenizer

NAMES = ("Mary", "James", "Ann", "Mali", "Somalia")
JOBS = ("a senator", "a boy", "a girl", "a man", "a team")
TOKENIZERS = {"bert": "wordpiece", "roberta": "bytes", "deberta-v2": "metaspace"}

pytestmark = pytest.mark.usefixtures("one_thread")


def save_pretrained(folder, kind):
    """Write a small language model without a head for what it is about to learn."""
    positions = {"bert": 256, "roberta": 257, "deberta-v2": 256}[kind]
    make_encoder(kind, "AutoModelForMaskedLM", max_position_embeddings=positions).save_pretrained(folder)
    make_encoder_tokenizer(TOKENIZERS[kind]).save_pretrained(folder)
    return str(folder)


def race_rows(n):
    """Questions whose right answer is always the nurse."""
    draw = random.Random(0)
    for _ in range(n):
        name = draw.choice(NAMES)
        options = [*draw.sample(JOBS, 3), "a nurse"]
        draw.shuffle(options)
        question = draw.choice(("Who was this?", f"{name} was _ ."))
        answer = "ABCD"[options.index("a nurse")]
        yield {"article": f"{name} got off the flight.", "question": question, "options": options, "answer": answer}


def qa_rows(n):
    """Questions whose answer is always the one who is visited."""
    draw = random.Random(0)
    for number in range(n):
        guest, host = draw.sample(NAMES, 2)
        context = f"{guest} got off the flight to visit {host}."
        answers = {"text": [host], "answer_start": [context.rindex(host)]}
        yield {"id": str(number), "context": context, "question": "Who was a nurse?", "answers": answers}


def write_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def command(data, model, output, **options):
    """Options of a runner that trains and scores on the same rows."""
    merged = {"train": data, "dev": data, "model": model, "output": output, "max_length": 64, **options}
    return [part for name, value in merged.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def call(runner, options, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{runner.__name__}.py", *options])
    runner.main()
    return capsys.readouterr().out


# Scores


@pytest.mark.parametrize(
    ("prediction", "reference", "expected_match", "expected_f1"),
    [
        ("The Eiffel Tower", "eiffel tower.", 1, 1),
        ("A man, a plan", "man plan", 1, 1),
        ("theatre", "atre", 0, 0),  # an article is a word
        ("in 1999", "1999", 0, 2 / 3),  # precision 1/2, recall 1
        ("new york new york", "new york city", 0, 4 / 7),  # shared 2: precision 2/4, recall 2/3
        ("x-ray", "xray", 1, 1),
        ("", "anything", 0, 0),
        ("Paris", "London", 0, 0),
    ],
)
def test_exact_match_and_f1_are_those_of_squad(prediction, reference, expected_match, expected_f1):
    assert exact_match(prediction, reference) == expected_match
    assert f1(prediction, reference) == pytest.approx(expected_f1)


def test_scores_take_the_reference_that_fits_best():
    references = [["in 1999", "1999"], ["Paris"]]
    assert average(exact_match, ["1999", "London"], references) == 0.5
    assert average(f1, ["the year 1999", "Paris"], references) == pytest.approx((2 / 3 + 1) / 2)


def test_published_figures_are_found_by_the_model_and_the_data():
    assert qa.published_f1("FacebookAI/roberta-base", "rajpurkar/squad") == ("squad", 90.9)
    assert qa.published_f1("distilbert-base-uncased", "data/newsqa_in_squad_form.jsonl") == ("newsqa", 65.4)
    assert qa.published_f1("microsoft/deberta-v3-base", "rajpurkar/squad") is None
    assert qa.published_f1("roberta-base", "my.jsonl") is None


# Rows of RACE


def test_race_answers_stand_in_the_gap_or_behind_the_question():
    row = next(iter(race_rows(1)))
    behind = race.parse(Row("f", 1, {**row, "question": "Who was this?"}))
    assert behind.candidates == tuple(f"Who was this? {option}" for option in row["options"])
    within = race.parse(Row("f", 1, {**row, "question": "It was _ ."}))
    assert within.candidates == tuple(f"It was {option} ." for option in row["options"])
    assert row["options"][within.label] == "a nurse"


def test_race_batch_is_the_pairs_of_the_tokenizer():
    tokenizer = make_encoder_tokenizer("wordpiece")
    examples = [race.parse(Row("f", 1, row)) for row in race_rows(3)]
    batch = race.RaceCollator(tokenizer, ["input_ids", "token_type_ids", "attention_mask"], 64)(examples)
    assert batch["labels"].tolist() == [example.label for example in examples]
    for i, option in itertools.product(range(3), range(4)):
        expected = tokenizer(examples[i].article, examples[i].candidates[option])
        real = batch["attention_mask"][i, option].bool()
        assert batch["input_ids"][i, option][real].tolist() == expected["input_ids"]
        assert batch["token_type_ids"][i, option][real].tolist() == expected["token_type_ids"]


def test_race_cuts_the_passage_and_keeps_the_answer():
    tokenizer = make_encoder_tokenizer("wordpiece")
    example = race.RaceExample("Mary left Ann . " * 30, ("Who ? Mary", "Who ? Ann", "Who ? James", "Who ? Mali"), 0)
    tokens = race.RaceCollator(tokenizer, ["input_ids"], 32)([example])["input_ids"]
    assert tokens.shape == (1, 4, 32)
    assert "james" in tokenizer.decode(tokens[0, 2])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("answer", "E", r"rows: row 7, column 'answer': 'E' is not one of A, B, C, D; give"),
        ("answer", "AB", "'AB' is not one of"),
        ("answer", 0, "column 'answer': 0 is no text"),
        ("options", ["a", "b", "c"], "column 'options': has 3 options; RACE has 4"),
        ("options", "a, b, c, d", "column 'options': 'a, b, c, d' is not JSON"),
        ("options", ["a", "b", "c", 4], "is no list of texts"),
        ("article", " ", "column 'article': ' ' is no text"),
        ("question", None, "column 'question': None is no text"),
    ],
)
def test_a_wrong_row_of_race_is_named_with_its_remedy(column, value, message):
    row = next(iter(race_rows(1)))
    with pytest.raises(QabiasError, match=message):
        race.parse(Row("rows", 7, {**row, column: value}))


def test_a_missing_column_is_named_with_those_there_are():
    with pytest.raises(QabiasError, match="row 1, column 'question': is missing among 'article', 'answer'"):
        race.parse(Row("f", 1, {"article": "x", "answer": "A"}))


# Rows of SQuAD


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"text": ["Mary"], "answer_start": [1]}, "answer_start is 1, where the context has no 'Mary'; .* at 0"),
        ({"text": ["Maria"], "answer_start": [0]}, "no 'Maria'; fix the text or remove the row"),
        ({"text": ["Mary"], "answer_start": [-4]}, "answer_start is -4"),
        ({"text": ["Mary"], "answer_start": [0, 5]}, "has 1 texts and 2 starts"),
        ({"text": [], "answer_start": []}, "has 0 texts"),
        ({"text": [""], "answer_start": [0]}, "'' is no answer"),
        ({"text": "Mary", "answer_start": 0}, "is no object of lists"),
        (["Mary"], "is no object of lists"),
        ("Mary", "'Mary' is not JSON"),
    ],
)
def test_a_wrong_answer_of_squad_is_named_with_its_remedy(answers, message):
    with pytest.raises(QabiasError, match=f"rows: row 3, column 'answers': .*{message}"):
        qa.parse(Row("rows", 3, {"context": "Mary left.", "question": "Who?", "answers": answers}))


def windows_of(examples, kind="wordpiece", max_length=64, stride=8):
    return qa.make_windows(examples, make_encoder_tokenizer(kind), ["input_ids"], max_length, stride)


WORDS = st.lists(st.sampled_from((*NAMES, "left", "the", "flight,", "Zbigniewa.", "naïve", "  ", "über")), min_size=4)


@settings(max_examples=60, deadline=None)
@given(words=WORDS, kind=st.sampled_from(sorted(TOKENIZERS.values())), data=st.data())
def test_the_labelled_tokens_spell_the_answer(words, kind, data):
    context = " ".join(words)
    starts = [
        place for place, word in zip(itertools.accumulate((len(w) + 1 for w in words), initial=0), words, strict=False)
    ]
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, min(first + 2, len(words) - 1)))
    answer = context[starts[first] : starts[last] + len(words[last])]
    start = starts[first] + len(answer) - len(answer.lstrip())
    answer = answer.strip()
    if not answer:
        return
    example = qa.QAExample(context, "Who left?", (answer,), (start,))
    windows = windows_of([example], kind, max_length=32)
    assert {
        int(place)
        for window in windows
        for place in np.concatenate([np.arange(a, b) for a, b in window.offsets if a >= 0] or [[]])
    } >= {place for place, sign in enumerate(context) if not sign.isspace()}
    for window in windows:
        if window.holds_answer:
            spelt = context[window.offsets[window.start, 0] : window.offsets[window.end, 1]]
            assert spelt.strip() == answer
        else:
            assert (window.start, window.end) == (0, 0)
            seen = window.offsets[window.offsets[:, 0] >= 0]
            assert not (seen[:, 0].min() <= start and start + len(answer) <= seen[:, 1].max())


def test_a_window_is_labelled_with_the_first_reference_that_lies_in_it():
    context = "Mary left Ann . " * 12 + "James left Mali . " + "Mary left Ann . " * 12 + "Somalia"
    answers = ("Somalia", "Mali", "James")
    example = qa.QAExample(context, "Who ?", answers, tuple(context.index(answer) for answer in answers))
    windows = windows_of([example], max_length=32)
    spelt = []
    for window in windows:
        assert window.holds_answer == (window.start > 0)
        if window.holds_answer:
            spelt.append(context[window.offsets[window.start, 0] : window.offsets[window.end, 1]])
    assert len(spelt) < len(windows)
    # "Mali" stands behind "James" in the text and before it among the references.
    assert set(spelt) == {"Mali", "Somalia"}
    tokenizer, model = make_encoder_tokenizer("wordpiece"), make_encoder("bert")
    trained_on = qa.make_task(model, tokenizer, [example], [example], 32, 8, "answer").train
    assert len(trained_on) == len(spelt)
    assert all(window.start > 0 for window in trained_on)


def test_neighbouring_windows_share_the_stride_and_fill_the_length():
    example = qa.QAExample("Mary left Ann . " * 40, "Who ?", ("Mary",), (0,))
    windows = windows_of([example], max_length=32, stride=8)
    seen = [window.offsets[window.offsets[:, 0] >= 0] for window in windows]
    assert all(len(window.inputs["input_ids"]) == 32 for window in windows[:-1])
    for before, after in itertools.pairwise(seen):
        assert (before[-8:] == after[:8]).all()
    assert [window.holds_answer for window in windows] == [True] + [False] * (len(windows) - 1)


def test_a_question_without_room_for_a_context_is_refused():
    example = qa.QAExample("Mary left.", "Who ? " * 20, ("Mary",), (0,))
    with pytest.raises(QabiasError, match=r"question 'Who \? .*: its 40 tokens leave no room .* --max-length"):
        windows_of([example], max_length=32)


def test_the_answer_is_the_best_span_of_all_windows():
    words = [random.Random(0).choice(NAMES) for _ in range(90)]
    example = qa.QAExample(" ".join(words), "Who ?", (words[0],), (0,))
    windows = windows_of([example], max_length=48, stride=8)
    assert len(windows) > 2
    draw = np.random.default_rng(0)
    starts, ends = draw.normal(size=(2, len(windows), 48)).astype(np.float32)
    # By definition, one span after the other.
    best = max(
        (float(starts[w, i]) + float(ends[w, j]), example.context[window.offsets[i, 0] : window.offsets[j, 1]])
        for w, window in enumerate(windows)
        for i, j in itertools.product(range(len(window.offsets)), repeat=2)
        if i <= j < i + 30 and window.offsets[i, 0] >= 0 and window.offsets[j, 0] >= 0
    )
    assert qa.best_answers([example], windows, starts, ends) == [best[1]]


def test_a_span_outside_the_context_backwards_or_too_long_is_no_answer():
    example = qa.QAExample("Mary left Ann . " * 12, "Who ?", ("Mary",), (0,))
    (window,) = windows_of([example], max_length=64)
    first = int(np.flatnonzero(window.offsets[:, 0] >= 0)[0]) + 5
    starts, ends = np.full((2, 1, 64), -50.0)
    starts[0, 0] = ends[0, 0] = 90  # the classification token
    starts[0, first] = 5
    ends[0, first - 1] = 40  # backwards
    ends[0, first + 29] = 4  # 30 tokens
    ends[0, first + 30] = 4.5  # 31 tokens
    expected = example.context[window.offsets[first, 0] : window.offsets[first + 29, 1]]
    assert qa.best_answers([example], [window], starts, ends) == [expected]


# Files


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize(("rows", "parse"), [(race_rows, race.parse), (qa_rows, qa.parse)])
def test_every_kind_of_file_gives_the_same_rows(tmp_path, suffix, rows, parse):
    expected = [parse(Row("f", 1, row)) for row in rows(5)]
    path = tmp_path / f"rows{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows(5))), path)
    elif suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(lines, next(iter(rows(1))))
            writer.writeheader()
            for row in rows(5):
                writer.writerow({key: cell if isinstance(cell, str) else json.dumps(cell) for key, cell in row.items()})
    else:
        write_lines(path, rows(5))
    found = read_file(path)
    assert [parse(row) for row in found] == expected
    assert [row.number for row in read_file(path, limit=2)] == [1, 2]
    dataset = tmp_path / "dataset"
    dataset.mkdir()
    if suffix == ".parquet":
        path.rename(dataset / "train-00000-of-00001.parquet")
        assert [parse(row) for row in read_dataset(str(dataset), None, "train")] == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"x", "must end in one of .*jsonl"),
        ("a.jsonl", b"", "has no rows"),
        ("a.jsonl", b'{"a": 1}\n{"a"\n', "line 2 is not JSON"),
        ("a.jsonl", b"[1]\n", "line 1 is no object"),
        ("a.jsonl", b"\xff\xfe", "UTF-8"),
        ("a.parquet", b"x", "not readable as parquet"),
    ],
)
def test_a_wrong_file_is_named_with_its_remedy(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(QabiasError, match=f"{name}: .*{message}"):
        read_file(path)
    path.unlink()
    with pytest.raises(QabiasError, match=name):
        read_file(path)


def test_a_dataset_that_cannot_be_had_is_named():
    with pytest.raises(QabiasError, match="dataset 'nobody/nothing' cannot be loaded"):
        read_dataset("nobody/nothing", None, "train")


# Training


@pytest.mark.parametrize(
    ("kind", "epochs"), [("bert", 5), ("roberta", 5), pytest.param("deberta-v2", 20, marks=pytest.mark.slow)]
)
def test_a_model_trained_on_race_answers_its_rule_and_is_measured_on_bbq(tmp_path, monkeypatch, capsys, kind, epochs):
    data = write_lines(tmp_path / "race.jsonl", race_rows(200))
    model = save_pretrained(tmp_path / "pretrained", kind)
    options = command(data, model, tmp_path / "out", epochs=epochs, learning_rate=2e-3, batch_size=16)
    printed = call(finetune_race, options, monkeypatch, capsys)
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
    assert call(finetune_race, options, monkeypatch, capsys).splitlines() == printed.splitlines()[-1:]
    assert (tmp_path / "out" / "model.safetensors").stat().st_mtime_ns == before

    assert default_scorer(str(tmp_path / "out")) == "multiple_choice"
    measured = run(RunArguments("bbq", str(tmp_path / "out"), config="Age", limit=8), tmp_path / "run")
    assert measured.scores["n"] >= 8


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_model_trained_on_spans_answers_its_rule_and_is_measured_on_unqover(tmp_path, monkeypatch, capsys, kind):
    data = write_lines(tmp_path / "squad.jsonl", qa_rows(200))
    model = save_pretrained(tmp_path / "roberta-base", kind)
    options = command(data, model, tmp_path / "out", epochs=6, learning_rate=2e-3, batch_size=16, stride=8)
    printed = call(finetune_qa, options, monkeypatch, capsys)
    score = json.loads((tmp_path / "out" / "finetuning.json").read_text("utf-8"))["score"]
    assert score["exact_match"] > 0.9
    assert score["f1"] >= score["exact_match"]
    assert score["f1_answer_windows"] == score["f1"]  # each context is one window
    assert f"exact match {100 * score['exact_match']:.1f}" in printed
    assert "(Li et al. 2020, squad: 90.9)" in printed
    assert default_scorer(str(tmp_path / "out")) == "extractive_qa"
    measured = run(RunArguments("unqover", str(tmp_path / "out"), config="religion", limit=8), tmp_path / "run")
    assert measured.scores["sets"]["religion"]["coverage"] > 0


def test_training_on_all_windows_labels_those_without_an_answer():
    tokenizer = make_encoder_tokenizer("wordpiece")
    model = make_encoder("bert", "AutoModelForQuestionAnswering")
    rows = [qa.QAExample("Mary left Ann . " * 40, "Who ?", ("Mary",), (0,))]
    counts = {kind: len(qa.make_task(model, tokenizer, rows, rows, 32, 8, kind).train) for kind in ("answer", "all")}
    assert counts["answer"] == 1
    assert counts["all"] == len(windows_of(rows, max_length=32)) > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 1e-4}, r"holds another run \(learning_rate 0.001 there, 0.0001 here\)"),
        ({"limit": 3}, "train_rows 4 there, 3 here"),
        ({"save_steps": 0}, "--save-steps is 0"),
        ({"epochs": 0}, "--epochs is 0"),
        ({"warmup_ratio": 1}, "--warmup-ratio is 1.0"),
        ({"max_length": 300}, "holds another run"),
        ({"max_length": 300, "output": "fresh"}, "--max-length 300 is more than the 256 tokens"),
        ({"model": "nowhere", "output": "fresh"}, "model 'nowhere' cannot be loaded"),
    ],
)
def test_a_wrong_option_or_folder_is_one_line(tmp_path, monkeypatch, capsys, changes, message):
    data = write_lines(tmp_path / "race.jsonl", race_rows(4))
    model = save_pretrained(tmp_path / "pretrained", "bert")
    monkeypatch.chdir(tmp_path)
    begun = command(data, model, "out", epochs=1, learning_rate=1e-3, batch_size=4)
    call(finetune_race, begun, monkeypatch, capsys)
    options = [part for name, value in changes.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    with pytest.raises(SystemExit) as stop:
        call(finetune_race, [*begun, *options], monkeypatch, capsys)
    assert stop.value.code == 2
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert re.match(f"finetune_race: error: .*{message}", last_line)


def test_changed_rows_and_foreign_folders_are_refused(tmp_path, monkeypatch, capsys):
    data = write_lines(tmp_path / "race.jsonl", race_rows(4))
    model = save_pretrained(tmp_path / "pretrained", "bert")
    options = command(data, model, tmp_path / "out", epochs=1)
    call(finetune_race, options, monkeypatch, capsys)
    write_lines(data, reversed(list(race_rows(4))))
    with pytest.raises(SystemExit):
        call(finetune_race, options, monkeypatch, capsys)
    assert "holds another run (train_sha256" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        call(finetune_race, command(data, model, model, epochs=1), monkeypatch, capsys)
    assert "exists and holds no run" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        call(finetune_race, ["--train", str(data), "--output", str(tmp_path / "new")], monkeypatch, capsys)
    assert "--train and --dev go together" in capsys.readouterr().err


def test_a_model_without_its_body_is_refused(tmp_path, monkeypatch, capsys):
    data = write_lines(tmp_path / "race.jsonl", race_rows(4))
    model = make_encoder("bert", "AutoModelForMaskedLM", max_position_embeddings=256)
    weights = {name: value for name, value in model.state_dict().items() if "layer.1" not in name}
    model.save_pretrained(tmp_path / "torn", state_dict=weights)
    make_encoder_tokenizer("wordpiece").save_pretrained(tmp_path / "torn")
    with pytest.raises(SystemExit):
        call(finetune_race, command(data, tmp_path / "torn", tmp_path / "out"), monkeypatch, capsys)
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
@pytest.mark.parametrize(("runner", "rows"), [("finetune_race", race_rows), ("finetune_qa", qa_rows)])
def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(tmp_path, runner, rows):
    data = write_lines(tmp_path / "data.jsonl", rows(200))
    model = save_pretrained(tmp_path / "pretrained", "bert")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

    def start(output):
        options = command(data, model, output, epochs=3, batch_size=4, gradient_accumulation=2, save_steps=20)
        extra = ["--stride", "8"] if runner == "finetune_qa" else []
        return subprocess.Popen(
            [sys.executable, ROOT / "runners" / f"{runner}.py", *options, "--warmup-ratio", "0.1", *extra],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    whole = start(tmp_path / "whole")
    assert "going on" not in whole.communicate()[1]
    assert whole.returncode == 0
    process = start(tmp_path / "killed")
    checkpoint = tmp_path / "killed" / "checkpoints" / "checkpoint-20" / "trainer_state.json"
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert json.loads((tmp_path / "killed" / "finetuning.json").read_text("utf-8"))["score"] is None
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    resumed = start(tmp_path / "killed")
    assert int(re.search(r"going on after step (\d+)", resumed.communicate()[1])[1]) >= 20
    assert resumed.returncode == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["finetune_race", "finetune_qa"])
def test_help_names_every_option_with_its_default(runner):
    printed = subprocess.run(
        [sys.executable, ROOT / "runners" / f"{runner}.py", "--help"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout
    for option in ("--model", "--dataset", "--train", "--output", "--learning-rate", "--bf16", "--save-steps"):
        assert option in printed
    assert ("default: 1e-05" if runner == "finetune_race" else "default: 384") in printed
