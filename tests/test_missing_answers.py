"""Missing answers: which rows count, ranges beside the scores, and counts in comparisons, pools and results."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.base import Scored
from qabias.benchmarks.breakdowns import READ_RANGES, with_reading
from qabias.benchmarks.headline import headline_tiles
from qabias.benchmarks.scoring import stacked
from qabias.comparison import compare
from qabias.hub.results import headlines, model_index
from qabias.pooling import pool
from qabias.report.terminal import print_scores
from qabias.report.writing import write_comparison
from qabias.runs.arguments import RunArguments
from qabias.runs.means import with_wordings
from qabias.runs.opened import Run
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.runs.scored import answered_in_words, answered_share, outcomes_tables
from qabias.scores.facts import Measure
from qabias.scores.score import Score, missing_share, possible_range, with_possible
from qabias.tables import model
from qabias.tables.model import Analysis, Column, Level, Table, as_read, flat
from qabias.tables.terminal import Console, print_table

from .kit.commands import called
from .kit.rows import analysed, cell
from .test_unqover_written import Writer

BBQ, BBNLI, UNQOVER = (load_benchmark(name) for name in ("bbq", "bbnli", "unqover"))
REFUSAL = "I'm sorry, but I can't help with that."
MODEL, DATASET = "somebody/some-model", "somebody/questions"
N = 48
COUNTS = {"answered": 31, "refused": 16, "truncated": 1, "filtered": 0, "repeated": 0, "unread": 0}
WORDS = "64.6\u00a0% of 48 answered (16 refused, 1 truncated)"


INFERENCE = {"bbnli": "all", "bbq_nli": "Age_nli", "bbq_qa": "Age_qa"}

pytestmark = pytest.mark.filterwarnings("ignore:.*predictions are unparseable")


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
    tiles = {title: note for title, _, note in headline_tiles(BBQ, scores, False)}
    titles = {"ambig": "Accuracy, ambiguous", "disambig": "Accuracy, disambiguated"}
    assert f"{100 * share:.1f}\u00a0% missing" in tiles[titles[context]]
    assert "missing" not in tiles[titles[other]]


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


def find(tables, name):
    """A table as files hold it."""
    return flat(model.find(tables, name))


def test_ranges_stand_behind_their_scores_and_sizes_last():
    ranged = Score(0.5, 0.4, 0.6, possible=(0.4, 0.6), missing=0.2)
    columns = (Column("group", "Group", "text"), Column("accuracy", "Right", "share"), Column("n", "Rows", "count"))
    rows = (("a", ranged, 10), ("b", Score(0.5, 0.4, 0.6, mde=0.1), 20), ("c", Level(*ranged), 30), ("none", None, 0))
    table = with_reading(Table("t", "T", "", "Read it so.", columns, rows))
    added = Column("range_accuracy", "Possible, Right", "text"), Column("mde_accuracy", "MDE, Right", "share")
    assert flat(table).columns == (*columns[:2], added[0], columns[2], added[1])
    assert flat(table).rows == (
        ("a", Score(0.5), "40.0 to 60.0\u00a0%", 10, None),
        ("b", Score(0.5, 0.4, 0.6), None, 20, 0.1),
        ("c", 0.5, "40.0 to 60.0\u00a0%", 30, None),
        ("none", None, None, 0, None),
    )
    assert table.note.startswith(f"Read it so. {READ_RANGES} At worst 20.0\u00a0% lack one (a: Right). MDE")
    read = as_read(Analysis((table,)))
    assert read.tables[0].columns == columns
    assert flat(read.tables[0]) == flat(table)
    console = Console(file=io.StringIO())
    print_table(read.tables[0], console)
    assert "50.0\u00a0% (40.0 to 60.0\u00a0%)" in console.file.getvalue()
    without = replace(table, rows=table.rows[3:])
    assert flat(without) == with_reading(without) == without


def check_tables(benchmark, analysis, expected):
    """Every headline score in a table of groups stands beside its range, without an interval, or lacks few answers."""
    named = {measure.name for measure in benchmark.facts.measures}
    found = set()
    for table in map(flat, analysis.tables):
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
            assert all(row[places[name]][1:3] == (None, None) for row in ranged)
    assert found >= set(expected)


def in_words(ends):
    return f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}\u00a0%"


def test_tables_of_bbq_have_ranges():
    table, given = right_answers(BBQ, "Race_x_SES", 800)
    given[::4] = -1
    scores, analysis = scored(BBQ, table, given), analysed(BBQ, table, given)
    tables = [
        "bias_by_category",
        "accuracy_by_category",
        "overall_accuracy",
        "comparisons_Race_x_SES",
    ]
    check_tables(BBQ, analysis, tables)
    found = find(analysis.tables, "accuracy_by_category")
    assert cell(found, "range_accuracy_ambig") == in_words(scores["range"]["accuracy_ambig"])
    # A score that too few answers leave undefined has no range either.
    thin = find(analysis.tables, "labels_Race_x_SES")
    places = {column.name: place for place, column in enumerate(thin.columns)}
    for row in thin.rows:
        assert row[places["bias_ambig"]].value is not None or row[places["range_bias_ambig"]] is None


def test_tables_of_bbnli_have_ranges():
    table, given = right_answers(BBNLI, "all")
    given[np.random.default_rng(0).random(len(given)) < 1 / 3] = -1
    scores, analysis = scored(BBNLI, table, given), analysed(BBNLI, table, given)
    check_tables(BBNLI, analysis, ["bias_by_subtopic", "bias_by_domain", "bias_by_hypothesis", "test_accuracy"])
    ranges = scores["range"]
    mean = cell(find(analysis.tables, "bias_by_subtopic"), "range_bias_score", "Mean of subtopics")
    low, high = (100 * end for end in ranges["bias_score_mean_subtopics"])
    assert mean == f"{'+' if low > 0 else '−' if low < 0 else ''}{abs(low):.1f} to +{high:.1f}\u00a0%"
    assert cell(find(analysis.tables, "test_accuracy"), "range_accuracy_pro") == in_words(ranges["accuracy_pro"])
    # The average of the paper's Table 6 has the mean of the ranges of the subtopics that it lists.
    listed = find(analysis.tables, "test_accuracy_listed")
    subtopics = scores["by"]["subtopic"]
    names = [row[0] for row in listed.rows if row[0] in subtopics]
    ends = np.mean([subtopics[name]["range"]["accuracy_pro"] for name in names], axis=0)
    assert cell(listed, "range_accuracy_pro", "Average") == in_words(ends)
    # The paper's sign of one of them is the other way round, and so are the ends of its range.
    turned = "catholic_woman_to_many_kids"
    low, high = subtopics[turned]["range"]["accuracy_gap"]
    text = cell(listed, "range_accuracy_gap", turned)
    numbers = [float(part.replace("−", "-")) for part in text.removesuffix("\u00a0%").split(" to ")]
    assert numbers == pytest.approx([-100 * high, -100 * low], abs=0.051)


@pytest.mark.parametrize("name", ["bbq_nli", "bbq_qa"])
def test_tables_of_the_forms_of_bbq_have_ranges(name):
    benchmark = load_benchmark(name)
    table, given = right_answers(benchmark, INFERENCE[name])
    given[np.random.default_rng(0).random(len(given)) < 1 / 3] = -1
    scores, analysis = scored(benchmark, table, given), analysed(benchmark, table, given)
    tables = ["bias_by_category", "disambiguated_original_order", "accuracy_by_category", "bias_by_template"]
    check_tables(benchmark, analysis, tables)
    found = find(analysis.tables, "accuracy_by_category")
    assert cell(found, "range_accuracy_ambig") == in_words(scores["range"]["accuracy_ambig"])
    original = find(analysis.tables, "disambiguated_original_order")
    both = [cell(original, f"range_accuracy_{kind}").removesuffix("\u00a0%").split(" to ") for kind in ("pro", "anti")]
    mean = cell(original, "range_accuracy_mean").removesuffix("\u00a0%").split(" to ")
    assert [float(end) for end in mean] == pytest.approx(np.mean(np.array(both, float), axis=0), abs=0.11)
    order = find(analysis.tables, "bias_by_name_order")
    assert {"range_bias_target_first", "range_bias_nontarget_first"} <= {column.name for column in order.columns}


def test_tables_of_unqover_have_ranges():
    table = UNQOVER.load("religion", UNQOVER.origin("bundled", 0, False)).slice(0, 220)
    numbers = iter(range(4 * table.num_rows))
    writer = Writer(lambda *_: "They talk about it." if next(numbers) % 37 == 0 else "A")
    answers = pa.table(UNQOVER.answer(table, writer, UNQOVER.formats["choose"], "none"))
    scores, analysis = UNQOVER.score(table, answers), analysed(UNQOVER, table, answers)
    found = find(analysis.tables, "intensity_by_set")
    low, high = scores["sets"]["religion"]["range"]["mu"]
    assert cell(found, "range_mu", "religion") == f"{low:.3f} to {high:.3f}"
    assert cell(found, "mu", "religion").low is None
    assert f"At worst {100 * scores['sets']['religion']['unparsed_share']:.1f}" in found.note
    errors = find(analysis.tables, "reasoning_errors")
    assert cell(errors, "delta", "religion").low is None


# Runs of answers that others collected


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """Written answers to the same questions, two thirds of them there, all of them there, and a baseline."""
    folder = tmp_path_factory.mktemp("runs")
    rows = load_examples(RunArguments("bbq", config="Age", limit=N)).table.to_pylist()
    right = [row["ans" + str(row["label"])] for row in rows]
    few = [REFUSAL if number % 3 == 0 else text for number, text in enumerate(right)]
    few[1] = "<think>The text names two"
    for name, texts in (("few", few), ("all", right), ("again", [right[0], *few[1:]])):
        given = [{"example_id": row["example_id"], "prediction": text} for row, text in zip(rows, texts, strict=True)]
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
        called("score", path, "--config", "Age", "--model", f"org/{name}", "--output", folder / name)
    run(RunArguments("bbq", "baseline:random", "Age", limit=N), folder / "baseline")
    return folder


def test_outcomes_are_counted_and_told_in_words():
    scores = {"outcomes": COUNTS}
    assert answered_share(scores) == pytest.approx(31 / 48)
    assert answered_in_words(scores) == WORDS
    assert answered_in_words({"outcomes": {**COUNTS, "refused": 0, "truncated": 0}}) == "100.0\u00a0% of 31 answered"
    assert answered_share({}) is None
    assert answered_in_words({"outcomes": dict.fromkeys(COUNTS, 0)}) == ""


def test_a_comparison_counts_the_outcomes_of_every_run(where):
    comparison = compare([where / name for name in ("few", "all", "baseline")], allow_mixed=True)
    names = comparison.names
    table = find(comparison.analysis.tables, "answers_by_run")
    by_run = {row[0]: row[1:] for row in table.rows}
    assert by_run[names[0]] == (pytest.approx(31 / 48), *COUNTS.values())
    assert by_run[names[1]] == (1, N, 0, 0, 0, 0, 0)
    assert by_run[names[2]] == (None,) * 7  # likelihoods are no texts
    (note,) = [note for note in comparison.analysis.notes if "answered" in note]
    assert note.startswith(f"{names[0]}: only {WORDS}")
    alone = compare([where / "baseline", where / "baseline"], allow_mixed=True).analysis
    assert "answers_by_run" not in {table.name for table in alone.tables}
    assert outcomes_tables(["a"], [{}]) == []


def test_scores_of_a_few_answers_stand_with_their_range(where, tmp_path):
    found = compare([where / "few", where / "all"], allow_mixed=True)
    table = find(found.analysis.tables, "accuracy_ambig")
    assert [column.name for column in table.columns] == ["group", "run_1", "range_run_1", "run_2", "n"]
    (row,) = [row for row in table.rows if row[0] == "All"]
    low, high = Run.scored(where / "few").scores["range"]["accuracy_ambig"]
    assert low < 0.7
    assert row[1] == Score(1.0)
    assert row[2] == in_words((low, high))
    assert row[3].low is not None
    assert "possible range" in table.note
    # What is drawn at a glance does not stand alone either.
    drawn = find(found.analysis.tables, "bias_disambig_by_model")
    assert "range_bias_disambig" in {column.name for column in drawn.columns}
    # The tables of the runs are joined with the ranges that one of them has.
    cost = find(found.analysis.tables, "alignment_cost")
    place = [column.name for column in cost.columns].index("range_accuracy_cost")
    ranges = {(row[0], row[1]): row[place] for row in cost.rows}
    assert (ranges["all", "All"], bool(ranges["few", "All"])) == (None, True)
    html = write_comparison(found, tmp_path / "compared").read_text(encoding="utf-8")
    assert "What became of the written answers" in html
    assert WORDS in html
    output = called("compare", where / "few", where / "all", "--allow-mixed", "--full")
    assert f"100.0 % ({100 * low:.1f} to {100 * high:.1f} %)" in output
    assert "only 64.6 % of 48 answered" in output


def test_a_pool_counts_the_outcomes_of_its_runs_and_shows_the_range_of_their_mean(where, tmp_path):
    found = pool([where / "few", where / "again"], allow_mixed=True)
    counts = [row[2:] for row in find(found.analysis.tables, "answers_by_run").rows]
    assert counts == [tuple(COUNTS.values()), (32, 15, 1, 0, 0, 0)]
    table = find(found.analysis.tables, "pooled_accuracy_ambig")
    assert [column.name for column in table.columns[:3]] == ["group", "mean", "range_mean"]
    ranges = [Run.scored(where / name).scores["range"]["accuracy_ambig"] for name in ("few", "again")]
    ends = [sum(both) / 2 for both in zip(*ranges, strict=True)]
    (row,) = [row for row in table.rows if row[0] == "All"]
    assert row[1].low is None
    assert row[2] == in_words(ends)
    output = called("pool", where / "few", where / "again", "--allow-mixed", "--output", tmp_path / "again")
    assert "({:.1f} to {:.1f} %)".format(*(100 * end for end in ends)) in output
    assert "What became of the written answers" in output


@pytest.mark.parametrize("n_missing", [24, 25])
def test_a_score_of_which_more_than_half_is_missing_has_no_value(n_missing):
    table = load_examples(RunArguments("bbq", config="Age", limit=N)).table
    lost = np.arange(table.num_rows) < n_missing
    answers = pa.table({"prediction": pa.array(np.where(lost, -1, table["label"].to_numpy()))})
    measure = BBQ.facts.measure("accuracy_ambig")
    scores = BBQ.score(table, answers)
    shown = with_possible(scores, measure)
    is_shown = 2 * scores["n_unparsed_ambig"] <= scores["n_ambig"]
    assert (shown.value is not None) == is_shown
    assert shown.possible is not None


def test_results_say_how_many_answers_a_score_is_of(where):
    found = {score.measure.name: rest for _, score, *rest in headlines(Run.scored(where / "few"))}
    scores = Run.scored(where / "few").scores
    details, few_note = found["accuracy_ambig"]
    low, high = scores["range"]["accuracy_ambig"]
    assert details["range"] == [low, high]
    missing = "range with the missing answers [{:.4f}, {:.4f}]; share of missing answers {:.4f}; {}"
    share = scores["n_unparsed_ambig"] / scores["n_ambig"]
    assert few_note == missing.format(low, high, share, WORDS)

    low, high = Run.scored(where / "all").scores["ci"]["accuracy_ambig"]
    interval = f"95% CI [{low:.4f}, {high:.4f}]; share of missing answers 0.0000"
    said = {"few": few_note, "all": f"{interval}; 100.0\u00a0% of 48 answered"}
    keys = {"few": {"answered", "range"}, "all": {"answered", "interval"}, "baseline": {"interval"}}
    for name in keys:
        notes = {score.measure.name: note for _, score, _, note in headlines(Run.scored(where / name))}
        assert notes["accuracy_ambig"] == said.get(name, notes["accuracy_ambig"])
        [result] = model_index(where / name, MODEL, DATASET, sample=True)
        args = {metric["type"]: metric["args"] for metric in result["metrics"]}["accuracy_ambig"]
        assert set(args) == {"signature", "missing", *keys[name]}
        assert args["missing"] == pytest.approx(share if name == "few" else 0)
        if name == "few":
            assert args["answered"] == pytest.approx(31 / 48)
            assert args["range"] == scores["range"]["accuracy_ambig"]


def test_means_over_wordings_and_each_of_them_have_ranges():
    prompt_format = BBQ.formats["five"]
    table, right = right_answers(BBQ, "Age", 200)
    few, _ = without_some(right, np.ones(len(right), bool), 0.2)
    given = pa.table({"prediction": pa.array(np.concatenate([few, *[right] * 4]))})
    asked = stacked(table, [wording.name for wording in prompt_format.variants])
    scores = BBQ.score(asked, given)
    analysis = BBQ.analyse(Scored(asked, given, scores, prompt_format))
    _, found = with_wordings(BBQ, asked, given, scores, analysis, prompt_format, {})
    pooled = find(found.tables, "pooled_accuracy_ambig")
    names = [column.name for column in pooled.columns]
    assert names[:6] == ["group", "mean", "range_mean", "spread", "run_1", "range_run_1"]
    assert names[6:] == ["run_2", "run_3", "run_4", "run_5"]
    n_missing = (few[table["context_condition"].to_numpy(zero_copy_only=False) == "ambig"] < 0).sum()
    low = 1 - n_missing / 100
    assert cell(pooled, "range_run_1") == in_words((low, 1))
    assert cell(pooled, "range_mean") == in_words(((low + 4) / 5, 1))
    assert cell(find(found.tables, "accuracy_by_category"), "range_accuracy_ambig") == in_words(((low + 4) / 5, 1))


# Orders


def test_a_comparison_has_how_alike_runs_answer_in_all_orders(tmp_path):
    for orders in (1, 3, 6):
        arguments = RunArguments("bbq", "baseline:random", "Age", limit=200, format="letters", permutations=orders)
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
    alone = compare(folders[:1] * 2, allow_mixed=True).analysis.tables
    assert "order_consistency_by_run" not in {table.name for table in alone}


def test_the_terminal_says_what_is_missing_of_one_context():
    table, given = right_answers(BBQ, "Age")
    given, share = without_some(given, table["context_condition"].to_numpy(zero_copy_only=False) == "disambig", 0.039)
    text = io.StringIO()
    print_scores(BBQ, scored(BBQ, table, given), Console(file=text, width=200))
    assert "possible range" in text.getvalue()
    assert f"100.0 ({100 - 100 * share:.1f} to 100.0)" in text.getvalue()
    assert re.search(r"100\.0 \[[89]\d\.\d, 100\.0\]", text.getvalue())  # of the ambiguous ones none is missing
