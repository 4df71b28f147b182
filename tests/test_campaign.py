"""The campaign itself: every finding has a test that exists, and the counts are added up and compared."""

import ast
import os
import re
import subprocess
import sys
import threading

import pytest

from .campaign import counts
from .conftest import ROOT

FINDINGS = ROOT / "tests" / "campaign" / "FINDINGS.md"
ENDS = re.compile(r"(fixed|left|held already)\b")


def rows():
    """The cells of every row of the table of findings."""
    lines = [line for line in FINDINGS.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def functions_of(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


def test_every_finding_says_what_became_of_it_and_names_a_test_that_exists():
    assert len(rows()) >= 7
    for cells in rows():
        assert len(cells) == 4, cells
        finding, severity, became, tests = cells
        assert finding, cells
        assert severity, cells
        assert ENDS.match(became), cells
        names = re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", tests)
        assert (tests == "-" and became.startswith("left")) or names, cells
        for file, function in names:
            assert (ROOT / file).is_file(), cells
            assert function in functions_of(ROOT / file), cells


@pytest.mark.slow
def test_every_test_of_the_campaign_is_left_out_of_the_others():
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/campaign")
    for marks in ("not slow", "not campaign"):
        found = subprocess.run((*command, "-m", marks), cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert found.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, found.stdout[-500:]


def test_counts_of_all_processes_are_added_up(tmp_path, monkeypatch):
    monkeypatch.setenv(counts.FOLDER, str(tmp_path))
    counts.count("kills", 3, refused=2)
    counts.count("kills", refused=1)
    (tmp_path / "other.jsonl").write_text('{"kind": "kills", "n": 5, "outcomes": {"held": 5}}\n', encoding="utf-8")
    assert counts.gather(tmp_path) == {"kills": (9, {"refused": 3, "held": 5})}


def test_too_few_of_a_kind_are_named(monkeypatch):
    monkeypatch.setattr(counts, "FULL", True)
    enough = {kind: (number, {}) for kind, number in counts.REQUIRED.items()}
    assert counts.below(enough) == []
    assert counts.below({**enough, "kills": (170, {})}) == ["kills"]
    assert counts.below({}) == list(counts.REQUIRED)


def test_pages_are_required_only_where_there_is_a_browser(monkeypatch):
    monkeypatch.setattr(counts, "FULL", True)
    without_pages = {kind: (number, {}) for kind, number in counts.REQUIRED.items() if kind != counts.PAGES}
    monkeypatch.setattr(counts, "CHROMIUM", "/usr/bin/chromium")
    assert counts.below(without_pages) == [counts.PAGES]
    monkeypatch.setattr(counts, "CHROMIUM", None)
    assert counts.below(without_pages) == []


def test_a_quick_campaign_takes_its_share_evenly(monkeypatch):
    monkeypatch.setattr(counts, "FULL", False)
    assert counts.size(4000) == 4000 // counts.QUICK_SHARE
    assert counts.chosen(range(100), 4) == [0, 25, 50, 75]
    monkeypatch.setattr(counts, "FULL", True)
    assert counts.size(4000) == 4000
    assert counts.chosen(range(100), 4) == list(range(100))


def test_a_hang_is_ended():
    with pytest.raises(counts.HangError, match="not ended after"), counts.time_limit(0.05):
        threading.Event().wait(20)


CAMPAIGN = """
from tests.campaign.counts import count
def test_it():
    count("kills", {n})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("n", "code"), [(10_000, 0), (1, 1)])
def test_a_campaign_with_too_few_counts_fails(tmp_path, n, code):
    """A folder of the same frame with one test, whose counts of all other kinds are enough or not."""
    folder = tmp_path / "tests" / "campaign"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "conftest.py", "counts.py"):
        (folder / name).write_text((ROOT / "tests" / "campaign" / name).read_text("utf-8"), "utf-8")
    enough = "\n".join(f"    count({kind!r}, {number})" for kind, number in counts.REQUIRED.items() if kind != "kills")
    (folder / "test_one.py").write_text(CAMPAIGN.format(n=n) + enough + "\n", "utf-8")
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: x\n    campaign: x\n", "utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--numprocesses", "2", "-m", "campaign", "tests/campaign"],
        cwd=tmp_path,
        env={**os.environ, "QABIAS_CAMPAIGN": "full", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == code, found.stdout[-1000:]
    assert ("too few kills: 1 of 171" in found.stdout) is bool(code)
