"""A function as a model: what it is asked, what it may give, and that nothing is asked twice."""

import asyncio
import functools
import math
import threading
import traceback

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

import qabias
from qabias.cli import app
from qabias.scorers.base import Request
from qabias.scorers.function import FunctionOptionScorer, FunctionTextScorer

from .loopback_server import letter_of

AGE = {"benchmark": "bbq", "config": "Age", "progress": False}


class Counted:
    """A function that knows what it was asked; it may fail at a call, counted from 0."""

    def __init__(self, answer=letter_of, fails_at=None):
        self.answer = answer
        self.fails_at = fails_at
        self.calls = []

    def __call__(self, items):
        if len(self.calls) == self.fails_at:
            self.fails_at = None
            raise ConnectionResetError("the line is cut")
        self.calls.append(list(items))
        return [self.answer(item) for item in items]

    @property
    def asked(self):
        return [item for call in self.calls for item in call]


def by_length(request):
    """Log-likelihoods that depend on prefix and option."""
    weights = np.array(
        [len(option) + len(request.prefix) % (place + 2) for place, option in enumerate(request.options)]
    )
    return np.log(weights / weights.sum())


def prompt_of(row, prompts):
    """The prompt of an example: of a set, the ambiguous context is the beginning of the other one."""
    return min((text for text in prompts if row["context"] in text and row["question"] in text), key=len)


def predictions(result):
    return pq.read_table(result.folder / "predictions")


# Answers to prompts


def test_a_function_that_always_says_c_has_the_scores_of_that():
    result = qabias.run(**AGE, model=lambda prompts: ["C"] * len(prompts), name="C", limit=200)
    assert (result.scores["n"], result.scores["share_position_2"]) == (200, 1.0)
    assert result.model == "function:C"
    assert "|format:letters@1|model:function:C|scorer:function|norm:none|" in result.signature
    assert predictions(result)["prediction"].unique().to_pylist() == [2]
    assert qabias.read(result.folder).scores["share_position_2"] == 1.0


def test_the_function_gets_what_the_prompt_format_renders_each_text_once_in_batches():
    function = Counted()
    result = qabias.run(**AGE, model=function, name="f", limit=96, option={"batch": 30})
    assert len(function.asked) == len(set(function.asked)) == 96
    assert all(0 < len(call) <= 30 for call in function.calls)
    assert "batch" not in result.signature
    rows = qabias.load("bbq", "Age", limit=96)
    for row, prediction in zip(rows, predictions(result)["prediction"].to_pylist(), strict=True):
        prompt = prompt_of(row, function.asked)
        assert all(row[answer] in prompt for answer in ("ans0", "ans1", "ans2"))
        assert "ABC"[prediction] == letter_of(prompt)
        function.asked.remove(prompt)


class Later:
    async def __call__(self, prompts):
        await asyncio.sleep(0)
        return ["A"] * len(prompts)


def always(letter, prompts):
    return (letter for _ in prompts)


@pytest.mark.parametrize(
    "function",
    [
        Later(),
        functools.partial(always, "A"),
        lambda prompts: tuple("A" for _ in prompts),
        lambda prompts: np.array(["A" for _ in prompts]),
        lambda prompts: Later()(prompts),
    ],
    ids=["async object", "partial", "tuple", "array", "gives a coroutine"],
)
def test_anything_that_can_be_called_is_a_function(function):
    result = qabias.run(**AGE, model=function, name="A", limit=16)
    assert result.scores["share_position_0"] == 1.0


# Log-likelihoods


@pytest.mark.parametrize(
    ("benchmark", "config", "ask"),
    [
        ("bbq", "Age", "answer-logprob"),
        ("bbq", "Age", "letter-logprob"),
        ("bbnli", "gender", "answer-logprob"),
        ("unqover", "religion", "answer-logprob"),
        ("unqover", "religion", "letter-logprob"),
        ("bbq_qa", "Religion_qa", "answer-logprob"),
        ("bbq_nli", "Religion_nli", "answer-logprob"),
    ],
)
def test_a_function_of_requests_is_asked_by_every_benchmark(benchmark, config, ask):
    function = Counted(by_length)
    result = qabias.run(benchmark, model=function, name="f", config=config, ask=ask, limit=32, progress=False)
    assert "|scorer:function+mode=score|" in result.signature
    assert all(isinstance(request, Request) for request in function.asked)
    assert len(set(map(repr, function.asked))) == len(function.asked) > 0
    # A function that saw them could look the right answer up.
    assert all(request.roles == {} and request.key == "" for request in function.asked)


@pytest.mark.parametrize("as_type", [list, tuple, np.array, torch.tensor, lambda values: (float(v) for v in values)])
def test_log_likelihoods_choose_the_answers(as_type):
    function = Counted(lambda request: as_type(list(by_length(request))))
    result = qabias.run(**AGE, model=function, name="f", limit=40, ask="answer-logprob")
    rows = qabias.load("bbq", "Age", limit=40)
    expected = {}
    for request in function.asked:
        expected[request.prefix] = by_length(request)
    found = predictions(result)
    for row, values in zip(rows, found["loglikelihoods"].to_pylist(), strict=True):
        wanted = expected[prompt_of(row, expected)]
        assert values == pytest.approx(wanted)
    for values, prediction in zip(found["loglikelihoods"].to_pylist(), found["prediction"].to_pylist(), strict=True):
        assert prediction == (np.argmax(values) if values.count(max(values)) == 1 else -1)


def test_bytes_are_known_and_tokens_are_not():
    request = Request("Who?", (" a", " Zoë"))
    scorer = FunctionOptionScorer("f", lambda requests: [[-2.0, -3.0] for _ in requests])
    [score] = scorer.score([request])
    assert score.n_bytes.tolist() == [2, 5]
    result = qabias.run(**AGE, model=Counted(by_length), name="f", limit=16, ask="answer-logprob", length_norm="byte")
    assert "|norm:byte|" in result.signature
    with pytest.raises(qabias.QabiasError, match="length_norm token does not work"):
        qabias.run(**AGE, model=Counted(by_length), name="f", limit=16, ask="answer-logprob", length_norm="token")


# Stopped, and gone on


@pytest.mark.parametrize("ask", ["letter", "answer-logprob"])
def test_after_an_exception_the_same_call_goes_on_and_nothing_is_asked_twice(tmp_path, ask):
    answer = letter_of if ask == "letter" else by_length
    arguments = {**AGE, "name": "f", "limit": 400, "ask": ask, "option": {"batch": 16}}
    whole = Counted(answer)
    expected = qabias.run(**arguments, model=whole)
    function = Counted(answer, fails_at=3)
    for fails_at in (3, 7, 8):
        function.fails_at = fails_at
        with pytest.raises(ConnectionResetError, match=r"^the line is cut$") as caught:
            qabias.run(**arguments, model=function, output=tmp_path / "run")
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "__call__"
    n_before = len(function.asked)
    assert 0 < n_before < len(whole.asked)
    result = qabias.run(**arguments, model=function, output=tmp_path / "run")
    asked = [item if isinstance(item, str) else (item.prefix, item.options) for item in function.asked]
    assert len(asked) == len(set(asked)) == len(whole.asked)
    assert predictions(result).equals(predictions(expected))
    qabias.run(**arguments, model=function, output=tmp_path / "run")
    assert len(function.asked) == len(asked)


def test_answers_of_one_mode_are_not_those_of_the_other(tmp_path):
    journal = tmp_path / "requests.jsonl"
    FunctionTextScorer("f", lambda prompts: ["A"] * len(prompts), journal=journal).generate(["Who?"], ["k"])
    function = Counted(lambda request: [-1.0])
    FunctionOptionScorer("f", function, journal=journal).score([Request("Who?", (" A",))])
    assert len(function.asked) == 1


# What a function may not give


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda prompts: ["A"], "1 elements for a list of 16"),
        (lambda prompts: ["A"] * 20, "20 elements for a list of 16"),
        (lambda prompts: None, "None"),
        (lambda prompts: "A" * len(prompts), "a str"),
        (lambda prompts: dict.fromkeys(prompts, "A"), "a dict"),
        (lambda prompts: 3, "a int"),
        (lambda prompts: [*["A"] * 5, None, *["A"] * 10], "item 5 of 16: .* None"),
        (lambda prompts: [["A"] for _ in prompts], "item 0 of 16: .* list"),
        (lambda prompts: [[-1.0, -2.0, -3.0] for _ in prompts], "ask="),
    ],
)
def test_answers_that_are_none_are_refused_with_their_place(function, message):
    with pytest.raises(qabias.QabiasError, match=message):
        qabias.run(**AGE, model=function, name="f", limit=16)


ODD = (0.5, math.nan, None, "-1", math.inf, [-1.0, -2.0], torch.zeros(2))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([-1.0, -2.0], "item 0 of 16: 2 log-likelihoods were given for 3 options"),
        *(([-1.0, value, -2.0], "log-likelihood of option 1 is") for value in ODD),
        (-1.0, "item 0 of 16: a float"),
        ("A", "item 0 of 16: a str"),
    ],
)
def test_log_likelihoods_that_are_none_are_refused_with_their_place(values, message):
    with pytest.raises(qabias.QabiasError, match=message):
        qabias.run(**AGE, model=lambda requests: [values] * len(requests), name="f", limit=16, ask="answer-logprob")


def test_of_a_batch_with_a_wrong_answer_nothing_is_kept(tmp_path):
    arguments = {**AGE, "name": "f", "limit": 64, "output": tmp_path / "run", "option": {"batch": 16}}
    function = Counted()
    function.answer = lambda prompt: 1 if len(function.calls) == 2 else "A"
    with pytest.raises(qabias.QabiasError, match=r"item 0 of 16: [\s\S]* is a int"):
        qabias.run(**arguments, model=function)
    again = Counted()
    qabias.run(**arguments, model=again)
    assert len(again.asked) == 48


# What makes no sense with a function


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": None}, "name="),
        ({"tokenizer": str}, "tokenizer"),
        ({"dtype": "float16", "device": "cpu", "revision": "main"}, "revision, dtype, device"),
        ({"batch_tokens": 9}, "batch_tokens"),
        ({"backend": "causal"}, "causal"),
        ({"option": {"samples": 5}}, "samples"),
        ({"option": {"mode": "scores"}}, "mode"),
        ({"option": {"batch": 0}}, "batch"),
        ({"ask": "answer-logprob", "option": {"mode": "generate"}}, "contradict"),
    ],
)
def test_what_makes_no_sense_with_a_function_is_refused(more, message):
    with pytest.raises(qabias.QabiasError, match=message):
        qabias.run(**{**AGE, "model": Counted(), "name": "f", "limit": 16, **more})


# From the command line


@pytest.mark.parametrize(
    "arguments", [("bbq", "--model", "function:x"), ("bbq", "--model", "x", "--backend", "function")]
)
def test_the_command_line_says_that_a_function_is_given_from_python(arguments):
    done = CliRunner().invoke(app, ["run", *arguments])
    assert isinstance(done.exception, qabias.QabiasError)
    assert "in Python" in str(done.exception)


def test_it_works_where_a_loop_is_running_and_all_coroutines_share_one_of_their_own():
    seen = set()

    async def function(prompts):
        seen.add((threading.current_thread().name, id(asyncio.get_running_loop())))
        await asyncio.sleep(0.001)
        return ["B"] * len(prompts)

    async def notebook():
        here = id(asyncio.get_running_loop())
        return here, qabias.run(**AGE, model=function, name="B", limit=64, option={"batch": 8})

    here, result = asyncio.run(notebook())
    assert result.scores["share_position_1"] == 1.0
    [(thread, loop)] = seen
    assert thread != threading.current_thread().name
    assert loop != here


def test_what_is_impossible_has_minus_infinity_also_after_a_stop(tmp_path):
    function = Counted(lambda request: [-math.inf, -1.0, -math.inf], fails_at=1)
    arguments = {
        **AGE,
        "name": "f",
        "limit": 40,
        "ask": "answer-logprob",
        "output": tmp_path / "run",
        "option": {"batch": 8},
    }
    with pytest.raises(ConnectionResetError):
        qabias.run(**arguments, model=function)
    result = qabias.run(**arguments, model=function)
    assert predictions(result)["prediction"].unique().to_pylist() == [1]
