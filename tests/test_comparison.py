"""Comparisons of runs: what may be compared, the differences of their scores, the page and the command."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from qabias.benchmarks.unqover.tables import shared_tables
from qabias.comparison import compare
from qabias.comparison.comparable import are_question_only, mixed_fields, read_runs, run_names
from qabias.comparison.paired import Answers
from qabias.comparison.tables import MOST_ROWS, SECTION, joined_tables
from qabias.errors import QabiasError
from qabias.report.writing import write_comparison
from qabias.runs.arguments import RunArguments
from qabias.runs.means import measures_of
from qabias.runs.opened import Run
from qabias.runs.run import run
from qabias.scores.judge import holm
from qabias.tables.model import Analysis, Column, Figure, Table, find, read_analysis

from .kit.commands import called, refused
from .kit.runs import changed, differing


@pytest.mark.parametrize(
    ("names", "score"),
    [
        (("bbq-stereotyped", "bbq-random"), "bias_ambig"),
        (("bbnli-stereotyped", "bbnli-random"), "bias_score"),
        (("unqover-random", "unqover-consistent"), "mu"),
    ],
)
def test_differences_of_runs_are_those_of_their_scores_by_group(compared_runs, names, score):
    comparison = compare([compared_runs / name for name in names])
    measure = comparison.benchmark.facts.measure(score)
    rows = differing(comparison.analysis, score)
    first, second = (comparison.benchmark.groups(scores, measure) for scores in comparison.scores)
    assert set(rows) == set(first)
    for name, (difference, _, _) in rows.items():
        assert difference.value == pytest.approx(second[name][score] - first[name][score], abs=1e-6)
    whole = rows.get("All") or rows["religion"]
    assert whole[0].low < whole[0].value < whole[0].high
    assert 0 < whole[1] < 0.01
    tested = {name: row for name, row in rows.items() if name != "All"}
    assert holm([p for _, p, _ in tested.values()]) == [adjusted for _, _, adjusted in tested.values()]
    assert "All" not in rows or rows["All"][2] is None


def test_every_pair_of_few_runs_is_compared(compared_runs):
    comparison = compare([compared_runs / f"bbq-{name}" for name in ("stereotyped", "random", "unknown")])
    names = [column.name for column in find(comparison.analysis.tables, "difference_bias_ambig").columns]
    assert [name for name in names if name.startswith("run_")] == ["run_2_minus_1", "run_3_minus_1", "run_3_minus_2"]
    undefined = {row[0]: row for row in find(comparison.analysis.tables, "difference_bias_disambig").rows}["All"]
    assert undefined[names.index("run_3_minus_1")].value is None
    assert undefined[names.index("p_run_3_minus_1")] is None
    heat = find(comparison.analysis.tables, "bias_ambig_by_model").rows
    assert [row[2].value for row in heat if row[0] == "All" and row[1] == "baseline:stereotyped"] == [1.0]


def test_ranks_across_models_are_means_of_the_runs_ranks(compared_runs):
    comparison = compare([compared_runs / "unqover-random", compared_runs / "unqover-consistent"])
    ranks = [of["sets"]["religion"]["rank"] for of in comparison.scores]
    rows = find(comparison.analysis.tables, "ranks_religion").rows
    assert {row[0] for row in rows} == set(ranks[0])
    for subject, of, spread, n, *each in rows:
        assert each == [ranks[0][subject], ranks[1][subject]]
        assert n == 2
        assert of.value == sum(each) / 2
        # Divided by the number of runs, as in the authors' notebook: half of the distance of two.
        assert spread == pytest.approx(abs(each[0] - each[1]) / 2)
    assert [row[1].value for row in rows] == sorted(row[1].value for row in rows)


# What may be compared


def test_other_samples_are_refused_or_marked_and_compared_on_what_both_answered(compared_runs):
    folders = [compared_runs / "bbq-random", compared_runs / "bbq-more"]
    with pytest.raises(QabiasError, match=r"limit: .*'200'(?s:.*)'400'(?s:.*)allow_mixed"):
        compare(folders)
    comparison = compare(folders, allow_mixed=True)
    assert comparison.mixed == {"limit": ["200", "400"]}
    runs = find(comparison.analysis.tables, "runs")
    assert [row[2] for row in runs.rows] == ["200", "400"]
    assert "Caution" in runs.note
    # Random answers depend on the example alone: on the common ones the two runs are the same.
    value, p, _ = differing(comparison.analysis, "bias_ambig")["All"]
    assert (value.value, p) == (0, 1)
    assert value.low == pytest.approx(-value.high)


def test_a_format_that_is_chosen_or_the_default_is_the_same_question(compared_runs, tmp_path):
    def chosen(content):
        content["arguments"] |= {"format": "qa", "model": "mine"}

    def default(content):
        content["arguments"]["model"] = "mine"

    runs = [
        Run.scored(changed(compared_runs / "bbq-random", tmp_path / change.__name__, run=change))
        for change in (chosen, default)
    ]
    assert mixed_fields(runs) == {}


def test_runs_without_common_scores_are_refused(compared_runs):
    folders = [compared_runs / "bbq-random", compared_runs / "bbnli-random"]
    with pytest.raises(QabiasError, match="in common"):
        compare(folders, allow_mixed=True)
    assert "in common" in refused("compare", *folders)


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ("more", ["baseline:random, 200", "baseline:random, 400"]),
        ("again", ["1: baseline:random", "2: baseline:random"]),
    ],
)
def test_names_tell_runs_apart(compared_runs, other, names):
    assert run_names(read_runs([compared_runs / "bbq-random", compared_runs / f"bbq-{other}"])) == names


def test_the_page_and_the_tables_are_written_beside_no_run(compared_runs, tmp_path):
    comparison = compare([compared_runs / "bbq-stereotyped", compared_runs / "bbq-random"])
    page = write_comparison(comparison, tmp_path / "out")
    assert read_analysis(tmp_path / "out" / "analysis.json").tables == comparison.analysis.tables
    html = page.read_text("utf-8")
    assert "baseline:stereotyped" in html
    assert "Differences between runs" in html
    before = page.read_bytes()
    write_comparison(comparison, tmp_path / "out")
    assert page.read_bytes() == before
    shutil.copytree(compared_runs / "bbq-random", tmp_path / "copy")
    before = (tmp_path / "copy" / "analysis.json").read_bytes()
    command = ["compare", tmp_path / "copy", compared_runs / "bbq-unknown", "--output", tmp_path / "copy"]
    assert "holds a run" in refused(*command)
    with pytest.raises(QabiasError, match="holds a run"):
        write_comparison(comparison, tmp_path / "copy")
    assert (tmp_path / "copy" / "analysis.json").read_bytes() == before


def described(model, prompt_format, **arguments):
    """A run of which only the description matters."""
    signature = f"bbq|source:bundled@1|format:{prompt_format}@1|model:{model}"
    asked = RunArguments("bbq", model, config="Religion", **arguments)
    return Run(asked, signature, "", "", {}, 64, "", Path("run"), "")


def test_a_baseline_does_not_decide_whether_models_saw_a_context():
    blind, sighted, baseline = described("a", "race_question_only"), described("b", "qa"), described("baseline:x", "qa")
    assert are_question_only([blind, baseline])
    assert not are_question_only([blind, sighted])
    assert not are_question_only([baseline])


def test_a_run_without_contexts_has_a_part_in_the_figures_that_need_none(compared_runs):
    names = ("bbq-stereotyped", "bbq-random", "bbq-blind-random")
    comparison = compare([compared_runs / name for name in names], allow_mixed=True)
    assert len(comparison.runs) == 2
    bars = {row[0] for row in find(comparison.analysis.tables, "unknown_texts").rows}
    assert set(comparison.names) < bars
    (blind,) = bars - set(comparison.names)
    assert {row[0] for row in find(comparison.analysis.tables, "answer_positions").rows} == set(comparison.names)
    assert sum(note.startswith(blind) for note in comparison.analysis.notes) == 1


def test_runs_of_other_seeds_share_the_bundled_examples_but_no_sample():
    answers = Answers()
    whole = [answers.examples(described("a", "qa", seed=seed)) for seed in (0, 1)]
    assert whole[0] is whole[1]
    samples = [answers.examples(described("a", "qa", seed=seed, limit=40)) for seed in (0, 1)]
    assert samples[0]["example_id"].to_pylist() != samples[1]["example_id"].to_pylist()


def test_scores_of_another_run_and_missing_parts_are_refused(compared_runs, tmp_path):
    def other(content):
        content["signature"] += "2"

    stale = changed(compared_runs / "bbq-random", tmp_path / "stale", scores=other)
    with pytest.raises(QabiasError, match=r"scores\.json(?s:.*)qabias score"):
        compare([compared_runs / "bbq-stereotyped", stale])
    shutil.copytree(compared_runs / "bbq-random", tmp_path / "copy")
    next((tmp_path / "copy" / "predictions").iterdir()).unlink()
    with pytest.raises(QabiasError, match="missing"):
        compare([compared_runs / "bbq-stereotyped", tmp_path / "copy"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "only_first"),
    [
        (("bbq-all", "bbq-random"), "Race_ethnicity (names)"),
        (("bbq-stereotyped", "nli"), None),
    ],
)
def test_groups_that_one_run_lacks_are_printed_as_on_the_page(compared_runs, names, only_first):
    folders = [compared_runs / name for name in names]
    output = called("compare", "--allow-mixed", "--full", *folders)
    comparison = compare(folders, allow_mixed=True)
    if not only_first:
        rows = {row[0]: row for row in find(comparison.analysis.tables, "bias_score_ambig").rows}
        assert [cell.value for cell in rows["Age"][1:3]] == [1, 1]
    table = next(table for table in comparison.analysis.tables if table.section == "Scores by run")
    assert all(row[0] in output for row in table.rows)
    assert all(name.split(",")[0] in output for name in comparison.names)
    if only_first:
        (row,) = (row for row in table.rows if row[0] == only_first)
        examples = {column.name: value for column, value in zip(table.columns, row, strict=True)}
        assert row[1].value is not None
        assert (row[2], examples["n_run_2"]) == (None, 0)
        heat = find(comparison.analysis.tables, f"{table.name}_by_model").rows
        assert [cells[1] for cells in heat if cells[0] == only_first] == [comparison.names[0]]


def asked_rows(folder):
    """The examples of a run as dicts."""
    return Answers().examples(read_runs([folder, folder])[0]).to_pylist()


def test_the_examples_beside_a_score_are_those_that_it_counts(compared_runs):
    def where(**wanted):
        return lambda row: all(row[name] == value for name, value in wanted.items())

    ambiguous, clear = where(context_condition="ambig"), where(context_condition="disambig")
    stereotypical, tests = where(kind="stereotypical"), where(kind="test")
    counted = {
        "bbq": {
            **{"bias_ambig": ambiguous, "accuracy_ambig": ambiguous, "bias_disambig": clear},
            "accuracy_disambig": clear,
            **dict.fromkeys(("accuracy_cost", "abstention_gap"), lambda row: clear(row) and row["biased_loc"] >= 0),
        },
        "bbnli": {
            **{"bias_score": stereotypical, "bias_score_mean_subtopics": stereotypical, "accuracy_gap": tests},
            **{f"accuracy_{stance}": where(kind="test", stance=stance) for stance in ("pro", "anti")},
        },
        "nli": {
            **{"bias_score_ambig": ambiguous, "accuracy_ambig": ambiguous, "bias_score_disambig": clear},
            **{"table5_style": clear, "accuracy_gap": clear},
            **{f"accuracy_{stance}": where(context_stance=stance) for stance in ("pro", "anti")},
        },
    }
    for names, columns in (
        (("bbq-stereotyped", "bbq-random"), ("category",)),
        (("bbnli-stereotyped", "bbnli-random"), ("subtopic", "domain")),
        (("nli", "nli"), ("category",)),
    ):
        comparison = compare([compared_runs / name for name in names])
        belonging = counted[names[0].partition("-")[0]]
        assert set(belonging) == {one.name for one in measures_of(comparison.benchmark) if not one.subcounts}
        rows = asked_rows(compared_runs / names[0])
        for name, belongs in belonging.items():
            expected = Counter(row[column] for row in rows for column in columns if belongs(row))
            expected["All"] = sum(map(belongs, rows))
            table = find(comparison.analysis.tables, name)
            assert table.columns[-1].name == "n"
            for group, *_, n in table.rows:
                if ": " not in group:
                    assert n == expected[group]
            # Sums of two scores are no percentages.
            assert (table.columns[1].kind == "number") == (name == "table5_style")
    assert find(comparison.analysis.tables, "difference_table5_style").columns[1].kind == "number"
    comparison = compare([compared_runs / "unqover-random", compared_runs / "unqover-consistent"])
    for measure in measures_of(comparison.benchmark):
        assert [row[-1] for row in find(comparison.analysis.tables, measure.name).rows] == [600]


def test_the_mean_of_subtopics_is_that_of_the_domains(compared_runs):
    comparison = compare([compared_runs / "bbnli-stereotyped", compared_runs / "bbnli-random"])
    rows = find(comparison.analysis.tables, "bias_score_mean_subtopics").rows
    domains = set(comparison.scores[0]["by"]["domain"])
    assert {row[0] for row in rows} == {*domains, "All"}
    subtopics = [of["bias_score"] for of in comparison.scores[1]["by"]["subtopic"].values() if of["n_bias"]]
    assert rows[-1][2].value == pytest.approx(np.mean(subtopics), abs=1e-12)
    assert set(differing(comparison.analysis, "bias_score_mean_subtopics")) == {*domains, "All"}


def test_runs_without_a_context_have_scores_of_ambiguous_contexts_only(compared_runs):
    folders = [compared_runs / "bbq-blind-stereotyped", compared_runs / "bbq-blind-random"]
    tables = compare(folders).analysis.tables
    scores = [table for table in tables if table.section == "Scores by run" and table.figure.kind == "intervals"]
    names = ["bias_ambig", "accuracy_ambig", "bias_ambig_among_errors", "bias_probability_ambig"]
    assert [table.name for table in scores] == names
    assert ["Figure 6" in table.source for table in scores] == [True, True, False, False]
    differences_shown = [table.name for table in tables if table.name.startswith("difference_")]
    assert differences_shown == [f"difference_{name}" for name in names]
    assert "disambiguated" not in called("compare", *folders)


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
    assert joined_tables(["a", "b"], [one, other], ["both"]) == []


def test_long_tables_are_joined_by_the_first_rows_of_every_run():
    values = [number / 1000 for number in range(MOST_ROWS)]
    one, other = (Analysis((small_table("long", some, "Read."),)) for some in (values, values[:120]))
    (table,) = joined_tables(["a", "b"], [one, other])
    half = MOST_ROWS // 2
    assert [row[2] for row in table.rows] == values[:half] + values[:120]
    assert str(half) in table.note
    (whole,) = joined_tables(["a", "b"], [other, other])
    assert (len(whole.rows), whole.note) == (240, "Read.")


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """Runs with all their tables."""
    where = tmp_path_factory.mktemp("analysed")
    for name, benchmark, config, limit in (
        ("bbq", "bbq", "Race_x_gender", 120),
        ("nli", "bbq_nli", "Gender_identity_nli_context", 240),
        ("unqover", "unqover", "gender", 200),
    ):
        for number, model in enumerate(("random", "consistent" if name == "unqover" else "stereotyped")):
            run(RunArguments(benchmark, f"baseline:{model}", config, limit=limit), where / f"{name}-{number}")
    return where


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [  # Figures 4, 7, 8 and 9, footnote 7 and Table 2 of Parrish et al.; Figure 3 of Akyurek et al.
        ("bbq", "stereotypes_Race_x_gender unknown_texts labels_Race_x_gender aligned_errors template_rates"),
        ("nli", "bias_by_name_order bias_by_length"),
        ("unqover", "subjects_gender pairs_gender top_by_group_gender coverage"),
    ],
)
def test_joined_tables_are_the_rows_of_the_runs(analysed, tmp_path, name, expected):
    folders = [analysed / f"{name}-{number}" for number in range(2)]
    comparison = compare(folders)
    joined = {table.name: table for table in comparison.analysis.tables if table.section == SECTION}
    assert set(expected.split()) <= set(joined)
    for table in joined.values():
        own = [find(read_analysis(folder / "analysis.json").tables, table.name) for folder in folders]
        assert table.columns[1:] == own[0].columns == own[1].columns
        assert list(table.rows) == [
            (run_name, *row) for run_name, one in zip(comparison.names, own, strict=True) for row in one.rows
        ]
    names = [table.name for table in comparison.analysis.tables]
    assert len(set(names)) == len(names)
    html = write_comparison(comparison, tmp_path / "out").read_text("utf-8")
    assert all(table.title in html.replace("<wbr>", "") for table in joined.values() if "&" not in table.title)
