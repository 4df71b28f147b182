"""What fine-tuning reads: rows, windows, files and scores, and what it says of wrong ones."""

import csv
import itertools
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.finetuning import qa, race
from lab.finetuning.rows import Row, read_dataset, read_file
from qabias.benchmarks.bbq.prompts import FORMATS
from qabias.errors import QabiasError

from ..tiny_models import make_encoder, make_encoder_tokenizer
from .training_rows import NAMES, TOKENIZERS, qa_rows, race_rows, windows_of, write_lines

pytestmark = pytest.mark.usefixtures("one_thread")


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
    assert qa.exact_match(prediction, reference) == expected_match
    assert qa.f1(prediction, reference) == pytest.approx(expected_f1)


def test_scores_take_the_reference_that_fits_best():
    references = [["in 1999", "1999"], ["Paris"]]
    assert qa.average(qa.exact_match, ["1999", "London"], references) == 0.5
    assert qa.average(qa.f1, ["the year 1999", "Paris"], references) == pytest.approx((2 / 3 + 1) / 2)


def test_published_figures_are_found_by_the_model_and_the_data():
    assert qa.published_f1("FacebookAI/roberta-base", "rajpurkar/squad") == ("squad", 90.9)
    assert qa.published_f1("distilbert-base-uncased", "data/newsqa_in_squad_form.jsonl") == ("newsqa", 65.4)
    assert qa.published_f1("microsoft/deberta-v3-base", "rajpurkar/squad") is None
    assert qa.published_f1("roberta-base", "my.jsonl") is None


# Rows of RACE


def test_race_answers_stand_behind_the_question_or_in_its_gap():
    row = next(iter(race_rows(1)))
    for gaps in race.GAPS:
        behind = race.parse(Row("f", 1, {**row, "question": "Who was this?"}), gaps)
        assert behind.candidates == tuple(f"Who was this? {option}" for option in row["options"])
    asked = Row("f", 1, {**row, "question": "It was _ ."})
    assert race.parse(asked).candidates == tuple(f"It was _ . {option}" for option in row["options"])
    within = race.parse(asked, "fill")
    assert within.candidates == tuple(f"It was {option} ." for option in row["options"])
    assert row["options"][within.label] == "a nurse"


def test_bbq_asks_in_pairs_as_race_is_trained():
    example = {"context": "Ann met Mary.", "question": "Who _ left?", "ans0": "Ann", "ans1": "Mary", "ans2": "Unknown"}
    answers = [example[f"ans{number}"] for number in range(3)]
    row = {"article": example["context"], "question": example["question"], "options": [*answers, "Nobody"]}
    trained = race.parse(Row("f", 1, {**row, "answer": "A"}))
    context, options = FORMATS["pair"].render(example)
    # The scorer takes the space before an option off.
    assert (context, tuple(option.strip() for option in options)) == (trained.article, trained.candidates[:3])


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
        ("answer", "E", "row 7, column 'answer': 'E'"),
        ("answer", "AB", "column 'answer': 'AB'"),
        ("answer", 0, "column 'answer': 0"),
        ("options", ["a", "b", "c"], "column 'options'"),
        ("options", "a, b, c, d", "column 'options'"),
        ("options", ["a", "b", "c", 4], "column 'options'"),
        ("article", " ", "column 'article'"),
        ("question", None, "column 'question'"),
    ],
)
def test_a_wrong_row_of_race_is_named_with_its_remedy(column, value, message):
    row = next(iter(race_rows(1)))
    with pytest.raises(QabiasError, match=message):
        race.parse(Row("rows", 7, {**row, column: value}))


def test_a_missing_column_is_named_with_those_there_are():
    with pytest.raises(QabiasError, match="row 1, column 'question'"):
        race.parse(Row("f", 1, {"article": "x", "answer": "A"}))


# Rows of SQuAD


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"text": ["Mary"], "answer_start": [1]}, "answer_start 1\n  fix: use 0"),
        ({"text": ["Maria"], "answer_start": [0]}, "no 'Maria' .*\n  fix: .*remove the row"),
        ({"text": ["Mary"], "answer_start": [-4]}, "answer_start -4"),
        ({"text": ["Mary"], "answer_start": [0, 5]}, "has 1 texts and 2 starts"),
        ({"text": [], "answer_start": []}, "has 0 texts"),
        ({"text": [""], "answer_start": [0]}, "'' is not an answer"),
        ({"text": "Mary", "answer_start": 0}, "is not an object of lists"),
        (["Mary"], "is not an object of lists"),
        ("Mary", "'Mary' is not JSON"),
    ],
)
def test_a_wrong_answer_of_squad_is_named_with_its_remedy(answers, message):
    with pytest.raises(QabiasError, match=f"rows: row 3, column 'answers': .*{message}"):
        qa.parse(Row("rows", 3, {"context": "Mary left.", "question": "Who?", "answers": answers}))


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


def test_windows_begin_a_stride_apart_and_fill_the_length_whatever_the_question():
    tokenizer = make_encoder_tokenizer("wordpiece")
    context = "Mary left Ann . " * 40
    characters = tokenizer(context, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    questions = ("Who ?", "Who left the senator ?", "Who ? " * 3)
    examples = [qa.QAExample(context, question, ("Mary",), (0,)) for question in questions]
    windows = windows_of(examples, max_length=32, stride=8)
    assert [window.example for window in windows] == sorted(window.example for window in windows)
    for number, question in enumerate(questions):
        room = 32 - 3 - len(tokenizer.tokenize(question))
        starts = range(0, len(characters) - room + 8, 8)
        seen = [window.offsets[window.offsets[:, 0] >= 0].tolist() for window in windows if window.example == number]
        assert seen == [[list(place) for place in characters[start : start + room]] for start in starts]
        assert seen[-1][-1] == list(characters[-1])
    held = [window.holds_answer for window in windows if window.example == 0]
    assert held == [True] + [False] * (len(held) - 1)


def test_the_first_window_that_holds_the_answer_is_that_of_the_authors_own_code():
    """Their rule by itself: steps of a stride until the window reaches behind the answer."""
    tokenizer = make_encoder_tokenizer("wordpiece")
    context = "Mary left Ann . " * 12 + "James left Mali . " + "Mary left Ann . " * 12
    answer = context.index("Mali")
    example = qa.QAExample(context, "Who ?", ("Mali",), (answer,))
    characters = tokenizer(context, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    last = max(i for i, (start, _) in enumerate(characters) if start < answer + len("Mali"))
    room, start = 32 - 3 - len(tokenizer.tokenize("Who ?")), 0
    while last >= start + room:
        start += 8
    model = make_encoder("bert")
    (window,) = qa.make_task(model, tokenizer, [example], [example], 32, 8, "first").train
    seen = window.offsets[window.offsets[:, 0] >= 0].tolist()
    assert seen == [list(place) for place in characters[start : start + room]]
    assert context[window.offsets[window.start, 0] : window.offsets[window.end, 1]] == "Mali"
    assert len(qa.make_task(model, tokenizer, [example], [example], 32, 8, "answer").train) > 1


def test_a_stride_of_nothing_is_refused():
    with pytest.raises(QabiasError, match="--stride is 0"):
        windows_of([qa.QAExample("Mary left.", "Who ?", ("Mary",), (0,))], stride=0)


def test_a_question_without_room_for_a_context_is_refused():
    example = qa.QAExample("Mary left.", "Who ? " * 20, ("Mary",), (0,))
    with pytest.raises(QabiasError, match=r"question 'Who \? .*: its 40 tokens leave less than .*\n.* --max-length"):
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
    assert [parse(row) for row in read_file(path)] == expected
    assert [row.number for row in read_file(path, limit=2)] == [1, 2]
    dataset = tmp_path / "dataset"
    dataset.mkdir()
    if suffix == ".parquet":
        path.rename(dataset / "train-00000-of-00001.parquet")
        assert [parse(row) for row in read_dataset(str(dataset), None, "train")] == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"x", r"(?s:.*)ends in one of .*jsonl"),
        ("a.csv", b"", "has no rows"),
        ("a.jsonl", b'{"a": 1}\n{"a"\n', "not readable as jsonl"),
        ("a.jsonl", b"[1]\n", "a row is no object"),
        ("a.csv", b"\xff\xfe", "UTF-8"),
        ("a.parquet", b"x", "not readable as parquet"),
    ],
)
def test_a_wrong_file_is_named_with_its_remedy(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(QabiasError, match=f"{name}.* .*{message}"):
        read_file(path)
    path.unlink()
    with pytest.raises(QabiasError, match=name):
        read_file(path)


def test_a_dataset_that_cannot_be_had_is_named():
    with pytest.raises(QabiasError, match="dataset 'nobody/nothing' cannot be loaded"):
        read_dataset("nobody/nothing", None, "train")
