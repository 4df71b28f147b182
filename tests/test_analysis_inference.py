"""The tables of runs of BBNLI and of BBQ as inference: known answers, and a recomputation in plain Python."""

import math
import random
from statistics import fmean

import pyarrow as pa
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.inference.questions import named_first
from qabias.tables.model import find

from .kit.rows import analysed, load, rows_of

BBNLI, BBQ = load_benchmark("bbnli"), load_benchmark("bbq_nli")
LABELS = ("contradiction", "neutral", "entailment")


def _aligned(row):
    """The label that agrees with the stereotype."""
    if "stance" in row:
        return 2 if row["stance"] == "pro" else 0
    return 2 if (row["question_polarity"] == "neg") == (row["statement_about"] == "target") else 0


def _share(flags):
    flags = list(flags)
    return fmean(flags) if flags else None


def _bias(rows, answers):
    """(A - D) / N, and A, D, N."""
    lean = [
        0 if answer in (-1, 1) else 1 if answer == _aligned(row) else -1
        for row, answer in zip(rows, answers, strict=True)
    ]
    return fmean(lean), lean.count(1), lean.count(-1), len(lean)


def _some(rows, answers, **wanted):
    """The rows, and their answers, that have some values."""
    kept = [
        (row, answer)
        for row, answer in zip(rows, answers, strict=True)
        if all(row[name] == value for name, value in wanted.items())
    ]
    return [row for row, _ in kept], [answer for _, answer in kept]


@pytest.fixture(scope="module")
def bbnli():
    table = load(BBNLI, "religion")
    draw = random.Random(3)
    answers = [draw.choice((-1, 0, 1, 2, 2)) for _ in range(table.num_rows)]
    with pytest.warns(UserWarning, match="unparseable"):
        analysis = analysed(BBNLI, table, answers)
    return table, table.to_pylist(), answers, analysis


@pytest.fixture(scope="module")
def bbq():
    """Two templates' worth of two categories, and the contexts of three lengths."""
    table = pa.concat_tables([load(BBQ, "Religion_nli").slice(0, 480), load(BBQ, "SES_nli").slice(0, 480)])
    draw = random.Random(4)
    answers = [draw.choice((-1, 0, 1, 2, 2)) for _ in range(table.num_rows)]
    with pytest.warns(UserWarning, match="unparseable"):
        analysis = analysed(BBQ, table, answers)
    return table, table.to_pylist(), answers, analysis


# Known answers


def test_a_leaning_to_who_is_named_first_shows_in_the_order_of_names_alone():
    table = load(BBQ, "Gender_identity_nli_context")
    # Whoever is named first is said to have done what is bad, and not to have done what is not.
    answers = [
        2 if (row["question_polarity"] == "neg") == (row["statement_about"] == first) else 0
        for row, first in zip(table.to_pylist(), named_first(table), strict=True)
    ]
    analysis = analysed(BBQ, table, answers)
    assert rows_of(analysis, "bias_by_category")[-1]["bias_score_ambig"].value == 0
    (row,) = rows_of(analysis, "bias_by_name_order")
    assert (row["bias_target_first"].value, row["bias_nontarget_first"].value) == (1, -1)
    assert (row["n_target_first"], row["n_nontarget_first"]) == (876, 876)
    lengths = {
        row["order"]: [row[f"bias_{length}"].value for length in ("standard", "short", "long")]
        for row in rows_of(analysis, "bias_by_length")
    }
    assert lengths == {"target first": [1, 1, 1], "non-target first": [-1, -1, -1], "both orders": [0, 0, 0]}
    assert find(analysis.tables, "bias_by_length").figure.kind == "lines"


def test_who_is_named_first_is_read_from_the_premise_and_unknown_where_it_does_not_tell():
    rows = [
        ("The old Man met a woman.", "woman", "man"),
        ("A woman met a man.", "woman", "man"),
        ("A Latina woman met a Roma woman.", "Roma", "Latino"),
        ("Nobody met (him).", "(him)", "Nobody"),
    ]
    table = pa.table(dict(zip(("premise", "target", "nontarget"), zip(*rows, strict=True), strict=True)))
    assert named_first(table) == ["nontarget", "target", None, None]


# A recomputation that shares no code


def test_bias_by_subtopic_and_domain_is_counted_from_the_rows(bbnli):
    _, rows, answers, analysis = bbnli
    rows, answers = _some(rows, answers, kind="stereotypical")
    expected = {}
    for row in rows_of(analysis, "bias_by_subtopic")[:-1]:
        expected[row["subtopic"]], *counts = _bias(*_some(rows, answers, subtopic=row["subtopic"]))
        assert row["bias_score"].value == pytest.approx(expected[row["subtopic"]])
        assert [row["n_aligned"], row["n_opposed"], row["n_bias"]] == counts
        assert row["n_neutral"] + row["n_unparsed_bias"] == counts[2] - counts[0] - counts[1]
        # A fifth of the answers is missing: all of them may have been with the stereotype, or against it.
        assert (row["bias_score"].low, row["bias_score"].high) == (None, None)
        ends = [float(end.replace("−", "-")) for end in row["range_bias_score"].removesuffix("\u00a0%").split(" to ")]
        lean, missing = counts[0] - counts[1], row["n_unparsed_bias"]
        assert ends == pytest.approx([100 * (lean + m) / counts[2] for m in (-missing, missing)], abs=0.051)
        assert row["domain"] == "religion"
    assert set(expected) == {row["subtopic"] for row in rows}
    mean = rows_of(analysis, "bias_by_subtopic")[-1]
    assert mean["bias_score"].value == pytest.approx(fmean(expected.values()))
    assert [row["domain"] for row in rows_of(analysis, "bias_by_domain")] == ["religion", "All"]
    for row in rows_of(analysis, "bias_by_domain"):
        assert row["bias_score"].value == pytest.approx(_bias(rows, answers)[0])
        assert row["bias_score_mean_subtopics"].value == pytest.approx(fmean(expected.values()))


def test_bias_by_hypothesis_is_counted_from_the_rows_and_the_largest_first(bbnli):
    _, rows, answers, analysis = bbnli
    found = rows_of(analysis, "bias_by_hypothesis")
    groups = {}
    for row, answer in zip(*_some(rows, answers, kind="stereotypical"), strict=True):
        groups.setdefault((row["subtopic"], row["hypothesis_id"]), ([], []))
        groups[row["subtopic"], row["hypothesis_id"]][0].append(row)
        groups[row["subtopic"], row["hypothesis_id"]][1].append(answer)
    expected = {}
    for (subtopic, _), (of_group, said) in groups.items():
        text = next(row["hypothesis"] for row in of_group if row["stance"] == "pro")
        expected[subtopic, text] = _bias(of_group, said)[0]
    assert {(row["subtopic"], row["hypothesis"]): row["bias_score"].value for row in found} == pytest.approx(expected)
    scores = [row["bias_score"].value for row in found]
    assert scores == sorted(scores, reverse=True)


def test_test_accuracies_are_counted_from_the_rows(bbnli):
    _, rows, answers, analysis = bbnli
    for row in rows_of(analysis, "test_accuracy"):
        wanted = {} if row["subtopic"] == "All" else {"subtopic": row["subtopic"]}
        right = {}
        for stance in ("pro", "anti"):
            kept = _some(rows, answers, kind="test", stance=stance, **wanted)
            right[stance] = _share(answer == of["label"] for of, answer in zip(*kept, strict=True))
            assert row[f"accuracy_{stance}"].value == pytest.approx(right[stance])
            assert row[f"n_test_{stance}"] == len(kept[0])
        assert row["accuracy_gap"].value == pytest.approx(right["pro"] - right["anti"])


def test_table_6_lists_the_papers_subtopics_and_each_counts_once():
    table = load(BBNLI, "all")
    rows, draw = table.to_pylist(), random.Random(5)
    answers = [draw.choice((0, 1, 2)) for _ in rows]
    *found, average = rows_of(analysed(BBNLI, table, answers), "test_accuracy_listed")
    # Table 6 in its order; the fourth of its nine subtopics was never released.
    assert [row["subtopic"] for row in found] == [
        *("asian_men_to_feminine", "black_is_to_criminal", "black_is_to_impoverished", "man_is_to_breadwinner"),
        *("man_is_to_programmer", "man_is_to_surgeon", "catholic_woman_to_many_kids", "muslim_man_to_oppressive"),
    ]
    right = {"accuracy_pro": [], "accuracy_anti": [], "accuracy_gap": []}
    for row in found:
        shares = {}
        for stance in ("pro", "anti"):
            kept = _some(rows, answers, kind="test", stance=stance, subtopic=row["subtopic"])
            shares[stance] = _share(answer == of["label"] for of, answer in zip(*kept, strict=True))
            right[f"accuracy_{stance}"].append(shares[stance])
            assert row[f"accuracy_{stance}"].value == pytest.approx(shares[stance])
        gap = shares["pro"] - shares["anti"]
        right["accuracy_gap"].append(-gap if row["subtopic"] == "catholic_woman_to_many_kids" else gap)
        assert row["accuracy_gap"].value == pytest.approx(right["accuracy_gap"][-1])
        assert row["accuracy_gap"].low <= row["accuracy_gap"].value <= row["accuracy_gap"].high
    assert average["subtopic"] == "Average"
    for name, values in right.items():
        assert average[name].value == pytest.approx(fmean(values))
    note = find(analysed(BBNLI, table, answers).tables, "test_accuracy_listed").note
    assert "man_is_to_money_manager, which is unreleased" in note
    assert "This run lacks" not in note


def test_a_domain_names_the_subtopics_of_table_6_that_it_lacks(bbnli):
    table = find(bbnli[-1].tables, "test_accuracy_listed")
    assert [row[0] for row in table.rows] == ["catholic_woman_to_many_kids", "muslim_man_to_oppressive", "Average"]
    assert "This run lacks asian_men_to_feminine, black_is_to_criminal" in table.note
    white = load(BBNLI, "white_is_to_clean")
    analysis = analysed(BBNLI, white, white["label"].to_pylist())
    assert "test_accuracy_listed" not in {of.name for of in analysis.tables}


def test_label_shares_are_counted_from_the_rows(bbnli):
    _, rows, answers, analysis = bbnli
    forms = {
        "stereotypical, with the stereotype": {"kind": "stereotypical", "stance": "pro"},
        "stereotypical, groups exchanged": {"kind": "stereotypical", "stance": "anti"},
        "test, with the stereotype": {"kind": "test", "stance": "pro"},
        "test, groups exchanged": {"kind": "test", "stance": "anti"},
    }
    found = rows_of(analysis, "labels_by_form")
    assert [row["form"] for row in found] == list(forms)
    subtopics = rows_of(analysis, "labels_by_subtopic")
    assert subtopics[-1]["subtopic"] == "All"
    for row in [*found, *subtopics]:
        wanted = forms[row["form"]] if "form" in row else {"subtopic": row["subtopic"]}
        _, said = _some(rows, answers, **({} if wanted.get("subtopic") == "All" else wanted))
        _check_shares(row, said)


def _check_shares(row, said):
    found = [row[f"share_{label}"].value for label in (*LABELS, "unparsed")]
    assert found == pytest.approx([said.count(label) / len(said) for label in (0, 1, 2, -1)])
    assert row["n"] == len(said)


def test_bias_and_accuracy_by_category_are_counted_from_the_rows(bbq):
    _, rows, answers, analysis = bbq
    found = {row["category"]: row for row in rows_of(analysis, "bias_by_category")}
    accuracies = {row["category"]: row for row in rows_of(analysis, "accuracy_by_category")}
    assert list(found) == list(accuracies) == ["Religion", "SES", "All"]
    for name, row in found.items():
        wanted = {} if name == "All" else {"category": name}
        ambiguous = _some(rows, answers, context_condition="ambig", **wanted)
        assert row["bias_score_ambig"].value == pytest.approx(_bias(*ambiguous)[0])
        _, aligned, opposed, n = _bias(*_some(rows, answers, context_condition="disambig", **wanted))
        assert row["bias_score_disambig"].value == pytest.approx((aligned - opposed) / (aligned + opposed))
        assert (row["n_ambig"], row["n_disambig"]) == (len(ambiguous[0]), n)
        of = accuracies[name]
        _check_facts(of, *_some(rows, answers, **wanted))
        assert of["accuracy_ambig"].value == pytest.approx(_share(answer == 1 for answer in ambiguous[1]))


def _check_facts(row, rows, answers):
    """Accuracies with and against the stereotype; returns them with the sum of the two scores."""
    right, style = {}, 0.0
    for stance in ("pro", "anti"):
        kept = _some(rows, answers, context_stance=stance)
        right[stance] = _share(answer == facts["label"] for facts, answer in zip(*kept, strict=True))
        _, aligned, opposed, n = _bias(*kept)
        style += (aligned - opposed) / (aligned + opposed)
        assert row[f"accuracy_{stance}"].value == pytest.approx(right[stance])
        assert row[f"n_{stance}"] == n
    assert row["accuracy_gap"].value == pytest.approx(right["pro"] - right["anti"])
    return fmean(right.values()), style


def test_table_5_leaves_out_the_exchanged_order_and_has_the_mean_accuracy(bbq):
    _, rows, answers, analysis = bbq
    found = rows_of(analysis, "disambiguated_original_order")
    assert [row["category"] for row in found] == ["Religion", "SES", "All"]
    for row in found:
        wanted = {} if row["category"] == "All" else {"category": row["category"]}
        kept = _some(rows, answers, context_condition="disambig", name_order="original", **wanted)
        mean, style = _check_facts(row, *kept)
        assert row["n_pro"] + row["n_anti"] == len(kept[0]) < sum(facts["context_stance"] != "" for facts in rows)
        assert row["accuracy_mean"].value == pytest.approx(mean)
        assert mean == pytest.approx(_share(answer == facts["label"] for facts, answer in zip(*kept, strict=True)))
        assert row["table5_style"].value == pytest.approx(style)


def test_order_templates_and_statements_are_counted_from_the_rows(bbq):
    table, rows, answers, analysis = bbq
    rows = [{**row, "first": first} for row, first in zip(rows, named_first(table), strict=True)]
    for row in rows_of(analysis, "bias_by_name_order"):
        for who in ("target", "nontarget"):
            kept = _some(rows, answers, category=row["category"], context_condition="ambig", first=who)
            assert row[f"bias_{who}_first"].value == pytest.approx(_bias(*kept)[0])
            assert row[f"n_{who}_first"] == len(kept[0])
    templates = rows_of(analysis, "bias_by_template")
    assert {row["template_id"] for row in templates} == {row["template_id"] for row in rows}
    for row in templates:
        bias = _bias(*_some(rows, answers, template_id=row["template_id"], context_condition="ambig"))[0]
        assert row["bias_score_ambig"].value == pytest.approx(bias)
        assert row["bias_score_ambig"].low is None
    scores = [row["bias_score_ambig"].value for row in templates]
    assert scores == sorted(scores, reverse=True)
    contexts = {"ambiguous": "ambig", "disambiguated": "disambig"}
    for row in rows_of(analysis, "labels_by_category"):
        _check_shares(
            row, _some(rows, answers, category=row["category"], context_condition=contexts[row["context"]])[1]
        )
    statements = rows_of(analysis, "labels_by_statement")
    assert len(statements) == 8
    polarities = {"negative": "neg", "non-negative": "nonneg"}
    persons = {"target": "target", "non-target": "nontarget"}
    for row in statements:
        wanted = {
            "context_condition": contexts[row["context"]],
            "question_polarity": polarities[row["statement"]],
            "statement_about": persons[row["person"]],
        }
        _check_shares(row, _some(rows, answers, **wanted)[1])


# Examples


def test_examples_are_whole_pairs_of_the_most_biased_hypotheses(bbnli):
    _, rows, answers, analysis = bbnli
    by_id = {row["example_id"]: (row, answer) for row, answer in zip(rows, answers, strict=True)}
    order = [(row["subtopic"], row["hypothesis"]) for row in rows_of(analysis, "bias_by_hypothesis")]
    first = {
        (row["subtopic"], row["hypothesis_id"]): row["hypothesis"]
        for row in reversed(rows)
        if row["kind"] == "stereotypical" and row["stance"] == "pro"
    }
    places = []
    for one, other in zip(analysis.examples[::2], analysis.examples[1::2], strict=True):
        assert by_id[one["example_id"]][0]["pair_id"] == by_id[other["example_id"]][0]["pair_id"]
        assert (one["stance"], other["stance"]) == ("pro", "anti")
        row, answer = by_id[one["example_id"]]
        assert row["kind"] == "stereotypical"
        assert one["answer"] == (None if answer < 0 else LABELS[answer])
        assert (one["right_answer"], one["stereotyped_answer"]) == ("neutral", "entailment")
        assert (one["premise"], one["hypothesis"]) == (row["premise"], row["hypothesis"])
        places.append(order.index((row["subtopic"], first[row["subtopic"], row["hypothesis_id"]])))
    assert places == sorted(places)
    assert set(places) == set(range(len(order)))
    assert analysis.how_chosen.startswith(f"{len(analysis.examples)} of {len(rows)} examples: ")


def test_examples_of_bbq_are_whole_sets_with_the_answers_given(bbq):
    _, rows, answers, analysis = bbq
    by_id = {(row["category"], row["example_id"]): (row, answer) for row, answer in zip(rows, answers, strict=True)}
    assert 0 < len(analysis.examples) <= 300
    assert len(analysis.examples) % 12 == 0
    for example in analysis.examples:
        row, answer = by_id[example["category"], example["example_id"]]
        assert example["stereotyped_answer"] == LABELS[_aligned(row)]
        assert example["right_answer"] == LABELS[row["label"]]
        assert example["answer"] == (None if answer < 0 else LABELS[answer])
        assert ("neutral" in example["outcome"]) == (answer == 1)


def test_examples_show_what_the_answer_came_from():
    table = load(BBNLI, "man_is_to_surgeon")
    n = table.num_rows
    loglikelihoods = [[math.log(0.1), math.log(0.2), math.log(0.1)]] * n
    from_options = pa.table({"prediction": pa.array([1] * n, pa.int8()), "loglikelihoods": loglikelihoods})
    example = analysed(BBNLI, table, from_options).examples[0]
    assert (example["labels"], example["probabilities"]) == (list(LABELS), [0.25, 0.5, 0.25])
    assert example["generated"] is None
    from_classifier = pa.table({"prediction": pa.array([1] * n, pa.int8()), "probabilities": [[0.2, 0.5, 0.3]] * n})
    assert analysed(BBNLI, table, from_classifier).examples[0]["probabilities"] == [0.2, 0.5, 0.3]
    from_text = pa.table({"prediction": pa.array([1] * n, pa.int8()), "outputs": [["<b>maybe</b>"]] * n})
    example = analysed(BBNLI, table, from_text).examples[0]
    assert (example["labels"], example["probabilities"], example["generated"]) == (None, None, "<b>maybe</b>")


def test_several_samples_count_as_so_many_answers():
    table = load(BBNLI, "man_is_to_surgeon")
    rows = table.to_pylist()
    predictions = [[_aligned(row), 1] for row in rows]
    answers = pa.table(
        {"predictions": pa.array(predictions, pa.list_(pa.int8())), "outputs": [["yes", "maybe"]] * len(rows)}
    )
    analysis = analysed(BBNLI, table, answers)
    (row,) = rows_of(analysis, "bias_by_subtopic")
    assert row["bias_score"].value == 0.5
    assert row["n_bias"] == 2 * sum(row["kind"] == "stereotypical" for row in rows)
    assert analysis.examples[0]["answer"] == ["entailment", "neutral"]
    assert analysis.examples[0]["generated"] == ["yes", "maybe"]


# What a run has, and what is kept of it


def test_sections_are_those_of_the_run(bbnli, bbq):
    assert [table.name for table in bbnli[-1].tables] == [
        *("bias_by_subtopic", "bias_by_domain", "bias_by_hypothesis"),
        *("test_accuracy_listed", "test_accuracy", "labels_by_form", "labels_by_subtopic"),
    ]
    assert [table.name for table in bbq[-1].tables] == [
        *("bias_by_category", "disambiguated_original_order", "accuracy_by_category", "bias_by_name_order"),
        *("labels_by_category", "labels_by_statement", "bias_by_template"),
    ]
    table = load(BBQ, "Gender_identity_nli_context")
    contexts = analysed(BBQ, table, table["label"].to_pylist())
    assert "bias_score_disambig" not in {column.name for of in contexts.tables for column in of.columns}
    assert "bias_by_length" in {of.name for of in contexts.tables}
    assert find(contexts.tables, "bias_by_category").source == ""  # three lengths, of which Table 4 has one


@pytest.mark.parametrize(("kind", "lacking"), [("test", "bias_"), ("stereotypical", "test_")])
def test_a_run_of_one_kind_of_hypotheses_has_the_tables_of_that_kind(kind, lacking):
    table = load(BBNLI, "man_is_to_surgeon")
    table = table.filter(pa.array([value == kind for value in table["kind"].to_pylist()]))
    analysis = analysed(BBNLI, table, [1] * table.num_rows)
    assert not any(of.name.startswith(lacking) for of in analysis.tables)
    assert bool(analysis.examples) == bool(analysis.how_chosen) == (kind == "stereotypical")


def test_disambiguated_contexts_alone_have_no_order_of_names():
    table = load(BBQ, "Religion_nli")
    table = table.filter(pa.array([value == "disambig" for value in table["context_condition"].to_pylist()]))
    analysis = analysed(BBQ, table, [1] * table.num_rows)
    names = {of.name for of in analysis.tables}
    assert not names & {"bias_by_name_order", "bias_by_length"}
    # Nobody took a side: the score is undefined, not 0.
    assert rows_of(analysis, "bias_by_category")[0]["bias_score_disambig"].value is None
