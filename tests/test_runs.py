"""Runs: whole pipeline on baselines, sampling, resuming, sharding, ties."""

import dataclasses
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from qabias.answers.likelihoods import best_option, choice_columns
from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.errors import QabiasError
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.collected import join_answers
from qabias.runs.run import run, score_run
from qabias.runs.sampling import blocks, draw, sample
from qabias.scorers.base import OptionScores
from qabias.scorers.baseline import BaselineScorer
from qabias.scorers.registry import load_kind
from qabias.tables.model import read_analysis

from .metrics.helpers import same


def _run(folder, **arguments):
    arguments.setdefault("model", "baseline:stereotyped")
    return run(RunArguments(benchmark="bbq", **arguments), folder)


def _scores(folder):
    return json.loads((folder / "scores.json").read_text("utf-8"))["scores"]


def _bytes(folder):
    files = [*sorted((folder / "predictions").iterdir()), folder / "scores.json"]
    return {file.name: file.read_bytes() for file in files}


# Scores of responders that are known exactly.


@pytest.fixture(scope="module")
def whole():
    """All examples, read once."""
    return _table()


@pytest.fixture(scope="module")
def few():
    """Three categories, one of which has an odd number of sets."""
    return _table("Age,Disability_status,Religion")


@pytest.fixture(scope="module")
def scores_of(few):
    """A function that gives the scores of a baseline as a run makes them, without its files."""
    requests = [BENCHMARK.request(example, BENCHMARK.formats["qa"]) for example in few.to_pylist()]

    def score(kind):
        return BENCHMARK.score(few, pa.table(choice_columns(BaselineScorer(kind).score(requests), "none")))

    return score


@pytest.fixture(scope="module")
def aligned(few):
    """Aligned minus nonaligned examples per disambiguated example: 0 but for the category with a set without a pair."""
    kinds = {}
    for row in few.filter(pc.equal(few["context_condition"], "disambig")).to_pylist():
        for name in ("all", row["category"]):
            kinds.setdefault(name, []).append(1 if row["label"] == row["biased_loc"] else -1)
    assert {name: sum(kind) for name, kind in kinds.items() if sum(kind)} == {"all": -2, "Disability_status": -2}
    return {name: sum(kind) / len(kind) for name, kind in kinds.items()}


@pytest.mark.parametrize(("kind", "sign"), [("stereotyped", 1.0), ("anti-stereotyped", -1.0), ("oracle", 0.0)])
def test_stereotyped_answers_score_plus_and_minus_one_and_right_answers_0(scores_of, aligned, kind, sign):
    scores = scores_of(kind)
    for name, row in {"all": scores, **scores["by"]["category"]}.items():
        right = sign == 0
        assert row["bias_ambig"] == sign == -row["accuracy_cost"]
        assert row["bias_disambig"] == pytest.approx(aligned[name] if right else sign, abs=1e-12)
        assert row["accuracy_ambig"] == right
        assert row["accuracy_disambig"] == pytest.approx(1 if right else (1 + sign * aligned[name]) / 2, abs=1e-12)


def test_t_b15_always_unknown_is_perfect_in_ambiguous_and_undefined_in_disambiguated_contexts(tmp_path):
    scores = _run(tmp_path / "run", model="baseline:unknown", config="Age,Religion").scores
    for row in (scores, *scores["by"]["category"].values()):
        assert row["accuracy_ambig"] == 1
        assert row["bias_ambig"] == 0
        assert row["accuracy_disambig"] == 0
        assert row["bias_disambig"] is None
        assert row["n_biased_disambig"] + row["n_counter_biased_disambig"] == 0
    assert _scores(tmp_path / "run")["bias_disambig"] is None  # strict JSON: null, not NaN and not 0


def test_random_answers_are_unbiased_within_their_interval(scores_of):
    scores = scores_of("random")
    for key in ("bias_ambig", "bias_disambig"):
        low, high = scores["ci"][key]
        assert low < 0 < high
    low, high = scores["ci"]["accuracy_ambig"]
    assert low < 1 / 3 < high


def test_t_b20_contexts_are_never_pooled(tmp_path):
    """Always answering UNKNOWN gets half of it, so it stands in one table with that warning, and nowhere else."""
    folder = _run(tmp_path / "run", config="Age", model="baseline:unknown").folder
    assert _scores(folder)["accuracy"] == 0.5
    facts = BENCHMARK.facts
    assert "accuracy" not in {*facts.compared, *facts.columns, *facts.tiles, *facts.tasks}
    tables = read_analysis(folder / "analysis.json").tables
    showing = [table for table in tables if "accuracy" in {column.name for column in table.columns}]
    assert [table.name for table in showing] == ["overall_accuracy"]
    assert "UNKNOWN" in showing[0].note


# Sampling.


def _table(config="all"):
    return BENCHMARK.load(config, BENCHMARK.origin("bundled", 0, False))


@pytest.mark.parametrize("limit", [1, 40, 217, 400, 2744, 5000])
def test_t_b21_samples_are_pairs_of_whole_sets_in_proportion_to_the_templates(whole, limit):
    table = whole
    drawn = sample(BENCHMARK, table, limit, seed=3)
    sets = Counter(drawn["set_id"].to_pylist())
    assert set(sets.values()) == {4}
    assert len(sets) - 2 * max(1, limit // 8) in (0, 1)
    agreeing = {row["set_id"] for row in drawn.to_pylist() if row["label"] == row["biased_loc"]}
    of_template, stereotyped = (Counter(name.rsplit("-", 1)[0] for name in names) for names in (sets, agreeing))
    # One template has an odd number of sets, the last of which has no partner.
    assert all(n - 2 * stereotyped[name] in (0, int(name == "Disability_status-04")) for name, n in of_template.items())
    sizes = Counter(name.rsplit("-", 1)[0] for name in set(table["set_id"].to_pylist()))
    share = drawn.num_rows / table.num_rows
    assert all(abs(of_template[name] - share * n) <= 6 for name, n in sizes.items())
    positions = [drawn["example_id"].to_pylist(), drawn["category"].to_pylist()]
    order = {
        key: i for i, key in enumerate(zip(table["example_id"].to_pylist(), table["category"].to_pylist(), strict=True))
    }
    places = [order[key] for key in zip(*positions, strict=True)]
    assert places == sorted(places)


def test_samples_depend_on_the_seed_and_on_nothing_else():
    table = _table("SES")
    one, again, other = (sample(BENCHMARK, table, 80, seed) for seed in (0, 0, 1))
    assert one.equals(again)
    assert not one.equals(other)
    assert sample(BENCHMARK, table, 10**6, 0).num_rows == table.num_rows


def test_every_block_is_equally_likely_whatever_the_limit():
    """Over all starts every block is drawn equally often: the mean score of samples is the score of all examples."""
    table = _table("Religion")
    block, drawn = blocks(BENCHMARK, table, 0), np.zeros(table.num_rows)
    n = int(block.max()) + 1
    for start in range(n):
        turn = draw(BENCHMARK, table, 0, start)
        assert sorted({*turn.tolist()}) == list(range(n))
        drawn += turn < 17
    assert (drawn == 17).all()


def test_larger_samples_contain_smaller_ones(whole):
    small, large = (set(sample(BENCHMARK, whole, limit, 0)["set_id"].to_pylist()) for limit in (200, 800))
    assert small < large


# Resuming and sharing out.


def test_the_same_command_continues_and_asks_nothing_twice(tmp_path, monkeypatch):
    first = _run(tmp_path / "run", config="SES")
    before = _bytes(tmp_path / "run")
    parts = tmp_path / "run" / "predictions"
    (parts / "part-00003.parquet").write_bytes((parts / "part-00002.parquet").read_bytes())
    with pytest.raises(QabiasError, match=r"part-00003\.parquet: holds other examples"):
        score_run(tmp_path / "run")
    (parts / "part-00003.parquet").unlink()
    asked = []
    monkeypatch.setattr(BENCHMARK, "request", lambda e, f, real=BENCHMARK.request: asked.append(e) or real(e, f))
    again = _run(tmp_path / "run", config="SES")
    assert len(asked) == 4 * BENCHMARK.units_per_part(load_kind("baseline"))
    assert _bytes(tmp_path / "run") == before
    assert again.signature == first.signature


def test_shards_end_with_the_same_bytes_as_one_process(tmp_path):
    arguments = RunArguments(benchmark="bbq", model="baseline:random", config="SES")
    run(arguments, tmp_path / "whole")
    results = [run(arguments, tmp_path / "shared", Machine(shard=(i, 3))) for i in (2, 0, 1)]
    assert [result.n_missing_parts > 0 for result in results] == [True, True, False]
    assert results[0].n_missing_parts > results[1].n_missing_parts > 0
    assert _bytes(tmp_path / "shared") == _bytes(tmp_path / "whole")


def test_a_folder_of_another_run_is_refused(tmp_path):
    _run(tmp_path / "run", config="Age")
    with pytest.raises(QabiasError, match=r"holds another run .config 'Age' there, 'SES' here"):
        _run(tmp_path / "run", config="SES")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("mine")
    with pytest.raises(QabiasError, match="exists and holds no run"):
        _run(tmp_path / "other")


def test_run_folder_is_complete(tmp_path):
    folder = tmp_path / "run"
    _run(folder, config="Age", limit=80)
    content = json.loads((folder / "run.json").read_text("utf-8"))
    assert "|norm:none|limit:80|seed:0|qabias:" in content["signature"]
    assert set(content["arguments"]) == {field.name for field in dataclasses.fields(RunArguments)}
    predictions = pq.read_table(folder / "predictions" / "part-00000.parquet")
    assert predictions.column_names == [
        "category",
        "example_id",
        "prediction",
        "loglikelihoods",
        "n_tokens",
        "n_bytes",
        "probabilities",
    ]
    assert {path.name for path in folder.rglob(".*")} == {".lock"}


# What a run writes.


def test_what_a_run_has_written_it_does_not_read_again(tmp_path, monkeypatch):
    """Scores and tables reach the report as they are; the parts are read when they are joined."""
    read, parts = [], []
    real, real_bytes = Path.read_text, Path.read_bytes

    def read_text(path, *arguments, **options):
        read.append(path.name)
        return real(path, *arguments, **options)

    def read_bytes(path):
        if path.name.startswith("part-"):
            parts.append(path.name)
        return real_bytes(path)

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    folder = _run(tmp_path / "run", config="Religion").folder
    names = sorted(path.name for path in (folder / "predictions").iterdir())
    assert read.count("run.json") == 1
    assert sorted(parts) == names
    read.clear()
    parts.clear()
    score_run(folder)
    assert read.count("run.json") == 1
    assert sorted(parts) == names
    assert not {"scores.json", "analysis.json"} & set(read)


# Answers.


def _option_scores(loglikelihoods, n_tokens=(1, 1, 1), n_bytes=(1, 1, 1)):
    return OptionScores(np.array(loglikelihoods), np.array(n_tokens, np.int32), np.array(n_bytes, np.int32))


def test_normalisation_divides_by_tokens_or_bytes():
    scores = _option_scores([-4.0, -5.0, -9.0], n_tokens=[1, 2, 6], n_bytes=[1, 5, 6])
    assert best_option(scores, "none") == 0
    assert best_option(scores, "token") == 2  # -4, -2.5, -1.5
    assert best_option(scores, "byte") == 1  # -4, -1, -1.5


def test_t_b24_an_exact_tie_for_the_best_is_no_answer():
    assert best_option(_option_scores([-1.0, -1.0, -2.0]), "none") == -1
    assert best_option(_option_scores([-1.0, -2.0, -2.0]), "none") == 0


# Predictions from elsewhere.


def test_shards_that_begin_at_once_in_one_folder_share_it(tmp_path, monkeypatch):
    arguments = RunArguments("bbq", "baseline:random", config="Age")
    run(arguments, tmp_path / "run", Machine(shard=(0, 2)))
    looked = []

    def exists(path, **options):
        if path.name == "run.json" and not looked:
            looked.append(path)
            return False  # the other shard has not written it yet
        return os.path.exists(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", exists)
        assert run(arguments, tmp_path / "run", Machine(shard=(1, 2))).n_missing_parts == 0
    assert looked


@pytest.mark.slow
def test_smollm2_gives_the_same_likelihoods_at_any_token_budget(tmp_path):
    """The real model on real input."""
    result = _run(tmp_path / "run", model="smollm2", config="Religion", limit=16)
    assert result.scores["n"] == 16
    again = run(
        RunArguments(benchmark="bbq", model="smollm2", config="Religion", limit=16),
        tmp_path / "again",
        Machine(batch_tokens=256),
    )
    tables = [
        pq.read_table(folder / "predictions" / "part-00000.parquet") for folder in (tmp_path / "run", again.folder)
    ]
    one, two = (np.array(table["loglikelihoods"].to_pylist()) for table in tables)
    assert np.abs(one - two).max() < 1e-4


def test_samples_estimate_the_score_of_the_whole_benchmark():
    """Bias in the largest templates only: the mean over samples is the score of all, not of equally large templates."""
    table = _table("all")
    sizes = Counter(table["template_id"].to_pylist())
    is_large = np.array([sizes[name] > 300 for name in table["template_id"].to_pylist()])
    answers = np.where(is_large, table["biased_loc"].to_numpy(), table["unknown_loc"].to_numpy())
    scores = []
    for seed in range(25):
        numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
        rows = sample(BENCHMARK, numbered, 1376, seed)["row"].to_numpy()
        here = (table["context_condition"].to_numpy()[rows] == "ambig") & (table["biased_loc"].to_numpy()[rows] >= 0)
        scores.append(is_large[rows][here].mean())
        assert (answers[rows][here] >= 0).all()
    truth = is_large[table["context_condition"].to_numpy() == "ambig"].mean()
    assert np.mean(scores) == pytest.approx(truth, abs=0.005)
    assert np.std(scores) < 0.02


@pytest.mark.parametrize("kind", ["index", "text"])
def test_somebodys_predictions_are_joined_in_any_order(kind, whole):
    table = _table("Age")
    given = [
        {
            "example_id": row["example_id"],
            "prediction": row["biased_loc"] if kind == "index" else row[f"ans{row['biased_loc']}"] + ".",
        }
        for row in reversed(table.to_pylist())
    ]
    given = pa.Table.from_pylist(given)
    answered, answers = join_answers(BENCHMARK, table, given, "mine")
    assert answered.equals(table)
    assert BENCHMARK.score(answered, answers)["bias_ambig"] == 1
    with pytest.raises(QabiasError, match="no column category"):
        join_answers(BENCHMARK, whole, given, "mine")


def test_somebodys_probabilities_of_unqover_are_scored_as_a_run_scores_them(tmp_path):
    benchmark = load_benchmark("unqover")
    whole = run(RunArguments("unqover", "baseline:random", config="religion", limit=60), tmp_path / "run")
    [part] = (tmp_path / "run" / "predictions").iterdir()
    given = pq.read_table(part).drop_columns("set")
    given = given.take(np.arange(given.num_rows)[::-1])
    table = benchmark.load("religion", benchmark.origin("bundled", 0, False))
    answered, answers = join_answers(benchmark, table, given, "mine")
    assert same(benchmark.score(answered, answers), whole.scores)
    texts = pa.array(["much"] * given.num_rows)
    for wrong, column in (
        (given.drop_columns("s2_21_neg"), "no column s2_21_neg"),
        (given.set_column(given.column_names.index("s1_12"), "s1_12", texts), "column s1_12"),
    ):
        with pytest.raises(QabiasError, match=column):
            join_answers(benchmark, table, wrong, "mine")
