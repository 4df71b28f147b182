"""Real servers killed and started again in the middle of a run: nothing is lost, and the scores are the same."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from qabias.models.loading import find_smollm2
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.server import client
from qabias.scorers.server.client import Patience
from qabias.support.files import strict
from qabias.support.http import HttpClient
from speed.servers import LLAMA, TRANSFORMERS, lacking

from . import saved_models, tiny_models

LIMIT = 200
KILLED_AT = (60, 130)
CHAT = "{% for message in messages %}{{ message.content }}{% endfor %}"
SECONDS_TO_START = 300


class Killable:
    """A server program on a port of its own that can be killed and started again."""

    def __init__(self, command, log):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command = [*command, "--host", "127.0.0.1", "--port", str(self.port)]
        self.log = log
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.start()

    def start(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        with self.log.open("a") as written:
            self.process = subprocess.Popen(self.command, stdout=written, stderr=written, env=environment)
        end = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/openapi.json", timeout=5).close()
                return
            time.sleep(0.5)
        raise AssertionError(f"the server did not start: {self.log.read_text()[-2000:]}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def transformers_serve(folder):
    """A tiny chat model behind `transformers serve`: its name, the command, and options of the scorer."""
    tokenizer = tiny_models.make_tokenizer()
    tokenizer.chat_template = CHAT
    model = saved_models.save(folder / "model", tiny_models.make_model("llama"), tokenizer)
    program = str(Path(sys.executable).with_name("transformers"))
    return model, [program, "serve", model, "--device", "cpu", "--dtype", "float32"], {}


def llama_cpp(folder):
    """The bundled model behind llama.cpp."""
    parent, file = find_smollm2()
    gguf = str(Path(parent) / file["gguf_file"])
    command = [sys.executable, "-m", "llama_cpp.server", "--n_threads", "1", "--n_ctx", "2048", "--model", gguf]
    return "smollm2", command, {"body.repeat_penalty": "1", "body.seed": "1"}


@pytest.mark.slow
@pytest.mark.parametrize(("packages", "make"), [(TRANSFORMERS, transformers_serve), (LLAMA, llama_cpp)])
def test_a_server_killed_twice_in_200_requests_costs_nothing(tmp_path, monkeypatch, record_property, packages, make):
    if missing := lacking(packages):
        pytest.skip(
            f'{", ".join(missing)} not installed; run: pip install "transformers[serving]" "llama-cpp-python[server]"'
        )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # A loaded machine may take minutes to start a server.
    monkeypatch.setattr(client, "PATIENCE", Patience(first_wait=0.5, longest_wait=5.0, attempts=200))
    sent, replied = counted(monkeypatch)
    model, command, options = make(tmp_path)
    server = Killable(command, tmp_path / "server.log")
    options |= {"url": server.url, "max_new_tokens": "4", "concurrency": "4", "timeout": "120"}
    arguments = RunArguments("bbq", model, config="Age", scorer="server", limit=LIMIT, options=options)
    try:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, arguments, tmp_path / "killed")
            journal = tmp_path / "killed" / "requests.jsonl"
            for n_answers in KILLED_AT:
                wait_for_answers(journal, n_answers, running)
                server.kill()
                time.sleep(1)
                server.start()
            killed = running.result()
        n_sent, n_replied = sent.total(), replied.total()
        undisturbed = run(arguments, tmp_path / "undisturbed")
    finally:
        server.kill()
    record_property("requests", f"{n_sent} sent, {n_replied} answered, {n_sent - LIMIT} sent again after a kill")
    assert n_replied == LIMIT == len(journal.read_bytes().splitlines())
    assert n_sent > LIMIT  # a kill met requests under way
    assert sent.total() == n_sent + LIMIT
    assert strict(killed.scores) == strict(undisturbed.scores)  # where an undefined score is None, and not NaN
    for path in (tmp_path / "killed" / "predictions").iterdir():
        assert path.read_bytes() == (tmp_path / "undisturbed" / "predictions" / path.name).read_bytes()


def counted(monkeypatch):
    """Counts of requests, those that a server took and those that it answered."""
    sent, replied, lock = Counter(), Counter(), threading.Lock()
    send = HttpClient.send

    def count(self, method, url, json=None):
        text = json["messages"][0]["content"]
        with lock:
            sent[text] += 1
        reply = send(self, method, url, json)
        with lock:
            replied[text] += reply.status == 200
        return reply

    monkeypatch.setattr(HttpClient, "send", count)
    return sent, replied


def wait_for_answers(journal, n_answers, running):
    """Wait until so many answers are kept."""
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= n_answers):
        assert not running.done(), running.exception()
        time.sleep(0.05)
