"""Several runs as one: means over prompts, formats and seeds."""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.pooling import Pool, pool
from qabias.report.writing import write_pool
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run, score_run
from qabias.runs.scored import read_scored
from qabias.support.stored import read_fields
from qabias.tables.export import export
from qabias.tables.model import Estimate, find, read_analysis

from .conftest import ROOT
from .run_parts import rewrite

RUNS = {
    "bbq": {"config": "Age", "limit": 120},
    "bbnli": {"config": "gender", "limit": 120},
    "bbq_nli": {"config": "Religion_nli", "limit": 240},
    "unqover": {"config": "religion", "limit": 400},
}
FORMATS = {"bbq": "race", "bbnli": "gpt3", "bbq_nli": "gpt3", "unqover": None}


@pytest.fixture(scope="module")
def where(tmp_path_factory) -> Path:
    """Two runs of every benchmark that give different answers: a random and a steady baseline."""
    folder = tmp_path_factory.mktemp("runs")
    for benchmark, arguments in RUNS.items():
        for name, model in (("random", "random"), ("other", "consistent" if benchmark == "unqover" else "stereotyped")):
            run(RunArguments(benchmark, f"baseline:{model}", **arguments), folder / f"{benchmark}-{name}")
        asked = RunArguments(benchmark, "baseline:random", format=FORMATS[benchmark], seed=0, **arguments)
        run(asked, folder / f"{benchmark}-again")
    return folder


def pooled(where: Path, benchmark: str) -> Pool:
    return pool([where / f"{benchmark}-random", where / f"{benchmark}-other"], allow_mixed=True)


@pytest.mark.parametrize("benchmark", RUNS)
def test_every_score_is_the_mean_of_the_runs(where, benchmark):
    found = pooled(where, benchmark)
    of_runs = [run.scores for run in found.runs]
    for measure in found.measures:
        groups = found.benchmark.groups(found.scores, measure)
        by_run = [found.benchmark.groups(of, measure) for of in of_runs]
        assert groups.keys() == by_run[0].keys()
        for name, scores in groups.items():
            values = [of[name][measure.name] for of in by_run]
            if None in values:
                assert math.isnan(scores[measure.name])
                continue
            assert scores[measure.name] == pytest.approx(statistics.mean(values), abs=1e-12)
            assert scores["spread"][measure.name] == pytest.approx(statistics.stdev(values), abs=1e-12)
            assert scores["n_runs"] == 2


@pytest.mark.parametrize("benchmark", RUNS)
def test_tables_are_those_of_a_run_with_means(where, benchmark, tmp_path):
    found = pooled(where, benchmark)
    runs = [read_analysis(run.folder / "analysis.json") for run in found.runs]
    names = {table.name for table in found.analysis.tables}
    assert {table.name for table in runs[0].tables} <= names
    page = write_pool(found, tmp_path / "pool")
    assert page.read_text(encoding="utf-8").count("<table") >= len(names) // 2
    n_compared = 0
    for table in find_estimates(found):
        in_runs = [find(of.tables, table.name) for of in runs]
        labels = [place for place, column in enumerate(table.columns) if column.kind == "text"]
        by_key = [{tuple(row[place] for place in labels): row for row in of.rows} for of in in_runs]
        for row in table.rows:
            key = tuple(row[place] for place in labels)
            if not all(key in of for of in by_key):
                continue
            for place, value in enumerate(row):
                if isinstance(value, Estimate) and value.value is not None:
                    values = [of[key][place].value for of in by_key]
                    if None in values:  # too few answers in this run
                        continue
                    assert value.value == pytest.approx(statistics.mean(values), abs=1e-9)
                    n_compared += 1
    assert n_compared > 5


def find_estimates(found: Pool) -> list:
    """Tables of scores with intervals that a run has too."""
    return [
        table
        for table in found.analysis.tables
        if not table.name.startswith("pooled_")
        and any(isinstance(value, Estimate) for row in table.rows for value in row)
    ]


def test_a_pool_of_equal_answers_has_the_interval_of_a_run(where):
    found = pool([where / "bbq-random", where / "bbq-again"])
    alone = read_scored(where / "bbq-random").scores
    assert found.scores["ci"]["bias_ambig"] == pytest.approx(alone["ci"]["bias_ambig"])
    assert not found.mixed
    assert "pool:2 runs" in found.signature
    assert "|format:qa@1,race@1|" in found.signature


def test_only_what_a_paper_has_as_a_mean_is_called_so(where):
    for benchmark in RUNS:
        found = pooled(where, benchmark)
        named = {table.name for table in found.analysis.tables if table.source}
        assert named <= set(found.benchmark.facts.means)
    assert "bias_by_subtopic" in {table.name for table in pooled(where, "bbnli").analysis.tables if table.source}


def test_files_of_a_pool(where, tmp_path):
    found = pool([where / "bbnli-random", where / "bbnli-again"], claim="Table 3, column NLI")
    write_pool(found, tmp_path)
    content = json.loads((tmp_path / "pool.json").read_text(encoding="utf-8"))
    assert content["claim"] == "Table 3, column NLI"
    assert [run["arguments"]["format"] for run in content["runs"]] == [None, "gpt3"]
    scores = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert scores["signature"] == found.signature
    assert read_fields(tmp_path / "scores.json", "pool again")["signature"] == found.signature
    edited = {**scores, "signature": "other"}
    (tmp_path / "scores.json").write_text(json.dumps(edited), encoding="utf-8")
    with pytest.raises(QabiasError, match="is not as it was written"):
        read_fields(tmp_path / "scores.json", "pool again")
    assert "Table 3, column NLI" in (tmp_path / "pool.html").read_text(encoding="utf-8")
    assert export(tmp_path, None, "csv", "bias_by_subtopic")


def test_what_is_undefined_in_one_run_is_undefined_in_the_mean(where, tmp_path):
    silent = run(RunArguments("bbq", "baseline:unknown", "Age", limit=120), tmp_path / "silent").folder
    found = pool([where / "bbq-random", silent], allow_mixed=True)
    assert math.isnan(found.scores["bias_disambig"])
    assert math.isnan(found.scores["spread"]["bias_disambig"])
    write_pool(found, tmp_path / "pool")
    content = json.loads((tmp_path / "pool" / "scores.json").read_text(encoding="utf-8"))
    assert content["scores"]["bias_disambig"] is None
    for pointer in ("/bias_disambig", "/spread/bias_disambig", "/by/category/Age/spread/bias_disambig"):
        assert content["reasons"][pointer] == "undefined in one of the runs"


def test_probabilities_that_not_all_runs_stored_are_left_out(where, tmp_path):
    folder = tmp_path / "without"
    shutil.copytree(where / "bbq-other", folder)
    rewrite(folder, lambda table: table.drop_columns(["probabilities"]))
    score_run(folder)
    found, whole = pool([where / "bbq-random", folder], allow_mixed=True), pooled(where, "bbq")
    gone = {name for name in whole.scores if "probabilit" in name}
    assert "bias_probability_ambig" in gone
    assert not [name for name in found.scores if "bias_probability" in name]
    assert {name: found.scores[name] for name in ("bias_ambig", "accuracy")} == {
        name: whole.scores[name] for name in ("bias_ambig", "accuracy")
    }
    assert "bias_probability_ambig" not in {measure.name for measure in found.measures}
    said = "The probabilities of the answers, and the scores that are made from them, are left out: "
    assert [note for note in found.analysis.notes if note.startswith(said)] == [
        f"{said}{found.names[1]} did not store them."
    ]
    assert not [note for note in whole.analysis.notes if note.startswith(said)]
    write_pool(found, tmp_path / "pool")


def test_answers_of_other_kinds_are_refused(where, tmp_path):
    folder = tmp_path / "written"
    shutil.copytree(where / "bbq-other", folder)
    rewrite(folder, lambda table: table.append_column("outcome", pa.array(["answered"] * table.num_rows)))
    with pytest.raises(QabiasError, match=r"of other kinds \(prediction, probabilities and .*outcome"):
        pool([where / "bbq-random", folder], allow_mixed=True)


def test_what_is_not_one_question_is_refused(where, tmp_path):
    with pytest.raises(QabiasError, match=r"differ in model .*--allow-mixed"):
        pool([where / "bbq-random", where / "bbq-other"])
    with pytest.raises(QabiasError, match="differ in benchmark"):
        pool([where / "bbq-random", where / "bbnli-random"])
    with pytest.raises(QabiasError, match="named twice"):
        pool([where / "bbq-random", where / "bbq-random"])
    with pytest.raises(QabiasError, match="at least two"):
        pool([where / "bbq-random"])
    other = run(RunArguments("bbq", "baseline:random", "Age", limit=120, seed=1), tmp_path / "seed").folder
    with pytest.raises(QabiasError, match="answer other examples"):
        pool([where / "bbq-random", other])
    unseen = RunArguments("bbq", "baseline:random", "Age", limit=120, format="question_only")
    blind = run(unseen, tmp_path / "blind").folder
    with pytest.raises(QabiasError, match="one model saw the contexts and the other did not"):
        pool([where / "bbq-random", blind])
    counted = RunArguments("bbq", "baseline:random", "Age", limit=120, rules={"unparsed": "wrong"})
    with pytest.raises(QabiasError, match="differ in rules"):
        pool([where / "bbq-random", run(counted, tmp_path / "rules").folder])


def test_the_command_prints_the_means_and_writes_a_page(where, tmp_path):
    folders = [str(where / "bbq-random"), str(where / "bbq-again")]
    result = CliRunner().invoke(app, ["pool", *folders, "--output", str(tmp_path / "pool")])
    assert result.exit_code == 0, result.output
    assert "mean over 2 runs" in result.output
    assert (tmp_path / "pool" / "pool.html").exists()
    result = CliRunner().invoke(app, ["pool", *folders, "--output", folders[0]])
    assert isinstance(result.exception, QabiasError)
    assert "holds a run" in str(result.exception)


# Published cells


UPSTREAM = Path(os.environ.get("QABIAS_UPSTREAM") or ROOT.parent / "shared" / "upstream")


def counted_runs(where: Path, subtopic: str, formats: list[str], aligned: int, opposed: int, rule: str) -> list[Path]:
    """Runs over a subtopic, one for each format, that together have so many aligned and opposed answers."""
    benchmark = load_benchmark("bbnli")
    rows = benchmark.load(subtopic, benchmark.origin("official", 0, False, str(UPSTREAM))).to_pylist()
    # The prompts in turn, so that each has its share of every kind of answer.
    bias = [(number, row) for row in rows if row["kind"] == "stereotypical" for number in range(len(formats))]
    said = {}
    for place, (number, row) in enumerate(bias):
        agrees, denies = ("entailment", "contradiction") if row["stance"] == "pro" else ("contradiction", "entailment")
        side = agrees if place < aligned else denies if place < aligned + opposed else "neutral"
        said[number, row["example_id"]] = side
    folders = []
    for number, prompt_format in enumerate(formats):
        answers = [(row["example_id"], said.get((number, row["example_id"]), "neutral")) for row in rows]
        path = where / f"{prompt_format}.csv"
        path.write_text("example_id,prediction\n" + "".join(f"{key},{text}\n" for key, text in answers), "utf-8")
        folders.append(where / f"{prompt_format}-{rule}")
        arguments = ["score", path, "--benchmark", "bbnli", "--source", "official", "--config", subtopic]
        arguments += ["--format", prompt_format, "--score", f"denominator={rule}", "--model", "made"]
        result = CliRunner().invoke(app, [*map(str, [*arguments, "--upstream-dir", UPSTREAM, "--output", folders[-1]])])
        assert result.exit_code == 0, result.output
    return folders


NOVEL = ["novel_1", "novel_2", "novel_3", "novel_4"]
QUOREF = ["quoref_answer", "quoref_given", "quoref_extract"]


@pytest.mark.skipif(
    not (UPSTREAM / "feyzaakyurek" / "bbnli").exists(),
    reason="the authors' files are not here; set QABIAS_UPSTREAM to a mirror with feyzaakyurek/bbnli",
)
@pytest.mark.parametrize(
    ("subtopic", "formats", "neutral", "lean", "published"),
    [
        # 2,400 answers of the paper: 5 neutral, A - D = 575; as its five samples were equal, a fifth of it.
        ("black_is_to_criminal", NOVEL, 1, 115, 23.97),
        # 5,700 answers; such counts reach the printed value, and none does by the formula of the paper.
        ("man_is_to_programmer", QUOREF, 61, 3, 0.27),
    ],
)
def test_cells_of_table_3_that_need_the_released_denominator(tmp_path, subtopic, formats, neutral, lean, published):
    """Akyurek et al. 2022, Table 3: two cells that no integer counts give by the paper's own formula."""
    benchmark = load_benchmark("bbnli")
    rows = benchmark.load(subtopic, benchmark.origin("official", 0, False, str(UPSTREAM)))
    n_bias = len(formats) * rows["kind"].to_pylist().count("stereotypical")
    aligned = (n_bias - neutral + lean) // 2
    opposed = n_bias - neutral - aligned
    assert aligned - opposed == lean
    scores = {}
    for rule in ("paper", "released"):
        found = pool(counted_runs(tmp_path, subtopic, formats, aligned, opposed, rule), upstream_dir=str(UPSTREAM))
        (row,) = [row for row in find(found.analysis.tables, "bias_by_subtopic").rows if row[0] == subtopic]
        scores[rule] = 100 * row[2].value
    assert scores["paper"] == pytest.approx(100 * lean / n_bias, abs=1e-9)
    assert round(scores["paper"], 2) != published
    assert round(scores["released"], 2) == published
