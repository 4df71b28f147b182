"""A model behind a server gives the same figures as the model itself; its options, and the fields of requests."""

import pyarrow.parquet as pq
import pytest

from qabias.answers import parse_choice
from qabias.answers.outcomes import outcome
from qabias.errors import QabiasError
from qabias.planning import estimate_run
from qabias.runs.run import run
from qabias.scorers.base import Request
from qabias.scorers.causal import CausalScorer
from qabias.scorers.registry import check_options, load_kind, load_scorer
from qabias.scorers.server.modes import sum_option
from qabias.scorers.server.options import MAX_CONNECTIONS, check_url, parse_body

from . import tiny_models
from .echo_model import EchoModel
from .loopback_server import chat, digest, letter_of, served, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .test_causal_scorer import REQUESTS

pytestmark = pytest.mark.usefixtures("surroundings", "one_thread")


def load(url="http://h/v1", **options):
    return load_scorer("server", "m", scorer_options={"base_url": url, **options})


def saying(message, finish="stop", bodies=None):
    """A reply with one message; keeps the bodies of requests."""
    bodies = [] if bodies is None else bodies
    return lambda path, body: bodies.append(body) or {"choices": [{"message": message, "finish_reason": finish}]}


# Log-likelihoods


@pytest.mark.parametrize(("adds_bos", "refuses_zero"), [(False, False), (True, True)])
def test_echoed_log_likelihoods_are_those_of_the_causal_scorer(serve, adds_bos, refuses_zero):
    model = EchoModel(adds_bos, refuses_zero)
    scorer = load(serve(model).url, mode="echo")
    if refuses_zero:
        with pytest.warns(UserWarning, match="one token"):
            scores = scorer.score(REQUESTS)
        assert model.asked_for.count(0) <= MAX_CONNECTIONS
    else:
        scores = scorer.score(REQUESTS)
        assert set(model.asked_for) == {0}
    expected = CausalScorer(tiny_models.load(model.model, adds_bos=adds_bos)).score(REQUESTS)
    for one, other in zip(scores, expected, strict=True):
        assert one.loglikelihoods == pytest.approx(other.loglikelihoods, abs=1e-4)
        assert one.n_tokens.tolist() == other.n_tokens.tolist()
        assert one.n_bytes.tolist() == other.n_bytes.tolist()


def test_a_token_across_the_boundary_counts_with_the_option():
    logprobs = {
        "tokens": ["Who", "? A", " baker", "."],
        "token_logprobs": [None, -1.0, -2.0, -4.0],
        "text_offset": [0, 3, 6, 12],
    }
    answer = {"choices": [{"logprobs": logprobs}]}
    assert sum_option(answer, "Who? A baker.", len(" A baker."), 0) == {"loglikelihood": -7.0, "n_tokens": 3}
    assert sum_option(answer, "Who? A baker.", len(" baker."), 0) == {"loglikelihood": -6.0, "n_tokens": 2}


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
        logprobs_reply(tokens=["a", " ", "b"], token_logprobs=[-3.0, -1.0, -2.0], text_offset=[0, 0, 0]),
        logprobs_reply(token_logprobs=[None, None]),
        logprobs_reply(token_logprobs=[None, float("nan")]),
        logprobs_reply(tokens=[], token_logprobs=[], text_offset=[]),
    ],
)
def test_a_server_without_log_probabilities_of_the_prompt_says_what_to_do(serve, reply):
    with pytest.raises(QabiasError, match="mode=chat"):
        load(serve(reply).url, mode="echo").score([Request("a", (" b",))])
    (scores,) = load(serve(logprobs_reply()).url, mode="echo").score([Request("a", (" b",))])
    assert scores.loglikelihoods.tolist() == [-1.0]


# Fields of a user's own


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({"body.reasoning_effort": "low", "base_url": "http://h/v1"}, {"reasoning_effort": "low"}),
        ({"body.seed": "1", "body.top_p": "0.9"}, {"seed": 1, "top_p": 0.9}),
        ({"body.chat_template_kwargs.enable_thinking": "false"}, {"chat_template_kwargs": {"enable_thinking": False}}),
        ({"body.a": '{"b": [1, null]}', "body.a.c": '"1"'}, {"a": {"b": [1, None], "c": "1"}}),
        ({"body.a": "NaN and more", "body.b": "{torn", "body.c": ""}, {"a": "NaN and more", "b": "{torn", "c": ""}),
        ({"body.a": '"Infinity"', "body.b": "1e308"}, {"a": "Infinity", "b": 1e308}),
        ({"body.a.model": "x"}, {"a": {"model": "x"}}),
    ],
)
def test_values_are_json_where_they_can_be_and_dots_lead_into_objects(options, body):
    assert parse_body(options) == body


@pytest.mark.parametrize(
    ("options", "fields", "settings"),
    [
        (
            {"body.max_completion_tokens": "99", "body.temperature": "null"},
            {"max_completion_tokens": 99},
            {"max_new_tokens": "99", "temperature": "none"},
        ),
        (
            {"body.temperature": "0.6", "max_new_tokens": "9"},
            {"max_tokens": 9, "temperature": 0.6},
            {"max_new_tokens": "9", "temperature": "0.6"},
        ),
        (
            {"body.seed": "null"},
            {"max_tokens": 256, "temperature": 0, "seed": None},
            {"max_new_tokens": "256", "temperature": "0"},
        ),
    ],
)
def test_models_that_want_another_limit_or_temperature_get_it(serve, options, fields, settings):
    bodies = []
    scorer = load(serve(saying({"content": "A"}, bodies=bodies)).url, **options)
    assert scorer.generate(["q"], ["q"]) == [("A",)]
    assert bodies == [{"model": "m", "messages": [{"role": "user", "content": "q"}], **fields}]
    assert scorer.settings == settings


def test_other_fields_are_another_run_and_other_requests(serve, tmp_path):
    bodies = []
    server = serve(saying({"content": "ANSWER: A"}, bodies=bodies))

    def ask(value, folder):
        return run(served(server, 4, **{"body.reasoning_effort": value}), tmp_path / folder).signature

    assert "+body.reasoning_effort=low+" in ask("low", "run")
    with pytest.raises(QabiasError, match="another run"):
        ask("high", "run")
    ask("high", "other")
    assert [body["reasoning_effort"] for body in bodies] == ["low"] * 8 + ["high"] * 8


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": ""}, "form"),
        ({"api_key": "hunter2"}, "api_key"),
        ({"timeout": "inf"}, "timeout is 'inf'"),
        ({"timeout": "0"}, "timeout is '0'"),
        ({"mode": "echo", "max_new_tokens": "3"}, "max_new_tokens is for mode=chat"),
        ({"max_new_tokens": "3", "body.max_completion_tokens": "3"}, "same limit"),
        ({"top_logprobs": "5"}, "top_logprobs is for mode=logprobs"),
        ({"mode": "logprobs", "top_logprobs": "0"}, "top_logprobs is '0'"),
        ({"batch": "read=a,"}, "batch is 'read=a,'"),
        ({"batch": "read=no/such.jsonl"}, "no/such"),
        ({"batch": "write", "mode": "echo"}, "batch is for"),
        ({"batch": "write"}, "run folder"),
        ({"price_in": "1"}, "price_out"),
        ({"price_in": "-1", "price_out": "1"}, "price_in is '-1'"),
        *(({f"body.{name}": "1"}, f"body.{name}") for name in ("model", "messages", "prompt", "max_tokens", "stream")),
        *(({f"body.{name}": "1"}, f"body.{name}") for name in ("logprobs", "top_logprobs", "echo", "n")),
        *(({"body.temperature": value}, "body.temperature") for value in ("hot", "-1", "true", '{"a": 1}')),
        *(({"body.max_completion_tokens": value}, "body.max_completion_tokens") for value in ("many", "0", "null")),
        ({"body.temperature": "0.6", "mode": "logprobs"}, "body.temperature"),
        ({"body.temperature": "0.6", "mode": "echo"}, "body.temperature"),
        ({"body.extra_body": '{"top_k": 1}'}, "extra_body"),
        ({"body.extra_body.top_k": "1"}, "extra_body"),
        *(({name: "1"}, "not a field") for name in ("body.", "body.a..b", "body.a b")),
        *(({"body.a": value}, "body.a") for value in ("x|limit:none", "x\ny")),
        ({"body.a": "1", "body.a.b": "2"}, "makes a of"),
        ({"body.a": '{"b": 1}', "body.a.b": "2"}, "also sets"),
        *(({"body.top_p": value}, "body.top_p") for value in ("1e999", "NaN", "-Infinity", '{"a": {"b": [NaN]}}')),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(QabiasError, match=message) as error:
        load(**options)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        *((url, "HOST:PORT") for url in ("host:8000/v1", "ftp://host/v1", "http://host:port/v1", "http://[bad/v1")),
        *((f"http://{host}/v1", "HOST:PORT") for host in ("a" * 64 + ".example", "a..example", "host:99999")),
        *((f"http://{rest}", "ASCII") for rest in ("ﬁ.example/v1", "host/v1\x1b[2J", "host/a path")),
        ("http://user:hunter2@host/v1", "password"),
        ("user:hunter2@host", "password"),
        ("http://host/v1?key=hunter2", "password"),
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url, message):
    with pytest.raises(QabiasError, match=message) as error:
        check_url(url)
    assert url not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_options_are_read_from_texts():
    options = check_options(
        load_kind("server"), {"base_url": "http://h/v1/", "timeout": "2.5", "price_in": "0.15", "price_out": "0.6"}
    )
    assert (options.base_url, options.timeout, options.price_in, options.price_out) == ("http://h/v1", 2.5, 0.15, 0.6)
    assert (options.mode, options.max_connections, options.tokenizer) == ("chat", MAX_CONNECTIONS, None)
    assert (options.max_new_tokens, options.top_logprobs, dict(options.body), options.batch) == (None, 20, {}, ("", ()))
    with pytest.raises(QabiasError, match="url"):
        check_options(load_kind("server"), {})
    for wrong in ({"revision": "main"}, {"dtype": "float16"}):
        with pytest.raises(QabiasError, match="revision and dtype"):
            load_scorer("server", "m", scorer_options={"base_url": "http://127.0.0.1:1/v1"}, **wrong)


# The room for an answer


@pytest.mark.parametrize(
    ("word", "given", "tokens"),
    [("letter", {}, 4 * 64), ("cot", {}, 4 * 1024), ("cot", {"max_new_tokens": "7"}, 7)],
)
def test_an_answer_has_the_room_that_a_user_sets_or_four_times_what_its_format_needs(
    serve, tmp_path, word, given, tokens
):
    bodies = []
    server = serve(saying({"content": "ANSWER: A"}, bodies=bodies))
    arguments = served(server, 4, **given)
    arguments = arguments.resolve(ask=word)
    estimate = estimate_run(arguments)
    signature = run(arguments, tmp_path / "run").signature
    assert {body["max_tokens"] for body in bodies} == {tokens}
    assert f"|scorer:server+max_new_tokens={tokens}+temperature=0|" in signature
    assert estimate.generated_tokens == len(bodies) * tokens == 8 * tokens


# Messages and thinking


CHUNKS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "It is A"}]},
    {"type": "text", "text": "B"},
]
CHANNELS = "<|channel|>analysis<|message|>A or B?<|end|><|start|>assistant<|channel|>final<|message|>B"


@pytest.mark.parametrize(
    ("message", "finish", "text", "thinking", "place", "became"),
    [
        ({"content": "B", "reasoning": "It may be A."}, "stop", "B", "It may be A.", 1, "answered"),
        ({"content": "", "reasoning_content": "It may"}, "length", "", "It may", -1, "truncated"),
        ({"content": CHANNELS}, "length", CHANNELS, "", 1, "answered"),
        ({"content": "<think>It is A"}, "length", "<think>It is A", "", -1, "truncated"),
        ({"reasoning": "It is A"}, "length", "", "It is A", -1, "truncated"),
        ({"content": None, "reasoning_content": "It is A"}, "length", "", "It is A", -1, "truncated"),
        ({"content": None, "reasoning": None, "refusal": "I can't help."}, "stop", "I can't help.", "", -1, "refused"),
        ({"content": None}, "stop", "", "", -1, "unread"),
        ({"content": CHUNKS}, "stop", "B", "It is A", 1, "answered"),
        ({"content": CHUNKS[:1]}, "length", "", "It is A", -1, "truncated"),
    ],
)
def test_text_thinking_and_why_an_answer_ended_are_kept(
    serve, tmp_path, message, finish, text, thinking, place, became
):
    server = serve(saying(message, finish))
    for _ in range(2):  # the second time from the journal
        (answer,) = written(chat(server, tmp_path / "requests.jsonl"), ["q"])
        assert (str(answer), answer.thinking, answer.finish) == (text, thinking, finish)
        assert parse_choice(answer, ("x", "y", "z")) == place
        assert outcome(answer, place) == became
    assert server.attempts["q"] == 1


def test_a_field_of_an_echo_does_not_replace_the_length_of_an_option(serve):
    model, bodies = EchoModel(), []
    server = serve(lambda path, body: bodies.append(body) or model(path, body))
    request = Request("Who?", (" A baker", " The cook of the house"))
    (plain,) = load(server.url, mode="echo").score([request])
    (scores,) = load(server.url, mode="echo", **{"body.option_length": "3"}).score([request])
    assert scores.loglikelihoods.tolist() == plain.loglikelihoods.tolist()
    assert scores.n_tokens.tolist() == plain.n_tokens.tolist()
    assert [body.get("option_length") for body in bodies] == [None, None, 3, 3]
    assert not any("option length" in body for body in bodies)


def test_thinking_stands_in_a_column_of_its_own_and_is_not_read(serve, tmp_path):
    def reply(path, body):
        prompt = body["messages"][0]["content"]
        is_cut = digest(prompt) % 4 == 0
        thought = f"It may be {'ABC'['ABC'.index(letter_of(prompt)) - 1]}. The answer is A."
        letter = "" if is_cut else letter_of(prompt)
        message = {"content": letter, "reasoning_content": thought}
        return {"choices": [{"message": message, "finish_reason": "length" if is_cut else "stop"}]}

    server = serve(reply)
    scores = run(served(server, 40), tmp_path / "run").scores
    rows = pq.read_table(tmp_path / "run" / "predictions").to_pylist()
    assert all(row["thinking"].startswith("It may be ") for row in rows)
    prompts = list(server.answered)
    cut = [prompt for prompt in prompts if digest(prompt) % 4 == 0]
    assert len(cut) > 2
    assert scores["outcomes"]["truncated"] == len(cut) == [row["outcome"] for row in rows].count("truncated")
    assert scores["outcomes"]["answered"] == 40 - len(cut)
    assert all((row["outputs"], row["prediction"]) == ([""], -1) for row in rows if row["outcome"] == "truncated")
    letters = ["ABC"[row["prediction"]] for row in rows if row["outcome"] == "answered"]
    assert sorted(letters) == sorted(letter_of(prompt) for prompt in prompts if prompt not in cut)
