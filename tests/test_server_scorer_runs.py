"""Runs whose model is behind a server: the same bytes after faults and kills, no key in a file."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from qabias.runs.arguments import RunArguments
from qabias.runs.run import run

from .conftest import ROOT
from .echo_model import EchoModel
from .loopback_server import KEY, TIMEOUT, faulty
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")


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
