"""Parts of a run have a checksum: no changed bit and no foreign part goes unseen."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from qabias.comparison import compare
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import read_answers, read_checked, read_part
from qabias.runs.opened import Run
from qabias.runs.question import read_question
from qabias.runs.run import merge, run, score_run

from .run_parts import parts_of

CONFIGS = {"bbq": "Religion", "unqover": "religion", "bbnli": "man_is_to_surgeon"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, config in CONFIGS.items():
        run(RunArguments(name, "baseline:random", config, limit=40), folder / name)
    return folder


@pytest.fixture
def copied(runs, tmp_path):
    return shutil.copytree(runs / "bbq", tmp_path / "run")


def answers_of(folder):
    return Run.open(folder).answers


@pytest.mark.parametrize("name", CONFIGS)
def test_a_flipped_bit_in_a_part_is_refused(runs, tmp_path, name):
    path = tmp_path / "part"
    content = parts_of(runs / name)[0].read_bytes()
    digest = Run.open(runs / name).digest
    drawn = random.Random(3)
    for place in drawn.sample(range(len(content)), 300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << drawn.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(QabiasError, match=r"part: (damaged|holds answers of another run)"):
            read_checked(path, digest)


_COUNT_THREADS = """
import os, sys
from pathlib import Path
from qabias.runs.folder import read_checked
before = len(os.listdir("/proc/self/task"))
for path in sys.argv[2:]:
    read_checked(Path(path), sys.argv[1])
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not say which threads there are")
def test_no_thread_is_left_that_could_abort_the_end_of_the_process(runs):
    """A thread of Arrow that drops the bytes of a part after Python has begun to end takes the process with it."""
    arguments = [Run.open(runs / "bbq").digest, *map(str, parts_of(runs / "bbq"))]
    done = subprocess.run(
        [sys.executable, "-c", _COUNT_THREADS, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"


def test_every_bit_of_the_checksum_counts(copied):
    path = parts_of(copied)[0]
    content, digest = path.read_bytes(), Run.open(copied).digest
    begin = content.rindex(b"run=")
    for place in range(begin, content.index(b"file=", begin) + 69):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(QabiasError, match="damaged"):
            read_checked(path, digest)


def test_a_cut_part_is_refused_at_every_length(copied):
    path = parts_of(copied)[0]
    content, digest = path.read_bytes(), Run.open(copied).digest
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(QabiasError, match="damaged"):
            read_checked(path, digest)


def test_a_part_of_another_run_is_refused_by_whoever_reads_it(copied, runs, tmp_path):
    other = tmp_path / "other"
    run(RunArguments("bbq", "baseline:unknown", CONFIGS["bbq"], limit=40), other)
    shutil.copyfile(parts_of(other)[0], parts_of(copied)[0])
    message = r"part-00000\.parquet: holds answers of another run"
    with pytest.raises(QabiasError, match=message):
        score_run(copied)
    with pytest.raises(QabiasError, match=message):
        run(RunArguments("bbq", "baseline:random", CONFIGS["bbq"], limit=40), copied)
    with pytest.raises(QabiasError, match=message):
        compare([copied, runs / "bbq"])
    with pytest.raises(QabiasError, match=message):
        merge([copied], tmp_path / "merged")
    with pytest.raises(QabiasError, match=message):
        answers_of(copied)
    assert not (tmp_path / "merged").exists()


def test_a_part_that_cannot_be_read_is_not_called_damaged(copied, monkeypatch):
    def refuse(path):
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(QabiasError, match=r"cannot be read: Input/output error(?s:.*)Keep the file") as refused:
        answers_of(copied)
    assert "damaged" not in str(refused.value)
    assert "remove" not in str(refused.value)


def test_a_part_without_a_checksum_is_refused(copied):
    path = parts_of(copied)[0]
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    with pytest.raises(QabiasError, match=r"part-00000\.parquet: .*checksum"):
        score_run(copied)


def test_a_full_disk_at_merge_names_the_destination(tmp_path, monkeypatch):
    arguments = RunArguments("bbq", "baseline:random", "Religion", limit=40)
    whole = run(arguments, tmp_path / "whole").folder

    def copyfile(source, target):
        raise OSError(28, "No space left on device", str(source))

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(OSError, match="No space left on device") as refused:
        merge([whole], tmp_path / "merged")
    assert refused.value.filename == str(tmp_path / "merged" / "predictions" / "part-00000.parquet")


def test_scoring_a_run_with_missing_parts_fails_and_keeps_the_former_scores(tmp_path):
    folder = run(RunArguments("bbq", "baseline:random", "Religion", limit=300), tmp_path / "run").folder
    n_parts = len(parts_of(folder))
    parts_of(folder)[1].unlink()
    former = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(QabiasError, match=rf"1 of {n_parts} parts are missing.*scores\.json"):
        score_run(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == former
    assert run(RunArguments("bbq", "baseline:random", "Religion", limit=300), folder).scores["n"] > 40


def test_a_missing_part_is_none_and_a_read_one_is_without_its_checksum(copied):
    found = Run.open(copied)
    question = read_question(found)
    assert read_part(found, 99) is None
    assert read_part(found, 0).schema.metadata is None
    answers, n_missing = read_answers(found, question.benchmark, {**question.parts, 99: question.parts[0]})
    assert (answers.num_rows, n_missing) == (40, 1)
