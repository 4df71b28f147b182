"""`kill -9` at random moments: the same command then ends with the bytes of one that was not disturbed."""

import random
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.loopback_server import KEY, Server
from tests.saved_models import save
from tests.test_checkpoints import train
from tests.tiny_models import make_model, make_tokenizer

from .forked import Command, call
from .helpers import SEED, chosen, contents, hidden, size

MOST_KILLS = 3
"""In one folder."""

RESULTS = ("scores.json", "analysis.json", "report.html")
CONCURRENCY = 4


def _run(benchmark, config, limit, *more):
    return ("run", benchmark, "--config", config, "--limit", limit, "--output", "run", *more)


BASELINE = ("--model", "baseline:random")
BBQ = _run("bbq", "Religion", 160, *BASELINE)
UNQOVER = _run("unqover", "religion", 60, *BASELINE)
BBNLI = _run("bbnli", "religion", 80, *BASELINE)
MERGE = ("merge", "half-0", "half-1", "--output", "run")
SERVER = _run("bbq", "Religion", 120, "--model", "m", "--backend", "server", "--max-connections", CONCURRENCY)


class Work(NamedTuple):
    """A command that is killed so often; `put` copies its inputs from the folder of all into the one where it runs."""

    kills: int
    arguments: tuple
    put: Callable[[Path, Path], object] = lambda inputs, folder: None


def _copied(name, inputs, folder, without=()):
    shutil.copytree(inputs / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*without))


WORKS = {
    "run bbq": Work(40, BBQ),
    "run unqover": Work(30, UNQOVER),
    "run bbnli": Work(21, BBNLI),
    "run a causal model": Work(
        20, _run("bbq", "Religion", 48, "--model", "model", "--device", "cpu"), partial(_copied, "causal")
    ),
    "run a server": Work(20, SERVER),
    "score bbq": Work(6, ("score", "run", "--report"), partial(_copied, "bbq", without=RESULTS)),
    "report": Work(8, ("report", "run"), partial(_copied, "bbq", without=("report.html",))),
    "merge bbq": Work(6, MERGE, partial(_copied, "bbq halves")),
    "export": Work(7, ("export", "run"), partial(_copied, "bbq")),
    "build": Work(6, ("build", "bbnli", "--config", "gender", "--output", "built")),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Folders by name: whole runs, their halves, and a tiny model."""
    folder = tmp_path_factory.mktemp("inputs")
    for name, arguments in (("bbq", BBQ), ("unqover", UNQOVER)):
        for place, more in ((name, ()), *((f"{name} halves", ("--shard", f"{half}/2")) for half in (0, 1))):
            (folder / place).mkdir(exist_ok=True)
            assert call(*arguments, *more, folder=folder / place).code == 0
            if more:
                (folder / place / "run").rename(folder / place / f"half-{more[1][0]}")
    save(folder / "causal" / "model", make_model("llama", max_position_embeddings=1024), make_tokenizer())
    return folder


@pytest.fixture
def server():
    """A server that takes a moment for every answer."""
    server = Server(delay=0.01)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", chosen(list(WORKS), quick=5))
def test_a_command_that_is_killed_ends_with_the_same_bytes_when_it_is_repeated(name, inputs, server, tmp_path):
    work = WORKS[name]
    asks = ("--base-url", server.url) if name == "run a server" else ()
    environment = {"QABIAS_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    start = partial(Command, *work.arguments, *asks, environment=environment)
    fresh = partial(_fresh, work, inputs, tmp_path)
    begun = time.monotonic()
    whole = _finished(start, fresh())
    seconds = time.monotonic() - begun
    moments = random.Random(f"{SEED} {name}")
    n_kills = n_folders = 0
    while n_kills < size(work.kills, quick=1):
        n_folders += 1
        assert n_folders < 4 * work.kills
        folder = fresh()
        for _ in range(moments.randint(1, MOST_KILLS)):
            command = start(folder=folder)
            _wait_for_a_moment(command, folder, moments, seconds)
            if not command.kill():
                break  # it had ended
            n_kills += 1
        assert _finished(start, folder) == whole
        shutil.rmtree(folder)
    # Of what a server had answered nothing was asked again; what was under way at a kill was.
    assert sum(server.attempts.values()) <= (n_folders + 1) * len(server.attempts) + n_kills * CONCURRENCY


def test_a_killed_run_is_refused_with_another_checkpoint_and_goes_on_with_its_own(inputs, tmp_path):
    work = WORKS["run a causal model"]
    start, fresh = partial(Command, *work.arguments), partial(_fresh, work, inputs, tmp_path)
    begun = time.monotonic()
    whole = _finished(start, fresh())
    seconds = time.monotonic() - begun
    moments = random.Random(f"{SEED} checkpoints")
    n_refused = 0
    for _ in range(size(20, quick=2)):
        folder = fresh()
        command = start(folder=folder)
        _wait_for_a_moment(command, folder, moments, seconds)
        command.kill()
        own = shutil.copytree(folder / "model", tmp_path / f"own-{n_refused}-{folder.parent.name}")
        train(folder / "model")
        has_begun = (folder / "run" / "run.json").exists()
        before = contents(folder)
        ended = start(folder=folder).end()
        assert ended.code == (2 if has_begun else 0), ended
        if has_begun:
            n_refused += 1
            assert ended.is_clean
            assert contents(folder) == before
            shutil.rmtree(folder / "model")
            shutil.copytree(own, folder / "model")
            assert _finished(start, folder) == whole
        shutil.rmtree(folder)
    assert n_refused


def _fresh(work, inputs, tmp_path):
    """A new folder with the inputs of a command."""
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}" / "here"
    folder.mkdir(parents=True)
    work.put(inputs, folder)
    return folder


def _finished(start, folder):
    """What a folder holds when the command has ended well, which has left nothing that is hidden."""
    ended = start(folder=folder).end()
    assert ended.code == 0, ended
    assert hidden(folder) == []
    return contents(folder)


def _wait_for_a_moment(command, folder, moments, seconds):
    """Wait for a moment of the time that the command takes, or until it has made some number of files."""
    deadline = time.monotonic() + 2 * seconds
    n_files = 10**9
    if moments.random() < 0.5:
        deadline = time.monotonic() + moments.random() * seconds
    else:
        n_files = moments.randint(1, 15)
    before = set(folder.rglob("*"))
    made = set()
    while command.is_running() and time.monotonic() < deadline and len(made) < n_files:
        made |= {path for path in folder.rglob("*") if path not in before}
        time.sleep(0.001)
