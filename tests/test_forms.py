"""One model on published and on parallel texts: which stereotypes both have, the view of two runs, and one command."""

import json
from io import StringIO

import evaluate
import numpy as np
import pyarrow as pa
import pytest

from qabias.benchmarks import ALL, load_benchmark, make_origin
from qabias.benchmarks.locate import metric_folder
from qabias.benchmarks.pairs import AnsweredTable
from qabias.comparison import FORMS, compare
from qabias.comparison.paired import differences
from qabias.comparison.texts import shared_stereotypes
from qabias.errors import QabiasError
from qabias.report.terminal import print_compared
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.folder import read_answers
from qabias.runs.opened import Run
from qabias.runs.question import read_question
from qabias.runs.run import run
from qabias.scores.formatting import show
from qabias.scores.judge import holm
from qabias.studies.contamination import run_forms
from qabias.tables.model import find, read_analysis
from qabias.tables.terminal import Console

from .kit.commands import called, refused
from .kit.runs import changed

BBQ = load_benchmark("bbq")
MEASURES = BBQ.facts.chosen(BBQ.facts.compared)


def examples(source, upstream, config="all"):
    return BBQ.load(config, make_origin(BBQ, source, 0, False, {}))


@pytest.fixture(scope="module")
def two_runs(upstream, tmp_path_factory):
    """A baseline in both forms of two categories, made by one command."""
    folder = tmp_path_factory.mktemp("forms") / "both"
    arguments = RunArguments("bbq", "baseline:random", "Age,Religion", source="official,bundled")
    return run_forms(arguments, folder, Machine())


# Which stereotypes both forms have


@pytest.mark.slow
def test_every_bundled_template_has_the_published_one_of_its_number(upstream):
    shared = shared_stereotypes(BBQ.forms, examples("official", upstream), examples("bundled", upstream))
    assert len(shared.stereotypes) == 343
    assert all((clusters >= 0).all() for clusters in shared.clusters)
    assert all(shared.topics)
    assert [name for name, groups in shared.stereotypes if " / " in groups] == ["Gender_identity-12"]
    categories = [stereotype.name.rpartition("-")[0] for stereotype in shared.stereotypes]
    assert [categories.count(name) for name in ("Age", "Religion", "Nationality")] == [25, 25, 25]


def test_released_examples_have_the_same_stereotypes_as_the_authors_templates(upstream):
    tables = [examples(source, upstream, "Religion") for source in ("release", "official", "bundled")]
    released, official = (shared_stereotypes(BBQ.forms, table, tables[2]) for table in tables[:2])
    assert (released.stereotypes, released.topics) == (official.stereotypes, official.topics)
    assert (released.clusters[0] >= 0).all()


def test_templates_of_other_groups_are_no_pair(upstream):
    published, bundled = (examples(source, upstream, "Religion") for source in ("official", "bundled"))
    cells = zip(bundled["additional_metadata"].to_pylist(), bundled["template_id"].to_pylist(), strict=True)
    other_rows = [{**row, "stereotyped_groups": ["Quaker"]} if name == "Religion-01" else row for row, name in cells]
    number = bundled.column_names.index("additional_metadata")
    field = bundled.schema.field(number)
    other = bundled.set_column(number, field.name, pa.array(other_rows, field.type))
    shared = shared_stereotypes(BBQ.forms, published, other)
    assert len(shared.stereotypes) == 24
    left_out = published["template_id"].filter(pa.array(shared.clusters[0] < 0))
    assert left_out.unique().to_pylist() == ["Religion-01"]
    with pytest.raises(QabiasError, match="config"):
        shared_stereotypes(BBQ.forms, published, examples("bundled", upstream, "Age"))


# The view


@pytest.mark.slow
def test_the_differences_are_those_of_the_scores_of_the_two_runs(two_runs):
    comparison = two_runs.comparison
    assert comparison.view is FORMS
    published, parallel = (json.loads((of.folder / "scores.json").read_text())["scores"] for of in two_runs.runs)
    for measure in MEASURES:
        rows = {row[0]: row[1:] for row in find(comparison.analysis.tables, f"forms_{measure.name}").rows}
        assert list(rows) == ["Age", "Religion", ALL]
        for name, (first, second, difference, p, adjusted, n, detectable) in rows.items():
            of = [scores if name == ALL else scores["by"]["category"][name] for scores in (published, parallel)]
            assert (first, second) == tuple(pytest.approx(scores[measure.name]) for scores in of)
            assert difference.value == pytest.approx(first - second)
            assert difference.low < difference.value < difference.high
            assert 0 < p <= 1
            # Found is what the interval leaves 0 out of, in most cases: more than half its width.
            assert (difference.high - difference.low) / 2 < detectable < measure.farthest
            assert n == of[0]["n_templates"] == of[1]["n_templates"]
            assert (adjusted is None) == (name == ALL)
        assert [rows["Age"][4], rows["Religion"][4]] == holm([rows["Age"][3], rows["Religion"][3]])


@pytest.mark.slow
def test_all_scores_come_first_with_p_values_adjusted_for_their_number(two_runs):
    comparison = two_runs.comparison
    tables = comparison.analysis.tables
    assert [table.name for table in tables][:3] == ["forms_overall", "forms_bias_ambig", "forms_bias_disambig"]
    rows = find(tables, "forms_overall").rows
    for measure, row in zip(MEASURES, rows, strict=True):
        whole = find(tables, f"forms_{measure.name}").rows[-1]
        assert row[:3] == (measure.title, *(show(level, measure.kind) for level in whole[1:3]))
        assert row[3:5] == whole[3:5]
        assert ("+" in row[1] + row[2]) <= (measure.kind == "signed")
        assert row[6:] == whole[6:]
        assert row[6] == 50
    assert [row[5] for row in rows] == holm([row[4] for row in rows])
    assert comparison.headline.verdict == "not detected"
    assert all(row[5] >= 0.05 and row[7] > 0 for row in rows)


def test_forms_that_lack_answers_have_no_size_that_would_have_been_found(two_runs, upstream, tmp_path):
    def lose(content):
        scores = content["scores"]
        scores["n_unparsed_ambig"] = scores["n_ambig"] // 4
        scores["range"] = {"accuracy_ambig": [0.1, 0.6]}

    published, parallel = (of.folder for of in two_runs.runs)
    few = changed(published, tmp_path / "few", scores=lose)
    table = find(compare([few, parallel]).analysis.tables, "forms_accuracy_ambig")
    assert [row[-1] is None for row in table.rows] == [False, False, True]


def test_the_differences_by_stereotype_are_those_of_the_metric_by_template(two_runs, upstream):
    by_form = []
    metric = evaluate.load(str(metric_folder("bbq")))
    for result in two_runs.runs:
        question = read_question(Run.open(result.folder))
        answers, _ = read_answers(Run.open(result.folder), BBQ, question.parts)
        scores = metric.compute(
            predictions=answers["prediction"].to_pylist(),
            references=question.table,
            probabilities=answers["probabilities"].to_pylist(),
            by=["template_id"],
        )
        by_form.append(scores["by"]["template_id"])
    tables = two_runs.comparison.analysis.tables
    table = find(tables, "forms_stereotypes")
    names = [column.name for column in table.columns]
    assert len(table.rows) == 50
    largest = []
    for row in table.rows:
        expected = [by_form[0][row[0]][name] - by_form[1][row[0]][name] for name in names[3:]]
        assert [float("nan") if value is None else value for value in row[3:]] == pytest.approx(expected, nan_ok=True)
        largest.append(np.nanmax(np.abs(expected)))
    assert largest == sorted(largest, reverse=True)
    assert {row[0]: row[1:3] for row in table.rows}["Religion-05"] == ("Muslim", "violence")
    values = np.array([[scores[row[0]]["accuracy_ambig"] for row in table.rows] for scores in by_form])
    agreement = {row[0]: row for row in find(tables, "forms_agreement").rows}
    _, _, correlation, mean = agreement[BBQ.facts.measure("accuracy_ambig").title]
    assert correlation.value == pytest.approx(np.corrcoef(values)[0, 1])
    assert correlation.low < correlation.value < correlation.high
    assert mean == pytest.approx((values[0] - values[1]).mean())


def test_two_forms_are_of_one_model_in_any_order(two_runs, upstream, tmp_path):
    run(RunArguments("bbq", "baseline:unknown", "Age,Religion"), tmp_path / "other")
    published, parallel = (result.folder for result in two_runs.runs)
    with pytest.raises(QabiasError, match="source: "):
        compare([published, tmp_path / "other"])
    assert compare([parallel, published]).analysis == two_runs.comparison.analysis
    mixed = compare([published, parallel], allow_mixed=True)
    assert mixed.view is not FORMS
    assert set(mixed.mixed) == {"source"}


@pytest.mark.parametrize(("width", "n_columns"), [(60, 3), (80, 4), (160, 8)])
def test_tables_are_as_wide_as_the_terminal(two_runs, width, n_columns):
    text = StringIO()
    print_compared(two_runs.comparison, Console(width=width, file=text))
    lines = text.getvalue().splitlines()
    titles = [column.title for column in find(two_runs.comparison.analysis.tables, "forms_overall").columns]
    (heading,) = (line for line in lines if "Adjusted" not in line and "Score " in line and "Published" in line)
    assert [title in heading for title in titles[:n_columns]] == [True] * n_columns
    assert ("not shown" in text.getvalue()) == (n_columns < len(titles))
    assert len(heading.rstrip()) <= width


# One command


@pytest.mark.slow
def test_one_command_makes_both_runs_and_their_page(upstream, tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    both, page = tmp_path / "both", tmp_path / "both" / "comparison" / "compare.html"
    command = ("contamination", "bbq", "--model", "baseline:stereotyped", "--config", "Religion", "--limit", "200")
    command += ("--output", both, "--source")
    output = called(*command, "official,bundled")
    assert "Published minus parallel" in output
    sources = ["official", "bundled"]
    assert [Run.open(both / source).arguments.source for source in sources] == sources
    analysis = read_analysis(page.with_name("analysis.json"))
    html = page.read_text("utf-8")
    for text in ("two forms of bbq", "does not prove contamination", find(analysis.tables, "forms_stereotypes").title):
        assert text in html
    # The same command, in any order of the sources, continues: what is there is not asked again, and the page replaced.
    before = {path: path.stat().st_mtime_ns for path in both.glob("*/predictions/*.parquet")}
    page.write_text("<html></html>", "utf-8")
    assert called(*command, "bundled,official") == output
    assert page.read_text("utf-8") == html
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.slow
def test_the_comparison_waits_for_all_shares_of_both_runs(upstream, tmp_path):
    arguments = RunArguments("bbq", "baseline:random", "Age", source="official,bundled")
    first = run_forms(arguments, tmp_path / "both", Machine(shard=(0, 2)))
    assert first.comparison is None
    assert [of.n_missing_parts > 0 for of in first.runs] == [True, True]
    second = run_forms(arguments, tmp_path / "both", Machine(shard=(1, 2)))
    assert second.comparison is not None
    assert second.page.is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("contamination bbq --source offical,bundled", "'official'"),
        ("contamination bbq --source official,release", "one of bundled"),
        ("contamination bbq --source official,release,bundled", "one of bundled"),
        ("contamination bbq --source official,", "one of bundled"),
        ("run bbq --source ,", "contamination"),
        ("contamination unqover --source official,bundled", "no parallel texts"),
        ("plan bbq --detect 0.1 --source official,bundled", "'official,bundled'"),
    ],
)
def test_what_are_no_two_forms_is_refused_before_anything_is_done(words, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert message in refused(*words.split())
    assert list(tmp_path.iterdir()) == []


def test_right_answers_to_published_texts_alone_are_found_and_alike_ones_are_not(upstream):
    """The exchange test on answers that were made up: all right on the published texts, random on the others."""
    rng = np.random.default_rng(0)
    tables = [examples(source, upstream, "Religion") for source in ("bundled", "official")]
    clusters = shared_stereotypes(BBQ.forms, tables[1], tables[0]).clusters[::-1]
    guesses = [rng.integers(0, 3, table.num_rows) for table in tables]
    for answers, is_apart in (([guesses[0], tables[1]["label"].to_numpy()], True), (guesses, False)):
        predictions = [pa.table({"prediction": one}) for one in answers]
        pair = BBQ.pair_forms(*(AnsweredTable(*parts) for parts in zip(tables, predictions, clusters, strict=True)))[
            ALL
        ]
        assert pair.n_clusters == 25
        for difference in differences(pair, {"accuracy_ambig": 1, "accuracy_disambig": 1}).values():
            assert (difference.p < 0.001 and difference.value > 0.5) if is_apart else difference.p > 0.05
