"""Runs that several processes, machines or disks share out end with the same bytes as one process alone."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks.bbq.benchmark import BBQBenchmark
from qabias.errors import QabiasError
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.distributed import Processes
from qabias.runs.folder import write_checked
from qabias.runs.opened import Run
from qabias.runs.run import merge, run, shards_of

from .conftest import ROOT
from .kit.commands import command, python
from .run_parts import edit
from .saved_models import make_t5, save
from .tiny_models import make_encoder, make_encoder_tokenizer, make_model, make_tokenizer

RANDOM = RunArguments(benchmark="bbq", model="baseline:random", config="Age")  # 15 parts
RUN = ["run", "bbq", "--model", "baseline:random", "--config", "Age", "--output", "run"]
# One thread per process, which is what the launcher chooses too.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
# On a machine without a GPU this flag is what makes `accelerate launch` start several processes.
LAUNCH = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1"]
LAUNCH += ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]


def _launch(*words, cwd, **environment):
    return python(*LAUNCH, "--num_processes", 2, *words, cwd=cwd, OMP_NUM_THREADS="1", **environment)


def _bytes(folder):
    files = [*sorted((folder / "predictions").iterdir()), folder / "scores.json"]
    return {file.name: file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A category answered at random by one process."""
    return run(RANDOM, tmp_path_factory.mktemp("whole") / "run").folder


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """The same in three folders."""
    folder = tmp_path_factory.mktemp("shards")
    return [run(RANDOM, folder / str(i), Machine(shard=(i, 3))).folder for i in range(3)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Folders with a small model of each way of asking that a launch must share out, by its name."""
    folder = tmp_path_factory.mktemp("tiny")
    choosing = make_encoder("bert", "AutoModelForMultipleChoice", max_position_embeddings=512)
    return {
        "causal": save(folder / "causal", make_model("llama"), make_tokenizer()),
        "seq2seq": save(folder / "seq2seq", make_t5(), make_tokenizer()),
        "multiple_choice": save(folder / "choosing", choosing, make_encoder_tokenizer("wordpiece")),
    }


# Shares.


def test_a_plain_run_connects_to_nothing(tmp_path):
    result = python(
        "-c",
        "import sys, qabias.runs.run, qabias.runs.distributed as d\n"
        "assert d.is_first() and d.launched_processes() == d.Processes()\n"
        "assert not {'accelerate', 'torch', 'torch.distributed'} & set(sys.modules)\n",
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr


# Launched processes.


@pytest.mark.slow
def test_two_launched_processes_end_with_the_same_bytes_as_one(tmp_path, tiny, monkeypatch, one_thread):
    monkeypatch.chdir(tmp_path)
    # Three parts are shared out, whatever their size.
    monkeypatch.setattr(BBQBenchmark, "units_per_part", lambda self, kind: 8)
    (tmp_path / "commands.py").write_text(
        "import json, sys\n"
        "from qabias.benchmarks.bbq.benchmark import BBQBenchmark\n"
        "from qabias.cli import main\n"
        "BBQBenchmark.units_per_part = lambda self, kind: 8\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    sys.argv = ['qabias', *arguments]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        if end.code:\n"
        "            raise\n",
        "utf-8",
    )
    runs = [["run", "bbq", "--model", model, "--config", "Age", "--limit", "80", "--output"] for model in tiny.values()]
    alone = [command(*words, f"alone/{name}") for name, words in zip(tiny, runs, strict=True)]
    assert [one.code for one in alone] == [0, 0, 0], alone
    shared = json.dumps([[*words, f"shared/{name}"] for name, words in zip(tiny, runs, strict=True)])
    two = _launch("commands.py", shared, cwd=tmp_path)
    assert two.returncode == 0, two.stderr
    for name in tiny:
        assert _bytes(tmp_path / "shared" / name) == _bytes(tmp_path / "alone" / name)
        assert len(list((tmp_path / "alone" / name / "predictions").iterdir())) == 3
    assert two.stdout.replace("shared", "alone") == "".join(one.out for one in alone)  # printed once
    # Where there is no terminal, neither says within a minute how far it is.
    assert "examples" not in two.stderr


@pytest.fixture
def slow_module(tmp_path):
    """A module that is qabias with a baseline that takes its time, and fails in rank 1 if the environment says so."""
    (tmp_path / "slow.py").write_text(
        "import os, time\n"
        "from qabias.cli import main\n"
        "from qabias.errors import QabiasError\n"
        "from qabias.scorers import baseline\n"
        "real = baseline.BaselineScorer.score\n"
        "def score(self, requests):\n"
        "    if os.environ.get('FAILS') == os.environ.get('RANK'):\n"
        "        raise QabiasError('the model burns')\n"
        "    time.sleep(float(os.environ['SLOW']))\n"
        "    return real(self, requests)\n"
        "baseline.BaselineScorer.score = score\n"
        "main()\n",
        "utf-8",
    )
    return "slow"


@pytest.mark.slow
def test_a_launch_that_is_killed_leaves_no_process_and_is_continued(tmp_path, whole, slow_module):
    launch = subprocess.Popen(
        [sys.executable, *LAUNCH, "--num_processes", "2", "-m", slow_module, *RUN],
        cwd=tmp_path,
        env={**ENVIRONMENT, "SLOW": "1", "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    predictions = tmp_path / "run" / "predictions"
    deadline = time.monotonic() + 120
    while not predictions.exists() or len(list(predictions.glob("part-*"))) < 3:
        assert launch.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    launch.send_signal(signal.SIGKILL)
    launch.wait()
    time.sleep(3)
    left = len(list(predictions.glob("part-*")))
    time.sleep(2)
    assert len(list(predictions.glob("part-*"))) == left  # the processes have ended with their launcher
    assert left < len(list((whole / "predictions").iterdir()))
    # This is `torchrun`, which a launch of accelerate can be continued by.
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2]
    again = python(*torchrun, "-m", "qabias", *RUN, cwd=tmp_path, OMP_NUM_THREADS="1")
    assert again.returncode == 0, again.stderr
    assert _bytes(tmp_path / "run") == _bytes(whole)
    assert {path.name for path in (tmp_path / "run").rglob(".*")} == {".lock"}


@pytest.mark.slow
def test_an_error_in_one_process_ends_all_of_them(tmp_path, slow_module):
    # The other process would sleep for longer than a command may take.
    environment = {"SLOW": "60", "FAILS": "1", "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    result = _launch("-m", slow_module, *RUN, cwd=tmp_path, **environment)
    assert result.returncode != 0
    assert result.stderr.count("error: rank 1 of 2: the model burns") == 1


# Merging.


def test_shards_in_folders_of_their_own_are_merged_to_the_same_bytes(tmp_path, whole, shards):
    result = merge(shards, tmp_path / "merged")
    assert _bytes(tmp_path / "merged") == _bytes(whole)
    assert result.signature == Run.open(whole).signature
    # Folders may overlap, and the output may hold a part of the run already.
    run(RANDOM, tmp_path / "half", Machine(shard=(1, 2)))
    merge([whole, *shards], tmp_path / "half")
    assert _bytes(tmp_path / "half") == _bytes(whole)


def test_missing_parts_are_named_with_the_shards_that_make_them(tmp_path, shards):
    with pytest.raises(QabiasError, match=r"missing: part 1, 4, 7, 10, 13 of 15(?s:.*)shard 1/3\.$"):
        merge([shards[0], shards[2]], tmp_path / "merged")
    with pytest.raises(QabiasError, match=r"missing: part 0, 1, 3, 4, 6, 7, 9, 10 and 2 more (?s:.*)shard 0/3, 1/3\.$"):
        merge([shards[2]], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize(
    ("parts", "n_parts", "shards"),
    [
        ([0, 1, 2], 3, ["0/1"]),
        ([1, 3, 5], 6, ["1/2"]),
        ([0, 1, 3, 4], 6, ["0/3", "1/3"]),
        ([2], 7, ["2/5"]),  # the smallest divisor that leaves 2 of no other number below 7
        ([0, 5], 7, ["0/5"]),
        ([0, 5, 6], 7, ["0/6", "5/6"]),  # a fifth would compute 1 as well
    ],
)
def test_parts_are_made_by_the_fewest_shards(parts, n_parts, shards):
    assert shards_of(parts, n_parts) == shards
    computed = [number for text in shards for number in range(n_parts)[int(text[0]) :: int(text[2])]]
    assert sorted(computed) == parts


def test_folders_of_different_runs_are_refused_by_the_field(tmp_path, shards):
    small = replace(RANDOM, config="Age", limit=40)
    one = run(small, tmp_path / "one").folder
    other = run(replace(small, limit=44, seed=1), tmp_path / "other").folder
    with pytest.raises(QabiasError, match=r"one and .*other hold different runs .limit 40 and 44, seed 0 and 1"):
        merge([one, other], tmp_path / "merged")
    with pytest.raises(QabiasError, match=r"hold different runs .config 'Age' and 'SES'"):
        merge([*shards, run(replace(RANDOM, config="SES", limit=8), tmp_path / "ses").folder], tmp_path / "merged")
    shutil.copyfile(one / "run.json", other / "run.json")
    edit(other / "run.json", lambda content: content.update(signature=f"{content['signature']}9"))
    with pytest.raises(QabiasError, match=r"different runs .qabias:\S+ and qabias:\S+9\)"):
        merge([one, other], tmp_path / "merged")


def test_parts_that_differ_or_are_damaged_are_named(tmp_path, monkeypatch):
    arguments = replace(RANDOM, config="Age", limit=520)
    one, two = (run(arguments, tmp_path / name).folder for name in ("one", "two"))
    part = two / "predictions" / "part-00001.parquet"
    good = pq.read_table(part)
    predictions = pa.array([(value + 1) % 3 for value in good["prediction"].to_pylist()], good["prediction"].type)
    place = good.column_names.index("prediction")
    digest = Run.open(two).digest
    write_checked(part, good.set_column(place, "prediction", predictions), digest)
    with pytest.raises(QabiasError, match=r"one/predictions/part-00001\.parquet and .*two/predictions/\S+ differ"):
        merge([one, two], tmp_path / "merged")
    with monkeypatch.context() as patch:
        patch.setattr("qabias.runs.folder._COMPRESSION", "none")
        write_checked(part, good, digest)  # other bytes, same answers
    merge([one, two], tmp_path / "merged")
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(QabiasError, match=r"two/predictions/part-00001\.parquet: damaged"):
        merge([one, two], tmp_path / "merged")
    part.write_bytes((two / "predictions" / "part-00000.parquet").read_bytes())
    with pytest.raises(QabiasError, match=r"two/predictions/part-00001\.parquet: holds other examples"):
        merge([one, two], tmp_path / "merged")


@pytest.mark.parametrize("n_shards", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_part_has_one_process(n_shards, count):
    parts = []
    for shard in range(n_shards):
        of_shard = []
        for rank in range(count):
            first, step = Processes(rank, count).share(shard, n_shards)
            of_shard += range(first, 100, step)
        assert sorted(of_shard) == list(range(shard, 100, n_shards))
        parts += of_shard
    assert sorted(parts) == list(range(100))


def test_what_is_no_run_is_refused(tmp_path, shards):
    (tmp_path / "empty").mkdir()
    with pytest.raises(QabiasError, match="empty: holds no run"):
        merge([*shards, tmp_path / "empty"], tmp_path / "merged")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine", "utf-8")
    with pytest.raises(QabiasError, match="mine: exists and holds no run"):
        merge(shards, tmp_path / "mine")
