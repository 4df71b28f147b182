"""What of a BBQ run the paper shows: which table stands for which figure, and the overall accuracy."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from qabias.benchmarks.bbq.benchmark import BENCHMARK
from qabias.benchmarks.bbq.prompts import FORMATS
from qabias.benchmarks.bbq.tables import analyse
from qabias.runs.question import sample
from qabias.scorers.baseline import BaselineScorer
from qabias.tables.model import find

CATEGORIES = ("Gender_identity", "Race_ethnicity", "Race_x_gender", "Race_x_SES")
SOURCES = {
    "bias_by_category": "Figure 3",
    "aligned_errors": "Footnote 7",
    "names_and_labels": "Section 6",
    "accuracy_by_category": "Figure 5",
    "overall_accuracy": "Section 6",
    "alignment_cost": "Figure 2",
    "stereotypes_Race_ethnicity": "Figure 4",
    "comparisons_Race_x_gender": "Figure 8",
    "comparisons_Race_x_SES": "Figure 8",
    "labels_Race_x_gender": "Figure 9",
    "labels_Race_x_SES": "Figure 10",
    "unknown_texts": "Figure 7",
}
OF_TWO_FORMATS = {"stereotypes_Race_ethnicity", "labels_Race_x_gender", "labels_Race_x_SES"}


def load(*categories):
    origin = BENCHMARK.origin("bundled", 0, False, None)
    table = pa.concat_tables([BENCHMARK.load(category, origin) for category in categories])
    return sample(BENCHMARK, table, 2000, 0)


def analyse_random(table, question_only=False):
    answers = pa.table(BENCHMARK.answer(table, BaselineScorer("random"), FORMATS["qa"], "none"))
    return analyse(table, answers, BENCHMARK.score(table, answers), question_only)


@pytest.fixture(scope="module")
def analysis():
    return analyse_random(load(*CATEGORIES))


def test_a_figure_of_the_paper_stands_only_on_what_the_paper_shows(analysis):
    """Its Figure 4 is of race and ethnicity, where people are given labels, and of no other category."""
    of_paper = " of Parrish et al. (2022)"
    assert {table.name: table.source.removesuffix(of_paper) for table in analysis.tables if table.source} == SOURCES
    others = [table.name for table in analysis.tables if not table.source]
    assert {"stereotypes_Gender_identity", "stereotypes_Race_ethnicity_names", "template_rates"} <= set(others)


def test_what_the_paper_shows_as_a_mean_of_two_formats_says_so(analysis):
    assert {table.name for table in analysis.tables if "qabias pool" in table.note} == OF_TWO_FORMATS


def test_table_2_is_cited_where_its_template_is():
    rates = find(analyse_random(load("Physical_appearance")).tables, "template_rates")
    assert rates.source == "Table 2 of Parrish et al. (2022)"
    assert "the template Physical_appearance-16 in ambiguous contexts" in rates.note
    assert "qabias pool" in rates.note
    names = [column.name for column in rates.columns]
    rows = [dict(zip(names, row, strict=True)) for row in rates.rows if row[0] == "Physical_appearance-16"]
    # Its quantities: for both questions the rates at which the group, the others and UNKNOWN are chosen.
    ambiguous = [row for row in rows if row["context"] == "ambiguous"]
    assert [row["question"] for row in ambiguous] == ["negative", "non-negative"]
    for row in ambiguous:
        assert row["share_target"] + row["share_nontarget"] + row["share_unknown"] == pytest.approx(1)


def test_a_run_without_contexts_has_one_figure_of_the_paper():
    tables = analyse_random(load("Race_ethnicity"), question_only=True).tables
    assert {table.name: table.source[:8] for table in tables if table.source} == {"question_only": "Figure 6"}
    assert not any("qabias pool" in table.note for table in tables)
    assert "stereotypes_Race_ethnicity" in {table.name for table in tables}


def test_overall_accuracy_is_the_share_of_right_answers_in_both_contexts():
    table = load("Religion")
    predictions = np.random.default_rng(3).choice([-1, 0, 1, 2], table.num_rows, p=[0.1, 0.4, 0.25, 0.25])
    answers = pa.table({"prediction": pa.array(predictions, pa.int8())})
    with pytest.warns(UserWarning, match="name no answer"):
        scores = BENCHMARK.score(table, answers)
    overall = find(analyse(table, answers, scores).tables, "overall_accuracy")
    right, n, n_rows = Counter(), Counter(), Counter()
    for row, prediction in zip(table.to_pylist(), predictions.tolist(), strict=True):
        for key in ("accuracy", f"accuracy_{row['context_condition']}"):
            n_rows[key] += 1
            if prediction >= 0:
                n[key] += 1
                right[key] += prediction == row["label"]
    (row,) = overall.rows
    shown = dict(zip([column.name for column in overall.columns], row, strict=True))
    assert shown["category"] == "All"
    for key, of in n.items():
        assert shown[key].value == right[key] / of
        # A tenth of the answers is missing: all of them may have been right, or none.
        assert (shown[key].low, shown[key].high) == (None, None)
        ends = (100 * (right[key] + more) / n_rows[key] for more in (0, n_rows[key] - of))
        assert shown[f"range_{key}"] == "{:.1f} to {:.1f}\u00a0%".format(*ends)
    assert "always answers UNKNOWN gets half" in overall.note


def test_overall_accuracy_is_no_headline_and_not_compared():
    facts = BENCHMARK.facts
    assert "accuracy" not in {*facts.tiles, *facts.compared, *facts.columns, *facts.tasks}
