"""A server in trouble: nothing lost, nothing asked twice, and no key in a message."""

from collections import Counter

import pytest
import tenacity

from qabias.errors import QabiasError
from qabias.scorers.journal import Journal
from qabias.scorers.server.chat import ServerChatScorer
from qabias.scorers.server.client import Client, Patience, seconds_to_wait

from .loopback_server import FAULTS, KEY, chat, chat_reply, faulty, letter_of, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")


def test_of_a_thousand_requests_to_a_failing_server_none_is_lost_and_none_answered_twice(serve, tmp_path):
    prompts = [f"question {number}" for number in range(1000)]
    server = serve(fault=faulty)
    answers = written(chat(server, tmp_path / "requests.jsonl", concurrency=16), prompts)
    assert set(server.faults) == set(FAULTS)
    assert sum(server.faults.values()) > 300
    assert answers == [letter_of(prompt) for prompt in prompts]
    assert server.answered == Counter(prompts)
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == 1000


def test_never_more_requests_are_under_way_than_allowed(serve):
    server = serve(delay=0.02)
    written(chat(server, concurrency=3), [str(number) for number in range(60)])
    assert server.most_active == 3


def test_a_server_that_names_a_time_to_wait_gets_it(serve, monkeypatch):
    waits = []
    monkeypatch.setattr(tenacity, "sleep_using_event", lambda event: waits.append)
    server = serve(
        lambda path, body: (
            chat_reply(path, body) if server.attempts["q"] > 1 else (429, {"error": "slow down"}, {"Retry-After": "9"})
        )
    )
    assert written(chat(server), ["q"]) == [letter_of("q")]
    assert waits == [9]


def test_a_time_to_wait_is_read_as_seconds_or_date():
    assert [seconds_to_wait(value) for value in ("7", "-3", "nan", "soon", None)] == [7, 0, 0, 0, 0]
    assert seconds_to_wait("Wed, 01 Jan 2200 00:00:00 GMT") > 365 * 24 * 3600
    assert seconds_to_wait("Thu, 01 Jan 1970 00:00:00 GMT") == 0


def test_a_wait_of_hours_is_left_to_the_user(serve):
    server = serve(lambda path, body: (429, {"error": {"message": "daily quota"}}, {"Retry-After": "7200"}))
    with pytest.raises(QabiasError, match=r"daily quota; it wants no request for 7200 seconds"):
        written(chat(server), ["q"])
    assert server.attempts["q"] == 1


def test_a_server_that_stays_away_is_given_up(serve, caplog):
    patience = Patience(first_wait=0.01, longest_wait=0.01, attempts=3)
    server = serve(fault=lambda text, attempt: "503")
    with pytest.raises(QabiasError, match=r"status 503: busy, 3 times in a row; run the same command again"):
        written(chat(server, patience=patience), ["q"])
    assert server.attempts["q"] == 3
    assert len(caplog.records) == 1  # one warning, however many attempts
    server.server_close()
    with pytest.raises(QabiasError, match="3 times in a row"):
        written(ServerChatScorer("m", Client("http://127.0.0.1:1/v1", patience=patience)), ["q"])


def test_after_an_error_nothing_new_is_sent_and_answers_are_kept(serve, tmp_path):
    def reply(path, body):
        if body["messages"][0]["content"] == "5":
            return 400, {"error": {"message": "this question is too long"}}, {}
        return chat_reply(path, body)

    server = serve(reply, delay=0.01)
    prompts = [str(number) for number in range(200)]
    with pytest.raises(QabiasError, match="status 400: this question is too long"):
        written(chat(server, tmp_path / "j", concurrency=2), prompts)
    assert 4 <= sum(server.attempts.values()) < 50
    assert server.attempts["5"] == 1
    kept = len((tmp_path / "j").read_text().splitlines())
    assert kept == len(server.answered)


# Nothing asked twice


def test_equal_requests_are_asked_once_and_answered_requests_never_again(serve, tmp_path):
    server = serve()
    assert written(chat(server, tmp_path / "j"), ["a", "b", "a"]) == [letter_of("a"), letter_of("b"), letter_of("a")]
    written(chat(server, tmp_path / "j"), ["b", "c"])
    assert server.attempts == Counter("abc")
    written(ServerChatScorer("other", Client(server.url, journal=tmp_path / "j")), ["a"])
    assert server.attempts["a"] == 2  # another model is another request


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_torn_last_line_is_asked_again_and_spoils_no_other(tmp_path, cut):
    path = tmp_path / "j"
    journal = Journal(path)
    for number in range(3):
        journal.add(f"hash{number}" * 8, "answer \n " * 5)
    journal.close()
    path.write_bytes(path.read_bytes()[:-cut])
    torn = Journal(path)
    is_whole = cut == 1  # only the end of the line is missing
    assert [f"hash{number}" * 8 in torn for number in range(3)] == [True, True, is_whole]
    torn.add("again", 2.5)
    torn.close()
    found = Journal(path)
    assert found["again"] == 2.5
    assert [f"hash{number}" * 8 in found for number in range(3)] == [True, True, is_whole]
    assert Journal(tmp_path / "none").add("a", 1) is None


# Mistakes


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda path, body: (404, {"error": {"message": "no model m"}}, {}), "status 404: no model m"),
        (lambda path, body: (404, {"detail": "Not Found"}, {}), "status 404: .*Not Found"),
        (lambda path, body: (401, {"error": {"message": f"bad key {KEY}"}}, {}), r"bad key \[key\]; .*QABIAS_API_KEY"),
        (lambda path, body: (403, f"<p>{KEY}</p>", {}), r"status 403: <p>\[key\]</p>"),
        (
            lambda path, body: (307, "", {"Location": "http://elsewhere"}),
            "status 307: it redirects to http://elsewhere",
        ),
        (lambda path, body: {"choices": [{"text": "A"}]}, r"no choices\[0\].message.content"),
        (lambda path, body: {"error": {"message": f"no {KEY}", "code": 404}}, r"status 200: no \[key\]"),
        (lambda path, body: (400, {"error": {"message": "too long", "code": "length"}}, {}), "status 400: too long"),
    ],
)
def test_a_server_that_refuses_is_quoted_without_the_key(serve, reply, message):
    server = serve(reply)
    with pytest.raises(QabiasError, match=message) as error:
        written(chat(server), ["q"])
    assert KEY not in str(error.value)
    assert server.attempts["q"] == 1


@pytest.mark.parametrize(
    "busy",
    [
        (408, {"error": {"message": "late"}}, {}),
        (425, {}, {}),
        (200, {"error": {"message": "the model behind is busy", "code": 429}}, {}),
        (200, {"error": {"message": "the model behind is away", "code": "503"}}, {}),
    ],
)
def test_a_failure_that_may_be_over_soon_is_tried_again(serve, busy):
    server = serve(lambda path, body: busy if server.attempts["q"] < 3 else chat_reply(path, body))
    assert written(chat(server), ["q"]) == [letter_of("q")]
    assert server.attempts["q"] == 3


@pytest.mark.parametrize(
    "error",
    [
        {"message": "filtered", "code": "content_filter"},
        {"message": "against the rules", "code": None, "type": "content_policy_violation"},
    ],
)
def test_a_prompt_that_a_filter_refuses_has_an_empty_answer_and_is_not_asked_again(serve, tmp_path, error):
    server = serve(lambda path, body: (400, {"error": error}, {}))
    for _ in range(2):
        assert written(chat(server, tmp_path / "requests.jsonl"), ["q"]) == [""]
    assert server.attempts["q"] == 1


def test_the_key_is_qabias_own_then_openais_and_a_broken_one_is_not_repeated(serve, monkeypatch, caplog):
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    written(chat(server), ["a"])
    assert not caplog.records
    monkeypatch.setenv("QABIAS_API_KEY", "")
    written(chat(server), ["b"])
    assert "the key in OPENAI_API_KEY goes to 127.0.0.1" in caplog.text
    assert "sk-other" not in caplog.text
    monkeypatch.delenv("OPENAI_API_KEY")
    written(chat(server), ["c"])
    assert server.keys == {f"Bearer {KEY}", "Bearer sk-other", None}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-one\nsk-two")
    with pytest.raises(QabiasError, match="the key in OPENAI_API_KEY") as error:
        chat(server)
    assert "sk-" not in str(error.value)
