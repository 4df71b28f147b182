"""How often a request is sent: failures count by their kind."""

import logging
import time
import warnings

import pytest

from qabias.errors import QabiasError
from qabias.scorers.base import Request
from qabias.scorers.registry import load_scorer
from qabias.scorers.server.client import FIRST_ATTEMPTS

from .echo_model import EchoModel
from .loopback_server import chat, chat_reply, letter_of, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")

EMPTY = {"choices": []}


def failing(*statuses, then=chat_reply):
    """A reply that fails with each status in turn, None for an answer without a choice, and is good after that."""
    left = list(statuses)

    def reply(path, body):
        if not left:
            return then(path, body)
        status = left.pop(0)
        return EMPTY if status is None else (status, {"error": {"message": "busy"}}, {})

    return reply


@pytest.mark.parametrize("statuses", [(503,), (429, 429), (503,) * 8])
def test_a_passing_failure_of_the_first_request_does_not_end_mode_echo(serve, statuses):
    server = serve(failing(*statuses, then=EchoModel()))
    scorer = load_scorer("server", "m", scorer_options={"url": server.url, "mode": "echo"})
    (found,) = scorer.score([Request("a", (" b", " c"))])
    assert len(found.loglikelihoods) == 2
    assert sum(server.attempts.values()) == len(statuses) + 2


def test_mode_echo_is_given_up_after_ten_refused_connections(serve):
    server = serve()
    server.shutdown()
    server.server_close()
    scorer = load_scorer("server", "m", scorer_options={"url": server.url, "mode": "echo"})
    with pytest.raises(QabiasError, match="10 times in a row"):
        scorer.score([Request("a", (" b", " c"))])


def test_failures_of_other_kinds_do_not_make_one_empty_answer_an_unread_one(serve):
    server = serve(failing(429, 429, None))
    assert written(chat(server), ["q"]) == [letter_of("q")]
    assert server.attempts["q"] == 4


def test_three_empty_answers_among_other_failures_are_an_unread_one(serve, caplog):
    server = serve(failing(429, None, 429, None, None))
    assert written(chat(server), ["q"]) == [""]
    assert server.attempts["q"] == 5
    assert "an empty list of choices, 3 times in 5 attempts" in caplog.text


def test_failures_of_other_kinds_do_not_use_up_a_first_request(serve):
    server = serve(failing(503, 503, 503, 503, 500))
    assert written(chat(server), ["q"]) == [letter_of("q")]
    assert server.attempts["q"] == 6
    server = serve(failing(503, 500, 503, 500, 500))
    with pytest.raises(QabiasError, match="status 500: busy, 3 times in 5 attempts"):
        written(chat(server), ["q"])


def test_an_empty_answer_as_the_last_of_all_attempts_is_no_unread_one(serve):
    server = serve(failing(*(429,) * 9, None))
    with pytest.raises(QabiasError, match="an empty list of choices, 1 time in 10 attempts"):
        written(chat(server), ["q"])


@pytest.mark.parametrize(("status", "limit"), [(503, 10), (500, FIRST_ATTEMPTS), (None, 3)])
def test_the_warning_names_the_limit_that_holds(serve, caplog, status, limit):
    with caplog.at_level(logging.WARNING):
        written(chat(serve(failing(status))), ["q"])
    assert f"such requests are sent up to {limit} times" in caplog.text


# Slow answers


def slow(n_late):
    """A reply in any mode that is late for the first requests, except for test requests."""
    late, model = [], EchoModel()

    def reply(path, body):
        is_test = "letter after A" in str(body)
        if not is_test and len(late) < n_late:
            late.append(body)
            time.sleep(0.6)
        return model(path, body) if "prompt" in body else chat_reply(path, body)

    return reply


def test_a_slow_first_answer_is_waited_for_where_a_test_request_says_that_the_mode_works(serve):
    n_late = FIRST_ATTEMPTS + 2
    server = serve(slow(n_late))
    scorer = load_scorer("server", "m", scorer_options={"url": server.url, "timeout": "0.3"})
    assert written(scorer, ["q", "r"]) == [letter_of("q"), letter_of("r")]
    assert server.attempts["q"] == n_late + 1
    assert sum(server.attempts.values()) == n_late + 3 + 2


@pytest.mark.parametrize("mode", ["logprobs", "echo"])
def test_slow_first_probabilities_are_waited_for_too(serve, mode):
    server = serve(slow(FIRST_ATTEMPTS + 3))
    scorer = load_scorer("server", "m", scorer_options={"url": server.url, "mode": mode, "timeout": "0.3"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of one token that is cut off
        (found,) = scorer.score([Request("a", (" A", " B"))])
    assert len(found.loglikelihoods) == 2
    assert sum(server.answered.values()) >= 2


def test_an_answer_that_never_comes_is_waited_for_ten_times_and_the_option_is_named(serve):
    server = serve(slow(10**9))
    scorer = load_scorer("server", "m", scorer_options={"url": server.url, "timeout": "0.1"})
    with pytest.raises(QabiasError, match=r"10 times in a row; .* --option timeout=SECONDS"):
        written(scorer, ["q"])
    assert server.attempts["q"] == FIRST_ATTEMPTS + 10
