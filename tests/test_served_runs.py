"""Runs whose model is behind a server: estimated first, the same bytes after faults and kills, no key in a file."""

import json
import os
import re
import shutil
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

import numpy as np
import pytest
import transformers

from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.errors import QabiasError
from qabias.models.loading import CAUSAL, SMOLLM2, find_smollm2, load_model
from qabias.planning import estimate_run
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.scorers.server import client
from qabias.scorers.server.client import Patience
from qabias.support.files import strict
from qabias.support.http import HttpClient
from speed import servers
from speed.servers import LLAMA, TRANSFORMERS, lacking

from . import saved_models, tiny_models
from .conftest import ROOT
from .echo_model import EchoModel
from .loopback_server import KEY, TIMEOUT, faulty
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")

LIMIT = 200
KILLED_AT = (60, 130)
CHAT = "{% for message in messages %}{{ message.content }}{% endfor %}"
SECONDS_TO_START = 300


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


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("benchmark", "config"), [("bbq", "SES"), ("unqover", "gender"), ("bbnli", "all")])
def test_every_benchmark_can_be_asked_by_echo(serve, tmp_path, benchmark, config):
    server = serve(EchoModel())
    options = {"url": server.url, "mode": "echo"}
    result = run(RunArguments(benchmark, "m", config=config, scorer="server", limit=4, options=options), tmp_path / "r")
    assert result.scores is not None
    assert "|scorer:server+mode=echo|" in result.signature


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
    table = load_examples(RunArguments("bbq", config="SES", limit=40)).table
    prompts = {BENCHMARK.request(row, BENCHMARK.formats["letters"]).prefix for row in table.to_pylist()}
    tokens = -(-sum(len(prompt.encode()) for prompt in prompts) // 4)
    figures = [float(text.replace(",", "")) for text in re.findall(r": +([\d,.]+) *", result.stdout)]
    assert figures[:3] == [len(prompts), tokens, 4 * 64 * len(prompts)]
    assert figures[3] == pytest.approx((tokens * 1000 + 4 * 64 * len(prompts) * 2000) / 1e6, abs=0.005)
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


def test_a_dry_run_of_a_model_on_this_machine_is_refused():
    with pytest.raises(QabiasError, match="--scorer server"):
        estimate_run(RunArguments("bbq"))


def test_a_dry_run_refuses_what_a_run_refuses():
    with pytest.raises(QabiasError, match="limit is 0; it must be at least 1"):
        estimate_run(RunArguments("bbq", scorer="server", limit=0, options={"url": "http://h/v1"}))


# Real servers


@pytest.fixture
def smollm2():
    """The bundled model; skips without it."""
    pytest.importorskip("gguf")
    return load_model(CAUSAL, SMOLLM2, device="cpu", dtype="float32")


@pytest.mark.slow
def test_the_files_for_servers_hold_the_same_weights(smollm2, tmp_path):
    import gguf

    plain = transformers.AutoModelForCausalLM.from_pretrained(servers.save_float32(tmp_path / "plain"))
    expected = smollm2.model.state_dict()
    found = plain.state_dict()
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    folder, file = find_smollm2()
    source = Path(folder) / file["gguf_file"]
    packed = gguf.GGUFReader(source)
    whole = gguf.GGUFReader(servers.write_float32_gguf(source, tmp_path / "whole.gguf"))
    assert {tensor.tensor_type.name for tensor in whole.tensors} == {"F32"}
    assert any(tensor.tensor_type.name != "F32" for tensor in packed.tensors)
    for one, other in zip(packed.tensors, whole.tensors, strict=True):
        assert one.name == other.name
        assert np.array_equal(gguf.dequantize(one.data, one.tensor_type), other.data)
    metadata = {name: field.contents() for name, field in packed.fields.items() if not name.startswith("GGUF.")}
    for name, value in metadata.items():
        assert whole.fields[name].contents() == value or name == "general.file_type"


@pytest.mark.slow
@pytest.mark.usefixtures("smollm2")
def test_served_in_the_same_precision_a_model_writes_the_same(monkeypatch, capsys):
    if servers.lacking(servers.TRANSFORMERS) and servers.lacking(servers.LLAMA):
        pytest.skip('no server is installed; run: pip install "transformers[serving]" "llama-cpp-python[server]"')
    monkeypatch.setattr(sys, "argv", ["servers", "--quick"])
    assert servers.main() == 0
    shown = capsys.readouterr().out
    for row in shown.splitlines():
        if "float32 |" in row:
            assert "| 100.0 % | 100.0 % |" in row


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
