"""Runs whose model is behind a server: estimated first, the same bytes after faults and kills, no key in a file."""

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
from dataclasses import replace

import pytest

from lab.speed import servers
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.errors import QabiasError
from qabias.planning import estimate_run
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import create_or_resume
from qabias.runs.question import load_examples
from qabias.runs.run import merge, prepare, run
from qabias.scorers.journal import Journal

from . import tiny_models
from .conftest import ROOT
from .echo_model import EchoModel
from .faulty_server import FaultyServer, faulty
from .kit.commands import refused
from .loopback_server import KEY, TIMEOUT, chat_reply, served
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")


def test_scores_are_those_of_a_server_without_faults(serve, tmp_path):
    scores = []
    for number, server in enumerate((serve(), serve(faulty, make=FaultyServer))):
        result = run(served(server, 80, timeout=str(TIMEOUT), max_connections="16"), tmp_path / str(number))
        scores.append((tmp_path / str(number) / "predictions" / "part-00000.parquet").read_bytes())
        assert "format:letters@1" in result.signature
        assert len(server.answered) == 80
    assert sum(server.faults.values()) > 10
    assert scores[0] == scores[1]


def test_a_name_that_comes_to_mean_another_model_ends_the_run_and_keeps_its_answers(serve, tmp_path):
    named = iter([*["m-2026-01-31"] * 11, *["m-2026-11-28"] * 9])
    server = serve(lambda path, body: {**chat_reply(path, body), "model": next(named, "m-2026-01-31")})
    arguments = served(server, 40, max_connections="1")

    def shard(number, folder):
        return run(arguments, tmp_path / folder, Machine(shard=(number, 2), shows_progress=False))

    with pytest.raises(QabiasError, match="come from 'm-2026-11-28', but this run began with 'm-2026-01-31'"):
        shard(0, "run")
    assert len((tmp_path / "run" / "requests.jsonl").read_text("utf-8").splitlines()) == 12
    with pytest.raises(QabiasError, match="come from"):
        shard(0, "run")
    named = iter(())
    assert shard(0, "run").scores
    assert server.attempts.total() == 40 + 2  # the two refused ones
    # Two machines: each sees one name.
    other = replace(arguments, limit=None)
    for number in (0, 1):
        asked, folder, _, question = prepare(other, load_examples(other), folder=tmp_path / f"shard-{number}")
        create_or_resume(folder, asked, question.signature, 64)
        Journal(folder / "requests.jsonl").add("model", f"m-{number}")
    with pytest.raises(QabiasError, match="answers of 'm-0' and 'm-1'"):
        merge([tmp_path / "shard-0", tmp_path / "shard-1"], tmp_path / "whole")


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_without_asking_again(serve, tmp_path):
    killed_yet = threading.Event()

    def wait_for_the_kill(text, attempt):
        if len(server.answered) >= 270:
            killed_yet.wait()

    server = serve(fault=wait_for_the_kill)
    command = [sys.executable, "-m", "qabias", "run", "bbq", "--backend", "server", "--model", "m", "--config", "Age",
               "--limit", "300", "--base-url", server.url, "--max-connections", "4"]  # fmt: skip
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
    assert len(before) == kept + 4 < 296  # all but what was under way is kept

    # Another number of threads is the same run.
    again = subprocess.run([*command[:-1], "3", "--output", "run"], cwd=tmp_path, env=environment, capture_output=True)
    assert again.returncode == 0, again.stderr
    assert len(server.attempts) == 296
    assert sum(server.attempts.values()) - sum(before.values()) == 296 - kept
    assert server.keys == {f"Bearer {KEY}"}

    run(served(server, 300, "Age"), tmp_path / "whole")
    for name in ("predictions/part-00000.parquet", "predictions/part-00001.parquet", "scores.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not any(KEY.encode() in content for content in (*files, output, again.stdout, again.stderr))


def test_a_run_goes_on_at_another_address(serve, tmp_path):
    def ask(server):
        return run(served(server, 40), tmp_path / "run").signature

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


@pytest.mark.slow
def test_a_dry_run_tells_requests_tokens_and_cost_and_asks_nothing(serve, tmp_path):
    server = serve()
    result = dry_run(
        "--model", "m", "--base-url", server.url,
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
    assert "4 bytes per token" in result.stdout


def test_an_estimate_counts_the_requests_of_a_run_and_the_tokens_of_a_tokenizer(serve, tmp_path):
    tokenizer = tiny_models.make_tokenizer()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    server = serve(EchoModel())
    options = {"base_url": server.url, "mode": "echo", "tokenizer": str(tmp_path / "tokenizer")}
    arguments = RunArguments("bbq", "m", config="SES", backend="server", limit=8, options=options)
    found = estimate_run(arguments)
    assert not server.attempts
    run(arguments, tmp_path / "run")
    assert found.n_requests == sum(server.answered.values()) == len(server.answered)
    assert found.prompt_tokens == sum(len(tokenizer.encode(text)) for text in server.answered)
    assert found.generated_tokens == found.n_requests
    assert found.cost is None
    assert "tokenizer" not in json.loads((tmp_path / "run" / "run.json").read_text())["arguments"]["options"]
    with pytest.raises(QabiasError, match=r"tokenizer .* cannot be loaded"):
        estimate_run(RunArguments("bbq", backend="server", limit=4, options={**options, "tokenizer": str(tmp_path)}))


def test_a_dry_run_refuses_what_a_run_refuses_and_a_model_on_this_machine():
    with pytest.raises(QabiasError, match="backend server"):
        estimate_run(RunArguments("bbq"))


def test_an_error_in_a_worker_thread_names_options_on_the_command_line(serve, tmp_path):
    asked = []

    def reply(path, body):
        asked.append(body)
        return chat_reply("ANSWER: A") if len(asked) < 2 else (404, {"error": {"message": "no"}}, {})

    server = serve(reply)
    words = ("--model", "m", "--limit", 40, "--ask", "letter", "--output", tmp_path / "run")
    assert "Check --base-url" in refused("run", "bbq", "--base-url", server.url, *words)


# Real servers


@pytest.mark.slow
def test_served_in_the_same_precision_a_model_writes_the_same(monkeypatch, capsys):
    pytest.importorskip("gguf")
    if servers.lacking(servers.TRANSFORMERS) and servers.lacking(servers.LLAMA):
        pytest.skip('no server is installed; run: pip install "transformers[serving]" "llama-cpp-python[server]"')
    monkeypatch.setattr(sys, "argv", ["servers", "--quick"])
    assert servers.main() == 0
    shown = capsys.readouterr().out
    for row in shown.splitlines():
        if "float32 |" in row:
            assert "| 100.0 % | 100.0 % |" in row


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("benchmark", "config"), [("bbq", "SES"), ("unqover", "gender"), ("bbnli", "all")])
def test_every_benchmark_can_be_asked_by_echo(serve, tmp_path, benchmark, config):
    server = serve(EchoModel())
    options = {"base_url": server.url, "mode": "echo"}
    result = run(
        RunArguments(benchmark, "m", config=config, backend="server", limit=4, options=options), tmp_path / "r"
    )
    assert not result.n_missing_parts
    assert "|scorer:server+mode=echo|" in result.signature
