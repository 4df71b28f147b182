"""Bad command lines: one line that says what to do, no traceback, and what was there stays as it was."""

import hashlib
import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

from .command_lines import TABLES, VALID, WRITES, make_place
from .helpers import TimeLimit, chosen, command

PARTS = 4
"""A table in so many tests, for several processes."""
SECONDS = 120
"""In which a command on a few rows ends on a busy machine."""


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder that every command gets a copy of."""
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_place()
    return folder


@pytest.fixture(autouse=True)
def away_from_home(monkeypatch, tmp_path):
    """Nothing of this machine is read or written: no cache, no server, no token."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("HF_TOKEN", raising=False)


def digests(folder):
    """What every file in a folder is."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def allowed_changes(arguments):
    """The files that a command may write anew: those of the run that it makes, or scores."""
    name = arguments[0] if arguments else ""
    folders = [arguments[-1]] if name == "run" else [] if "--output" in arguments else arguments[1:]
    return {f"{folder}/{file}" for folder in folders for file in WRITES.get(name, ())}


def fault_of(line, here, monkeypatch):
    """What is wrong with how a command line ends, or None."""
    monkeypatch.chdir(here)
    expected = command(*line.same).out if line.same else None
    line.damage()
    before = digests(here)
    with TimeLimit(SECONDS):
        ended = command(*line.arguments, encoding=line.encoding)
    after = digests(here)
    changed = {name for name, digest in before.items() if after.get(name) != digest} - allowed_changes(line.arguments)
    if changed:
        return f"changed {sorted(changed)}"
    if ended.err.startswith("Usage:"):  # of typer: what was wrong stands in its last line
        return None if ended.code == 2 and "Error: " in ended.err else "usage without an error"
    if not ended.is_clean and not (line.arguments[0] == "check" and ended.code in (1, 3)):
        return f"code {ended.code}: {ended.err[-300:]}"
    if any(not letter.isprintable() and letter not in "\n\r\t\u00a0\u2009\u202f" for letter in ended.err):
        return f"control characters: {ended.err[-300:]!r}"
    return None if expected in (None, ended.out) else "another result than that of what it means"


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_a_bad_command_line_is_one_line_and_changes_nothing(place, tmp_path, monkeypatch, table, part):
    faults = []
    for number, line in enumerate(chosen(list(TABLES[table]())[part::PARTS], quick=2)):
        here = shutil.copytree(place, tmp_path / str(number), symlinks=True)
        if fault := fault_of(line, here, monkeypatch):
            faults.append(f"{line.name}: {fault}")
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)


PROCESSES = [
    *((VALID[name], {"LC_ALL": "C", "PYTHONUTF8": "0"}, "pipe") for name in ("run", "show", "compare", "score")),
    *((VALID[name], {}, output) for name in ("show", "compare", "check") for output in ("closed", "full")),
    ((), {}, "pipe"),
    (("show", os.fsdecode(b"\xff\xfe")), {}, "pipe"),
    (VALID["run"], {"QABIAS_CACHE": "answers.csv"}, "pipe"),
    ((*VALID["run"], "--source", "official"), {"QABIAS_UPSTREAM": "answers.csv"}, "pipe"),
    (VALID["run"], {"HOME": "/nonexistent"}, "pipe"),
]
"""Command lines as processes of their own: arguments, environment, and what their output is."""


@pytest.mark.parametrize(("arguments", "environment", "output"), chosen(PROCESSES, 3))
def test_a_process_of_its_own_ends_with_its_code_and_no_traceback(place, tmp_path, arguments, environment, output):
    here = shutil.copytree(place, tmp_path / "here", symlinks=True)
    before = digests(here)
    with open("/dev/full" if output == "full" else os.devnull, "w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "qabias", *arguments],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.DEVNULL,
            stdout=sink if output == "full" else subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if output == "closed":
            process.stdout.close()
            process.stdout = None
        _, err = process.communicate(timeout=300)
    assert b"Traceback" not in err
    assert b"UserWarning" not in err
    assert process.returncode in ({0, 2} if output == "pipe" else {0, 1, 2, 3})
    after = digests(here)
    assert {file: after.get(file) for file in before} == before
