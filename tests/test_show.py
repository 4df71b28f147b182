"""A run in the terminal: its tables, whole or in part, and its templates."""

import sys
from collections import Counter, defaultdict

import pyarrow.parquet as pq
import pytest

from qabias import cli
from qabias.analysis import Analysis, Column, Table, write_analysis
from qabias.benchmarks import load_benchmark
from qabias.runs import RunArguments, load_examples, run
from qabias.template_view import rates

RUNS = {
    "bbq": {"config": "Age", "limit": 120},
    "bbnli": {"config": "gender", "limit": 24},
    "bbq_nli": {"config": "Age_nli", "limit": 120},
    "unqover": {"config": "religion", "limit": 300},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    where = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qabias.report.write_report", lambda folder: None)  # takes long, and is not shown
        for benchmark, arguments in RUNS.items():
            run(RunArguments(benchmark=benchmark, model="baseline:random", **arguments), where / benchmark)
    return where


@pytest.fixture
def show(capsys, monkeypatch):
    def invoke(*arguments):
        monkeypatch.setattr(sys, "argv", ["qabias", "show", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return stopped.value.code or 0, captured.out, captured.err

    return invoke


@pytest.mark.parametrize("benchmark", RUNS)
def test_a_run_is_shown_with_its_head_scores_and_tables(folders, show, benchmark):
    code, output, _ = show(folders / benchmark)
    assert code == 0
    assert output.startswith(f"signature  {benchmark}|source:bundled@")
    assert "model      baseline:random" in output
    assert "tables: " in output


def test_a_long_table_is_shown_in_part_and_whole_if_asked(tmp_path, show):
    table = Table("long", "Long", "", "Note.", (Column("n", "Number", "count"),), tuple((n,) for n in range(100, 140)))
    write_analysis(Analysis((table,)), tmp_path / "analysis.json")
    code, output, _ = show(tmp_path)
    assert code == 0
    assert "114" in output
    assert "115" not in output
    assert "… and 25 more rows: qabias show" in output
    assert "--table long" in output
    _, output, _ = show(tmp_path, "--table", "long")
    assert all(str(n) in output for n in range(100, 140))
    assert "more rows" not in output


def test_the_rates_of_a_template_are_its_answers_counted(folders):
    arguments = RunArguments(benchmark="bbq", model="baseline:random", **RUNS["bbq"])
    examples = load_examples(load_benchmark("bbq"), arguments).to_pylist()
    answers = [
        answer
        for part in sorted((folders / "bbq" / "predictions").iterdir())
        for answer in pq.read_table(part)["prediction"].to_pylist()
    ]
    rows = [{**e, "prediction": a} for e, a in zip(examples, answers, strict=True) if e["template_id"] == "Age-02"]
    counts = Counter()
    for row in rows:
        key = row["context_condition"], row["question_polarity"]
        counts[key] += 1
        counts[(*key, "UNKNOWN")] += row["prediction"] == row["unknown_loc"]
        counts[(*key, "group")] += row["prediction"] == row["target_loc"]
    table = rates("bbq", "Age-02", rows)
    assert len(table.rows) == 4
    for context, polarity, group, other, unknown, n in table.rows:
        assert n == counts[context, polarity]
        assert unknown == counts[context, polarity, "UNKNOWN"] / n
        assert group == counts[context, polarity, "group"] / n
        assert other == pytest.approx(1 - group - unknown)


@pytest.mark.parametrize(
    ("benchmark", "template", "text"),
    [
        ("bbq", "Age-01", "UNKNOWN"),
        ("bbnli", None, "(right: neutral)"),
        ("bbq_nli", "Age-01", "statement about"),
        ("unqover", "religion-1", "negated question"),
    ],
)
def test_a_template_is_shown_with_rates_and_items(folders, show, benchmark, template, text):
    if template is None:
        arguments = RunArguments(benchmark=benchmark, model="baseline:random", **RUNS[benchmark])
        # A premise that has a hypothesis about stereotypes, to which neutral is right, and no other.
        table = load_examples(load_benchmark(benchmark), arguments)
        kinds = defaultdict(set)
        for row in table.to_pylist():
            kinds["-".join(row["example_id"].split("-")[:2])].add(row["kind"])
        template = next(name for name, of in kinds.items() if of == {"stereotypical"})
    code, output, error = show(folders / benchmark, "--template", template)
    assert code == 0, error
    assert text in output
    assert " items" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--template", "Ag-01"), "did you mean 'Age-01'"),
        (("--table", "bias_by_categry"), "did you mean 'bias_by_category'"),
        (("--table", "a", "--template", "b"), "not both"),
    ],
)
def test_mistakes_are_one_line(folders, show, arguments, message):
    code, _, error = show(folders / "bbq", *arguments)
    assert code == 2
    assert error.count("\n") == 1
    assert message in error


def test_a_folder_without_analysis_says_what_to_do(tmp_path, show):
    code, _, error = show(tmp_path)
    assert code == 2
    assert "qabias score" in error
