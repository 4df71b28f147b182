"""Answers that others have collected, as runs: from their own tables, and from what the authors published."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq.logs import recognise
from qabias.benchmarks.bbq.roles import check_probabilities
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.runs.run import run, score_run
from qabias.support.table_files import read_table
from qabias.tables.model import find, read_analysis

from .conftest import ROOT

UPSTREAM = Path(os.environ.get("QABIAS_UPSTREAM") or ROOT.parent / "shared" / "upstream")
UNIFIEDQA = UPSTREAM / "nyu-mll" / "BBQ" / "results" / "UnifiedQA"

needs_outputs = pytest.mark.skipif(
    not (UNIFIEDQA / "preds_Age.jsonl").exists(),
    reason="the authors' outputs are not here; set QABIAS_UPSTREAM to a mirror with nyu-mll/BBQ/results/UnifiedQA",
)


def invoke(*arguments) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def age() -> pa.Table:
    benchmark = load_benchmark("bbq")
    return benchmark.load("Age", benchmark.origin("bundled", 0, False))


@pytest.fixture
def answers(tmp_path) -> Path:
    """Right answers to the first 400 examples of Age, as texts."""
    rows = age().slice(0, 400).to_pylist()
    path = tmp_path / "answers.jsonl"
    given = [{"example_id": row["example_id"], "prediction": row["ans" + str(row["label"])] + "."} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
    return path


# Somebody's table


def test_a_table_becomes_a_run_with_tables_and_report(answers, tmp_path):
    folder = tmp_path / "run"
    output = invoke("score", answers, "--config", "Age", "--model", "mine", "--format", "race", "--output", folder)
    assert output.count("400 of 3,680 examples of Age have an answer: 10.9 %\n") == 1
    scored = Run.scored(folder)
    assert scored.scores["accuracy_disambig"] == 1
    assert "|format:race@1|model:mine|scorer:answers|norm:none|answers:answers.jsonl@" in scored.signature
    assert " 400 of 3680|coverage:400/3680|" in scored.signature
    assert "400 of 3,680 examples of Age have an answer" in write_report_of(folder).read_text("utf-8")
    analysis = read_analysis(folder / "analysis.json")
    assert find(analysis.tables, "accuracy_by_category").rows
    assert all(example["generated"] for example in analysis.examples)
    assert "accuracy" in write_report_of(folder).read_text("utf-8").lower()
    before = (folder / "scores.json").read_bytes()
    assert score_run(folder).scores["n"] == 400
    assert (folder / "scores.json").read_bytes() == before


def test_missing_answers_are_accounted_for_first_of_all(tmp_path):
    """The third of 24 answers that could be read are right: without the others nobody knows what the model does."""
    rows = load_examples(RunArguments("bbq", config="Age", limit=24)).table.to_pylist()
    refusal = "I'm sorry, but I can't help with that."
    texts = [row["ans" + str(row["label"])] if number % 3 == 0 else refusal for number, row in enumerate(rows)]
    texts[1] = "<think>The text names two"
    path = tmp_path / "answers.jsonl"
    given = [{"example_id": row["example_id"], "prediction": text} for row, text in zip(rows, texts, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
    output = invoke("score", path, "--config", "Age", "--output", tmp_path / "run")
    assert "67% of answers are missing" in output
    output = invoke("show", tmp_path / "run", "--full")
    assert "16 outputs named no answer (66.7" in output
    assert "15 refused, 1 truncated" in output
    assert "100.0 (33.3 to 100.0)" in output
    assert "[100.0, 100.0]" not in output
    scores = Run.scored(tmp_path / "run").scores
    assert scores["outcomes"] == {
        "answered": 8,
        "refused": 15,
        "truncated": 1,
        "filtered": 0,
        "repeated": 0,
        "unread": 0,
    }
    assert scores["range"]["accuracy_ambig"] == pytest.approx([1 / 3, 1])
    page = write_report_of(tmp_path / "run").read_text("utf-8")
    assert "15 refused, 1 truncated" in page
    assert "of answers are missing" in page
    parts = sorted((tmp_path / "run" / "predictions").iterdir())
    assert pq.read_table(parts[0])["outcome"].to_pylist().count("refused") == 15


# Kinds of files

ROWS = [("Age", number, f'He said: "no; but|\tyes", {number}.\r\nÉ' * 40) for number in range(1200)]


def as_csv(delimiter: str) -> str:
    written = io.StringIO()
    rows = csv.writer(written, delimiter=delimiter)
    rows.writerows([("category", "example_id", "prediction"), *ROWS])
    return written.getvalue()


def as_json() -> list[str]:
    return [json.dumps(dict(zip(("category", "example_id", "prediction"), row, strict=True))) for row in ROWS]


FILES = {
    "a.csv": lambda: as_csv(",").encode(),
    "semicolon.csv": lambda: as_csv(";").encode("utf-8-sig"),
    "named.csv": lambda: b"sep=|\r\n" + as_csv("|").encode(),
    "a.tsv": lambda: as_csv("\t").encode(),
    "little.csv": lambda: as_csv("\t").encode("utf-16"),
    "big.csv": lambda: b"\xfe\xff" + as_csv(",").encode("utf-16-be"),
    "unmarked.csv": lambda: as_csv(",").encode("utf-16-le"),
    "unmarked_big.csv": lambda: as_csv(",").encode("utf-16-be"),
    "wide.csv": lambda: as_csv(",").encode("utf-32"),
    "a.csv.gz": lambda: gzip.compress(as_csv(",").encode()),
    "packed_gz.csv": lambda: gzip.compress(as_csv(",").encode()),
    "unpacked.csv.gz": lambda: as_csv(",").encode(),
    "a.jsonl": lambda: "\n".join(as_json()).encode(),
    "a.ndjson.gz": lambda: gzip.compress("\n".join(as_json()).encode()),
    "list.json": lambda: f"[{','.join(as_json())}]".encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_a_table_is_the_same_in_every_kind_of_file(tmp_path, name):
    """Above a block of Arrow, with line breaks, delimiters and quotation marks in its texts."""
    (tmp_path / name).write_bytes(content := FILES[name]())
    assert "gz" in name or len(content) > 2**20
    table = read_table(tmp_path / name)
    assert list(zip(*table.to_pydict().values(), strict=True)) == ROWS


def test_a_type_is_that_of_the_whole_column(tmp_path):
    (tmp_path / "a.csv").write_text("number\n" + "1\n" * 2**20 + "none\n", encoding="utf-8")
    assert read_table(tmp_path / "a.csv")["number"].to_pylist()[-2:] == ["1", "none"]


BAD_FILES = {
    "a.xlsx": b"PK\x03\x04",
    "renamed.csv": b"PK\x03\x04",
    "a.xls": b"\xd0\xcf\x11\xe0",
    "latin.csv": "catégory,example_id\n".encode("latin-1"),
    "cut.csv.gz": gzip.compress(as_csv(",").encode())[:-9],
    "wide.csv": b"a,b\n1,2,3\n",
    "deep.json": b"[" * 10**5,
    "numbers.json": b"[1, 2]",
    "big.json": b'[{"a": 1' + b"0" * 400 + b"}]",
    "broken.jsonl": b'{"a": 1}\n{"a": \n',
    "empty.csv": b"",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_another_kind_of_file_is_refused_by_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(BAD_FILES[name])
    with pytest.raises(QabiasError, match=re.escape(str(tmp_path / name))) as refused:
        read_table(tmp_path / name)
    assert len(refused.value.args) == 2


# Other rules


def test_a_run_is_scored_by_other_rules_into_a_folder_of_its_own(tmp_path):
    arguments = RunArguments("unqover", "baseline:first", "religion", limit=280)
    folder = run(arguments, tmp_path / "run").folder
    invoke("score", folder, "--rule", "delta=released", "--output", tmp_path / "released")
    plain, released = (Run.scored(tmp_path / name) for name in ("run", "released"))
    assert "|score:delta=released|" in released.signature
    assert "score:" not in plain.signature
    assert dict(released.arguments.rules) == {"delta": "released"}
    asked = run(
        RunArguments("unqover", "baseline:first", "religion", limit=280, rules={"delta": "released"}),
        tmp_path / "asked",
    )
    assert asked.signature == released.signature
    assert asked.scores["sets"]["religion"]["delta"] == released.scores["sets"]["religion"]["delta"]
    with pytest.raises(QabiasError, match="--output runs"):
        invoke("score", folder, "--rule", "delta=released")
    with pytest.raises(QabiasError, match=r"unknown rule of unqover 'delte'.*Did you mean 'delta'"):
        invoke("score", folder, "--rule", "delte=released", "--output", tmp_path / "other")


# The authors' tables


def test_logits_are_read_as_the_largest_and_ties_as_none():
    found = pa.table(
        {
            "index": [0, 1, 0, 1],
            "cat": ["Age"] * 4,
            "model": ["roberta-base-race"] * 2 + ["deberta-v3-base-race"] * 2,
            "ans0": [0.1, 2.0, -1.0, 0.5],
            "ans1": [0.3, 2.0, -2.0, 0.1],
            "ans2": [0.2, 1.0, -3.0, 0.2],
        }
    )
    one, other = recognise(found)
    assert (one.name, other.name) == ("roberta-base-race-pair", "deberta-v3-base-race-pair")
    assert one.answers["prediction"].to_pylist() == [1, -1]
    assert other.answers["prediction"].to_pylist() == [0, 0]
    assert other.answers["example_id"].to_pylist() == [0, 1]
    assert recognise(pa.table({"example_id": [1], "prediction": [0]})) == []


@needs_outputs
def test_a_file_of_the_authors_names_what_it_holds(tmp_path):
    path = UNIFIEDQA / "preds_Age.jsonl"
    common = ("--source", "release", "--config", "Age", "--mirror", UPSTREAM)
    with pytest.raises(QabiasError, match="answers unifiedqa-11b"):
        invoke("score", path, *common)


@needs_outputs
def test_published_answers_are_to_the_published_texts_only(tmp_path):
    path = UNIFIEDQA / "preds_Age.jsonl"
    chosen = ("--config", "Age", "--answers", "unifiedqa-11b-race_unifiedqa", "--mirror", UPSTREAM)
    for wrong in (("--source", "bundled"), ("--source", "official"), ("--fixes",)):
        with pytest.raises(QabiasError, match="source release"):
            invoke("score", path, *chosen, *wrong, "--output", tmp_path / "wrong")
    invoke("score", path, *chosen, "--output", tmp_path / "right")
    scores = Run.scored(tmp_path / "right").scores
    assert [round(100 * scores[name], 2) for name in ("accuracy_ambig", "bias_ambig")] == [54.67, 29.78]


def test_what_means_nothing_is_refused(answers, tmp_path):
    folder = run(RunArguments("bbq", "baseline:random", "Age", limit=40), tmp_path / "run").folder
    for arguments, message in (
        ((folder, "--format", "question_only"), "--format does not apply"),
        ((folder, "--model", "other"), "--model does not apply"),
        ((folder, "--output", tmp_path / "other"), "--rule and --output"),
        ((answers, "--config", "Age", "--answers", "nonsense"), "one column"),
    ):
        with pytest.raises(QabiasError, match=message):
            invoke("score", *arguments)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("column", [[["a", "b", "c"]], [0.2], [[0.5, 0.5]]], ids=["texts", "no list", "two"])
def test_probabilities_are_lists_of_three_numbers(column):
    with pytest.raises(QabiasError, match="probabilities"):
        check_probabilities(pa.chunked_array([column]))
    check_probabilities(pa.chunked_array([[[0.2, 0.1, 0.7], None]]))


def test_the_same_file_may_be_scored_again_and_another_not(answers, tmp_path):
    folder = tmp_path / "run"
    for _ in range(2):
        invoke("score", answers, "--config", "Age", "--output", folder)
    answers.write_text(answers.read_text(encoding="utf-8").replace("The", "the other", 9), encoding="utf-8")
    with pytest.raises(QabiasError, match="holds another run"):
        invoke("score", answers, "--config", "Age", "--output", folder)
