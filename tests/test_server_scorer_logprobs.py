"""Letter probabilities from the first token of a server's answer, in every shape that servers give them."""

import math
import string

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from qabias.errors import QabiasError
from qabias.measuring.run import run
from qabias.planning.server import estimate_run
from qabias.runs.arguments import RunArguments
from qabias.runs.asking import asked
from qabias.scorers.base import Request
from qabias.scorers.registry import load_scorer
from qabias.scorers.server.logprobs import sum_options, top_tokens

from . import tiny_models
from .loopback_server import KEY, digest, letter_of
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = [pytest.mark.usefixtures("surroundings", "one_thread")]

LETTERS = (" A", " B", " C")


def content(named):
    """The shape of OpenAI, vLLM, SGLang and llama.cpp."""
    top = [{"token": token, "logprob": logprob, "bytes": None} for token, logprob in named]
    return {"content": [{"token": named[0][0], "logprob": named[0][1], "top_logprobs": top}], "refusal": None}


def legacy(named):
    """The shape of `/completions`."""
    return {"tokens": [named[0][0]], "token_logprobs": [named[0][1]], "top_logprobs": [dict(named)], "text_offset": [0]}


def answer(logprobs):
    return {"choices": [{"message": {"content": "A"}, "finish_reason": "length", "logprobs": logprobs}]}


def scorer(server, **options):
    return load_scorer("server", "m", scorer_options={"url": server.url, "mode": "logprobs", **options})


class LetterModel:
    """A tiny model that says how likely its next tokens are."""

    def __init__(self, shape):
        self.model, self.tokenizer = tiny_models.make_model("llama"), tiny_models.make_tokenizer()
        self.shape = shape
        self.bodies = []

    def logprobs(self, prompt):
        with torch.inference_mode():
            return self.model(torch.tensor([self.tokenizer.encode(prompt)])).logits[0, -1].double().log_softmax(-1)

    def __call__(self, path, body):
        assert path == "/v1/chat/completions"
        self.bodies.append(body)
        values, ids = self.logprobs(body["messages"][0]["content"]).topk(body["top_logprobs"])
        tokens = [self.tokenizer.decode([token]) for token in ids]
        return answer(self.shape(list(zip(tokens, values.tolist(), strict=True))))


@pytest.mark.filterwarnings("ignore:server. of")
@pytest.mark.parametrize("shape", [content, legacy])
@pytest.mark.parametrize("top", [20, 200])
def test_the_probability_of_a_letter_is_that_of_its_tokens_among_the_likeliest(serve, shape, top):
    model = LetterModel(shape)
    prompts = [f"Who was forgetful? The baker or the carpenter, {number}?" for number in range(6)]
    options = tuple(f" {letter}" for letter in string.ascii_letters)
    found = scorer(serve(model), top_logprobs=str(top)).score([Request(prompt, options) for prompt in prompts])
    some = 0
    for prompt, scores in zip(prompts, found, strict=True):
        logprobs = model.logprobs(prompt)
        least = logprobs.sort(descending=True).values[top - 1]
        for place, letter in enumerate(string.ascii_letters):
            same = [i for i in range(len(logprobs)) if model.tokenizer.decode([i]).strip() == letter]
            named = [i for i in same if logprobs[i] >= least]
            some += bool(named)
            expected = math.log(sum(math.exp(logprobs[i]) for i in named)) if named else -math.inf
            assert scores.loglikelihoods[place] == pytest.approx(expected, abs=1e-9)
            # What is not named is not more probable than the least that is, token by token.
            assert all(logprobs[i] <= least for i in same if i not in named)
        assert scores.n_tokens.tolist() == [1] * 52
        assert scores.n_bytes.tolist() == [2] * 52
    assert some
    (body,) = {tuple((name, str(value)) for name, value in body.items() if name != "messages") for body in model.bodies}
    assert dict(body) == {
        "model": "m", "max_tokens": "1", "logprobs": "True", "top_logprobs": str(top), "temperature": "0"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("top", "options", "expected"),
    [
        ([("A", 0.5), (" A", 0.2), ("B", 0.1)], LETTERS, [0.7, 0.1, 0]),
        ([("a", 0.5), ("\nB\n", 0.1), ("**", 0.3)], LETTERS, [0, 0.1, 0]),  # "a" is also a word
        ([("a", 0.5), (" the", 0.4)], LETTERS, [0, 0, 0]),
        ([("Yes", 0.5), (" yes", 0.2), ("NO", 0.1)], (" no", " maybe", " yes"), [0.1, 0, 0.7]),
        ([("May", 0.5), ("n", 0.2), ("ye", 0.1), ("", 0.1)], (" no", " maybe", " yes"), [0.2, 0.5, 0.1]),
        ([("Mar", 0.5), ("Mark", 0.2), (" M", 0.1)], ("Maria", "Mark"), [0, 0.2]),  # two names begin so
        ([("no", 0.5), ("nob", 0.2)], ("no", "nobody"), [0.5, 0.2]),
        ([("1", 0.5), ("1 ", 0.5000001)], ("1", "2"), [1, 0]),  # rounded by the server
    ],
)
def test_tokens_belong_to_options(top, options, expected):
    found = sum_options([(token, math.log(value)) for token, value in top], options)
    assert np.exp(found) == pytest.approx(expected)
    assert (found <= 0).all()


def test_an_answer_that_ends_at_once_names_no_token():
    assert top_tokens(answer({"content": []})) == []
    assert top_tokens(answer({"tokens": [], "top_logprobs": []})) == []


@pytest.mark.parametrize(
    "reply",
    [
        answer(None),
        answer({"content": None}),
        answer({"content": [{"token": "A", "logprob": -0.1, "top_logprobs": []}]}),
        answer({"content": [{"token": "A", "logprob": -0.1}]}),
        answer({"content": [{"top_logprobs": [{"token": "A", "logprob": float("nan")}]}]}),
        answer({"content": [{"top_logprobs": [{"token": "A", "logprob": None}]}]}),
        answer({"top_logprobs": None}),
        {"choices": [{"message": {"content": "A"}}]},
        {"choices": []},
        (400, {"error": {"message": "top_logprobs must be at most 5"}}, {}),
        (422, {"detail": "Unsupported fields in the request: {'logprobs'}"}, {}),
    ],
)
def test_a_server_that_gives_none_says_what_to_do(serve, reply):
    server = serve(lambda path, body: reply)
    with pytest.raises(QabiasError, match=r"top_logprobs=5; .* --ask write or --option mode=chat") as error:
        scorer(server).score([Request("q", LETTERS)])
    assert KEY not in str(error.value)


def test_other_refusals_are_those_of_any_request(serve):
    server = serve(lambda path, body: (401, {"error": {"message": "who?"}}, {}))
    with pytest.raises(QabiasError, match=r"QABIAS_API_KEY$"):
        scorer(server).score([Request("q", LETTERS)])


@pytest.mark.parametrize("options", [(" the baker", " the cook"), (" A", " can't be known"), ("", " A")])
def test_options_of_several_words_are_refused_before_anything_is_asked(serve, options):
    server = serve()
    with pytest.raises(QabiasError, match=r"reads one token, and the answer .* \(--ask letter\)"):
        scorer(server).score([Request("q", LETTERS), Request("q", options)])
    assert not server.attempts


def letter_reply(path, body):
    """The letter of the loopback server with 0.6, the next one with 0.3; one question in ten has no letter at all."""
    prompt = body["messages"][0]["content"]
    first = "ABC".index(letter_of(prompt))
    named = [("ABC"[first], math.log(0.6)), ("ABC"[first - 1], math.log(0.3)), ("The", math.log(0.05))]
    return answer(content(named[2:] if digest(prompt + "?") % 10 == 0 else named))


def test_a_run_counts_questions_whose_letters_are_not_named(serve, tmp_path):
    server = serve(letter_reply)
    arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=80, options={"url": server.url})
    arguments = asked(arguments, "letter")
    assert estimate_run(arguments).generated_tokens == 80
    with pytest.warns(UserWarning, match="none is among the 20 likeliest tokens") as told:
        result = run(arguments, tmp_path / "run")
    assert sum("likeliest" in str(warning.message) for warning in told) == 1
    assert "|format:letters@2|" in result.signature
    assert "|scorer:server+mode=logprobs+temperature=0+top_logprobs=20|" in result.signature
    answers = pq.read_table(tmp_path / "run" / "predictions").to_pylist()
    prompts = list(server.answered)
    lost = sum(digest(prompt + "?") % 10 == 0 for prompt in prompts)
    assert lost > 0
    assert [row["prediction"] for row in answers].count(-1) == lost
    assert result.scores["n_unparsed_ambig"] + result.scores["n_unparsed_disambig"] == lost
    low, high = result.scores["range"]["accuracy"]
    assert low < result.scores["accuracy"] < high
    counts = [[row["prediction"] for row in answers].count(place) for place in range(3)]
    kept = [letter_of(prompt) for prompt in prompts if digest(prompt + "?") % 10]
    assert counts == [kept.count(letter) for letter in "ABC"]
    assert {tuple(sorted(np.round(np.exp(row["loglikelihoods"]), 6))) for row in answers} == {(0, 0, 0), (0, 0.3, 0.6)}

    # From the journal, nothing is asked again.
    (tmp_path / "run" / "predictions" / "part-00000.parquet").unlink()
    with pytest.warns(UserWarning, match="likeliest"):
        again = run(arguments, tmp_path / "run")
    assert again.scores == result.scores
    assert sum(server.attempts.values()) == 80


def test_a_prompt_that_a_filter_refuses_has_no_answer(serve):
    server = serve(lambda path, body: (400, {"error": {"message": "no", "code": "content_filter"}}, {}))
    with pytest.warns(UserWarning, match="likeliest"):
        (found,) = scorer(server).score([Request("q", LETTERS)])
    assert np.isneginf(found.loglikelihoods).all()


def test_the_token_field_and_the_temperature_are_those_of_written_answers(serve):
    bodies = []
    server = serve(lambda path, body: bodies.append(body) or answer(content([("A", -0.1)])))
    options = {"token_field": "max_completion_tokens", "temperature": "none", "top_logprobs": "5", "body.seed": "1"}
    scorer(server, **options).score([Request("q", LETTERS)])
    sent = {"max_completion_tokens": 1, "logprobs": True, "top_logprobs": 5, "seed": 1}
    assert bodies == [{"model": "m", "messages": [{"role": "user", "content": "q"}], **sent}]


def test_inference_is_asked_for_its_words(serve, tmp_path):
    server = serve(lambda path, body: answer(content([("No", math.log(0.6)), ("May", math.log(0.3))])))
    options = {"url": server.url, "mode": "logprobs"}
    run(RunArguments("bbnli", "m", scorer="server", limit=8, options=options), tmp_path / "run")
    answers = pq.read_table(tmp_path / "run" / "predictions").to_pylist()
    assert {row["prediction"] for row in answers} == {0}
    assert {tuple(np.round(np.exp(row["loglikelihoods"]), 6)) for row in answers} == {(0.6, 0.3, 0.0)}
