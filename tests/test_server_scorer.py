"""A model behind a server gives the same figures as the model itself."""

import json

import pytest

from qabias.answers import parse_choice
from qabias.answers.outcomes import outcomes
from qabias.errors import QabiasError
from qabias.scorers.base import Request
from qabias.scorers.causal import CausalScorer
from qabias.scorers.registry import load_scorer
from qabias.scorers.server.echo import sum_option
from qabias.scorers.server.options import CONCURRENCY, parse_options

from . import tiny_models
from .echo_model import EchoModel
from .loopback_server import chat, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .test_causal_scorer import REQUESTS

pytestmark = pytest.mark.usefixtures("surroundings", "one_thread")


# Log-likelihoods


@pytest.mark.parametrize(("adds_bos", "refuses_zero"), [(False, False), (True, False), (False, True), (True, True)])
def test_echoed_log_likelihoods_are_those_of_the_causal_scorer(serve, adds_bos, refuses_zero):
    model = EchoModel(adds_bos, refuses_zero)
    server = serve(model)
    scorer = load_scorer("server", "m", scorer_options={"url": server.url, "mode": "echo"})
    if refuses_zero:
        with pytest.warns(UserWarning, match="one token is generated for every option and cut off"):
            found = scorer.score(REQUESTS)
        assert model.asked_for.count(0) <= CONCURRENCY
    else:
        found = scorer.score(REQUESTS)
        assert set(model.asked_for) == {0}
    expected = CausalScorer(tiny_models.load(model.model, adds_bos=adds_bos)).score(REQUESTS)
    for one, other in zip(found, expected, strict=True):
        assert one.loglikelihoods == pytest.approx(other.loglikelihoods, abs=1e-4)
        assert one.n_tokens.tolist() == other.n_tokens.tolist()
        assert one.n_bytes.tolist() == other.n_bytes.tolist()


def test_a_token_across_the_boundary_counts_with_the_option():
    answer = {
        "choices": [
            {
                "logprobs": {
                    "tokens": ["Who", "? A", " baker", "."],
                    "token_logprobs": [None, -1.0, -2.0, -4.0],
                    "text_offset": [0, 3, 6, 12],
                }
            }
        ]
    }
    assert sum_option(answer, "Who? A baker.", len(" A baker."), 0) == {"loglikelihood": -7.0, "n_tokens": 3}
    assert sum_option(answer, "Who? A baker.", len(" baker."), 0) == {"loglikelihood": -6.0, "n_tokens": 2}


@pytest.mark.parametrize("offset", [-1, 0])
def test_offsets_that_a_server_does_not_know_are_refused(offset):
    logprobs = {"tokens": ["Who?", " a", " b"], "token_logprobs": [-3.0, -1.0, -2.0], "text_offset": [offset] * 3}
    with pytest.raises(QabiasError, match="text offsets are not those"):
        sum_option({"choices": [{"logprobs": logprobs}]}, "Who? a b", len(" a b"), 0)


def logprobs_reply(**changes):
    whole = {"tokens": ["a", " b"], "token_logprobs": [None, -1.0], "text_offset": [0, 1]}
    return lambda path, body: {"choices": [{"logprobs": {**whole, **changes}}]}


@pytest.mark.parametrize(
    "reply",
    [
        lambda path, body: {"choices": [{"text": "a b", "logprobs": None}]},
        lambda path, body: {"choices": [{"text": "a b"}]},
        lambda path, body: (400, {"error": {"message": "echo is not supported"}}, {}),
        lambda path, body: (404, {"detail": "Not Found"}, {}),
        logprobs_reply(tokens=[" c", " dog"]),  # what was generated, without an echo
        logprobs_reply(text_offset=[-1, -1]),
        logprobs_reply(token_logprobs=[None, None]),
        logprobs_reply(token_logprobs=[None, float("nan")]),
        logprobs_reply(tokens=[], token_logprobs=[], text_offset=[]),
    ],
)
def test_a_server_without_log_probabilities_of_the_prompt_says_what_to_do(serve, reply):
    scorer = load_scorer("server", "m", scorer_options={"url": serve(reply).url, "mode": "echo"})
    with pytest.raises(QabiasError, match="mode=chat"):
        scorer.score([Request("a", (" b",))])
    good = load_scorer("server", "m", scorer_options={"url": serve(logprobs_reply()).url, "mode": "echo"})
    assert good.score([Request("a", (" b",))])[0].loglikelihoods.tolist() == [-1.0]


# Written answers


def test_models_that_want_another_limit_and_no_temperature_get_it(serve):
    bodies = []
    server = serve(lambda path, body: bodies.append(body) or {"choices": [{"message": {"content": "A"}}]})
    options = {"url": server.url, "token_field": "max_completion_tokens", "temperature": "none", "max_new_tokens": "99"}
    assert load_scorer("server", "m", scorer_options=options).generate(["q"], ["q"]) == [("A",)]
    assert bodies == [{"model": "m", "messages": [{"role": "user", "content": "q"}], "max_completion_tokens": 99}]


def test_an_answer_without_text_is_empty_and_unparsed(serve):
    server = serve(lambda path, body: {"choices": [{"message": {"content": None}}]})
    assert written(chat(server), ["q"]) == [""]
    assert parse_choice("", ("a", "b", "c")) == -1
    assert [parse_choice(text, ("x", "y", "z")) for text in ("B", "b.", " **B**", "(b)", "B. y")] == [1] * 5


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_why_an_answer_ended_and_what_was_thought_is_kept_and_not_read(serve, tmp_path, field):
    message = {"content": "B", field: "It may be A."}
    replies = [
        {"choices": [{"message": message, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "", field: "It may be"}, "finish_reason": "length"}]},
        {"choices": [{"message": {"content": None, "refusal": "I can't help with that."}, "finish_reason": "stop"}]},
    ]
    server = serve(lambda path, body: replies[int(body["messages"][0]["content"])])
    journal = tmp_path / "requests.jsonl"
    for _ in range(2):  # the second time from the journal
        texts = written(chat(server, journal), ["0", "1", "2"])
        assert texts == ["B", "", "I can't help with that."]
        assert [text.finish for text in texts] == ["stop", "length", "stop"]
        assert [text.thinking for text in texts] == ["It may be A.", "It may be", ""]
        places = [parse_choice(text, ("x", "y", "z")) for text in texts]
        assert outcomes(texts, places) == ["answered", "truncated", "refused"]


def test_what_a_filter_held_back_says_so(serve):
    server = serve(lambda path, body: (400, {"error": {"message": "no", "code": "content_filter"}}, {}))
    ((text,),) = chat(server).generate(["q"], ["q"])
    assert outcomes([text], [-1]) == ["filtered"]


def test_a_journal_of_an_earlier_version_holds_texts_alone(serve, tmp_path):
    server = serve(lambda path, body: {"choices": [{"message": {"content": "B"}}]})
    journal = tmp_path / "requests.jsonl"
    written(chat(server, journal), ["q"])
    line = json.loads(journal.read_text("utf-8"))
    journal.write_text(json.dumps({"request": line["request"], "answer": "C"}) + "\n", "utf-8")
    assert written(chat(server, journal), ["q"]) == ["C"]


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "url=http://HOST:PORT/v1"),
        ({"url": "host:8000/v1"}, "not of the form"),
        ({"url": "ftp://host/v1"}, "not of the form"),
        ({"url": "http://host:port/v1"}, "not of the form"),
        ({"url": "http://user:hunter2@host/v1"}, "no user, password or query"),
        ({"url": "user:hunter2@host"}, "no user, password or query"),
        ({"url": "http://host/v1?key=hunter2"}, "no user, password or query"),
        ({"url": "http://h/v1", "mode": "talk"}, "give chat, logprobs or echo"),
        ({"url": "http://h/v1", "api_key": "hunter2"}, "no option 'api_key'; it has url, mode"),
        ({"url": "http://h/v1", "concurrency": "0"}, "concurrency is '0'"),
        ({"url": "http://h/v1", "timeout": "inf"}, "timeout is 'inf'"),
        ({"url": "http://h/v1", "max_new_tokens": "many"}, "max_new_tokens is 'many'"),
        ({"url": "http://h/v1", "mode": "echo", "max_new_tokens": "3"}, "max_new_tokens is for mode=chat; leave out"),
        ({"url": "http://h/v1", "token_field": "tokens"}, "give max_tokens or max_completion_tokens"),
        ({"url": "http://h/v1", "temperature": "1"}, "temperature is '1'; give 0 or none"),
        ({"url": "http://h/v1", "mode": "echo", "temperature": "none"}, "is for mode=chat or logprobs; leave out"),
        ({"url": "http://h/v1", "top_logprobs": "5"}, "top_logprobs is for mode=logprobs"),
        ({"url": "http://h/v1", "mode": "logprobs", "top_logprobs": "0"}, "top_logprobs is '0'"),
        ({"batch": ""}, "batch is ''; give batch=write, or batch=read=FILE"),
        ({"batch": "read"}, "batch is 'read'; give"),
        ({"batch": "read=a,"}, "batch is 'read=a,'; give"),
        ({"batch": "read=no/such.jsonl"}, "batch=read=no/such.jsonl: there is no such file"),
        ({"batch": "write", "mode": "echo"}, "batch is for mode=chat or logprobs"),
        ({"batch": "write"}, "a batch lies in a run folder"),
        ({"url": "http://h/v1", "price_in": "1"}, "both price_in and price_out"),
        ({"url": "http://h/v1", "price_in": "-1", "price_out": "1"}, "price_in is '-1'"),
    ],
)
def test_wrong_options_are_refused_and_secrets_not_repeated(options, message):
    with pytest.raises(QabiasError, match=message) as error:
        load_scorer("server", "m", scorer_options=options)
    assert "hunter2" not in str(error.value)


def test_options_are_read_from_texts():
    options = parse_options({"url": "http://h/v1/", "timeout": "2.5", "price_in": "0.15", "price_out": "0.6"})
    assert (options.url, options.timeout, options.price_in, options.price_out) == ("http://h/v1", 2.5, 0.15, 0.6)
    assert (options.mode, options.concurrency, options.tokenizer) == ("chat", CONCURRENCY, None)
    assert (options.max_new_tokens, options.top_logprobs, dict(options.body), options.batch) == (None, 20, {}, "")


@pytest.mark.parametrize("wrong", [{"revision": "main"}, {"dtype": "float16"}])
def test_what_only_the_server_can_choose_is_refused(wrong):
    with pytest.raises(QabiasError, match="the server's to choose"):
        load_scorer("server", "m", scorer_options={"url": "http://127.0.0.1:1/v1"}, **wrong)
