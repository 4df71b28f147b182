"""Letter probabilities from the first token of a server's answer, in every shape that servers give them."""

import json
import math
import re
import string

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from qabias.errors import QabiasError
from qabias.planning import estimate_run
from qabias.runs.run import run
from qabias.scorers.base import Request
from qabias.scorers.registry import load_scorer
from qabias.scorers.server.modes import sum_options

from . import tiny_models
from .loopback_server import KEY, digest, letter_of, served
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
    return load_scorer("server", "m", scorer_options={"base_url": server.url, "mode": "logprobs", **options})


def letter_in(token):
    """The letter that is all of a token but for spaces and marks; "" where there is none. `<s>` is no letter."""
    found = re.fullmatch(r"[^\w<>]*([A-Za-z])[^\w<>]*", token)
    return found[1] if found else ""


class LetterModel:
    """A tiny model that says how likely its next tokens are, letters more so than a random model would."""

    def __init__(self, shape):
        self.model, self.tokenizer = tiny_models.make_model("llama"), tiny_models.make_tokenizer()
        self.letters = [letter_in(self.tokenizer.decode([token])) for token in range(len(self.tokenizer))]
        self.liking = torch.tensor([float(letter != "") for letter in self.letters])
        self.shape = shape
        self.bodies = []

    def logprobs(self, prompt):
        with torch.inference_mode():
            logits = self.model(torch.tensor([self.tokenizer.encode(prompt)])).logits[0, -1].double()
        return (3 * logits + self.liking).log_softmax(-1)

    def __call__(self, path, body):
        assert path == "/v1/chat/completions"
        self.bodies.append(body)
        values, ids = self.logprobs(body["messages"][0]["content"]).topk(body["top_logprobs"])
        tokens = [self.tokenizer.decode([token]) for token in ids]
        return answer(self.shape(list(zip(tokens, values.tolist(), strict=True))))


@pytest.mark.filterwarnings("ignore:server. after")
@pytest.mark.parametrize("shape", [content, legacy])
@pytest.mark.parametrize("top", [20, 200])
def test_the_probability_of_a_letter_is_that_of_its_tokens_among_the_likeliest(serve, shape, top):
    model = LetterModel(shape)
    prompts = [f"Who was forgetful? The baker or the carpenter, {number}?" for number in range(12)]
    options = tuple(f" {letter}" for letter in string.ascii_letters)
    found = scorer(serve(model), top_logprobs=str(top)).score([Request(prompt, options) for prompt in prompts])
    answered = []
    for prompt, scores in zip(prompts, found, strict=True):
        logprobs = model.logprobs(prompt)
        least = logprobs.sort(descending=True).values[top - 1]
        share = sum(math.exp(logprobs[i]) for i, letter in enumerate(model.letters) if letter and logprobs[i] >= least)
        answered.append(share >= 0.5)
        if share < 0.5:
            assert np.isneginf(scores.loglikelihoods).all()
            continue
        for place, letter in enumerate(string.ascii_letters):
            same = [i for i, other in enumerate(model.letters) if other == letter]
            named = [i for i in same if logprobs[i] >= least]
            expected = math.log(sum(math.exp(logprobs[i]) for i in named)) if named else -math.inf
            assert scores.loglikelihoods[place] == pytest.approx(expected, abs=1e-9)
            # What is not named is not more probable than the least that is, token by token.
            assert all(logprobs[i] <= least for i in same if i not in named)
        assert scores.n_tokens.tolist() == [1] * 52
        assert scores.n_bytes.tolist() == [2] * 52
    assert 0 < sum(answered) < len(prompts)
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
        ([("(A", 0.5), ("**A", 0.2), ("B", 0.1)], LETTERS, [0.7, 0.1, 0]),
        ([("A.", 0.3), (' "B"', 0.2), ("\n* B:", 0.1), ("(C)", 0.1), ("“C”,", 0.1)], LETTERS, [0.3, 0.3, 0.2]),
        ([("(", 0.5), ("**", 0.3), ("AB", 0.1), ("A/B", 0.05)], LETTERS, [0, 0, 0]),
        ([("(a)", 0.5), ("A", 0.2)], ("(a)", "(b)"), [0.5, 0]),
        ([("**Yes", 0.5), ("No.", 0.2), ("**", 0.1)], (" no", " maybe", " yes"), [0.2, 0, 0.5]),
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


def in_bytes(text):
    """A token in a byte-level vocabulary, such as "ĠA"."""
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
    return spell(text)[0][0] if text else ""


SPELLINGS = {
    "bytes": in_bytes,
    "pieces": lambda text: text.replace(" ", "▁").replace("\n", "<0x0A>"),
    "byte pieces": lambda text: "".join(f"<0x{byte:02X}>" for byte in text.encode()),
    "ends of words": lambda text: f"{text}</w>",
    "read as Latin": lambda text: in_bytes(text).encode().decode("latin-1"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(st.lists(st.text("ABCąäč예한 \n\t\xa0.(*", max_size=4), max_size=8, unique=True))
@settings(max_examples=100, deadline=None)
def test_a_token_spelled_as_in_its_vocabulary_is_its_text(spelling, tokens):
    options = (" A", " B", " ä", " 예", " ą")
    named = [(token, math.log((i + 1) / 99)) for i, token in enumerate(tokens)]
    spelled = [(SPELLINGS[spelling](token), value) for token, value in named]
    assert np.exp(sum_options(spelled, options)) == pytest.approx(np.exp(sum_options(named, options)))


@pytest.mark.parametrize("shape", [content, legacy])
@pytest.mark.parametrize(
    ("top", "cause"),
    [
        ([("A", None), ("B", math.log(0.9))], ""),
        ([("A", "-0.1"), ("B", float("-inf")), ("C", -(10**400))], ""),
        ([("A", None), ("B", None)], "gives no log-probabilities"),
        ([("A", True), ("B", -1.0)], "not a number"),
        ([("A", "high"), ("B", -1.0)], "not a number"),
        ([("A", [-1.0]), ("B", -1.0)], "not a number"),
        ([("A", float("nan")), ("B", -1.0)], "not a number"),
        ([("A", 0.7), ("B", -1.0)], "above 0"),
        ([("A", 10**400), ("B", -1.0)], "above 0"),
        ([("A", float("inf")), ("B", -1.0)], "above 0"),
        ([(f"A{'.' * i}", -0.01) for i in range(1000)], "sum to 990"),
        ([("token_id:32", -0.1), ("token_id:33", -3.0)], "without texts"),
    ],
)
def test_odd_log_probabilities_are_read_or_refused_by_their_cause(serve, shape, top, cause):
    asked = scorer(serve(lambda path, body: answer(shape(top))))
    if cause:
        with pytest.raises(QabiasError, match=f"^server: .*{cause}"):
            asked.score([Request("q", LETTERS)])
    else:
        (found,) = asked.score([Request("q", LETTERS)])
        assert 0.9 <= np.exp(found.loglikelihoods).sum() <= 1


@pytest.mark.parametrize("entry", [{"logprob": -0.1}, {"token": 32, "logprob": -0.1}, {"token": None, "logprob": -0.1}])
def test_tokens_without_a_text_are_refused(serve, entry):
    named = {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": [entry]}]}
    with pytest.raises(QabiasError, match="without texts"):
        scorer(serve(lambda path, body: answer(named))).score([Request("q", LETTERS)])


def test_letters_that_together_hold_less_than_half_are_no_answer(serve):
    replies = {
        "thinks": [("<think>", math.log(0.9)), ("A", math.log(0.09))],
        "says more": [("The", math.log(0.51)), ("A", math.log(0.3)), ("B", math.log(0.19))],
        "says A": [("A", math.log(0.6))],
        "says nothing": [],
    }
    named = {prompt: content(top) if top else {"content": []} for prompt, top in replies.items()}
    asked_one = scorer(serve(lambda path, body: answer(named[body["messages"][0]["content"]])))
    prompts = [Request(prompt, LETTERS) for prompt in replies]
    with pytest.warns(UserWarning, match=r"3 of 4 prompts") as warned:
        found, _ = asked_one.score(prompts), asked_one.score(prompts)  # once is enough, the scores count them
    assert len(warned) == 1
    assert [np.isneginf(scores.loglikelihoods).all() for scores in found] == [True, True, False, True]


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
        (400, {"error": {"message": "top_logprobs must be at most 5"}}, {}),
        (422, {"detail": "Unsupported fields in the request: {'logprobs'}"}, {}),
    ],
)
def test_a_server_that_gives_none_says_what_to_do(serve, reply):
    server = serve(lambda path, body: reply)
    with pytest.raises(QabiasError, match=r"top_logprobs=5") as error:
        scorer(server).score([Request("q", LETTERS)])
    assert KEY not in str(error.value)


@pytest.mark.parametrize("options", [(" the baker", " the cook"), (" A", " can't be known"), ("", " A")])
def test_options_of_several_words_are_refused_before_anything_is_asked(serve, options):
    server = serve()
    with pytest.raises(QabiasError, match=r"ask letter-logprob"):
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
    arguments = served(server, 80)
    arguments = arguments.resolve(ask="letter-logprob")
    assert estimate_run(arguments).generated_tokens == 80
    with pytest.warns(UserWarning, match="of 80 prompts .* 20 likeliest") as told:
        result = run(arguments, tmp_path / "run")
    assert sum("likeliest" in str(warning.message) for warning in told) == 1
    assert "|format:letters@1|" in result.signature
    assert "|scorer:server+mode=logprobs+temperature=0+top_logprobs=20|" in result.signature
    answers = pq.read_table(tmp_path / "run" / "predictions").to_pylist()
    prompts = list(server.answered)
    lost = sum(digest(prompt + "?") % 10 == 0 for prompt in prompts)
    assert lost > 0
    assert [row["prediction"] for row in answers].count(-1) == lost
    assert result.scores["n_unparsed_ambig"] + result.scores["n_unparsed_disambig"] == lost
    kept = [letter_of(prompt) for prompt in prompts if digest(prompt + "?") % 10]
    assert [[row["prediction"] for row in answers].count(place) for place in range(3)] == [*map(kept.count, "ABC")]
    assert {tuple(sorted(np.round(np.exp(row["loglikelihoods"]), 6))) for row in answers} == {(0, 0, 0), (0, 0.3, 0.6)}

    # From the journal, nothing is asked again.
    (tmp_path / "run" / "predictions" / "part-00000.parquet").unlink()
    with pytest.warns(UserWarning, match="likeliest"):
        again = run(arguments, tmp_path / "run")
    assert again.scores == result.scores
    assert sum(server.attempts.values()) == 80


def test_what_a_filter_held_back_has_no_answer_and_the_journal_says_why(serve, tmp_path):
    held_back = {"choices": [{"message": {"content": None}, "finish_reason": "content_filter", "logprobs": None}]}
    replies = {
        "refused": (400, {"error": {"message": "no", "code": "content_filter"}}, {}),
        "held back": held_back,
        "answered": answer(content([("A", -0.1)])),
    }
    server = serve(lambda path, body: replies[body["messages"][0]["content"]])
    requests = [Request(prompt, LETTERS) for prompt in replies]
    journal = tmp_path / "requests.jsonl"
    # The second time it comes from the journal, with the same warning.
    for _ in range(2):
        options = {"base_url": server.url, "mode": "logprobs"}
        loaded = load_scorer("server", "m", scorer_options=options, journal=journal)
        with pytest.warns(UserWarning, match="2 of 3 prompts"):
            found = loaded.score(requests)
        assert [np.isneginf(scores.loglikelihoods).all() for scores in found] == [True, True, False]
    assert sum(server.attempts.values()) == 3
    kept = [json.loads(line)["answer"] for line in journal.read_text("utf-8").splitlines()]
    assert kept.count({"finish": "content_filter"}) == 2
    assert [["A", -0.1]] in kept


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        *((value, "not a number") for value in (True, "x", [1], float("nan"), None)),
        (0.7, "above 0"),
        pytest.param(10**400, "above 0", id="huge"),
    ],
)
def test_odd_log_probabilities_of_an_echo_are_refused(serve, value, cause):
    echoed = {"tokens": ["a", " b"], "token_logprobs": [None, value], "text_offset": [0, 1]}
    echo = load_scorer(
        "server", "m", scorer_options={"base_url": serve(lambda path, body: answer(echoed)).url, "mode": "echo"}
    )
    with pytest.raises(QabiasError, match=f"^server: .*{cause}"):
        echo.score([Request("a", (" b",))])
