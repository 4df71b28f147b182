"""A server in every kind of trouble that is known: nothing lost, nothing asked twice, and no key in a message."""

import base64
import logging
import re
import resource
import ssl
import time
import urllib.parse
from collections import Counter

import httpx2
import numpy as np
import pytest

from qabias.answers.outcomes import TOO_LONG as TOO_LONG_CODE
from qabias.answers.outcomes import outcome
from qabias.errors import QabiasError
from qabias.runs.run import run
from qabias.scorers.base import Request
from qabias.scorers.registry import load_scorer
from qabias.scorers.server.asking import KEY as KEY_MARK
from qabias.scorers.server.asking import printable, redacted, redacted_answer
from qabias.scorers.server.client import EMPTY_ATTEMPTS, FIRST_ATTEMPTS, Client, Patience, seconds_to_wait
from qabias.scorers.server.modes import ServerChatScorer
from qabias.support.progress import listening

from .echo_model import EchoModel
from .faulty_server import AGAIN, ANSWER, ENDS, SOME, faulty, names
from .faulty_server import serve_faults as serve_faults
from .loopback_server import KEY, chat, chat_reply, letter_of, served, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")

EMPTY = {"choices": []}
SLOW = {"slow-loris-body", "slow-loris-headers", "6-seconds-away"}
SMALL = {"timeout": 1.0, "total_timeout": 1.0}
UNBOUND = ("endless-body", "endless-chunks")
PARTS = [KEY[start : start + 8] for start in range(len(KEY) - 7)]


def ask(server, prompts=("q",), **options):
    return written(chat(server, **{"timeout": 5.0, "total_timeout": 5.0, **options}), list(prompts))


def refuse(status, message, **error):
    """A reply that refuses."""
    return lambda path, body: (status, {"error": {"message": message, **error}}, {})


def failing(*statuses, then=chat_reply):
    """A reply that fails with each status in turn, None for an answer without a choice, and is good after that."""
    left = list(statuses)

    def reply(path, body):
        if not left:
            return then(path, body)
        status = left.pop(0)
        return EMPTY if status is None else (status, {"error": {"message": "busy"}}, {})

    return reply


# Faults


@pytest.mark.slow
@pytest.mark.parametrize("name", names(AGAIN))
def test_a_spoiled_attempt_is_sent_again(serve_faults, name):
    server, begun = serve_faults(name), time.monotonic()
    assert ask(server, **(SMALL if name in SLOW else {})) == [letter_of("q")]
    assert server.attempts["q"] == 2
    assert time.monotonic() - begun < 15  # not as long as a server trickles


@pytest.mark.parametrize("name", names(ANSWER))
def test_an_odd_answer_is_an_answer_that_can_be_kept(serve_faults, tmp_path, name):
    server = serve_faults(name, attempts=10**9)
    journal = tmp_path / "requests.jsonl"
    answers = ask(server, journal=journal)
    "".join(answers).encode()  # a text that can be stored
    assert ask(server, journal=journal) == answers
    assert server.attempts["q"] == 1
    assert KEY not in journal.read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in names(ANSWER) if name.startswith("surplus")])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_bytes_behind_an_answer_are_no_answer_to_another_prompt(serve_faults, name, concurrency):
    prompts = [str(number) for number in range(12)]
    server = serve_faults(lambda text, attempt: name if int(text) % 3 == 1 else None)
    expected = ["A" if int(prompt) % 3 == 1 else letter_of(prompt) for prompt in prompts]
    assert ask(server, prompts, concurrency=concurrency) == expected
    assert set(server.attempts.values()) == {1}


@pytest.mark.parametrize("name", names(ENDS))
def test_a_lasting_failure_ends_at_once_in_one_printable_line_without_the_key(serve_faults, name):
    server = serve_faults(name, attempts=10**9)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(QabiasError, match=r"^server: ") as error:
        ask(server)
    message = str(error.value)
    assert all(part.isprintable() for part in error.value.args)
    assert len(message) < 500
    assert server.attempts["q"] == 1
    assert not any(secret in message for secret in ("hunter2", *PARTS))
    if name in UNBOUND:
        assert "16,000,000" in message
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


SAID = {"message": {"content": "of no model"}}


@pytest.mark.parametrize(
    "bad",
    [
        {"choices": [SAID], "error": {"message": "the model failed", "code": 502}},
        {"choices": [SAID], "error": {"message": "the model failed", "type": "server_error"}},
        {"choices": [SAID], "error": "the model failed"},
        {"choices": [SAID | {"finish_reason": "error"}]},
        {"choices": [SAID | {"finish_reason": "abort"}], "error": None},
        {"choices": [SAID | {"index": 1}, SAID | {"index": 0, "finish_reason": "error"}]},
    ],
)
def test_a_failure_beside_a_choice_is_no_answer(serve, bad):
    server = serve(lambda path, body: chat_reply(path, body) if server.attempts[text_of(body)] > 1 else bad)
    assert ask(server, "abc") == [*map(letter_of, "abc")]
    assert server.attempts == Counter("abcabc")


def test_the_choice_with_the_lowest_index_is_the_answer(serve):
    def reply(path, body):
        (choice,) = chat_reply(path, body)["choices"]
        return {"choices": [SAID | {"index": 1}, choice | {"index": 0}]}

    assert ask(serve(reply), "abc") == [*map(letter_of, "abc")]


# What a service says of one prompt, and what its answer then counts as.
REJECTED = [
    (400, {"message": "too many", "type": "invalid_request_error", "param": "messages", "code": TOO_LONG_CODE}),
    (400, {"message": "This model's maximum context length is 64 tokens, you requested 80", "code": 400}),
    (400, {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}),
    (400, {"message": "prompt is too long: 80 tokens > 64 maximum"}),
    (400, {"message": "The input token count (80) exceeds the maximum number of tokens allowed (64)."}),
    (
        422,
        {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 64", "type": "validation"},
    ),
    (413, {"message": "Payload Too Large"}),
    (200, {"message": "context window exceeded", "code": 400}),
    (400, {"message": "The prompt triggered the content management policy", "param": "prompt"}),
    (400, {"message": "Content Exists Risk", "type": "invalid_request_error"}),
    (403, {"message": "Your input was flagged", "code": 403}),
    (400, {"message": "no", "code": "content_policy_violation"}),
]
N_TOO_LONG = 8
TOO_LONG_REPLY = (400, {"error": REJECTED[0][1]}, {})
FORM = [
    (400, {"message": "Unrecognized request argument: foo", "type": "invalid_request_error", "param": "foo"}),
    (400, {"message": "max_tokens is too large: 80. At most 64 completion tokens.", "param": "max_tokens"}),
    (400, {"message": "max_tokens is too large: 80"}),
    (400, {"message": "the model `m` does not exist", "code": "model_not_found", "param": "model"}),
    (400, {"message": "top_logprobs must be <= 5"}),
    (422, {"message": "Unsupported fields in the request: {'logprobs'}"}),
    (400, {"message": "bad request"}),
    (400, {"message": "Unknown parameter: moderation", "param": "moderation"}),
]


@pytest.mark.parametrize("number", range(len(REJECTED)))
@pytest.mark.parametrize("place", [0, 5])
def test_a_prompt_that_is_rejected_lacks_an_answer_and_the_others_have_theirs(serve, tmp_path, number, place):
    (status, error), expected = REJECTED[number], "truncated" if number < N_TOO_LONG else "filtered"
    prompts = [f"question {number}" for number in range(8)]
    rejected = status, {"error": error}, {}
    server = serve(lambda path, body: rejected if text_of(body) == prompts[place] else chat_reply(path, body))
    for _ in range(2):  # the second time from the journal
        answers = chat(server, tmp_path / "j").generate(prompts, prompts)
        lacking = [number for number, (text,) in enumerate(answers) if text != letter_of(prompts[number])]
        assert lacking == [place]
        assert outcome(answers[place][0], -1) == expected
    # Asked again when another prompt had its answer, unless the code is that of a filter.
    assert server.attempts[prompts[place]] == 1 + (place == 0 and error.get("code") != "content_policy_violation")
    if number == 0:  # where every prompt is too long, the run stops and keeps nothing
        server = serve(lambda path, body: rejected)
        with pytest.raises(QabiasError, match="too many"):
            ask(server, map(str, range(100)), journal=tmp_path / "other")
        assert sum(server.attempts.values()) == 5
        assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("status", "error"), FORM)
def test_a_rejection_that_every_prompt_would_get_stops(serve, tmp_path, status, error):
    server = serve(
        lambda path, body: (status, {"error": error}, {}) if text_of(body) == "5" else chat_reply(path, body)
    )
    with pytest.raises(QabiasError, match=f"status {status}"):
        ask(server, map(str, range(100)), journal=tmp_path / "j")
    assert server.attempts["5"] == 1
    assert sum(server.attempts.values()) < 100


@pytest.mark.parametrize(("mode", "model"), [("logprobs", None), ("echo", EchoModel())])
def test_a_question_with_a_too_long_prompt_lacks_an_answer_in_every_mode(serve, mode, model):
    def reply(path, body):
        text = body["prompt"] if mode == "echo" else text_of(body)
        return TOO_LONG_REPLY if "long" in text else (model or likely_a)(path, body)

    scorer = load_scorer("server", "m", scorer_options={"base_url": serve(reply).url, "mode": mode})
    options = (" long", " b") if mode == "echo" else (" A", " B")
    scores = scorer.score([Request("first", (" A", " B")), Request("a long one", options)])
    assert [np.isneginf(one.loglikelihoods).all() for one in scores] == [False, True]


def likely_a(path, body):
    top = [{"token": "A", "logprob": -0.1}]
    return {"choices": [{"message": {"content": "A"}, "logprobs": {"content": [{"top_logprobs": top}]}}]}


@pytest.mark.parametrize(
    ("path", "status", "error", "message"),
    [
        ("/v1", 401, {"message": "no"}, "the key was refused, status 401: no"),
        ("/v1", 403, {"message": "no"}, "the key was refused, status 403: no"),
        ("", 404, "404 page not found", "the address lacks /v1, .*\n.*Add /v1"),
        ("/v1", 404, {"message": "no model m"}, "the address or the model does not exist, .*no model m"),
        ("/v1", 429, {"message": "no", "code": "insufficient_quota"}, "the quota of the key is used up, "),
        ("/v1", 403, {"message": "no", "type": "insufficient_quota"}, "the quota of the key is used up, "),
        ("/v1", 402, {"message": "Insufficient Balance"}, "the quota of the key is used up, "),
        ("/v1", 400, {"message": "Your credit balance is too low"}, "the quota of the key is used up, "),
        ("/v1", 200, {"message": "no", "code": "insufficient_quota"}, "the quota of the key is used up, "),
        ("/v1", 401, {"message": f"bad key {KEY}"}, r"\[key\]\n.*QABIAS_API_KEY"),
        ("/v1", 200, {"message": f"no {KEY}", "code": 404}, r"status 200: no \[key\]"),
    ],
)
def test_what_no_waiting_mends_stops_at_once_with_its_cause(serve, path, status, error, message):
    server = serve(lambda path, body: (status, {"error": error}, {}))
    server.url = server.url.removesuffix("/v1") + path
    with pytest.raises(QabiasError, match=message) as refused:
        ask(server)
    assert KEY not in str(refused.value)
    assert server.attempts["q"] == 1


# Many requests


def test_never_more_requests_are_under_way_than_allowed(serve):
    server = serve(delay=0.02)
    written(chat(server, concurrency=3), [str(number) for number in range(60)])
    assert server.most_active == 3


def test_after_an_error_nothing_new_is_sent_and_answers_are_kept(serve, tmp_path):
    refused = refuse(400, "temperature is not supported")
    server = serve(lambda path, body: (refused if text_of(body) == "5" else chat_reply)(path, body), delay=0.01)
    with pytest.raises(QabiasError, match="temperature"):
        ask(server, map(str, range(200)), journal=tmp_path / "j", concurrency=2)
    assert 4 <= sum(server.attempts.values()) < 50
    assert server.attempts["5"] == 1
    assert len((tmp_path / "j").read_text().splitlines()) == len(server.answered)


def test_equal_requests_are_asked_once_and_answered_requests_never_again(serve, tmp_path):
    server = serve()
    assert written(chat(server, tmp_path / "j"), ["a", "b", "a"]) == [letter_of("a"), letter_of("b"), letter_of("a")]
    written(chat(server, tmp_path / "j"), ["b", "c"])
    assert server.attempts == Counter("abc")
    written(ServerChatScorer("other", Client(server.url, journal=tmp_path / "j")), ["a"])
    assert server.attempts["a"] == 2  # another model is another request


# Attempts


def count_waits(monkeypatch):
    waits = []
    monkeypatch.setattr(Client, "_rest", lambda client, seconds: waits.append(seconds))
    return waits


@pytest.mark.parametrize(("seconds", "waits"), [("9", [9]), ("601", [])])
def test_a_server_that_names_a_time_to_wait_gets_it_but_not_hours(serve, monkeypatch, seconds, waits):
    waited = count_waits(monkeypatch)
    late = 429, {"error": "slow down"}, {"Retry-After": seconds}
    server = serve(lambda path, body: chat_reply(path, body) if server.attempts["q"] > 1 else late)
    if waits:
        assert ask(server) == [letter_of("q")]
    else:
        with pytest.raises(QabiasError, match="601"):
            ask(server)
    assert waited == waits


def test_waits_are_random_and_double_up_to_a_minute(serve, monkeypatch):
    waits = count_waits(monkeypatch)
    monkeypatch.setattr("qabias.scorers.server.client.random.uniform", lambda low, high: high)
    with pytest.raises(QabiasError, match="10 times"):
        ask(serve(failing(*(503,) * 10)), patience=Patience())
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_time_to_wait_is_read_as_seconds():
    values = ("7", "-3", "nan", "soon", None, "Wed, 01 Jan 2200 00:00:00 GMT")
    assert [*map(seconds_to_wait, values)] == [7, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("statuses", "answer", "attempts"),
    [
        ((408, 425), "A", 3),
        ((429, 429, None), "A", 4),  # one empty answer among other failures is not an unread one
        ((429, None, 429, None, None), "", 5),
        ((503, 503, 503, 503, 500), "A", 6),  # other failures do not use up a first request
        ((503, 500, 503, 500, 500), "status 500: busy, 3 times in 5 attempts", 5),
        ((429,) * 9 + (None,), "empty list of choices, 1 time in 10 attempts", 10),
    ],
)
def test_failures_count_by_their_kind(serve, statuses, answer, attempts):
    server = serve(failing(*statuses))
    if len(answer) > 1:
        with pytest.raises(QabiasError, match=answer):
            ask(server)
    else:
        assert ask(server) == [answer and letter_of("q")]
    assert server.attempts["q"] == attempts


def test_a_page_that_is_no_answer_is_quoted_after_three_attempts_and_later_after_ten(serve_faults, tmp_path):
    server = serve_faults("200-html", attempts=10**9)
    with pytest.raises(QabiasError, match=r"<html>Please sign in</html>.* 3 times in a row"):
        ask(server)
    assert server.attempts["q"] == FIRST_ATTEMPTS
    server = serve_faults(lambda text, attempt: "200-html" if text == "later" else None)
    with pytest.raises(QabiasError, match="10 times in a row"):
        ask(server, ["first", "later"], journal=tmp_path / "j")
    with pytest.raises(QabiasError, match="10 times in a row"):  # a resumed run has had its first request
        ask(server, ["later"], journal=tmp_path / "j")


# Without a choice


def test_prompts_that_get_no_choice_are_named_and_unread_and_the_others_answered(serve, tmp_path, caplog):
    lost = {"question 3", "question 7", "question 8", "question 9"}
    server = serve(lambda path, body: EMPTY if text_of(body) in lost else chat_reply(path, body))
    prompts = [f"question {number}" for number in range(12)]
    with caplog.at_level(logging.WARNING):
        answers = ask(server, prompts, journal=tmp_path / "j")
    assert answers == ["" if prompt in lost else letter_of(prompt) for prompt in prompts]
    assert {server.attempts[prompt] for prompt in lost} == {EMPTY_ATTEMPTS}
    named = [record.getMessage() for record in caplog.records if "at prompt" in record.getMessage()]
    assert len(named) == 3  # the first three of four
    ask(server, prompts, journal=tmp_path / "j")
    assert {server.attempts[prompt] for prompt in lost} == {EMPTY_ATTEMPTS}


def test_without_a_choice_a_letter_is_missing_and_an_echo_ends_the_run_with_its_prompt(serve, caplog):
    options = {"base_url": serve(lambda path, body: EMPTY).url, "mode": "logprobs"}
    with pytest.warns(UserWarning, match="missing"):
        (scores,) = load_scorer("server", "m", scorer_options=options).score([Request("a", (" A", " B"))])
    assert scores.loglikelihoods.tolist() == [float("-inf")] * 2
    assert "at prompt 'a'" in caplog.text
    with pytest.raises(QabiasError, match=r"at prompt \.\.\.'a b'"):
        load_scorer("server", "m", scorer_options={**options, "mode": "echo"}).score([Request("a", (" b",))])


def test_a_server_that_is_away_is_given_up_with_one_warning(caplog):
    client = Client("http://127.0.0.1:1/v1", patience=Patience(first_wait=0.01, longest_wait=0.01, attempts=3))
    with pytest.raises(QabiasError, match="3 times in a row"):
        written(ServerChatScorer("m", client), ["q"])
    assert len(caplog.records) == 1


def test_a_slow_first_answer_is_asked_for_three_times(serve):
    server = serve(lambda path, body: time.sleep(0.3) or chat_reply(path, body))
    with pytest.raises(QabiasError, match=r"3 times in a row.*timeout=.*mode="):
        ask(server, timeout=0.1)


def text_of(body):
    return body["messages"][0]["content"]


# Connections


def test_an_address_that_does_not_speak_https_or_is_not_trusted_ends_at_once(serve, monkeypatch):
    server = serve()
    server.url = server.url.replace("http:", "https:")
    waits = count_waits(monkeypatch)
    with pytest.raises(QabiasError, match="https"):
        ask(server)
    untrusted = httpx2.ConnectError("failed")
    untrusted.__cause__ = ssl.SSLCertVerificationError("failed")
    untrusted.__cause__.verify_message = "self-signed"

    async def refuse(*_):
        raise untrusted

    monkeypatch.setattr("qabias.support.http.HttpClient._send", refuse)
    with pytest.raises(QabiasError, match="certificate"):
        ask(server)
    assert waits == []


@pytest.mark.parametrize("statuses", [(503,), (429, 429), (503,) * 8])
def test_a_passing_failure_of_the_first_request_does_not_end_mode_echo(serve, statuses):
    server = serve(failing(*statuses, then=EchoModel()))
    scorer = load_scorer("server", "m", scorer_options={"base_url": server.url, "mode": "echo"})
    (scores,) = scorer.score([Request("a", (" b", " c"))])
    assert len(scores.loglikelihoods) == 2
    assert sum(server.attempts.values()) == len(statuses) + 2


def test_answers_move_the_progress_of_a_run(serve_faults):
    heard = []
    with listening(heard.append):
        ask(serve_faults("500"), [str(number) for number in range(8)])
    assert heard == [number / 8 for number in range(2, 9)]  # the first is asked alone


# The key


def test_the_key_and_its_parts_are_redacted():
    assert redacted(f"a {KEY} b {KEY[3:14]}, {KEY[:8]}{KEY[-8:]} {KEY[:7]}", KEY) == f"a [key] b [key], [key] {KEY[:7]}"
    assert redacted("before and after", KEY) == "before and after"
    assert redacted("", KEY) == ""
    assert redacted("no hunter2", "hunter2") == "no [key]"
    assert redacted("no key", "") == "no key"
    assert printable(f"  no\n{KEY} \x1b[2J\u202e" + "x" * 500, KEY) == f"no [key] [2J{'x' * 500}"[:300]
    assert printable("\x00", KEY) == "no message"


SPELLINGS = {
    "capitals": str.upper,
    "backwards": lambda key: key[::-1],
    "hyphens": "-".join,
    "blanks": " ".join,
    "zero width": "\u200b".join,
    "hex": lambda key: key.encode().hex(),
    "HEX:": lambda key: key.encode().hex(":").upper(),
    "percent": lambda key: "".join(f"%{ord(char):02x}" for char in key),
    "percent of some": urllib.parse.quote_plus,
    "unicode": lambda key: "".join(f"\\u{ord(char):04X}" for char in key),
    "unicode twice": lambda key: "".join(f"\\\\u{ord(char):04x}" for char in key),
    "x": lambda key: "".join(f"\\x{ord(char):02x}" for char in key),
    "entities": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "bytes": lambda key: ", ".join(f"0x{ord(char):02x}" for char in key),
    **{f"base64 {n}": lambda key, n=n: base64.b64encode(b"key"[:n] + key.encode()).decode() for n in range(3)},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("key", [KEY, "sk-proj-Ab3_dEfGh1JkLm-No9QrStUv", "0123456789abcdef0123456789ABCDEF"])
def test_a_key_is_redacted_in_every_spelling_and_so_are_its_parts(spelling, key):
    for part in (key, key[3:19]):
        spelled = "İ " + SPELLINGS[spelling](part)
        for shown in (redacted(f"no ({spelled}) here", key), redacted_answer([f"no ({spelled}) here"], key)[0]):
            assert shown == KEY_MARK or re.fullmatch(r"no .{0,6}\[key\].{0,6} here", shown)
        assert KEY_MARK in printable(f"no {spelled}", key)


def test_texts_without_the_key_are_kept_whatever_they_hold():
    text = " 100 % \\u0041 &#65; ".join(spell("a public İ word or 1357902468") for spell in SPELLINGS.values())
    assert redacted(text, KEY) == text


def test_an_answer_is_kept_as_it_is_but_for_keys_and_half_pairs():
    kept = {"text": "100 % \\u0041 &amp; B", "top": [["A", -0.5], ["B", float("-inf")]], "none": None}
    assert redacted_answer(kept, KEY) == kept
    assert redacted_answer({"text": f"a \ud83d {KEY}", "top": [(f" {KEY}", 1)]}, KEY) == {
        "text": "a \ufffd [key]",
        "top": [[" [key]", 1]],
    }
    assert redacted_answer({KEY: "A"}, KEY) == {KEY: "A"}


@pytest.mark.parametrize("key", ["EMPTY", "not-needed", "password", "this-is-a-placeholder", "12345678"])
def test_a_word_given_as_a_key_changes_no_answer_and_is_left_out_of_messages(key):
    assert redacted_answer({"text": f"The {key}."}, key) == {"text": f"The {key}."}
    assert printable(f"no {key} here", key) == "no [key] here"


def test_a_run_whose_server_repeats_the_key_stores_and_prints_none(serve_faults, tmp_path, capsys, caplog):
    server = serve_faults("content-key", attempts=10**9)
    run(
        served(server, 8),
        tmp_path / "r",
    )
    contents = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(contents) >= 4
    assert not any(KEY.encode() in content for content in contents)
    assert KEY not in "".join((*capsys.readouterr(), caplog.text))


def test_the_key_is_qabias_own_then_openais_and_a_broken_one_is_not_repeated(serve, monkeypatch, caplog):
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    ask(server)
    assert not caplog.records
    monkeypatch.setenv("QABIAS_API_KEY", "")
    ask(server)
    assert "OPENAI_API_KEY is sent to 127.0.0.1" in caplog.text
    assert "sk-other" not in caplog.text
    monkeypatch.delenv("OPENAI_API_KEY")
    ask(server)
    assert server.keys == {f"Bearer {KEY}", "Bearer sk-other", None}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-one\nsk-two")
    with pytest.raises(QabiasError, match="OPENAI_API_KEY") as error:
        chat(server)
    assert "sk-" not in str(error.value)


def test_a_resumed_run_may_have_only_a_too_long_prompt_to_ask(serve, tmp_path):
    server = serve(lambda path, body: TOO_LONG_REPLY if text_of(body) == "long" else chat_reply(path, body))
    ask(server, ["short"], journal=tmp_path / "j")
    assert ask(server, ["short", "long"], journal=tmp_path / "j") == [letter_of("short"), ""]


def test_a_run_with_a_too_long_prompt_ends_and_counts_it(serve, tmp_path):
    first = []

    def reply(path, body):
        first.append(text_of(body))
        return TOO_LONG_REPLY if text_of(body) == first[1] else chat_reply(path, body)

    result = run(served(serve(reply), 16), tmp_path / "r")
    assert result.scores["n_unparsed_ambig"] + result.scores["n_unparsed_disambig"] == 1
    assert result.scores["outcomes"]["truncated"] == 1


def test_a_long_time_to_wait_is_named(serve, monkeypatch, caplog):
    count_waits(monkeypatch)
    left = [(503, {"error": "away"}, {}), (429, {"error": "slow down"}, {"Retry-After": "599"})]
    assert ask(serve(lambda path, body: left.pop(0) if left else chat_reply(path, body))) == [letter_of("q")]
    assert "599 seconds" in caplog.text


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda path, body: (404, {"detail": "Not Found"}, {}), "Not Found"),
        (lambda path, body: (403, f"<p>{KEY}</p>", {}), r"<p>\[key\]</p>"),
        (lambda path, body: (307, "", {"Location": "http://elsewhere"}), "http://elsewhere"),
        (lambda path, body: {"choices": [{"text": "A"}]}, "message.content"),
    ],
)
def test_a_server_that_refuses_is_quoted_without_the_key(serve, reply, message):
    server = serve(reply)
    with pytest.raises(QabiasError, match=message) as error:
        ask(server)
    assert KEY not in str(error.value)
    assert server.attempts["q"] == 1


@pytest.mark.slow
def test_of_a_thousand_requests_to_a_failing_server_none_is_lost_and_none_answered_twice(serve_faults, tmp_path):
    prompts = [f"question {number}" for number in range(1000)]
    server = serve_faults(faulty)
    answers = written(chat(server, tmp_path / "requests.jsonl", concurrency=16), prompts)
    assert set(server.faults) == set(SOME)
    assert sum(server.faults.values()) > 300
    assert answers == [letter_of(prompt) for prompt in prompts]
    assert server.answered == Counter(prompts)
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == 1000
