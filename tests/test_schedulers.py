"""The examples for Slurm and Ray, as their pages print them: every task is computed, a failing one stops no other."""

import os
import shlex
import subprocess
import sys

import pytest

from .conftest import ROOT
from .kit.commands import python

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "docs" / "examples"
# Runs the tasks of an array at once, one after the other, from a copy of the script, as Slurm does.
SBATCH = r"""#!/bin/bash
for word; do
    case "$word" in
    --array=*) array="${word#*=}"; first="${array%%-*}"; last="${array#*-}"; last="${last%%%*}" ;;
    --dependency=afterok:7) test "$(cat status)" = 0 || exit 1 ;;
    --wrap) wrap=yes ;;
    --*) ;;
    *) last_word="$word" ;;
    esac
done
script=spooled
if [ -n "${wrap:-}" ]; then printf '%s\n' "$last_word" >"$script"; else cp "$last_word" "$script"; fi
failed=0
for task in $(seq "${first:-0}" "${last:-0}"); do
    SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID="$task" bash "$script" >&2 || failed=1
done
echo "$failed" >status
echo "7;cluster"
"""


@pytest.fixture
def submit(tmp_path):
    """Starts an example where Slurm has only a stand-in for `sbatch`; gives its exit code and its errors."""
    programs = tmp_path / "bin"
    programs.mkdir()
    qabias = f'#!/bin/bash\nexec {shlex.quote(sys.executable)} -m qabias "$@"\n'
    for name, text in (("sbatch", SBATCH), ("qabias", qabias)):
        (programs / name).write_text(text, "utf-8")
        (programs / name).chmod(0o755)
    folder = tmp_path / "a folder"
    folder.mkdir()

    def start(example, **settings):
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        usual = {"PATH": path, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **usual, "RUNS": str(folder / "my runs"), **settings}
        words = ["bash", str(EXAMPLES / example)]
        return folder, subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return start


def test_an_array_shares_one_run_and_merges_it(submit):
    folder, ended = submit("slurm_array.sbatch", MODEL="baseline:random", BENCHMARK="bbnli", SHARDS="2")
    assert ended.returncode == 0, ended.stderr
    assert (folder / "my runs" / "merged" / "report.html").is_file()
    assert sorted(path.name for path in (folder / "my runs").iterdir()) == ["merged", "shard-0", "shard-1"]


def test_every_model_of_a_file_is_a_task_and_a_failing_one_stops_no_other(submit, tmp_path):
    models = tmp_path / "the models.txt"
    models.write_text("baseline:nothing\n\nbaseline:random\n", "utf-8")
    folder, ended = submit("slurm_models.sbatch", MODELS=str(models), BENCHMARKS="bbnli")
    assert ended.returncode == 0, ended.stderr
    assert "'nothing'" in ended.stderr
    assert (folder / "status").read_text() == "1\n"
    assert [path.parent.name for path in folder.rglob("scores.json")] == ["baseline:random"]


def test_ray_computes_every_run_and_names_those_that_failed(tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "models.txt").write_text("baseline:random\nbaseline:nothing\n", "utf-8")
    words = ["models.txt", "--benchmarks", "bbnli", "--runs", "my runs", "--limit", 80]
    ended = python(EXAMPLES / "ray_runs.py", *words, cwd=tmp_path, RAY_ADDRESS="local")
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("failed: ") == 1
    assert "'nothing'" in ended.stderr
    assert [path.parent.name for path in tmp_path.rglob("scores.json")] == ["baseline:random"]
