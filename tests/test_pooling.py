"""Several runs as one: means over prompts, formats and seeds."""

from __future__ import annotations

import json
import math
import shutil
import statistics

import pyarrow as pa
import pytest

from qabias.errors import QabiasError
from qabias.pooling import pool
from qabias.report.writing import write_pool
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.run import run, score_run
from qabias.scores.score import Score
from qabias.support.stored import read_fields
from qabias.tables.export import export
from qabias.tables.model import find, read_analysis

from .run_parts import rewrite

PAIRS = {
    "bbq": ("bbq-random", "bbq-stereotyped"),
    "bbnli": ("bbnli-random", "bbnli-stereotyped"),
    "bbq_nli": ("nli-random", "nli"),
    "unqover": ("unqover-random", "unqover-consistent"),
}
"""Two runs of every benchmark that give different answers."""


@pytest.fixture(scope="module")
def pools(compared_runs):
    """A pool of two models for every benchmark."""
    return {name: pool([compared_runs / run for run in runs], allow_mixed=True) for name, runs in PAIRS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", PAIRS)
def test_every_score_is_the_mean_of_the_runs(pools, benchmark):
    pooled = pools[benchmark]
    for measure in pooled.measures:
        groups = pooled.benchmark.groups(pooled.scores, measure)
        by_run = [pooled.benchmark.groups(run.scores, measure) for run in pooled.runs]
        assert groups.keys() == by_run[0].keys()
        for name, scores in groups.items():
            values = [run[name][measure.name] for run in by_run]
            if None in values:
                assert math.isnan(scores[measure.name])
                continue
            assert scores[measure.name] == pytest.approx(statistics.mean(values), abs=1e-12)
            assert scores["spread"][measure.name] == pytest.approx(statistics.stdev(values), abs=1e-12)
            assert scores["n_runs"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", PAIRS)
def test_tables_are_those_of_a_run_with_means(pools, benchmark, tmp_path):
    pooled = pools[benchmark]
    runs = [read_analysis(run.folder / "analysis.json").tables for run in pooled.runs]
    tables = {table.name: table for table in pooled.analysis.tables}
    assert {table.name for table in runs[0]} <= set(tables)
    page = write_pool(pooled, tmp_path / "pool")
    assert page.read_text(encoding="utf-8").count("<table") >= len(tables) // 2
    # What only a paper has as a mean is called so.
    assert {name for name, table in tables.items() if table.source} <= set(pooled.benchmark.facts.means)
    assert benchmark != "bbnli" or tables["bias_by_subtopic"].source
    n_compared = 0
    for name, table in tables.items():
        if name.startswith("pooled_") or not any(isinstance(value, Score) for row in table.rows for value in row):
            continue
        labels = [place for place, column in enumerate(table.columns) if column.kind == "text"]
        by_key = [{tuple(row[place] for place in labels): row for row in find(run, name).rows} for run in runs]
        for row in table.rows:
            key = tuple(row[place] for place in labels)
            for place, value in enumerate(row):
                if not isinstance(value, Score) or value.value is None or any(key not in rows for rows in by_key):
                    continue
                values = [rows[key][place].value for rows in by_key]
                if None not in values:  # too few answers in this run
                    assert value.value == pytest.approx(statistics.mean(values), abs=1e-9)
                    n_compared += 1
    assert n_compared > 5


@pytest.mark.slow
def test_a_pool_of_equal_answers_has_the_interval_of_a_run(compared_runs):
    pooled = pool([compared_runs / "bbq-random", compared_runs / "bbq-race"])
    alone = Run.scored(compared_runs / "bbq-random").scores
    assert pooled.scores["ci"]["bias_ambig"] == pytest.approx(alone["ci"]["bias_ambig"])
    assert not pooled.mixed
    assert "pool:2 runs" in pooled.signature
    assert "|format:qa@1,race@1|" in pooled.signature


def test_files_of_a_pool(compared_runs, tmp_path):
    pooled = pool([compared_runs / "bbnli-random", compared_runs / "bbnli-gpt3"], claim="Table 3, column NLI")
    write_pool(pooled, tmp_path)
    content = json.loads((tmp_path / "pool.json").read_text(encoding="utf-8"))
    assert content["claim"] == "Table 3, column NLI"
    assert [run["arguments"]["format"] for run in content["runs"]] == [None, "gpt3"]
    assert read_fields(tmp_path / "scores.json", "pool again")["signature"] == pooled.signature
    assert "Table 3, column NLI" in (tmp_path / "pool.html").read_text(encoding="utf-8")
    assert export(tmp_path, None, "csv", "bias_by_subtopic")
    scores = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    (tmp_path / "scores.json").write_text(json.dumps({**scores, "signature": "other"}), encoding="utf-8")
    with pytest.raises(QabiasError, match=r"scores\.json"):
        read_fields(tmp_path / "scores.json", "pool again")


def test_what_is_undefined_in_one_run_is_undefined_in_the_mean(compared_runs, tmp_path):
    pooled = pool([compared_runs / "bbq-random", compared_runs / "bbq-unknown"], allow_mixed=True)
    assert math.isnan(pooled.scores["bias_disambig"])
    assert math.isnan(pooled.scores["spread"]["bias_disambig"])
    write_pool(pooled, tmp_path)
    content = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert content["scores"]["bias_disambig"] is None
    for pointer in ("/bias_disambig", "/spread/bias_disambig", "/by/category/Age/spread/bias_disambig"):
        assert content["reasons"][pointer] == "undefined in one of the runs"


def rewritten(compared_runs, folder, change):
    """The run of the stereotyped baseline with other columns of answers."""
    shutil.copytree(compared_runs / "bbq-stereotyped", folder)
    rewrite(folder, change)
    return [compared_runs / "bbq-random", folder]


def test_probabilities_that_not_all_runs_stored_are_left_out(compared_runs, pools, tmp_path):
    folders = rewritten(compared_runs, tmp_path / "without", lambda table: table.drop_columns(["probabilities"]))
    score_run(folders[1])
    pooled, whole = pool(folders, allow_mixed=True), pools["bbq"]
    assert "bias_probability_ambig" in whole.scores
    assert not [name for name in pooled.scores if "bias_probability" in name]
    for name in ("bias_ambig", "accuracy"):
        assert pooled.scores[name] == whole.scores[name]
    assert "bias_probability_ambig" not in {measure.name for measure in pooled.measures}
    left_out = [[note for note in one.analysis.notes if "omitted: " in note] for one in (pooled, whole)]
    assert [len(notes) for notes in left_out] == [1, 0]
    assert f" {pooled.names[1]} " in left_out[0][0]
    write_pool(pooled, tmp_path / "pool")


def test_answers_of_other_kinds_are_refused(compared_runs, tmp_path):
    def write(table):
        return table.append_column("outcome", pa.array(["answered"] * table.num_rows))

    with pytest.raises(QabiasError, match="outcome"):
        pool(rewritten(compared_runs, tmp_path / "written", write), allow_mixed=True)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("bbq-stereotyped", r"model .*allow_mixed"),
        ("bbnli-random", "benchmark"),
        ("bbq-random", "twice"),
        (None, "two"),
        ({"seed": 1}, "seed"),
        ("bbq-blind-random", "contexts"),
        ({"rules": {"unparsed": "wrong"}}, "rules"),
    ],
)
def test_what_is_not_one_question_is_refused(compared_runs, tmp_path, other, message):
    if isinstance(other, dict):
        run(RunArguments("bbq", "baseline:random", "Age", limit=200, **other), tmp_path / "run")
        other = tmp_path / "run"
    with pytest.raises(QabiasError, match=message):
        pool([compared_runs / "bbq-random", *([compared_runs / other] if other else [])])
