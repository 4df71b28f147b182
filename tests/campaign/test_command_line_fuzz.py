"""Bad command lines: one line that says what to do, no traceback, and what was there stays as it was."""

import itertools
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.conftest import ROOT

from .command_lines import ENCODINGS, TABLES, Line
from .commands import VALID, Ended, call_in, copied, digests, fault_of, make_place
from .counts import chosen, count

PARTS = 4
"""A table in so many tests, for several processes."""
QUICK = 2
"""Lines of each of these tests in a quick campaign."""
SECONDS = 300


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """Runs, a model and answers, which every command gets a copy of."""
    return make_place(tmp_path_factory.mktemp("commands") / "place")


@pytest.fixture(autouse=True)
def away_from_home(monkeypatch, tmp_path):
    """Nothing of this machine is read or written: no cache, no server, no token."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("HF_TOKEN", raising=False)


def judged(ended: Ended, line: Line, expected: Ended | None) -> str | None:
    fault = fault_of(ended, line.arguments)
    if fault is None and line.refused and ended.code != 2:
        return "taken, though it means nothing"
    if fault is None and expected is not None and (ended.code, ended.out) != (expected.code, expected.out):
        return f"another result than that of what it means: {ended.err[-200:]}"
    return fault


def kind_of(ended: Ended, fault: str | None) -> str:
    return "faults" if fault else "refused" if ended.code == 2 else "taken"


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_a_bad_command_line_is_one_line_and_changes_nothing(place, tmp_path, table, part):
    ends: Counter[str] = Counter()
    faults = []
    for number, line in enumerate(chosen(TABLES[table]()[part::PARTS], QUICK)):
        here = copied(place, tmp_path / str(number))
        expected = call_in(copied(place, tmp_path / f"{number}-meant"), line.same) if line.same else None
        if line.damage is not None:
            line.damage(here)
        ended = call_in(here, line.arguments, line.encoding)
        fault = judged(ended, line, expected)
        ends[kind_of(ended, fault)] += 1
        if fault:
            faults.append(f"{line.name}: {fault}")
    count("command lines", sum(ends.values()), **ends)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)


REAL: list[tuple[str, tuple[str, ...], dict[str, str], str]] = [
    *((f"{name} in C", VALID[name], {"LC_ALL": "C", "PYTHONUTF8": "0"}, "pipe") for name in VALID if name != "build"),
    *(
        (f"{name} {encoding}", VALID[name], {"PYTHONIOENCODING": encoding}, "pipe")
        for name, encoding in itertools.product(("show", "compare"), ENCODINGS)
    ),
    *((f"{name} closed", VALID[name], {}, "closed") for name in ("show", "compare", "check")),
    *((f"{name} full", VALID[name], {}, "full") for name in ("show", "compare", "check")),
    ("help full", ("--help",), {}, "full"),
    ("nothing", (), {}, "pipe"),
    ("unknown command", ("rn",), {}, "pipe"),
    ("not UTF-8", ("show", os.fsdecode(b"\xff\xfe")), {}, "pipe"),
    ("cache in a file", VALID["run"], {"QABIAS_CACHE": "answers.csv"}, "pipe"),
    ("mirror in a file", (*VALID["run"], "--source", "official"), {"QABIAS_UPSTREAM": "answers.csv"}, "pipe"),
    ("home nowhere", VALID["run"], {"HOME": "/nonexistent"}, "pipe"),
]
"""Command lines as processes of their own: name, arguments, environment, and what their output is."""


@pytest.mark.parametrize(("name", "arguments", "environment", "output"), chosen(REAL, 3))
def test_a_process_of_its_own_ends_with_its_code_and_no_traceback(
    place, tmp_path, name, arguments, environment, output
):
    here = copied(place, tmp_path / "here")
    before = digests(here)
    full = output == "full"
    with open("/dev/full" if full else os.devnull, "w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "qabias", *arguments],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.DEVNULL,
            stdout=sink if full else subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if output == "closed":
            process.stdout.close()
            process.stdout = None
        _, err = process.communicate(timeout=SECONDS)
    count("command lines", 1, processes=1)
    text = err.decode("utf-8", "replace")
    assert "Traceback" not in text
    assert "UserWarning" not in text
    assert process.returncode in ({0, 1, 2, 3} if "check" in name else {0, 2} if output == "pipe" else {0, 1, 2})
    after = digests(here)
    assert {file: after.get(file) for file in before} == before
