"""Several commands at once in one folder: no foreign part, no other byte, and no error that does not say what it is."""

import random
import shutil

import pytest

from qabias.support.files import read_json

from .forked import CONTEXT, Command, call
from .helpers import SEED, Ended, chosen, contents, hidden, size

BENCHMARKS = {"bbq": ("Religion", 100), "unqover": ("religion", 40), "bbnli": ("religion", 48)}
# Models whose answers differ everywhere.
RIVALS = {"bbq": ("unknown", "oracle"), "unqover": ("random", "consistent"), "bbnli": ("random", "oracle")}
STARTS = {"bbq": 100, "unqover": 60, "bbnli": 40}


def _arguments(benchmark, model, *more):
    config, limit = BENCHMARKS[benchmark]
    named = ("--model", f"baseline:{model}", "--config", config, "--limit", limit, "--output", "run")
    return ("run", benchmark, *named, *more)


def _at_once(folder, commands, waits=None):
    """How several commands ended that began at the same moment in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with CONTEXT.Manager() as manager:
        barrier = manager.Barrier(len(commands))
        begun = [
            Command(*arguments, folder=folder, barrier=barrier, wait=wait)
            for arguments, wait in zip(commands, waits or [0.0] * len(commands), strict=True)
        ]
        return [command.end() for command in begun]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the run of a benchmark and a model holds that was alone, computed once."""
    known = {}

    def run_of(benchmark, model):
        if (benchmark, model) not in known:
            folder = tmp_path_factory.mktemp("alone")
            assert call(*_arguments(benchmark, model), folder=folder).code == 0
            known[benchmark, model] = contents(folder / "run")
        return known[benchmark, model]

    return run_of


@pytest.mark.parametrize("benchmark", chosen(list(STARTS), quick=1))
def test_of_two_different_runs_in_one_fresh_folder_one_wins_and_alone_writes_parts(benchmark, alone, tmp_path):
    moments = random.Random(f"{SEED} {benchmark}")
    both = RIVALS[benchmark]
    for trial in range(size(STARTS[benchmark], quick=2)):
        folder = tmp_path / str(trial)
        waits = [0.0, moments.choice([0.0, 0.0, 0.0, moments.random() * 0.02])]
        moments.shuffle(waits)
        ended = _at_once(folder, [_arguments(benchmark, model) for model in both], waits)
        assert all(each.is_clean for each in ended), ended
        assert [each.code for each in ended].count(0) == 1, ended
        owner = read_json(folder / "run" / "run.json")["arguments"]["model"].removeprefix("baseline:")
        assert both[[each.code for each in ended].index(0)] == owner
        assert contents(folder / "run") == alone(benchmark, owner)
        shutil.rmtree(folder)


AT_ONCE = {
    "four shards": [("--shard", f"{shard}/4") for shard in range(4)],
    "two equal ones": [()] * 2,
    "five equal ones": [()] * 5,
}


@pytest.mark.parametrize("kind", AT_ONCE)
@pytest.mark.parametrize("benchmark", chosen(list(BENCHMARKS), quick=1))
def test_shards_and_equal_commands_at_once_end_with_the_bytes_of_one_run(benchmark, kind, alone, tmp_path):
    model = RIVALS[benchmark][1]
    for trial in range(size(6, quick=1)):
        folder = tmp_path / str(trial)
        commands = [_arguments(benchmark, model, *more) for more in AT_ONCE[kind]]
        for ended in _at_once(folder, commands):
            assert ended.code == 0 or _says_that_another_is_at_work(ended), ended
        # The last of the shards scores it, unless two ended at once; the same command again then does.
        assert call(*commands[0], folder=folder).code == 0
        assert contents(folder / "run") == alone(benchmark, model)
        assert hidden(folder) == []


def _says_that_another_is_at_work(ended: Ended) -> bool:
    return ended.is_clean and "another" in ended.err


def test_a_second_merge_and_a_second_build_wait_or_say_so(tmp_path):
    run = _arguments("bbq", "random")
    for half in (0, 1):
        assert call(*run[:-1], f"half-{half}", "--shard", f"{half}/2", folder=tmp_path).code == 0
    for name, command in (
        ("merged", ("merge", "half-0", "half-1", "--output", "merged")),
        ("built", ("build", "bbnli", "--config", "gender", "--output", "built")),
        ("exported", ("export", "merged", "--format", "csv", "--output", "exported")),
    ):
        for ended in _at_once(tmp_path, [command] * 3):
            assert ended.code == 0 or _says_that_another_is_at_work(ended), (name, ended)
        first = contents(tmp_path / name)
        (tmp_path / name).rename(tmp_path / f"first-{name}")
        assert call(*command, "--output", name, folder=tmp_path).code == 0
        assert contents(tmp_path / name) == first
        if name == "merged":
            shutil.rmtree(tmp_path / "first-merged")
    assert hidden(tmp_path) == []


def test_of_two_different_builds_in_one_fresh_folder_one_wins(tmp_path):
    for trial in range(size(8, quick=1)):
        folder = tmp_path / str(trial)
        builds = [("build", "bbnli", "--config", config, "--output") for config in ("gender", "race")]
        ended = _at_once(folder, [(*build, "built") for build in builds])
        assert all(each.is_clean for each in ended), ended
        assert [each.code for each in ended].count(0) == 1, ended
        winner = builds[[each.code for each in ended].index(0)]
        assert call(*winner, "alone", folder=folder).code == 0
        assert contents(folder / "built") == contents(folder / "alone")


@pytest.mark.parametrize("benchmark", chosen(list(BENCHMARKS), quick=1))
def test_what_reads_a_run_while_it_is_written_fails_clearly_and_changes_nothing(benchmark, alone, tmp_path):
    """A run, and beside it commands that read it, again and again until it has ended."""
    model = RIVALS[benchmark][0]
    for trial in range(size(3, quick=1)):
        folder = tmp_path / str(trial)
        folder.mkdir()
        writing = Command(*_arguments(benchmark, model), folder=folder)
        while writing.is_running():
            for ended in [each.end() for each in [Command(name, "run", folder=folder) for name in READERS]]:
                assert ended.is_clean, ended
        assert writing.end().code == 0
        for name in READERS:
            assert call(name, "run", folder=folder).code == 0
        assert contents(folder / "run") == alone(benchmark, model)
        assert hidden(folder) == []


READERS = ("report", "show", "score")
