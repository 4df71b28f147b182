"""Runs whose scores an older version of a metric made: they are shown without its intervals, and say so."""

import csv
import json
import math
import re

import pytest
from typer.testing import CliRunner

from qabias.benchmarks.caveats import MDE_COLUMN
from qabias.cli import app
from qabias.comparison import compare
from qabias.hub.results import headlines, model_index
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.outdated import about_outdated
from qabias.runs.run import run
from qabias.runs.scored import read_scored, read_tables
from qabias.tables.model import Estimate

from .compared_runs import changed

RUNS = {
    "bbq": {"config": "Age", "limit": 120},
    "bbnli": {"config": "gender", "limit": 24},
    "bbq_nli": {"config": "Age_nli", "limit": 120},
    "bbq_qa": {"config": "Age_qa", "limit": 120},
    "unqover": {"config": "religion", "limit": 300},
}
LEFT_OUT = "95 % intervals are left out: version 0 of the metric made them, here is version 1; `qabias score"


def outdate(content):
    """Make version 1 of every signature in the scores."""
    text = json.dumps(content)
    assert "|version:1" in text
    content.update(json.loads(text.replace("|version:1", "|version:0")))


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """A run of every benchmark, and its copy with the signature of version 1 under old-NAME."""
    folder = tmp_path_factory.mktemp("runs")
    for benchmark, arguments in RUNS.items():
        run(RunArguments(benchmark, "baseline:random", **arguments), folder / benchmark)
        changed(folder / benchmark, folder / f"old-{benchmark}", scores=outdate)
    return folder


def call(*arguments):
    found = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "300"})
    assert found.exit_code == 0, found.output
    return " ".join(found.output.split())


def estimates(analysis):
    return [value for table in analysis.tables for row in table.rows for value in row if isinstance(value, Estimate)]


def intervals(scores):
    """All entries of `ci` and `detectable`, at any depth."""
    for name, value in scores.items():
        if name in ("ci", "detectable"):
            yield from value.items()
        elif isinstance(value, dict):
            yield from intervals(value)


@pytest.mark.parametrize("benchmark", RUNS)
def test_a_run_of_an_older_metric_is_read_without_intervals(where, benchmark):
    new, old = read_scored(where / benchmark), read_scored(where / f"old-{benchmark}")
    assert list(intervals(new.scores))
    assert new.left_out == ""
    assert not list(intervals(old.scores))
    assert old.left_out.startswith(LEFT_OUT)
    assert not any(column.name.startswith(MDE_COLUMN) for table in read_tables(old).tables for column in table.columns)
    before, after = estimates(read_tables(new)), estimates(read_tables(old))
    assert any(of.low is not None for of in before)
    assert [Estimate(of.value) for of in before] == after
    assert read_tables(old).notes == (f"{old.left_out}.", *read_tables(new).notes)


@pytest.mark.parametrize("benchmark", RUNS)
def test_show_and_report_say_it_once_and_show_no_interval(where, benchmark, tmp_path):
    folder = where / f"old-{benchmark}"
    shown = call("show", folder)
    assert shown.count("intervals are left out") == 1
    interval = re.compile(r"\[[+−-]?\d[\d.]*, [+−-]?\d[\d.]*\]")
    assert interval.search(call("show", where / benchmark))
    assert not interval.search(shown)
    page = write_report_of(folder, tmp_path / "report.html").read_text("utf-8")
    assert page.count("intervals are left out") == 1


def test_the_sentence_of_what_was_found_is_not_made_from_them(where):
    assert "no statement about" in call("show", where / "old-bbq")
    assert "(no interval)" in call("show", where / "old-bbq")


def test_a_comparison_names_the_run_without_intervals(where, tmp_path):
    other = run(RunArguments("bbq", "baseline:stereotyped", **RUNS["bbq"]), tmp_path / "other").folder
    found = compare([where / "old-bbq", other])
    said = [note for note in found.analysis.notes if LEFT_OUT in note]
    assert [note.partition(":")[0] for note in said] == ["baseline"]
    assert said[0].startswith(f"{found.names[0]}: ")
    assert LEFT_OUT in call("compare", where / "old-bbq", other)


def test_exports_and_results_have_no_interval(where, tmp_path):
    assert LEFT_OUT in call("export", where / "old-bbq", "--format", "csv", "--output", tmp_path / "csv")
    rows = list(csv.DictReader((tmp_path / "csv" / "bias_by_category.csv").read_text("utf-8").splitlines()))
    assert all(row["bias_ambig"] for row in rows)
    assert {row["bias_ambig_low"] for row in rows} == {""}
    assert "found_from_bias_ambig" not in rows[0]
    assert all(score.interval is None for score in headlines(where / "old-bbq"))
    entries = model_index(where / "old-bbq", "org/model", "org/bbq", sample=True)
    assert entries
    assert not any("interval" in entry.metric_args for entry in entries)


def test_scoring_again_makes_them(where, tmp_path):
    folder = changed(where / "bbq", tmp_path / "again", scores=outdate)
    remedy = re.search(r"`qabias (score .*)`", read_scored(folder).left_out)
    call(*remedy[1].split(" ", 1))
    assert read_scored(folder).left_out == ""
    low, high = read_scored(folder).scores["ci"]["accuracy"]
    assert math.isfinite(low)
    assert low < high


def test_a_metric_without_versions_is_never_outdated(where):
    benchmark = type("Named", (), {"metric_version": None})()
    assert about_outdated(benchmark, {"ci": {}, "signature": "x|version:0"}, where) == ""
    benchmark.metric_version = 1
    assert about_outdated(benchmark, {"ci": {}}, where) == ""
    assert about_outdated(benchmark, {"parts": {"one": {"signature": "x|version:0"}}}, where)
    assert about_outdated(benchmark, {"signature": "x|version:1"}, where) == ""
