"""A run in the terminal: its tables, whole or in part, and its templates."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq.tables import analyse
from qabias.report.terminal import rates
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.tables.model import Analysis, Column, Table, find, read_analysis, write_analysis

from .kit.commands import command

RUNS = {"bbq": "bbq-random", "bbnli": "bbnli-random", "bbq_nli": "nli-random", "unqover": "unqover-random"}
"""The run of each benchmark."""


def view_of(benchmark):
    """How a benchmark shows its templates."""
    return load_benchmark(benchmark).facts.view


def show(*arguments):
    return command("show", *arguments)


@pytest.mark.parametrize("benchmark", RUNS)
def test_a_run_is_shown_with_its_head_scores_and_tables(compared_runs, benchmark):
    code, output, _ = show(compared_runs / RUNS[benchmark])
    assert code == 0
    assert output.startswith("baseline:random on ")
    assert f"Cite     {benchmark}|source:bundled@" in output
    assert "--table NAME: " in output


def test_a_long_table_is_shown_in_part_and_whole_if_asked(tmp_path):
    table = Table("long", "Long", "", "Note.", (Column("n", "Number", "count"),), tuple((n,) for n in range(100, 140)))
    write_analysis(Analysis((table,)), tmp_path / "analysis.json")
    code, output, _ = show(tmp_path)
    assert code == 0
    assert "114" in output
    assert "115" not in output
    assert "25 more rows" in output
    assert "--table NAME: 1 tables: long" in output
    _, output, _ = show(tmp_path, "--table", "long")
    assert all(str(n) in output for n in range(100, 140))
    assert "more rows" not in output


def test_the_rates_of_a_template_are_those_of_the_report():
    """Unparsed answers and questions without a target have no part in the shares, there and here."""
    benchmark = load_benchmark("bbq")
    rows = load_examples(RunArguments("bbq", "baseline:random", "Age", limit=400)).table.to_pylist()
    lost = {row["set_id"] for row in rows[::40]}
    for row in rows:
        if row["set_id"] in lost:
            row["target_loc"] = row["biased_loc"] = -1
    table = pa.Table.from_pylist(rows)
    predictions = np.random.default_rng(3).choice([-1, 0, 1, 2], len(rows), p=[0.25, 0.25, 0.25, 0.25])
    answers = pa.table({"prediction": pa.array(predictions, pa.int8())})
    with pytest.warns(UserWarning, match="unparseable"):
        scores = benchmark.score(table, answers)
    reported = defaultdict(dict)
    for template, _, _, context, question, *shares, _ in find(
        analyse(table, answers, scores).tables, "template_rates"
    ).rows:
        condition = {"ambiguous": "ambig", "disambiguated": "disambig"}[context]
        reported[template][condition, {"negative": "neg", "non-negative": "nonneg"}[question]] = shares
    counts = Counter()
    together = table.append_column("prediction", answers["prediction"])
    for template, expected in reported.items():
        shown = rates(view_of("bbq"), template, together.filter(pc.equal(together["template_id"], template)))
        names = [column.name for column in shown.columns]
        for row in (dict(zip(names, row, strict=True)) for row in shown.rows):
            found = [row[name] for name in ("target", "non-target", "UNKNOWN", "n")]
            assert found == expected[row["context_condition"], row["question_polarity"]]
            counts.update({name: row.get(name, 0) for name in ("no answer", "no target", "n")})
    assert counts.total() == len(rows)
    assert counts["no answer"] == (predictions == -1).sum()
    assert counts["no target"] > 0


def test_the_rates_of_a_premise_are_shares_of_all_answers():
    rows = pa.table(
        {
            "kind": ["stereotypical"] * 4,
            "stance": ["pro"] * 4,
            "predictions": [[2, 2, -1], [0, 1, 2], [-1, -1, -1], [1, 1, 0]],
        }
    )
    (row,) = rates(view_of("bbnli"), "x-01", rows).rows
    assert row == ("stereotypical", "pro", 2 / 12, 3 / 12, 3 / 12, 4 / 12, 12)


def test_the_means_of_a_template_are_over_the_rows_that_have_scores():
    names = [
        f"s{subject}_{order}{question}" for subject in (1, 2) for order in ("12", "21") for question in ("", "_neg")
    ]
    scores = {name: [0.1 * number, 0.3, float("nan")] for number, name in enumerate(names)}
    table = rates(view_of("unqover"), "religion-1", pa.table({**scores, "subject1": ["a", "b", "c"]}))
    means = {name: (0.1 * number + 0.3) / 2 for number, name in enumerate(names)}
    expected = [
        (means[f"s1_{order}{question}"], means[f"s2_{order}{question}"], 2)
        for order in ("12", "21")
        for question in ("", "_neg")
    ]
    assert [row[2:] for row in table.rows] == [pytest.approx(row) for row in expected]
    unknown = rates(view_of("unqover"), "religion-1", pa.table({name: [float("nan")] for name in names}))
    assert [row[2:] for row in unknown.rows] == [(None, None, 0)] * 4


def test_a_run_without_contexts_is_shown_as_in_its_report(tmp_path):
    arguments = RunArguments("bbq", "baseline:random", "Age", limit=40, format="question_only")
    folder = run(arguments, tmp_path / "run").folder
    template = read_analysis(folder / "analysis.json").examples[0]["template_id"]
    for options in ((), ("--template", template)):
        code, output, error = show(folder, *options)
        assert code == 0, error
        assert "ambig" in output
        assert "disambig" not in output.partition("\n")[2]  # the first line counts the examples


class Silent:
    """A model that writes, and never names an answer."""

    name = "seq2seq"
    model_signature = "1"
    samples = 1

    def generate(self, prompts, keys):
        return [("?",)] * len(prompts)


def test_a_run_without_any_answer_is_scored_reported_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr("qabias.scorers.registry.load_scorer", lambda *_, **__: Silent())
    result = run(RunArguments("bbq", "silent", "Age", limit=40, backend="seq2seq"), tmp_path / "run")
    assert "40 of 40 predictions are unparseable" in result.warned[0]
    assert result.scores["unparsed_share"] == 1
    page = write_report_of(result.folder).read_text("utf-8")
    assert "40 outputs named no answer (100.0\u00a0%)" in page
    assert "of answers are missing" in page
    examples = read_analysis(result.folder / "analysis.json").examples
    assert {example["answer"] for example in examples} == {None}
    code, output, error = show(result.folder)
    assert code == 0, error
    assert "undefined" in output
    template = examples[0]["template_id"]
    code, output, error = show(result.folder, "--template", template)
    assert code == 0, error
    assert "—        0" in output
    assert "written: '?'" in output


@pytest.mark.parametrize(
    ("benchmark", "template", "text"),
    [
        ("bbq", "", "UNKNOWN"),
        ("bbnli", "TEMPLATE", "(right: neutral)"),
        ("bbq_nli", "", "statement about"),
        ("unqover", "religion-1", "negated question"),
    ],
)
def test_a_template_is_shown_with_rates_and_items(compared_runs, benchmark, template, text):
    rows = Run.open(compared_runs / RUNS[benchmark]).question.table.to_pylist()
    template = template or rows[0]["template_id"]
    if template == "TEMPLATE":  # a premise that has a hypothesis about stereotypes, to which neutral is right
        named = next(row["example_id"] for row in rows if row["kind"] == "stereotypical")
        template = "-".join(named.split("-")[:2])
    code, output, error = show(compared_runs / RUNS[benchmark], "--template", template)
    assert code == 0, error
    assert text in output
    assert " items" in output
