"""An interrupted run shows what it has: ranges that hold the later scores, and the command that ends it."""

import math
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.runs import run as measuring
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import read_run
from qabias.runs.run import run
from qabias.runs.unfinished import command_of, read_unfinished
from qabias.scores.score import possible_range

from .campaign.helpers import contents
from .kit.commands import command
from .loopback_server import serve as serve
from .loopback_server import served
from .loopback_server import surroundings as surroundings
from .services import Service

QUIET = Machine(shows_progress=False)


def stop_after(monkeypatch, n_parts):
    """A run raises like Ctrl-C when it has written so many parts."""
    write, written = measuring.write_part, []

    def counted(*args):
        if len(written) == n_parts:
            raise KeyboardInterrupt
        written.append(args[3].num_rows)
        write(*args)

    monkeypatch.setattr(measuring, "write_part", counted)
    return written


def interrupt(arguments, folder, n_parts):
    """Begin a run and stop it; the number of examples in its parts."""
    with pytest.MonkeyPatch.context() as patch:
        written = stop_after(patch, n_parts)
        with pytest.raises(KeyboardInterrupt):
            run(arguments, folder, QUIET)
    return sum(written)


def shown(folder):
    """What `show` prints; it writes nothing."""
    before = contents(folder), sorted(folder.rglob("*"))
    ended = command("show", str(folder), "--full")
    assert (contents(folder), sorted(folder.rglob("*"))) == before
    return ended


def values_of(benchmark, scores):
    """Every score of every group, with its possible range."""
    for name, group in benchmark.groups(scores).items():
        for measure in benchmark.facts.measures:
            yield (name, measure.name), group.get(measure.name), possible_range(group, measure)


def check_ranges(benchmark, early, late):
    final = {key: value for key, value, _ in values_of(benchmark, late)}
    ranged = [(final[key], ends) for key, _, ends in values_of(benchmark, early) if ends]
    assert len(ranged) >= 4
    for value, (low, high) in ranged:
        assert value is None or math.isnan(value) or low - 1e-9 <= value <= high + 1e-9
    assert any(low < high for _, (low, high) in ranged)


RUNS = {
    "bbq": ({"config": "Age", "limit": 200}, 2),
    "bbq-orders": ({"config": "Age", "limit": 100, "format": "letters", "permutations": 3}, 1),
    "bbq-prompts": ({"config": "Age", "limit": 40, "format": "five"}, 7),
    "bbq-scores": ({"config": "all", "limit": 300, "scores": "bias_ambig"}, 3),
    "bbnli": ({"limit": 400}, 1),
    "bbq_nli": ({"config": "all_nli", "limit": 400}, 1),
    "unqover": ({"limit": 200}, 12),
}
SLOW = ("bbq-scores", "bbq_nli", "unqover")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in RUNS])
def test_an_interrupted_run_has_the_range_of_its_later_scores_and_ends_as_another(name, tmp_path, monkeypatch):
    benchmark, (more, n_parts) = load_benchmark(name.partition("-")[0]), RUNS[name]
    monkeypatch.setattr(type(benchmark), "units_per_part", lambda self, kind: 8)
    arguments = RunArguments(benchmark.name, "baseline:random", **more)
    n = interrupt(arguments, tmp_path / "run", n_parts)
    early = read_unfinished(tmp_path / "run")
    assert early.n_answered == n
    ended = shown(tmp_path / "run")
    assert ended.code == 0
    first, second, *_ = ended.out.splitlines()
    assert first == f"Unfinished: {n:,} of {early.n_asked:,} examples."
    assert "possible range" in ended.out

    whole = run(arguments, tmp_path / "whole", QUIET)
    assert early.n_asked == whole.answers.num_rows > n
    check_ranges(benchmark, early.scores, whole.scores)
    _, _, words = second.partition("To finish, rerun: qabias ")
    assert command(*shlex.split(words), "--no-report").code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_written_answers_count_only_if_they_are_there(serve, surroundings, tmp_path, monkeypatch):
    monkeypatch.setattr(type(load_benchmark("bbq")), "units_per_part", lambda self, kind: 8)
    arguments = served(serve(Service("chat")), 80, "Age")
    interrupt(arguments, tmp_path / "run", 1)
    early = read_unfinished(tmp_path / "run")
    assert sum(early.scores["outcomes"].values()) == 32
    assert "--base-url URL" in command_of(read_run(tmp_path / "run"))
    check_ranges(load_benchmark("bbq"), early.scores, run(arguments, tmp_path / "run", QUIET).scores)


@pytest.mark.slow
def test_a_run_with_conditions_counts_up_to_its_next_look(tmp_path):
    given = ["bbq", "--model", "baseline:random", "--config", "Age,Nationality", "--limit", "4000", "--no-report"]
    given += ["--until", "bias_ambig<0.02", "--by", "category", "--about", "templates"]
    assert command("run", *given, "--output", str(tmp_path / "whole")).code == 0
    with pytest.MonkeyPatch.context() as patch:
        written = stop_after(patch, 5)
        assert command("run", *given, "--output", str(tmp_path / "run")).code != 0
    early = read_unfinished(tmp_path / "run")
    assert early.n_answered == sum(written) < early.n_asked < 4000
    first, second, *_ = shown(tmp_path / "run").out.splitlines()
    assert first == f"Unfinished: {sum(written):,} of {early.n_asked:,} examples until the next look."
    assert command(*shlex.split(second.partition("qabias ")[2]), "--no-report").code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_shards_and_runs_that_lack_only_the_scores_are_shown(tmp_path):
    arguments = RunArguments("bbq", "baseline:random", "Age", limit=800)
    run(arguments, tmp_path / "run", Machine(shard=(0, 2), shows_progress=False))
    assert shown(tmp_path / "run").out.startswith("Unfinished: 512 of 800 examples.")
    whole = run(arguments, tmp_path / "run", QUIET)
    (tmp_path / "run" / "scores.json").unlink()
    assert shown(tmp_path / "run").out.startswith("Unfinished: 800 of 800 examples.")
    assert dict(read_unfinished(tmp_path / "run").scores)["bias_ambig"] == whole.scores["bias_ambig"]


def test_a_run_without_a_finished_part_names_the_command(tmp_path):
    interrupt(RunArguments("bbq", "baseline:random", "Age", rules={"unparsed": "wrong"}), tmp_path / "run", 0)
    ended = shown(tmp_path / "run")
    assert ended.is_clean
    assert ended.code == 2
    assert "none of its" in ended.err
    with pytest.raises(QabiasError, match=r"qabias run bbq --model baseline:random --config Age --rule unparsed=wrong"):
        read_unfinished(tmp_path / "run")


@pytest.mark.slow
def test_a_killed_run_is_shown_and_resumed(tmp_path):
    asks = [sys.executable, "-m", "qabias", "run", "bbq", "--model", "baseline:random", "--no-report"]
    asks += ["--config", "Race_x_gender,Race_x_SES", "--output"]  # 106 parts
    subprocess.run([*asks, str(tmp_path / "whole")], check=True, capture_output=True)
    killed = subprocess.Popen([*asks, str(tmp_path / "run")], stderr=subprocess.DEVNULL)
    while killed.poll() is None and len(list(tmp_path.glob("run/predictions/part-*"))) < 3:
        time.sleep(0.002)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    n = read_unfinished(tmp_path / "run").n_answered
    assert shown(tmp_path / "run").out.startswith(f"Unfinished: {n:,} of 27,120 examples.")
    assert 768 <= n < 27_120
    subprocess.run([*asks, str(tmp_path / "run")], check=True, capture_output=True)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
