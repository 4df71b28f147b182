"""Half of a surrogate pair, which JSON can spell and UTF-8 cannot hold: no answer with one is lost or stops a run."""

import pickle

import pyarrow.parquet as pq
import pytest

import qabias
from qabias.answers.outcomes import Written, whole
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.text_logs import batched
from qabias.logs.detect import read_log

from .batch_service import result, write

HIGH, LOW = "\ud83d", "\ude00"
"""The halves of an emoji."""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("The answer is B \U0001f600.", "The answer is B \U0001f600."),
        (f"B {HIGH}", "B \ufffd"),
        (f"{LOW} B", "\ufffd B"),
        (f"{HIGH}B{LOW}", "\ufffdB\ufffd"),
        (f"{LOW}{HIGH}", "\ufffd\ufffd"),
        (f"B {HIGH}{LOW}", "B \U0001f600"),
        (f"{HIGH}{HIGH}{LOW}", "\ufffd\U0001f600"),
    ],
)
def test_a_half_is_replaced_and_all_else_is_kept(text, kept):
    assert whole(text) == kept
    assert whole(kept) is kept


def test_a_text_that_a_model_wrote_is_whole_and_so_is_its_thinking():
    text = Written(f"B {HIGH}", "length", f"{LOW} hm")
    assert (text, text.finish, text.thinking) == ("B \ufffd", "length", "\ufffd hm")
    assert whole(text) is text
    assert pickle.loads(pickle.dumps(text)).thinking == text.thinking


@pytest.mark.parametrize(
    ("benchmark", "config", "chosen"),
    [
        ("bbq", "Age", {"format": "letters", "permutations": 3}),
        ("bbnli", "all", {}),
        ("unqover", "religion", {"format": "choose"}),
    ],
)
def test_an_answer_with_a_half_is_read_and_kept(benchmark, config, chosen):
    def model(prompts):
        return [f"A{HIGH}"] * len(prompts)

    answered = qabias.run(benchmark, model=model, name="half", config=config, limit=12, progress=False, **chosen)
    texts = [text for row in pq.read_table(answered.folder / "predictions")["outputs"].to_pylist() for text in row]
    assert set(texts) == {"A\ufffd"}


def test_an_answer_with_a_half_in_the_log_of_a_batch_is_read(tmp_path):
    body = {"model": "made-up", "choices": [{"message": {"content": f"A {HIGH}"}, "finish_reason": "stop"}]}
    write(tmp_path / "output.jsonl", [result("Age/0", 200, body)])
    log = read_log(tmp_path / "output.jsonl")
    assert [sample.text for sample in log.samples()] == ["A \ufffd"]
    found = batched(load_benchmark("bbq"), log, {"config": "Age", "source": "bundled", "format": "letters"})
    assert found.answers["outputs"].to_pylist() == [["A \ufffd"]]
