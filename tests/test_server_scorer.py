"""A model behind a server: nothing lost, nothing asked twice, the same figures as from the model itself."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from qabias.answers.parsing import parse_choice
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.errors import QabiasError
from qabias.measuring import run as runs
from qabias.measuring.run import Machine, RunArguments, run
from qabias.planning.server import estimate_run
from qabias.scorers import load_scorer
from qabias.scorers.base import Request
from qabias.scorers.causal import CausalScorer
from qabias.scorers.server import client
from qabias.scorers.server.client import Client
from qabias.scorers.server.journal import Journal
from qabias.scorers.server.scorer import ServerChatScorer, parse_options, sum_option

from . import tiny_models
from .conftest import ROOT

KEY = "sk-very-secret-0123456789"
TIMEOUT = 2.0
FAULTS = ("500", "503", "429", "429 with Retry-After", "cut before", "cut within", "stall")


def digest(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def letter_of(prompt):
    """A model's answer that depends on the prompt only."""
    return "ABC"[digest(prompt) % 3]


class Server(ThreadingHTTPServer):
    """A server on loopback that counts what it answers; `fault` may spoil an attempt, `reply` makes the answer."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, reply=None, fault=None, delay=0.0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply = reply or chat_reply
        self.fault = fault or (lambda text, attempt: None)
        self.delay = delay
        self.lock = threading.Lock()
        self.attempts, self.answered, self.faults = Counter(), Counter(), Counter()
        self.times, self.keys = [], set()
        self.active = self.most_active = 0
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """A client that was killed or waits no longer is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["prompt"] if "prompt" in body else body["messages"][0]["content"]
        with server.lock:
            server.keys.add(self.headers.get("Authorization"))
            server.times.append(time.monotonic())
            attempt = server.attempts[text]
            server.attempts[text] += 1
            server.active += 1
            server.most_active = max(server.most_active, server.active)
        try:
            time.sleep(server.delay)
            fault = server.fault(text, attempt)
            status, answer, headers = (200, server.reply(self.path, body), {}) if fault is None else (0, None, {})
        finally:
            with server.lock:
                server.active -= 1
        if fault is not None:
            with server.lock:
                server.faults[fault] += 1
            self._spoil(fault)
            return
        if isinstance(answer, tuple):
            status, answer, headers = answer
        self._send(status, answer, headers)
        if status == 200:
            with server.lock:
                server.answered[text] += 1

    def _send(self, status, answer, headers):
        content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def _spoil(self, fault):
        self.close_connection = True
        if fault[:3].isdecimal():
            headers = {"Retry-After": "0.1"} if fault.endswith("Retry-After") else {}
            self._send(int(fault[:3]), {"error": {"message": "busy"}}, headers)
        elif fault == "cut within":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
        elif fault == "stall":
            time.sleep(TIMEOUT + 0.5)


def chat_reply(path, body):
    assert path == "/v1/chat/completions"
    assert body["temperature"] == 0
    return {"choices": [{"message": {"role": "assistant", "content": letter_of(body["messages"][0]["content"])}}]}


@pytest.fixture
def serve():
    servers = []

    def start(*args, **options):
        server = Server(*args, **options)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("QABIAS_API_KEY", KEY)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.02)
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.1)


def chat(server, journal=None, **options):
    return ServerChatScorer("m", Client(server.url, **{"timeout": TIMEOUT, **options}, journal=journal))


def written(scorer, prompts):
    return [text for (text,) in scorer.generate(prompts, prompts)]


# A server in trouble


def faulty(text, attempt):
    """A third of first attempts fail, and a third of those that follow them; a few stall."""
    draw = digest(f"{text}/{attempt}")
    if draw % 3 or attempt > 3:
        return None
    fault = FAULTS[draw // 3 % len(FAULTS)]
    return "500" if fault == "stall" and draw // 100 % 6 else fault


def test_of_a_thousand_requests_to_a_failing_server_none_is_lost_and_none_answered_twice(serve, tmp_path):
    prompts = [f"question {number}" for number in range(1000)]
    server = serve(fault=faulty)
    answers = written(chat(server, tmp_path / "requests.jsonl", concurrency=16), prompts)
    assert set(server.faults) == set(FAULTS)
    assert sum(server.faults.values()) > 300
    assert answers == [letter_of(prompt) for prompt in prompts]
    assert server.answered == Counter(prompts)
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == 1000


def test_scores_are_those_of_a_server_without_faults(serve, tmp_path):
    scores = []
    for number, fault in enumerate((None, faulty)):
        server = serve(fault=fault)
        options = {"url": server.url, "timeout": str(TIMEOUT), "concurrency": "16"}
        arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=80, options=options)
        result = run(arguments, tmp_path / str(number))
        scores.append((tmp_path / str(number) / "predictions" / "part-00000.parquet").read_bytes())
        assert "format:letters@1" in result.signature
        assert len(server.answered) == 80
    assert sum(server.faults.values()) > 10
    assert scores[0] == scores[1]


def test_never_more_requests_are_under_way_than_allowed(serve):
    server = serve(delay=0.02)
    written(chat(server, concurrency=3), [str(number) for number in range(60)])
    assert server.most_active == 3


def test_a_server_that_names_a_time_to_wait_gets_it(serve):
    server = serve(
        lambda path, body: (
            chat_reply(path, body) if server.attempts["q"] > 1 else (429, {"error": "slow down"}, {"Retry-After": "1"})
        )
    )
    assert written(chat(server), ["q"]) == [letter_of("q")]
    assert server.times[1] - server.times[0] >= 1


def test_a_time_to_wait_is_read_as_seconds_or_date():
    soon = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 100))
    assert 95 < client._retry_after(soon) < 101
    assert [client._retry_after(value) for value in ("7", "-3", "nan", "soon", None)] == [7, 0, 0, 0, 0]


def test_a_wait_of_hours_is_left_to_the_user(serve):
    server = serve(lambda path, body: (429, {"error": {"message": "daily quota"}}, {"Retry-After": "7200"}))
    with pytest.raises(QabiasError, match=r"daily quota; it wants no request for 7200 seconds"):
        written(chat(server), ["q"])
    assert server.attempts["q"] == 1


def test_a_server_that_stays_away_is_given_up(serve, monkeypatch, caplog):
    monkeypatch.setattr(client, "ATTEMPTS", 3)
    server = serve(fault=lambda text, attempt: "503")
    with pytest.raises(QabiasError, match=r"status 503: busy, 3 times in a row; run the same command again"):
        written(chat(server), ["q"])
    assert server.attempts["q"] == 3
    assert len(caplog.records) == 1  # one warning, however many attempts
    server.server_close()
    with pytest.raises(QabiasError, match="3 times in a row"):
        written(ServerChatScorer("m", Client("http://127.0.0.1:1/v1")), ["q"])


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


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_without_asking_again(serve, tmp_path):
    killed_yet = threading.Event()

    def wait_for_the_kill(text, attempt):
        if len(server.answered) >= 270:
            killed_yet.wait()

    server = serve(fault=wait_for_the_kill)
    command = [sys.executable, "-m", "qabias", "run", "bbq", "--scorer", "server", "--model", "m", "--config", "Age",
               "--limit", "300", "--option", f"url={server.url}", "--option", "concurrency=4"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen(
        [*command, "--output", "run"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    while not (len(server.answered) >= 270 and server.active == 4):
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    output = killed.communicate()[0]
    killed_yet.set()
    journal = tmp_path / "run" / "requests.jsonl"
    kept = len(journal.read_bytes().splitlines())
    before = Counter(server.attempts)
    assert kept >= 270
    assert len(before) == kept + 4 < 300  # all but what was under way is kept

    # Another number of threads is the same run.
    again = subprocess.run(
        [*command[:-1], "concurrency=3", "--output", "run"], cwd=tmp_path, env=environment, capture_output=True
    )
    assert again.returncode == 0, again.stderr
    assert len(server.attempts) == 300
    assert sum(server.attempts.values()) - sum(before.values()) == 300 - kept
    assert server.keys == {f"Bearer {KEY}"}

    options = {"url": server.url}
    run(RunArguments("bbq", "m", config="Age", scorer="server", limit=300, options=options), tmp_path / "whole")
    for name in ("predictions/part-00000.parquet", "predictions/part-00001.parquet", "scores.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not any(KEY.encode() in content for content in (*files, output, again.stdout, again.stderr))


# Log-likelihoods


class EchoModel:
    """Answers `/completions` with the log-probabilities of a tiny model, one request at a time."""

    def __init__(self, adds_bos=False, refuses_zero=False):
        self.model = tiny_models.make_model("llama")
        self.tokenizer = tiny_models.make_tokenizer(adds_bos)
        self.refuses_zero = refuses_zero
        self.lock = threading.Lock()
        self.asked_for = []

    def __call__(self, path, body):
        assert path == "/v1/completions"
        assert body["echo"] is True
        assert body["logprobs"] == 1
        self.asked_for.append(body["max_tokens"])
        if self.refuses_zero and body["max_tokens"] == 0:
            return 400, {"message": "max_tokens must be at least 1, got 0"}, {}
        with self.lock, torch.inference_mode():
            ids = self.tokenizer.encode(body["prompt"])
            n_prompt = len(ids)
            logits = self.model(torch.tensor([ids])).logits[0]
            if body["max_tokens"]:
                ids.append(int(logits[-1].argmax()))
        values = [None, *logits[:-1].log_softmax(-1)[range(n_prompt - 1), ids[1:n_prompt]].tolist()]
        tokens = [self.tokenizer.decode([token]) for token in ids]
        logprobs = {
            "tokens": tokens,
            "token_logprobs": values + [-0.5] * (len(ids) - n_prompt),
            "text_offset": [sum(map(len, tokens[:i])) for i in range(len(tokens))],
        }
        usage = {"prompt_tokens": n_prompt, "completion_tokens": len(ids) - n_prompt}
        return {"choices": [{"text": "".join(tokens), "logprobs": logprobs}], "usage": usage}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("adds_bos", "refuses_zero"), [(False, False), (True, False), (False, True), (True, True)])
def test_echoed_log_likelihoods_are_those_of_the_causal_scorer(serve, adds_bos, refuses_zero):
    model = EchoModel(adds_bos, refuses_zero)
    server = serve(model)
    table = BENCHMARK.load("SES", BENCHMARK.origin("bundled", 0, False, None)).slice(0, 6)
    requests = [BENCHMARK.request(row, BENCHMARK.formats["qa"]) for row in table.to_pylist()]
    scorer = load_scorer("server", "m", scorer_options={"url": server.url, "mode": "echo"})
    if refuses_zero:
        with pytest.warns(UserWarning, match="one token is generated for every option and cut off"):
            found = scorer.score(requests)
        assert model.asked_for.count(0) <= client.CONCURRENCY
    else:
        found = scorer.score(requests)
        assert set(model.asked_for) == {0}
    expected = CausalScorer(tiny_models.load(model.model, adds_bos=adds_bos)).score(requests)
    for one, other in zip(found, expected, strict=True):
        assert one.loglikelihoods == pytest.approx(other.loglikelihoods, abs=1e-4)
        assert one.n_tokens.tolist() == other.n_tokens.tolist()
        assert one.n_bytes.tolist() == other.n_bytes.tolist()


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("benchmark", "config"), [("bbq", "SES"), ("unqover", "gender"), ("bbnli", "all")])
def test_every_benchmark_can_be_asked_by_echo(serve, tmp_path, benchmark, config):
    server = serve(EchoModel())
    options = {"url": server.url, "mode": "echo"}
    result = run(RunArguments(benchmark, "m", config=config, scorer="server", limit=4, options=options), tmp_path / "r")
    assert result.scores is not None
    assert "|scorer:server+mode=echo|" in result.signature


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


# Mistakes


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda path, body: (404, {"error": {"message": "no model m"}}, {}), "status 404: no model m"),
        (lambda path, body: (404, {"detail": "Not Found"}, {}), "status 404: .*Not Found"),
        (lambda path, body: (401, {"error": {"message": f"bad key {KEY}"}}, {}), r"bad key \[key\]; .*QABIAS_API_KEY"),
        (lambda path, body: (403, f"<p>{KEY}</p>", {}), r"status 403: <p>\[key\]</p>"),
        (lambda path, body: (307, "", {"Location": "http://elsewhere"}), "status 307: no message"),
        (lambda path, body: "<html>a page</html>", "not a JSON object"),
        (lambda path, body: ["a list"], "not a JSON object"),
        (lambda path, body: {"choices": []}, r"no choices\[0\].message.content"),
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
def test_a_failure_that_may_be_over_soon_is_tried_again(serve, monkeypatch, busy):
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)
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


def test_a_run_goes_on_at_another_address(serve, tmp_path):
    def ask(server):
        arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=40, options={"url": server.url})
        return run(arguments, tmp_path / "run").signature

    first, second = serve(), serve()
    assert ask(first) == ask(second)
    assert (len(first.answered), len(second.answered)) == (40, 0)
    shutil.rmtree(tmp_path / "run" / "predictions")
    ask(second)
    assert not second.answered
    assert "127.0.0.1" not in (tmp_path / "run" / "run.json").read_text("utf-8")


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
        ({"url": "http://h/v1", "mode": "talk"}, "give chat or echo"),
        ({"url": "http://h/v1", "api_key": "hunter2"}, "no option 'api_key'; it has url, mode"),
        ({"url": "http://h/v1", "concurrency": "0"}, "concurrency is '0'"),
        ({"url": "http://h/v1", "timeout": "inf"}, "timeout is 'inf'"),
        ({"url": "http://h/v1", "max_new_tokens": "many"}, "max_new_tokens is 'many'"),
        ({"url": "http://h/v1", "mode": "echo", "max_new_tokens": "3"}, "for written answers"),
        ({"url": "http://h/v1", "token_field": "tokens"}, "give max_tokens or max_completion_tokens"),
        ({"url": "http://h/v1", "temperature": "1"}, "temperature is '1'; give 0 or none"),
        ({"url": "http://h/v1", "mode": "echo", "temperature": "none"}, "for written answers"),
        ({"url": "http://h/v1", "price_in": "1"}, "both price_in and price_out"),
        ({"url": "http://h/v1", "price_in": "-1", "price_out": "1"}, "price_in is '-1'"),
    ],
)
def test_wrong_options_are_refused_and_secrets_not_repeated(options, message):
    with pytest.raises(QabiasError, match=message) as error:
        load_scorer("server", "m", scorer_options=options)
    assert "hunter2" not in str(error.value)


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


def test_what_only_the_server_can_choose_is_refused(tmp_path):
    options = {"url": "http://127.0.0.1:1/v1"}
    for wrong in ({"revision": "main"}, {"dtype": "float16"}):
        with pytest.raises(QabiasError, match="the server's to choose"):
            load_scorer("server", "m", scorer_options=options, **wrong)
    arguments = RunArguments("unqover", "m", config="gender", scorer="server", limit=1, options=options)
    with pytest.raises(QabiasError, match="give a server mode=echo"):
        run(arguments, tmp_path / "run", Machine())


# Estimates


def dry_run(*options):
    command = [sys.executable, "-m", "qabias", "run", "bbq", "--config", "SES", "--limit", "40", "--dry-run", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_a_dry_run_tells_requests_tokens_and_cost_and_asks_nothing(serve, tmp_path):
    server = serve()
    result = dry_run(
        "--scorer", "server", "--model", "m", "--option", f"url={server.url}",
        "--option", "price_in=1000", "--option", "price_out=2000",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert not server.attempts
    table = runs.load_examples(BENCHMARK, RunArguments("bbq", config="SES", limit=40))
    prompts = {BENCHMARK.request(row, BENCHMARK.formats["letters"]).prefix for row in table.to_pylist()}
    tokens = -(-sum(len(prompt.encode()) for prompt in prompts) // 4)
    figures = [float(text.replace(",", "")) for text in re.findall(r": +([\d,.]+) *", result.stdout)]
    assert figures[:3] == [len(prompts), tokens, 16 * len(prompts)]
    assert figures[3] == pytest.approx((tokens * 1000 + 16 * len(prompts) * 2000) / 1e6, abs=0.005)
    assert "4 bytes to a token" in result.stdout


def test_an_estimate_counts_the_requests_of_a_run_and_the_tokens_of_a_tokenizer(serve, tmp_path):
    tokenizer = tiny_models.make_tokenizer()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    server = serve(EchoModel())
    options = {"url": server.url, "mode": "echo", "tokenizer": str(tmp_path / "tokenizer")}
    arguments = RunArguments("bbq", "m", config="SES", scorer="server", limit=8, options=options)
    found = estimate_run(arguments)
    assert not server.attempts
    run(arguments, tmp_path / "run")
    assert found.n_requests == sum(server.answered.values()) == len(server.answered)
    assert found.prompt_tokens == sum(len(tokenizer.encode(text)) for text in server.answered)
    assert found.generated_tokens == found.n_requests
    assert found.cost is None
    assert "tokenizer" not in json.loads((tmp_path / "run" / "run.json").read_text())["arguments"]["options"]
    with pytest.raises(QabiasError, match=r"tokenizer .* cannot be loaded"):
        estimate_run(RunArguments("bbq", scorer="server", limit=4, options={**options, "tokenizer": str(tmp_path)}))


def test_a_dry_run_of_a_model_on_this_machine_points_to_the_plan():
    with pytest.raises(QabiasError, match="qabias plan"):
        estimate_run(RunArguments("bbq"))
    assert parse_options({"url": "http://h/v1"}).concurrency == client.CONCURRENCY


def test_a_dry_run_refuses_what_a_run_refuses():
    with pytest.raises(QabiasError, match="limit is 0; it must be at least 1"):
        estimate_run(RunArguments("bbq", scorer="server", limit=0, options={"url": "http://h/v1"}))
