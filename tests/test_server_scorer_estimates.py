"""What a server would be asked is estimated without asking it."""

import json
import re
import subprocess
import sys

import pytest

from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.errors import QabiasError
from qabias.planning.server import estimate_run
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run

from . import tiny_models
from .conftest import ROOT
from .echo_model import EchoModel
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings

pytestmark = pytest.mark.usefixtures("surroundings")


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


def test_a_dry_run_of_a_model_on_this_machine_points_to_the_plan():
    with pytest.raises(QabiasError, match="qabias plan"):
        estimate_run(RunArguments("bbq"))


def test_a_dry_run_refuses_what_a_run_refuses():
    with pytest.raises(QabiasError, match="limit is 0; it must be at least 1"):
        estimate_run(RunArguments("bbq", scorer="server", limit=0, options={"url": "http://h/v1"}))
