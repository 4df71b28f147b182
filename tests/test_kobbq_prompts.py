"""The five prompts of KoBBQ's authors as formats."""

import csv

import pytest

from qabias.answers import parse_choice
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq.prompts import FIVE
from qabias.benchmarks.bbq.roles import in_order
from qabias.benchmarks.multilingual.kobbq import PATH, REPOSITORY, PublishedPrompts, formats
from qabias.benchmarks.multilingual.language import load_language
from qabias.errors import QabiasError
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.run import run

NAMES = [f"kobbq_{number}" for number in range(1, 6)]
EXAMPLE = {
    "context": "CONTEXT {a} {question}.",
    "question": "QUESTION?",
    "ans0": "FIRST",
    "ans1": "알 수 없음",
    "ans2": "THIRD",
    "label": 1,
    "target_loc": 0,
    "biased_loc": 2,
    "unknown_loc": 1,
    "answer_info": {f"ans{place}": ["", ""] for place in range(3)},
}


@pytest.fixture
def rows(upstream):
    with (upstream / REPOSITORY / PATH).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture
def found(upstream):
    prompts = PublishedPrompts()
    prompts.look_in(str(upstream))
    return formats(prompts)


def in_parts(row):
    """A prompt put together of the parts that the file also has one by one: another reading of it."""
    listed = "\n".join(
        f"{row[label]}{text}" for label, text in zip("abc", ("FIRST", row["unknown"], "THIRD"), strict=True)
    )
    asked = f"{row['context']}{EXAMPLE['context']}\n{row['question']}{EXAMPLE['question']}\n{listed}"
    return f"{row['instruction']}\n\n{asked}\n{row['answer']}"


def test_a_prompt_is_its_parts_with_its_wording_of_unknown(found, rows):
    assert [row["prompt_id"] for row in rows] == ["1", "2", "3", "4", "5"]
    for name, row in zip(NAMES, rows, strict=True):
        prompt, options = found[name].render(EXAMPLE)
        assert prompt == in_parts(row)
        labels = "abc" if name in ("kobbq_3", "kobbq_4") else "ABC"
        assert options == tuple(f" {label}" for label in labels)


def test_the_wording_of_unknown_goes_where_unknown_is(found, rows):
    prompt, _ = found["kobbq_2"].render(in_order(EXAMPLE, (2, 0, 1)))
    assert f"A: THIRD\nB: FIRST\nC: {rows[1]['unknown']}\n" in prompt


def test_five_is_the_set_of_them(found):
    assert list(found) == [*NAMES, FIVE]
    assert [wording.name for wording in found[FIVE].wordings] == NAMES
    assert {one.signature for one in found.values()} == {*(f"{name}@1" for name in NAMES), "five@1"}
    assert all(one.lists_answers and one.asks == ("options", "letter", "write") for one in found.values())


def test_every_wording_of_unknown_is_read_as_unknown(found, rows):
    phrases = load_language("ko").phrases
    answers = [EXAMPLE[f"ans{place}"] for place in range(3)]
    for row in rows:
        for text in (row["unknown"], f"답: {row['unknown']}", f"B: {row['unknown']}"):
            assert parse_choice(text, answers, phrases=phrases) == 1


def test_nothing_is_read_before_a_prompt_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(tmp_path))
    empty = formats(PublishedPrompts())
    assert list(empty) == [*NAMES, FIVE]
    with pytest.raises(QabiasError, match="is not in the mirror"):
        empty["kobbq_1"].render(EXAMPLE)


def test_the_mirror_of_the_user_comes_before_the_one_of_the_environment(upstream, tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(tmp_path))
    prompts = PublishedPrompts()
    prompts.look_in(str(upstream))
    prompts.look_in(None)
    assert prompts.prompt(1).labels == ("A", "B", "C")


def test_the_benchmark_asks_in_the_five_prompts_from_the_mirror_of_the_user(upstream, tmp_path, monkeypatch):
    monkeypatch.delenv("QABIAS_UPSTREAM", raising=False)
    arguments = RunArguments("kobbq", "baseline:stereotyped", config="Age", source="release", format=FIVE)
    scores = run(arguments, tmp_path / "run", Machine(upstream_dir=str(upstream))).scores
    assert scores["bias_ambig"] == 1
    assert list(scores["wordings"]) == NAMES


@pytest.mark.usefixtures("upstream")
def test_a_letter_is_what_an_instructed_prompt_of_the_set_asks_for(monkeypatch, upstream):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    benchmark = load_benchmark("kobbq")
    rows = benchmark.load("Religion", benchmark.origin("release", 0, False, None)).to_pylist()
    for name in ("letters", *NAMES):
        request = benchmark.request(rows[0], benchmark.formats[name])
        assert [benchmark.read(option, "none", rows[0]) for option in request.options] == [0, 1, 2]
