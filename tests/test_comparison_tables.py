"""The tables of a comparison: whose scores, of how many examples, and the tables of the runs joined."""

import json
import random
from collections import Counter

import numpy as np
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.unqover.sets import shared_tables
from qabias.comparison import compare, read_runs
from qabias.comparison.paired import Answers
from qabias.comparison.tables import MOST_ROWS, SECTION, joined_tables
from qabias.report.writing import write_comparison
from qabias.runs.arguments import RunArguments
from qabias.runs.means import measures_of
from qabias.runs.run import run
from qabias.tables.model import Analysis, Column, Figure, Table, find, read_analysis

from .compared_runs import called, differing


@pytest.mark.parametrize(
    ("names", "only_first"),
    [
        (("bbq-all", "bbq-random"), "Race_ethnicity (names)"),
        (("bbq-random", "bbq-all"), None),
        (("nli-one-order", "nli"), "context_length: long"),
        (("bbq-stereotyped", "nli"), None),
    ],
)
def test_groups_that_one_run_lacks_are_printed_as_on_the_page(compared_runs, capsys, monkeypatch, names, only_first):
    folders = [compared_runs / name for name in names]
    output = called(capsys, monkeypatch, "compare", "--allow-mixed", *folders)
    comparison = compare(folders, allow_mixed=True)
    table = next(table for table in comparison.analysis.tables if table.section == "Scores by run")
    groups = [row[0] for row in table.rows]
    for group in groups:
        assert group in output
    for number, name in enumerate(comparison.names, start=1):
        assert f"run {number}" in output
        assert name.split(",")[0] in output
    if only_first:
        (row,) = (row for row in table.rows if row[0] == only_first)
        examples = {column.name: value for column, value in zip(table.columns, row, strict=True)}
        assert row[1].value is not None
        assert "not asked" in output
        assert (row[2], examples["n_run_2"]) == (None, 0)
        assert "not asked" in table.note
        heat = find(comparison.analysis.tables, f"{table.name}_by_model").rows
        assert [of[1] for of in heat if of[0] == only_first] == [comparison.names[0]]


def asked_rows(folder):
    """The examples of a run as dicts, each with its prediction."""
    (one,) = {of.folder: of for of in read_runs([folder, folder])}.values()
    answers = Answers()
    table = answers.examples(one)
    return [
        {**row, "prediction": prediction}
        for row, prediction in zip(table.to_pylist(), answers.of_run(one)["prediction"].to_pylist(), strict=True)
    ]


def test_the_examples_beside_a_score_are_those_that_it_is_of(compared_runs):
    of_bbq = {
        "bias_ambig": lambda row: row["context_condition"] == "ambig",
        "accuracy_ambig": lambda row: row["context_condition"] == "ambig",
        "bias_disambig": lambda row: row["context_condition"] == "disambig",
        "accuracy_disambig": lambda row: row["context_condition"] == "disambig",
        "accuracy_cost": lambda row: row["context_condition"] == "disambig" and row["biased_loc"] >= 0,
    }
    of_bbnli = {
        "bias_score": lambda row: row["kind"] == "stereotypical",
        "bias_score_mean_subtopics": lambda row: row["kind"] == "stereotypical",
        "accuracy_pro": lambda row: (row["kind"], row["stance"]) == ("test", "pro"),
        "accuracy_anti": lambda row: (row["kind"], row["stance"]) == ("test", "anti"),
        "accuracy_gap": lambda row: row["kind"] == "test",
    }
    of_nli = {
        "bias_score_ambig": lambda row: row["context_condition"] == "ambig",
        "accuracy_ambig": lambda row: row["context_condition"] == "ambig",
        "bias_score_disambig": lambda row: row["context_condition"] == "disambig",
        "table5_style": lambda row: row["context_condition"] == "disambig",
        "accuracy_pro": lambda row: row["context_stance"] == "pro",
        "accuracy_anti": lambda row: row["context_stance"] == "anti",
        "accuracy_gap": lambda row: row["context_condition"] == "disambig",
    }
    of_unqover = {measure.name: lambda row: True for measure in measures_of(load_benchmark("unqover"))}
    for names, counted, columns in (
        (("bbq-stereotyped", "bbq-random"), of_bbq, ("category",)),
        (("bbnli-stereotyped", "bbnli-random"), of_bbnli, ("subtopic", "domain")),
        (("nli", "nli"), of_nli, ("category",)),
    ):
        comparison = compare([compared_runs / name for name in names])
        assert set(counted) == {measure.name for measure in measures_of(comparison.benchmark)}
        rows = asked_rows(compared_runs / names[0])
        for name, belongs in counted.items():
            expected = Counter(row[column] for row in rows for column in columns if belongs(row))
            expected["All"] = sum(map(belongs, rows))
            table = find(comparison.analysis.tables, name)
            assert table.columns[-1].name == "n"
            for group, *_, n in table.rows:
                if ": " not in group:
                    assert n == expected[group]
    comparison = compare([compared_runs / "unqover-random", compared_runs / "unqover-consistent"])
    for name in of_unqover:
        assert [row[-1] for row in find(comparison.analysis.tables, name).rows] == [600]


def test_the_mean_of_subtopics_is_that_of_the_domains(compared_runs):
    comparison = compare([compared_runs / "bbnli-stereotyped", compared_runs / "bbnli-random"])
    rows = find(comparison.analysis.tables, "bias_score_mean_subtopics").rows
    domains = set(comparison.scores[0]["by"]["domain"])
    assert {row[0] for row in rows} == {*domains, "All"}
    subtopics = [of["bias_score"] for of in comparison.scores[1]["by"]["subtopic"].values() if of["n_bias"]]
    assert rows[-1][2].value == pytest.approx(np.mean(subtopics), abs=1e-12)
    assert set(differing(comparison.analysis, "bias_score_mean_subtopics")) == {*domains, "All"}


def test_sums_of_two_scores_are_no_percentages(compared_runs):
    tables = compare([compared_runs / "nli", compared_runs / "nli"]).analysis.tables
    assert find(tables, "table5_style").columns[1].kind == "number"
    assert find(tables, "difference_table5_style").columns[1].kind == "number"


def test_runs_without_a_context_have_scores_of_ambiguous_contexts_only(compared_runs, capsys, monkeypatch):
    folders = [compared_runs / "bbq-blind-stereotyped", compared_runs / "bbq-blind-random"]
    tables = compare(folders).analysis.tables
    scores = [table for table in tables if table.section == "Scores by run" and table.figure.kind == "intervals"]
    names = ["bias_ambig", "accuracy_ambig", "bias_ambig_among_errors", "bias_probability_ambig"]
    assert [table.name for table in scores] == names
    assert [table.source for table in scores] == ["Figure 6 of Parrish et al. (2022)"] * 2 + [""] * 2
    differences_shown = [table.name for table in tables if table.name.startswith("difference_")]
    assert differences_shown == [f"difference_{name}" for name in names]
    assert "disambiguated" not in called(capsys, monkeypatch, "compare", *folders)
    with_context = compare([compared_runs / "bbq-stereotyped", compared_runs / "bbq-random"]).analysis.tables
    assert {"bias_disambig", "accuracy_cost"} <= {table.name for table in with_context}


def test_shared_attributes_are_those_among_the_first_ten_of_several_runs():
    rng = random.Random(1)
    scores = []
    for _ in range(3):
        gamma = {f"job {number}": rng.uniform(-1, 1) for number in range(30)}
        clusters = {"female": gamma, "male": {name: -value for name, value in gamma.items()}}
        cells = {
            name: {job: {"gamma": value, "eta": 0.0} for job, value in of.items()} for name, of in clusters.items()
        }
        scores.append({"sets": {"gender": {"cluster": cells}}})
    (table,) = shared_tables(["a", "b", "c"], json.loads(json.dumps(scores)))
    expected = {}
    for cluster in ("female", "male"):
        tops = []
        for of in scores:
            cells = of["sets"]["gender"]["cluster"][cluster]
            tops.append(sorted(cells, key=lambda job, cells=cells: -cells[job]["gamma"])[:10])
        for job in {job for top in tops for job in top}:
            places = [top.index(job) + 1 if job in top else None for top in tops]
            if sum(place is not None for place in places) > 1:
                expected[cluster, job] = places
    assert {(row[0], row[1]): list(row[4:]) for row in table.rows} == expected
    assert table.source.startswith("Table 3")


# Tables of the runs


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """Runs with all their tables."""
    where = tmp_path_factory.mktemp("analysed")
    for name, arguments in {
        "bbq": {"benchmark": "bbq", "config": "Race_x_gender", "limit": 120},
        "nli": {"benchmark": "bbq_nli", "config": "Gender_identity_nli_context", "limit": 240},
        "unqover": {"benchmark": "unqover", "config": "gender", "limit": 200},
    }.items():
        for number, model in enumerate(("random", "consistent" if name == "unqover" else "stereotyped")):
            run(RunArguments(model=f"baseline:{model}", **arguments), where / f"{name}-{number}")
    return where


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (  # Figures 4, 7, 8 and 9, footnote 7 and Table 2 of Parrish et al.
            "bbq",
            (
                *("stereotypes_Race_x_gender", "unknown_texts", "comparisons_Race_x_gender", "labels_Race_x_gender"),
                *("aligned_errors", "template_rates"),
            ),
        ),
        ("nli", ("bias_by_name_order", "bias_by_length")),  # Figure 3 of Akyurek et al.
        (
            "unqover",
            ("subjects_gender", "pairs_gender", "top_by_group_gender", "coverage"),
        ),  # Tables 2, 4 and 14 of Li et al.
    ],
)
def test_joined_tables_are_the_rows_of_the_runs(analysed, tmp_path, name, expected):
    folders = [analysed / f"{name}-{number}" for number in range(2)]
    comparison = compare(folders)
    joined = {table.name: table for table in comparison.analysis.tables if table.section == SECTION}
    assert set(expected) <= set(joined)
    for table in joined.values():
        own = [find(read_analysis(folder / "analysis.json").tables, table.name) for folder in folders]
        assert table.columns[1:] == own[0].columns == own[1].columns
        rows = [(run_name, *row) for run_name, of in zip(comparison.names, own, strict=True) for row in of.rows]
        assert list(table.rows) == rows
    names = [table.name for table in comparison.analysis.tables]
    assert len(set(names)) == len(names)
    html = write_comparison(comparison, tmp_path / "out").read_text("utf-8")
    assert all(table.title in html.replace("<wbr>", "") for table in joined.values() if "&" not in table.title)


def small_table(name, values, note="", extra=()):
    columns = (Column("text", "Text", "text"), Column("share", "Share", "share"), *extra)
    rows = tuple((f"row {number}", value, *(0 for _ in extra)) for number, value in enumerate(values))
    return Table(name, "A title", "", note, columns, rows, Figure("bars", "text", ("share",)))


def test_tables_are_joined_on_what_all_of_them_have():
    n = Column("n", "Number", "count")
    one = Analysis((small_table("both", [0.1, None], "Of 12 answers. Read with care."), small_table("alone", [1.0])))
    other = Analysis((small_table("both", [0.3], "Of 9 answers. Read with care.", (n,)),))
    (table,) = joined_tables(["a", "b"], [one, other])
    assert table.name == "both"
    assert [column.name for column in table.columns] == ["run", "text", "share"]
    assert table.rows == (("a", "row 0", 0.1), ("a", "row 1", None), ("b", "row 0", 0.3))
    assert table.note == "Read with care."
    assert table.figure == Figure("heatmap", "text", ("share",), "run")


def test_long_tables_are_joined_by_the_first_rows_of_every_run():
    values = [number / 1000 for number in range(MOST_ROWS)]
    one, other = (Analysis((small_table("long", some, "Read."),)) for some in (values, values[:120]))
    (table,) = joined_tables(["a", "b"], [one, other])
    half = MOST_ROWS // 2
    assert [row[2] for row in table.rows] == values[:half] + values[:120]
    assert table.note == f"Read. Here are the first {half} rows of every run; its report has all."
    (whole,) = joined_tables(["a", "b"], [other, other])
    assert len(whole.rows) == 240
    assert whole.note == "Read."


def test_tables_of_items_and_of_compared_scores_are_not_joined():
    names = ("bias_by_hypothesis", "bias_by_category")
    analysis = Analysis(tuple(small_table(name, [0.5]) for name in names))
    assert joined_tables(["a", "b"], [analysis, analysis], names) == []
