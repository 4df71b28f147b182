"""The speed scripts: both sides of a comparison give the same figures, and a difference ends with an error."""

import argparse
import importlib
import re
import sys

import numpy as np
import pytest

from speed import causal_vs_lm_eval, clock, inspect_logs, peers, processes, unqover_generate
from unqover_dataset.builder import Origin

from .conftest import ROOT

SCRIPTS = re.search(r"^SPEED := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)[1].split()


def test_make_bench_runs_every_script_there_is():
    modules = {path.stem for path in (ROOT / "speed").glob("[!_]*.py")}
    assert set(SCRIPTS) == {name for name in modules if hasattr(importlib.import_module(f"speed.{name}"), "main")}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_a_quick_form(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(f"speed.{name}").main()
    shown = capsys.readouterr().out
    assert "whose times mean nothing" in shown
    assert f"python -m speed.{name} --quick" in shown


@pytest.mark.slow
@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_log_of_inspect_is_read_as_inspect_reads_it(form, monkeypatch, capsys):
    pytest.importorskip("inspect_ai", reason='inspect_ai is not installed: pip install "qabias[inspect]"')
    monkeypatch.setattr(sys, "argv", ["inspect_logs", "--quick", "--log-format", form])
    assert inspect_logs.main() == 0
    printed = capsys.readouterr().out
    assert re.search(rf"^400 samples, \d+ MB as \.{form}$", printed, re.MULTILINE)
    assert re.search(r"^qabias +\d+\.\d +\d+\.\d +\d+$", printed, re.MULTILINE)


def _compare(ours, theirs):
    return lambda arguments: peers.Comparison("toy", 2, lambda: ours, {"a peer": lambda: theirs}, peers.PROBABILITY)


@pytest.mark.parametrize(
    ("factor", "status"), [(1.0, 0), (1.001, 1), (np.nan, 1)], ids=["equal", "different", "undefined"]
)
def test_figures_that_differ_end_with_an_error(factor, status, monkeypatch, capsys):
    figures = np.array([1e-9, 0.7])
    monkeypatch.setitem(peers.COMPARISONS, "nli", _compare(figures, figures * factor))
    monkeypatch.setattr(sys, "argv", ["peers", "--quick", "--scorers", "nli"])
    assert peers.main() == status
    printed = capsys.readouterr()
    assert "| nli | toy | 2 | a peer |" in printed.out
    assert ("the figures differ" in printed.err) == bool(status)


@pytest.mark.parametrize("least_size", [peers.PROBABILITY, peers.LOGLIKELIHOOD])
def test_peers_agree_only_if_figures_agree_by_their_own_size(least_size):
    theirs = np.array([1e-9, 3e-5, 0.7]) if least_size == peers.PROBABILITY else np.array([-1e-9, -3.0, -70.0])
    for place in range(3):
        step = np.zeros(3)
        step[place] = max(abs(theirs[place]), least_size)
        assert peers.relative_difference(theirs + 2e-3 * step, theirs, least_size) == pytest.approx(2e-3)
        assert peers.relative_difference(theirs + 1e-4 * step, theirs, least_size) == pytest.approx(1e-4)
    assert peers.TOLERANCE <= 1e-4
    assert peers.relative_difference(theirs, np.full(3, np.nan), least_size) == np.inf
    assert peers.relative_difference(theirs[:2], theirs, least_size) == np.inf


@pytest.mark.parametrize("scorer", [name for name in peers.COMPARISONS if name != "causal"])
@pytest.mark.usefixtures("one_thread")
def test_every_peer_gives_the_same_figures(scorer):
    comparison = peers.COMPARISONS[scorer](argparse.Namespace(quick=True, questions=12))
    ours = comparison.ours()
    assert len(ours) == comparison.n_questions
    assert f"transformers, batches of {peers.BATCH}" in comparison.peers
    for ask_peer in comparison.peers.values():
        assert peers.relative_difference(ours, ask_peer(), comparison.least_size) < peers.TOLERANCE
    assert peers.relative_difference(ours, ours * 1.01, comparison.least_size) > peers.TOLERANCE


def test_twelve_options_are_the_two_people_and_the_ten_wordings_of_the_harness():
    three, twelve = (causal_vs_lm_eval.make_requests(2, n_options) for n_options in (3, 12))
    assert len(three) == len(twelve) == 8
    unknown = tuple(f" {option}" for option in causal_vs_lm_eval.UNKNOWN)
    for few, many in zip(three, twelve, strict=True):
        assert many.prefix == few.prefix
        assert many.options[-10:] == unknown
        people = set(many.options[:-10])
        assert len(few.options) == 3
        assert people < set(few.options)


def test_rows_made_one_by_one_are_compared_with_the_columns():
    design = Origin("bundled").design("religion")
    rows = list(unqover_generate.row_by_row(design, "religion", "bundled", 50))
    unqover_generate._check(rows, design, "religion")
    rows[-1]["question"] += " "
    with pytest.raises(SystemExit, match="the two sides differ"):
        unqover_generate._check(rows, design, "religion")


def test_turns_time_every_way_once_and_a_spread_is_median_least_and_largest():
    called = []
    turns = clock.take_turns({"one": lambda: called.append(1), "two": lambda: called.append(2)}, 3)
    assert called == [1, 2, 1, 2, 1, 2]
    assert [set(turn) for turn in turns] == [{"one", "two"}] * 3
    assert all(seconds.clock >= 0 and seconds.busy >= 0 for turn in turns for seconds in turn.values())
    assert clock.spread([3.0, 1.0, 2.0]) == "2.00 (1.00-3.00)"


def test_the_memory_of_a_process_is_its_own():
    ours = bytearray(400_000_000)
    ours[::4096] = b"x" * len(ours[::4096])
    small, large = processes.measured("-c", "print(1)"), processes.measured("-c", "x = b'x' * 200_000_000")
    assert small.printed == "1\n"
    assert small.memory < 1e8 < 2e8 < large.memory < 3e8
    assert large.seconds >= 0 <= large.busy
    assert ours[0]
