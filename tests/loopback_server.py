"""An OpenAI-compatible server on loopback that counts what it answers; for one that fails see `faulty_server`."""

import hashlib
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from qabias.runs.arguments import RunArguments
from qabias.scorers.server import client
from qabias.scorers.server.client import Client, Patience
from qabias.scorers.server.modes import ServerChatScorer

KEY = "sk-very-secret-0123456789"
TIMEOUT = 2.0


def digest(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def letter_of(prompt):
    """A model's answer that depends on the prompt only."""
    return "ABC"[digest(prompt) % 3]


class Server(ThreadingHTTPServer):
    """A server on loopback that counts what it answers; `fault` may spoil an attempt, `reply` makes the answer."""

    daemon_threads = True
    request_queue_size = 128
    handler = None  # the class that answers; None for `Handler`

    def __init__(self, reply=None, fault=None, delay=0.0):
        super().__init__(("127.0.0.1", 0), self.handler or Handler)
        self.reply = reply or chat_reply
        self.fault = fault or (lambda text, attempt: None)
        self.delay = delay
        self.lock = threading.Lock()
        self.attempts, self.answered, self.faults = Counter(), Counter(), Counter()
        self.keys = set()
        self.received = []  # path and headers of every request
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
        text = body["prompt"] if "prompt" in body else (body.get("messages") or body["input"])[0]["content"]
        with server.lock:
            server.keys.add(self.headers.get("Authorization"))
            server.received.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
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


def chat_reply(path, body):
    """A letter, and where they are asked for the probabilities of the first token."""
    assert path == "/v1/chat/completions"
    assert body.get("temperature", 0) == 0
    letter = letter_of(body["messages"][0]["content"])
    top = [{"token": letter, "logprob": -0.1}, {"token": "The", "logprob": -3.0}]
    logprobs = {"content": [{"token": letter, "logprob": -0.1, "top_logprobs": top}]} if body.get("logprobs") else None
    return {"choices": [{"message": {"role": "assistant", "content": letter}, "logprobs": logprobs}]}


@pytest.fixture
def serve():
    """Starts servers; takes the arguments of `Server`."""
    servers = []

    def begin(*args, make=Server, **options):
        server = make(*args, **options)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return server

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def surroundings(monkeypatch):
    """A key, no proxy, and clients that do not wait long."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("QABIAS_API_KEY", KEY)
    monkeypatch.setattr(client, "PATIENCE", Patience(first_wait=0.02, longest_wait=0.1))


def served(server, limit, config="SES", **options):
    """Arguments of a run of BBQ whose model is behind a server."""
    return RunArguments(
        "bbq", "m", config=config, backend="server", limit=limit, options={"base_url": server.url, **options}
    )


def chat(server, journal=None, **options):
    """A scorer that lets the model behind a server write."""
    return ServerChatScorer("m", Client(server.url, **{"timeout": TIMEOUT, **options}, journal=journal))


def written(scorer, prompts):
    """The answers to prompts, which are their own keys."""
    return [text for (text,) in scorer.generate(prompts, prompts)]
