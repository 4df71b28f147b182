"""Several commands at once in one folder: one run has it, a second command waits, nobody loses a temporary file."""

import errno
import multiprocessing
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from qabias.errors import QabiasError
from qabias.runs import folder as run_folder
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import create_or_resume
from qabias.runs.opened import Run
from qabias.runs.run import lock_run
from qabias.support import files
from qabias.support.files import remove_leftovers, write_atomically, write_new

ARGUMENTS = {kind: RunArguments("bbq", f"baseline:{kind}", "Religion", limit=40) for kind in ("unknown", "oracle")}


class Alone:
    """One process of one."""

    def on_first(self, function):
        return function()


def test_of_two_runs_that_pass_the_check_at_once_one_has_the_folder(tmp_path, monkeypatch):
    """Both have seen a free folder before either writes."""
    both_checked = threading.Barrier(2)
    real = run_folder.check_free

    def check_free(folder):
        real(folder)
        both_checked.wait(timeout=60)

    monkeypatch.setattr(run_folder, "check_free", check_free)
    ended = {}

    def begin(kind):
        try:
            ended[kind] = create_or_resume(tmp_path / "run", ARGUMENTS[kind], kind, 64).signature
        except QabiasError as error:
            ended[kind] = str(error)

    threads = [threading.Thread(target=begin, args=(kind,)) for kind in ARGUMENTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = Run.open(tmp_path / "run").signature
    (other,) = set(ARGUMENTS) - {there}
    assert ended[there] == there
    assert "holds another run" in ended[other]
    assert os.listdir(tmp_path / "run") == ["run.json"]


def test_a_file_is_new_once_also_where_the_file_system_has_no_links(tmp_path, monkeypatch):
    assert write_new(tmp_path / "a", "first")
    assert not write_new(tmp_path / "a", "second")

    def link(source, target):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    assert write_new(tmp_path / "b", "first")
    assert not write_new(tmp_path / "b", "second")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "first", "b": "first"}


def test_a_link_that_fails_for_another_reason_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(Path, "read_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_new(tmp_path / "a", "first")
    assert list(tmp_path.iterdir()) == []


# Turns.


def test_the_same_command_waits_until_the_first_has_ended_and_says_so(tmp_path, caplog):
    went, order = threading.Event(), []

    def second():
        went.set()
        with lock_run(tmp_path, (0, 1), Alone()):
            order.append("second")

    with lock_run(tmp_path, (0, 1), Alone()):
        thread = threading.Thread(target=second)
        thread.start()
        went.wait()
        while "this one waits until it has ended" not in caplog.text:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert caplog.text.count("this one waits") == 1


def test_shards_of_a_run_do_not_wait_for_each_other(tmp_path):
    with lock_run(tmp_path, (0, 2), Alone()), lock_run(tmp_path, (1, 2), Alone()):
        assert len(list(tmp_path.iterdir())) == 2


def _hold_and_die(folder):
    with lock_run(folder, (0, 1), Alone()):
        os._exit(9)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_killed_command_keeps_nobody_waiting(tmp_path, caplog):
    process = multiprocessing.get_context("fork").Process(target=_hold_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 9
    with lock_run(tmp_path, (0, 1), Alone()):
        assert caplog.text == ""


def test_nobody_waits_where_the_file_system_has_no_locks(tmp_path, monkeypatch, caplog):
    def flock(handle, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with lock_run(tmp_path, (0, 1), Alone()), lock_run(tmp_path, (0, 1), Alone()):
        assert caplog.text == ""


# Temporary files.


def test_a_living_writer_keeps_its_temporary_file_and_a_dead_one_does_not(tmp_path):
    path = tmp_path / "a.txt"
    (tmp_path / ".a.txt.12345678.unfinished").write_text("of a killed writer")
    (tmp_path / ".a.txt.swp").write_text("an editor's")

    def write(temporary):
        temporary.write_text("half")
        write_atomically(path, lambda other: other.write_text("of another"))  # which removes leftovers
        temporary.write_text("whole")

    write_atomically(path, write)
    assert path.read_text() == "whole"
    assert sorted(os.listdir(tmp_path)) == [".a.txt.swp", "a.txt"]


def test_what_fails_leaves_nothing(tmp_path):
    def write(temporary):
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as refused:
        write_atomically(tmp_path / "a", write)
    assert refused.value.filename == str(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o077, 0o022])
def test_the_umask_decides_who_may_read(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_new(tmp_path / "a", "a")
        files.write_text(tmp_path / "b", "b")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o666 & ~umask}


def test_leftovers_stay_where_it_cannot_be_known_whether_their_writer_lives(tmp_path, monkeypatch):
    leftover = tmp_path / ".a.12345678.unfinished"
    leftover.write_text("")

    def try_lock(handle):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(files, "_try_lock", try_lock)
        write_atomically(tmp_path / "a", lambda temporary: temporary.write_text("whole"))
        assert leftover.exists()
    remove_leftovers(tmp_path / "a")
    assert os.listdir(tmp_path) == ["a"]


def test_what_must_last_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []
    real_replace = type(tmp_path).replace

    def replace(path, target):
        done.append("named")
        return real_replace(path, target)

    monkeypatch.setattr(type(tmp_path), "replace", replace)
    monkeypatch.setattr(os, "fsync", lambda handle: done.append("synced"))
    write_atomically(tmp_path / "a", lambda temporary: temporary.write_text("b"), lasting=True)
    assert done == ["synced", "named", "synced"]
