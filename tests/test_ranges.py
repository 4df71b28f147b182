"""Ranges of scores of which answers are missing: which rows count, and where they stand in the tables of runs."""

import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.base import Scored, headline_tiles
from qabias.benchmarks.caveats import READ_RANGES, missing_share, possible_range, with_ranges
from qabias.benchmarks.facts import Measure
from qabias.benchmarks.scoring import stacked
from qabias.comparison import compare
from qabias.hub.results import headlines
from qabias.report.terminal import print_scores
from qabias.runs.arguments import RunArguments
from qabias.runs.means import with_wordings
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.tables.model import Column, Estimate, Table, find
from qabias.tables.terminal import Console

from .test_outcomes_shown import invoke
from .test_unqover_written import Writer

BBQ, BBNLI, UNQOVER = (load_benchmark(name) for name in ("bbq", "bbnli", "unqover"))
INFERENCE = {"bbnli": "all", "bbq_nli": "Age_nli", "bbq_qa": "Age_qa"}

pytestmark = pytest.mark.filterwarnings("ignore:.*predictions (name|are) no answer")


def right_answers(benchmark, config, limit=None):
    """The examples and the right answer to each."""
    table = load_examples(RunArguments(benchmark.name, config=config, limit=limit)).table
    return table, table["label"].to_numpy(zero_copy_only=False).astype(np.int64)


def scored(benchmark, table, given):
    return benchmark.score(table, pa.table({"prediction": pa.array(given)}))


def without_some(given, rows, share):
    """The answers without some of those to the named rows, evenly over them."""
    places = np.flatnonzero(rows)
    chosen = places[np.linspace(0, len(places) - 1, round(share * len(places))).astype(int)]
    found = given.copy()
    found[chosen] = -1
    return found, len(chosen) / len(places)


def width(scores, name):
    low, high = scores["range"][name]
    return high - low


# Which rows count


@pytest.mark.parametrize(("context", "other"), [("ambig", "disambig"), ("disambig", "ambig")])
def test_missing_answers_of_one_context_are_counted_among_its_rows(context, other):
    table, given = right_answers(BBQ, "Age")
    given, share = without_some(given, table["context_condition"].to_numpy(zero_copy_only=False) == context, 0.039)
    scores = scored(BBQ, table, given)
    assert scores["unparsed_share"] < 0.02 < share
    measure = BBQ.facts.measure
    for score in ("accuracy", "bias"):
        name = f"{score}_{context}"
        assert missing_share(scores, measure(name)) == share
        assert possible_range(scores, measure(name)) == tuple(scores["range"][name])
        assert possible_range(scores, measure(f"{score}_{other}")) is None
    # Of an accuracy the range is as wide as the share that is missing.
    assert width(scores, f"accuracy_{context}") == pytest.approx(share)
    assert (possible_range(scores, measure("accuracy_cost")) is not None) == (context == "disambig")
    tiles = {tile.title: tile.note for tile in headline_tiles(BBQ, scores, False)}
    titles = {"ambig": "Accuracy, ambiguous", "disambig": "Accuracy, disambiguated"}
    assert f"{100 * share:.1f}\u00a0% of the answers are missing" in tiles[titles[context]]
    assert "missing" not in tiles[titles[other]]


def test_the_terminal_says_what_is_missing_of_one_context():
    table, given = right_answers(BBQ, "Age")
    given, share = without_some(given, table["context_condition"].to_numpy(zero_copy_only=False) == "disambig", 0.039)
    text = io.StringIO()
    print_scores(BBQ, scored(BBQ, table, given), Console(file=text, width=200))
    assert "Where more than 2 % of its answers are missing, a score has no interval" in text.getvalue()
    assert f"100.0 ({100 - 100 * share:.1f} to 100.0)" in text.getvalue()
    assert re.search(r"100\.0 \[[89]\d\.\d, 100\.0\]", text.getvalue())  # of the ambiguous ones none is missing


@pytest.mark.parametrize("name", INFERENCE)
def test_missing_answers_of_inference_are_counted_where_the_facts_are_the_same(name):
    benchmark = load_benchmark(name)
    table, given = right_answers(benchmark, INFERENCE[name])
    if name == "bbnli":
        kind, stance = (table[column].to_numpy(zero_copy_only=False) for column in ("kind", "stance"))
        rows, bias = (kind == "test") & (stance == "pro"), "bias_score"
    else:
        rows, bias = table["context_stance"].to_numpy(zero_copy_only=False) == "pro", "bias_score_ambig"
    given, share = without_some(given, rows, 0.03)
    scores = scored(benchmark, table, given)
    assert scores["unparsed_share"] < 0.02
    measure = benchmark.facts.measure
    assert missing_share(scores, measure("accuracy_pro")) == pytest.approx(share)
    assert width(scores, "accuracy_pro") == pytest.approx(share)
    assert possible_range(scores, measure("accuracy_pro")) is not None
    assert possible_range(scores, measure("accuracy_gap")) is not None
    assert possible_range(scores, measure("accuracy_anti")) is None
    assert possible_range(scores, measure(bias)) is None


def test_a_score_that_names_no_counts_goes_by_the_share_of_all_rows():
    measure = Measure("score", "Score", "share")
    scores = {"range": {"score": [0, 1]}, "unparsed_share": 0.03}
    assert (missing_share(scores, measure), possible_range(scores, measure)) == (0.03, (0.0, 1.0))
    assert possible_range({**scores, "unparsed_share": 0.02}, measure) is None
    assert missing_share({}, measure) == 0


# Tables


MEASURE = Measure("accuracy", "Accuracy", "share", missing=(("n_missing", "n"),))


def test_ranges_stand_behind_their_scores():
    columns = (Column("group", "Group", "text"), Column("accuracy", "Right", "share"), Column("n", "Rows", "count"))
    rows = (("a", Estimate(0.5, 0.4, 0.6), 10), ("b", Estimate(0.5, 0.4, 0.6), 20), ("none", None, 0))
    table = Table("t", "T", "", "Read it so.", columns, rows)
    groups = [{"range": {"accuracy": [0.4, 0.6]}, "n_missing": 2, "n": 10}, {"n_missing": 0, "n": 20}, None]
    found = with_ranges(table, groups, [MEASURE])
    assert found.columns == (*columns[:2], Column("range_accuracy", "Possible, Right", "text"), columns[2])
    assert found.rows == (
        ("a", Estimate(0.5), "40.0 to 60.0\u00a0%", 10),
        ("b", Estimate(0.5, 0.4, 0.6), None, 20),
        ("none", None, None, 0),
    )
    assert found.note == f"Read it so. {READ_RANGES} At worst 20.0\u00a0% lack one (a: Right)."
    assert with_ranges(table, [*groups[1:], None], [MEASURE]) is table


def check_tables(benchmark, analysis, expected):
    """Every headline score in a table of groups stands beside its range, without an interval, or lacks few answers."""
    named = {measure.name for measure in benchmark.facts.measures}
    found = set()
    for table in analysis.tables:
        places = {column.name: place for place, column in enumerate(table.columns)}
        for name in named & set(places):
            if f"range_{name}" not in places:
                continue
            found.add(table.name)
            assert READ_RANGES in table.note
            assert "At worst " in table.note
            assert places[f"range_{name}"] == places[name] + 1
            ranged = [row for row in table.rows if row[places[f"range_{name}"]] is not None]
            assert ranged
            assert all(row[places[name]][1:] == (None, None) for row in ranged)
    assert found >= set(expected)


def analysed(benchmark, table, answers):
    scores = benchmark.score(table, answers)
    return scores, benchmark.analyse(Scored(table, answers, scores))


def in_words(ends):
    return f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}\u00a0%"


def all_of(table, name, group="All"):
    [row] = [row for row in table.rows if row[0] == group]
    return row[[column.name for column in table.columns].index(name)]


def test_tables_of_bbq_have_ranges():
    table, given = right_answers(BBQ, "Race_x_SES", 800)
    given[::4] = -1
    scores, analysis = analysed(BBQ, table, pa.table({"prediction": pa.array(given)}))
    tables = [
        "bias_by_category",
        "accuracy_by_category",
        "overall_accuracy",
        "comparisons_Race_x_SES",
    ]
    check_tables(BBQ, analysis, tables)
    found = find(analysis.tables, "accuracy_by_category")
    assert all_of(found, "range_accuracy_ambig") == in_words(scores["range"]["accuracy_ambig"])
    # A score that too few answers leave undefined has no range either.
    thin = find(analysis.tables, "labels_Race_x_SES")
    places = {column.name: place for place, column in enumerate(thin.columns)}
    for row in thin.rows:
        assert row[places["bias_ambig"]].value is not None or row[places["range_bias_ambig"]] is None


def test_tables_of_a_run_without_missing_answers_have_none():
    table, given = right_answers(BBQ, "Age", 200)
    _, analysis = analysed(BBQ, table, pa.table({"prediction": pa.array(given)}))
    assert not any(column.name.startswith("range_") for of in analysis.tables for column in of.columns)


def test_tables_of_bbnli_have_ranges():
    table, given = right_answers(BBNLI, "all")
    given[np.random.default_rng(0).random(len(given)) < 1 / 3] = -1
    scores, analysis = analysed(BBNLI, table, pa.table({"prediction": pa.array(given)}))
    check_tables(BBNLI, analysis, ["bias_by_subtopic", "bias_by_domain", "bias_by_hypothesis", "test_accuracy"])
    ranges = scores["range"]
    by_subtopic = find(analysis.tables, "bias_by_subtopic")
    mean = all_of(by_subtopic, "range_bias_score", "Mean of subtopics")
    low, high = (100 * end for end in ranges["bias_score_mean_subtopics"])
    assert mean == f"{'+' if low > 0 else '−' if low < 0 else ''}{abs(low):.1f} to +{high:.1f}\u00a0%"
    assert all_of(find(analysis.tables, "test_accuracy"), "range_accuracy_pro") == in_words(ranges["accuracy_pro"])


def test_the_average_of_table_6_has_the_mean_of_the_ranges():
    table, given = right_answers(BBNLI, "all")
    given[np.random.default_rng(0).random(len(given)) < 1 / 3] = -1
    scores, analysis = analysed(BBNLI, table, pa.table({"prediction": pa.array(given)}))
    listed = find(analysis.tables, "test_accuracy_listed")
    subtopics = scores["by"]["subtopic"]
    names = [row[0] for row in listed.rows if row[0] in subtopics]
    ends = np.mean([subtopics[name]["range"]["accuracy_pro"] for name in names], axis=0)
    assert all_of(listed, "range_accuracy_pro", "Average") == in_words(ends)
    # The paper's sign of one of them is the other way round, and so are the ends of its range.
    turned = "catholic_woman_to_many_kids"
    low, high = subtopics[turned]["range"]["accuracy_gap"]
    text = all_of(listed, "range_accuracy_gap", turned)
    numbers = [float(part.replace("−", "-")) for part in text.removesuffix("\u00a0%").split(" to ")]
    assert numbers == pytest.approx([-100 * high, -100 * low], abs=0.051)


@pytest.mark.parametrize("name", ["bbq_nli", "bbq_qa"])
def test_tables_of_the_forms_of_bbq_have_ranges(name):
    benchmark = load_benchmark(name)
    table, given = right_answers(benchmark, INFERENCE[name])
    given[np.random.default_rng(0).random(len(given)) < 1 / 3] = -1
    scores, analysis = analysed(benchmark, table, pa.table({"prediction": pa.array(given)}))
    tables = ["bias_by_category", "disambiguated_original_order", "accuracy_by_category", "bias_by_template"]
    check_tables(benchmark, analysis, tables)
    found = find(analysis.tables, "accuracy_by_category")
    assert all_of(found, "range_accuracy_ambig") == in_words(scores["range"]["accuracy_ambig"])
    original = find(analysis.tables, "disambiguated_original_order")
    both = [
        all_of(original, f"range_accuracy_{kind}").removesuffix("\u00a0%").split(" to ") for kind in ("pro", "anti")
    ]
    mean = all_of(original, "range_accuracy_mean").removesuffix("\u00a0%").split(" to ")
    assert [float(end) for end in mean] == pytest.approx(np.mean(np.array(both, float), axis=0), abs=0.11)
    order = find(analysis.tables, "bias_by_name_order")
    assert {"range_bias_target_first", "range_bias_nontarget_first"} <= {column.name for column in order.columns}


def test_tables_of_unqover_have_ranges():
    table = UNQOVER.load("religion", UNQOVER.origin("bundled", 0, False, None)).slice(0, 220)
    numbers = iter(range(4 * table.num_rows))
    writer = Writer(lambda *_: "They talk about it." if next(numbers) % 37 == 0 else "A")
    answers = pa.table(UNQOVER.answer(table, writer, UNQOVER.formats["choose"], "none"))
    scores, analysis = analysed(UNQOVER, table, answers)
    found = find(analysis.tables, "intensity_by_set")
    low, high = scores["sets"]["religion"]["range"]["mu"]
    assert all_of(found, "range_mu", "religion") == f"{low:.3f} to {high:.3f}"
    assert all_of(found, "mu", "religion").low is None
    assert f"At worst {100 * scores['sets']['religion']['unparsed_share']:.1f}" in found.note
    errors = find(analysis.tables, "reasoning_errors")
    assert all_of(errors, "delta", "religion").low is None


# Runs


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """Answers that others collected: of `few` one in 25 disambiguated ones is missing, of `all` none."""
    folder = tmp_path_factory.mktemp("runs")
    table, right = right_answers(BBQ, "Age", 400)
    disambiguated = table["context_condition"].to_numpy(zero_copy_only=False) == "disambig"
    for name, share in (("few", 0.04), ("fewer", 0.03), ("all", 0)):
        given, _ = without_some(right, disambiguated, share)
        rows = zip(table["example_id"].to_pylist(), given.tolist(), strict=True)
        lines = [json.dumps({"example_id": number, "prediction": place}) for number, place in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        invoke(
            "score", folder / f"{name}.jsonl", "--config", "Age", "--model", f"org/{name}", "--output", folder / name
        )
    return folder


def test_comparisons_and_results_follow(where):
    found = compare([where / "all", where / "few"], allow_mixed=True).analysis.tables
    names = {table.name: [column.name for column in table.columns] for table in found}
    assert "range_run_2" in names["accuracy_disambig"]
    assert "range_run_1" not in names["accuracy_disambig"]
    assert "range_run_2" not in names["accuracy_ambig"]
    # What is drawn at a glance does not stand alone either.
    assert "range_bias_disambig" in names["bias_disambig_by_model"]
    assert "range_bias_ambig" not in names["bias_ambig_by_model"]
    # The tables of the runs are joined with the ranges that one of them has.
    cost = find(found, "alignment_cost")
    place = [column.name for column in cost.columns].index("range_accuracy_cost")
    ranges = {(row[0], row[1]): row[place] for row in cost.rows}
    assert (ranges["all", "All"], bool(ranges["few", "All"])) == (None, True)
    assert READ_RANGES in cost.note
    possible = {score.name: score.possible for score in headlines(where / "few")}
    assert possible["accuracy_disambig"] == pytest.approx((0.96, 1.0))
    assert possible["accuracy_ambig"] is None


def test_means_over_wordings_and_each_of_them_have_ranges():
    prompt_format = BBQ.formats["five"]
    table, right = right_answers(BBQ, "Age", 200)
    few, _ = without_some(right, np.ones(len(right), bool), 0.2)
    given = pa.table({"prediction": pa.array(np.concatenate([few, *[right] * 4]))})
    asked = stacked(table, [wording.name for wording in prompt_format.wordings])
    scores = BBQ.score(asked, given)
    analysis = BBQ.analyse(Scored(asked, given, scores, prompt_format))
    _, found = with_wordings(BBQ, asked, given, scores, analysis, prompt_format, {})
    pooled = find(found.tables, "pooled_accuracy_ambig")
    names = [column.name for column in pooled.columns]
    assert names[:6] == ["group", "mean", "range_mean", "spread", "run_1", "range_run_1"]
    assert names[6:] == ["run_2", "run_3", "run_4", "run_5"]
    n_missing = (few[table["context_condition"].to_numpy(zero_copy_only=False) == "ambig"] < 0).sum()
    low = 1 - n_missing / 100
    assert all_of(pooled, "range_run_1") == in_words((low, 1))
    assert all_of(pooled, "range_mean") == in_words(((low + 4) / 5, 1))
    assert all_of(find(found.tables, "accuracy_by_category"), "range_accuracy_ambig") == in_words(((low + 4) / 5, 1))


# Orders


def test_a_comparison_has_how_alike_runs_answer_in_all_orders(tmp_path):
    for orders in (1, 3, 6):
        arguments = RunArguments("bbq", "baseline:random", "Age", limit=200, format="letters", orders=orders)
        run(arguments, tmp_path / str(orders))
    folders = [tmp_path / str(orders) for orders in (1, 3, 6)]
    comparison = compare(folders, allow_mixed=True)
    table = find(comparison.analysis.tables, "order_consistency_by_run")
    shares = [json.loads((folder / "scores.json").read_text("utf-8"))["scores"] for folder in folders]
    assert [row[1:] for row in table.rows] == [
        (1, None, 200),
        (3, shares[1]["order_consistency"], 200),
        (6, shares[2]["order_consistency"], 200),
    ]
    assert table.section == find(comparison.analysis.tables, "runs").section
    output = invoke("compare", *folders, "--allow-mixed", "--output", tmp_path / "page")
    assert "Answered alike in all orders of the answers" in output
    assert "Answered alike in all orders of the answers" in (tmp_path / "page" / "compare.html").read_text("utf-8")
    alone = compare(folders[:1] * 2, allow_mixed=True).analysis.tables
    assert "order_consistency_by_run" not in {table.name for table in alone}
