"""A server in every kind of trouble that is known, see `faulty_server`."""

import base64
import html
import json
import logging
import re
import resource
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.base import Request
from qabias.scorers.registry import load_scorer
from qabias.scorers.server import client, progress
from qabias.scorers.server.client import EMPTY_ATTEMPTS, FIRST_ATTEMPTS
from qabias.scorers.server.options import check_url
from qabias.scorers.server.secrets import blanked, blanked_answer, cleaned

from .echo_model import EchoModel
from .faulty_server import AGAIN, ANSWER, ENDS, FAULTS, names
from .faulty_server import serve_faults as serve_faults
from .loopback_server import KEY, chat, chat_reply, letter_of, written
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")

BOUNDS = {"timeout": 5.0, "total_timeout": 5.0}
SLOW = {"slow-loris-body", "slow-loris-headers", "6-seconds-away"}
SMALL = {"timeout": 1.0, "total_timeout": 1.0}
UNBOUND = ("endless-body", "endless-chunks", "gzip-bomb", "gzip-empty-blocks", "gzip-then-garbage", "length-of-10-TB")


def ask(server, prompts=("q",), **options):
    return written(chat(server, **{**BOUNDS, **options}), list(prompts))


@pytest.mark.parametrize("name", names(AGAIN))
def test_a_spoiled_attempt_is_sent_again(serve_faults, name):
    server = serve_faults(name)
    assert ask(server, **(SMALL if name in SLOW else {})) == [letter_of("q")]
    assert server.attempts["q"] == 2


@pytest.mark.parametrize("name", names(ANSWER))
def test_an_odd_answer_is_an_answer_that_can_be_kept(serve_faults, tmp_path, name):
    server = serve_faults(name, attempts=10**9)
    journal = tmp_path / "requests.jsonl"
    answers = ask(server, journal=journal)
    "".join(answers).encode()  # a text that can be stored
    assert ask(server, journal=journal) == answers
    assert server.attempts["q"] == 1
    assert KEY not in journal.read_text("utf-8")


@pytest.mark.parametrize("name", names(ENDS))
def test_a_lasting_failure_ends_at_once_in_one_printable_line_without_the_key(serve_faults, name):
    server = serve_faults(name, attempts=10**9)
    with pytest.raises(QabiasError, match=r"^server: ") as error:
        ask(server)
    message = str(error.value)
    assert message.isprintable()
    assert "hunter2" not in message
    assert len(message) < 500
    assert server.attempts["q"] == 1
    bare = re.sub(r"[\W_]+", "", message).lower()
    for form in (KEY, KEY[::-1], KEY.encode().hex()):
        assert re.sub(r"[\W_]+", "", form).lower() not in bare


def test_the_table_of_faults_has_all_outcomes_and_each_fault_one():
    assert {len(names(outcome)) > 10 for outcome in (AGAIN, ANSWER, ENDS)} == {True}
    assert sum(len(names(outcome)) for outcome in (AGAIN, ANSWER, ENDS)) == len(FAULTS)


@pytest.mark.parametrize("name", UNBOUND)
def test_a_body_without_bounds_takes_little_memory(serve_faults, name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(QabiasError, match="more than 16,000,000"):
        ask(serve_faults(name, attempts=10**9))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


@pytest.mark.parametrize("name", ["slow-loris-body", "slow-loris-headers"])
def test_a_server_that_trickles_is_given_up_after_the_total_time(serve_faults, name):
    begun = time.monotonic()
    with pytest.raises(QabiasError, match=f"no whole answer within 0.5 seconds, {FIRST_ATTEMPTS} times in a row"):
        ask(serve_faults(name, attempts=10**9), total_timeout=0.5)
    assert time.monotonic() - begun < 20


def test_prompts_that_get_no_choice_are_named_and_unread_and_the_others_answered(serve, tmp_path, caplog):
    lost = {"question 3", "question 7", "question 8", "question 9"}
    server = serve(lambda path, body: {"choices": []} if text_of(body) in lost else chat_reply(path, body))
    prompts = [f"question {number}" for number in range(12)]
    with caplog.at_level(logging.WARNING):
        answers = ask(server, prompts, journal=tmp_path / "j")
    assert answers == ["" if prompt in lost else letter_of(prompt) for prompt in prompts]
    assert {server.attempts[prompt] for prompt in lost} == {EMPTY_ATTEMPTS}
    told = [record.getMessage() for record in caplog.records if "at prompt" in record.getMessage()]
    assert len(told) == 3  # the first three of four
    assert all("an empty list of choices, 3 times in a row, at prompt 'question " in line for line in told)
    ask(server, prompts, journal=tmp_path / "j")
    assert {server.attempts[prompt] for prompt in lost} == {EMPTY_ATTEMPTS}


def test_without_a_choice_a_letter_is_missing_and_an_echo_ends_the_run_with_its_prompt(serve, caplog):
    server = serve(lambda path, body: {"choices": []})
    options = {"url": server.url, "mode": "logprobs"}
    with pytest.warns(UserWarning, match="counted as missing"):
        (found,) = load_scorer("server", "m", scorer_options=options).score([Request("a", (" A", " B"))])
    assert found.loglikelihoods.tolist() == [float("-inf")] * 2
    assert "3 times in a row, at prompt 'a'; it counts as missing" in caplog.text
    with pytest.raises(QabiasError, match=r"an empty list of choices, 3 times in a row, at prompt \.\.\.'a b'"):
        load_scorer("server", "m", scorer_options={**options, "mode": "echo"}).score([Request("a", (" b",))])


def text_of(body):
    return body["messages"][0]["content"]


def test_a_page_in_place_of_answers_is_told_after_three_attempts_and_later_after_ten(serve_faults, tmp_path):
    server = serve_faults("200-html", attempts=10**9)
    with pytest.raises(QabiasError, match=r"but '<html>Please sign in</html>'; is the url .* 3 times in a row"):
        ask(server)
    assert server.attempts["q"] == FIRST_ATTEMPTS
    server = serve_faults(lambda text, attempt: "200-html" if text == "later" else None)
    with pytest.raises(QabiasError, match="10 times in a row"):
        ask(server, ["first", "later"], journal=tmp_path / "j")
    with pytest.raises(QabiasError, match="10 times in a row"):  # a run that goes on has had its first request
        ask(server, ["later"], journal=tmp_path / "j")


# Connections


def test_an_address_that_does_not_speak_https_is_told_at_once(serve, monkeypatch):
    server = serve()
    server.url = server.url.replace("http:", "https:")
    waits = count_waits(monkeypatch)
    with pytest.raises(QabiasError, match="it does not speak https; give an address that begins with http://"):
        ask(server)
    assert waits == []


def count_waits(monkeypatch):
    waits = []
    monkeypatch.setattr(client.tenacity, "sleep_using_event", lambda event: waits.append)
    return waits


@pytest.fixture
def https_port(tmp_path):
    """A port where a server with a certificate of its own speaks https."""
    certificate = tmp_path / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
            "-keyout", str(certificate), "-out", str(tmp_path / "public.pem")]  # fmt: skip
    try:
        subprocess.run(made, check=True, capture_output=True)
    except OSError:
        pytest.skip("openssl, which makes the certificate, is not installed")
    with certificate.open("a") as file:
        file.write((tmp_path / "public.pem").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve_tls():
            while True:
                try:
                    connection, _ = listening.accept()
                    with context.wrap_socket(connection, server_side=True) as secured:
                        secured.recv(1000)
                except OSError:
                    if listening.fileno() < 0:
                        return

        threading.Thread(target=serve_tls, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def test_a_certificate_that_is_not_trusted_is_told_at_once(serve, monkeypatch, https_port):
    server = serve()
    server.url = f"https://127.0.0.1:{https_port}/v1"
    waits = count_waits(monkeypatch)
    with pytest.raises(QabiasError, match=r"its certificate is not trusted \(.*\); have it trusted by this machine"):
        ask(server)
    assert waits == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (f"http://{'a' * 64}.example/v1", "not of the form"),
        ("http://a..example/v1", "not of the form"),
        ("http://[bad/v1", "not of the form"),
        ("http://ﬁ.example/v1", "ASCII only"),
        ("http://host/v1\x1b[2J", "ASCII only"),
        ("http://host/a path", "ASCII only"),
        ("http://host:99999/v1", "not of the form"),
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url, message):
    with pytest.raises(QabiasError, match=message) as error:
        check_url(url)
    assert url not in str(error.value)


# Modes


def no_echo(path, body):
    """A server that chats, names likely tokens, and hangs when it is to echo."""
    if path.endswith("chat/completions"):
        return chat_reply(path, body)
    time.sleep(1.5)
    return {"choices": []}


@pytest.mark.parametrize("refuses", [False, True])
def test_a_mode_that_a_server_lacks_is_found_out_by_a_few_requests(serve, tmp_path, refuses):
    refusal = (404, {"error": {"message": "no such path"}}, {})
    server = serve(lambda path, body: refusal if refuses and "prompt" in body else no_echo(path, body))
    options = {"url": server.url, "mode": "echo", "timeout": "0.5"}
    with pytest.raises(
        QabiasError, match=r"does not answer with mode=echo; .* --option mode=chat and --option"
    ) as error:
        run(RunArguments("bbq", "m", config="SES", scorer="server", limit=40, options=options), tmp_path / "r")
    assert "mode=logprobs" in str(error.value)
    assert sum(server.attempts.values()) <= (4 if refuses else 8)


def test_a_mode_that_a_server_has_costs_no_request(serve, tmp_path):
    server = serve()
    arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=20, options={"url": server.url})
    run(arguments, tmp_path / "r")
    assert sum(server.attempts.values()) == 20
    run(arguments, tmp_path / "r")
    assert sum(server.attempts.values()) == 20


def test_a_server_that_takes_no_tokens_for_no_limit_is_asked_for_one(serve):
    model = EchoModel()

    def reply(path, body):
        if body["max_tokens"] == 0:
            time.sleep(1.5)
        return model(path, body)

    scorer = load_scorer("server", "m", scorer_options={"url": serve(reply).url, "mode": "echo", "timeout": "1"})
    with pytest.warns(UserWarning, match="one token is generated for every option and cut off"):
        (found,) = scorer.score([Request("a", (" b", " c"))])
    assert len(found.loglikelihoods) == 2


# Progress


def test_elsewhere_than_on_a_terminal_lines_tell_how_far_it_is(serve_faults, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    server = serve_faults("500")
    arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=8, options={"url": server.url})
    run(arguments, tmp_path / "r")
    assert "server: 8 requests answered, 8 sent again, 0 without a choice\n" in capsys.readouterr().err


# Secrets


@pytest.mark.parametrize("key", ["sk-very-secret-0123456789", "AbC+/=dEf123xyz", "gsk_%41lower_and_UPPER.9"])
def test_no_form_of_a_key_is_left(key):
    forms = [key, key[::-1], key.upper(), key.encode().hex(), " ".join(key), "\u200b".join(key), "\x00".join(key)]
    forms += [urllib.parse.quote(key, safe=""), urllib.parse.quote(urllib.parse.quote(key, safe=""), safe="")]
    forms += [json.dumps({"a": key}), json.dumps(json.dumps({"a": key})), html.escape(key)]
    forms += [base64.b64encode(f"{'x' * n}{key}{'y' * n}".encode()).decode() for n in range(6)]
    for form in forms:
        assert "[key]" in cleaned(f"before {form} after", key), form
        assert "[key]" in blanked(f"before\n{form}\nafter", key), form
    assert blanked("before and after", key) == "before and after"


def test_an_answer_is_kept_as_it_is_but_for_keys_and_half_pairs():
    kept = {"text": "100 % \\u0041 &amp; B", "top": [["A", -0.5], ["B", float("-inf")]], "none": None}
    assert blanked_answer(kept, KEY) == kept
    assert blanked_answer({"text": f"a \ud83d {KEY}", "top": [(f" {KEY[::-1]}", 1)]}, KEY) == {
        "text": "a \ufffd [key]",
        "top": [[" [key]", 1]],
    }
    assert blanked_answer({KEY: "A"}, KEY) == {KEY: "A"}


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("EMPTY", "the answer is EMPTY"),
        ("not-needed", "It is not needed to say. (B)"),
        ("anything", "anything"),
        ("password", "The password."),
        ("no-key-required", "no key required"),
        ("this-is-a-placeholder", "This is a placeholder"),
        ("12345678", "1, 2, 3, 4, 5, 6, 7, 8"),
        ("thinking", {"thinking": "I am thinking", "text": "A"}),
    ],
)
def test_a_word_in_place_of_a_key_changes_no_answer_and_is_left_out_of_messages(key, answer):
    assert blanked_answer(answer, key) == answer
    assert cleaned(f"no key {key} here", key) == "no key [key] here"


def test_a_short_key_is_blanked_in_messages():
    assert cleaned("no key hunter2 here", "hunter2") == "no key [key] here"


def test_a_run_whose_server_repeats_the_key_stores_and_prints_none(serve_faults, tmp_path, capsys, caplog):
    server = serve_faults("content-key", attempts=10**9)
    run(RunArguments("bbq", "m", config="SES", scorer="server", limit=8, options={"url": server.url}), tmp_path / "r")
    contents = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(contents) >= 5
    assert not any(KEY.encode() in content for content in contents)
    assert KEY not in "".join((*capsys.readouterr(), caplog.text))
