"""The BBNLI metric: kinds of input, and what it says of bad ones."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
import numpy as np
import pytest

from .bbnli_rows import (
    LABELS,
    forms,
    make_pairs,
    mixed_questions,
    mixed_statements,
    questions,
    scored,
    table,
)
from .helpers import folder, same

# Kinds of input


def test_unparsed_has_three_spellings(bbnli):
    rows = make_pairs(2)
    results = [scored(bbnli, [2, 0, spelling, 1], rows) for spelling in (None, -1, "unparsed")]
    assert same(results[0], results[1])
    assert same(results[0], results[2])
    assert results[0]["n_unparsed"] == 1
    frame = datasets.Dataset.from_list(mixed_questions(1))
    assert scored(bbnli, [None, -1, 0, 1], frame)["n_unparsed"] == 2


def test_batches_of_mixed_kinds_add_up_to_one_call(bbnli):
    rows = table()
    predictions = np.random.default_rng(4).integers(0, 3, len(rows)).tolist()
    expected = bbnli.compute(predictions=predictions, references=rows)
    dataset = datasets.Dataset.from_list(rows)
    bbnli.add_batch(predictions=predictions[:10], references=dataset[:10])
    bbnli.add_batch(predictions=[LABELS[k] for k in predictions[10:21]], references=rows[10:21])
    bbnli.add_batch(predictions=np.array(predictions[21:30]), references=dataset.select(range(21, 30)))
    bbnli.add(prediction=predictions[30], reference=rows[30])
    assert same(bbnli.compute(predictions=predictions[31:], references=rows[31:]), expected)
    with pytest.raises(ValueError, match="predictions are missing"):  # the batches are gone once scored
        bbnli.compute()


# Errors


def changed(rows: list[dict[str, Any]], row: int, **columns: Any) -> list[dict[str, Any]]:
    rows[row] = {**rows[row], **columns}
    return rows


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (changed(table(), 3, kind="bias"), "3: kind 'bias' is not one of ('stereotypical', 'test')"),
        (changed(table(), 3, stance=None), "3: stance None is not one of ('pro', 'anti')"),
        (changed(table(), 3, subtopic=7), "3: subtopic 7 is not a string"),
        (changed(table(), 3, premise_id=-1), "3: premise_id -1 is not an integer from 0 to 32767"),
        (
            changed(table(), 3, label=3),
            "3: label 3 is not one of 0, 1 and 2 or of ('contradiction', 'neutral', 'entail",
        ),
        (changed(table(), 3, label="unparsed"), "3: label 'unparsed' is not one of 0, 1 and 2"),
        (changed(table(), 3, label=2), "3: label 2 is not neutral (1) though kind is 'stereotypical'"),
        (
            changed(table(), 3, stance="pro"),
            "3: subtopic 'a', kind 'stereotypical', pair_id 'stereotypical-1', stance 'pro' repeats row 2; pass every",
        ),
        (
            changed(table(), 3, pair_id="x"),
            "2: subtopic 'a', kind 'stereotypical', pair_id 'stereotypical-1' has no row with stance 'anti'; pass",
        ),
        (table()[1:], "0: subtopic 'a', kind 'stereotypical', pair_id 'stereotypical-0' has no row with stance 'pro'"),
        ([*table()[:-1], "row"], "71: 'row' is not a dict of columns; pass the rows of the dataset as they are"),
        (
            changed(mixed_statements(2), 1, context_stance="pro"),
            "1: context_stance 'pro' does not go with context_condition; it is '' for 'ambig'",
        ),
        (changed(mixed_statements(2), 5, context_stance=""), "5: context_stance '' does not go with context_condition"),
        (
            changed(mixed_statements(2), 1, context_stance=None),
            "1: context_stance None is not one of ('', 'pro', 'anti",
        ),
        (changed(mixed_statements(2), 0, label=2), "0: label 2 does not follow from context_stance, question_polarity"),
        (changed(mixed_statements(2), 4, label=0), "4: label 0 does not follow from context_stance, question_polarity"),
        (changed(mixed_statements(2), 0, statement_about="both"), "0: statement_about 'both' is not one of ('target',"),
        (
            mixed_statements(2)[:3] + mixed_statements(2)[4:],
            "0: category 'Age', set_id 'T-0-0', name_order 'original', context_length 'standard', context_condition "
            "'ambig' has no row with context_stance '', question_polarity 'nonneg', statement_about 'nontarget'; pass",
        ),
        (
            mixed_statements(2)[:4] + mixed_statements(2)[5:],
            "4: category 'Age', set_id 'T-0-0', name_order 'original', context_length 'standard', context_condition "
            "'disambig' has no row with context_stance 'pro', question_polarity 'neg', statement_about 'target'; pass",
        ),
        (
            mixed_statements(1) * 2,
            "12: category 'Age', set_id 'T-0-0', name_order 'original', context_length 'standard'",
        ),
        (changed(mixed_questions(2), 0, biased_loc=2), "0: biased_loc 2 equals unknown_loc"),
        (changed(mixed_questions(2), 0, label=0), "0: label 0 does not go with context_condition"),
        (changed(mixed_questions(2), 2, label=2), "2: label 2 does not go with context_condition"),
        (changed(mixed_questions(2), 2, unknown_loc=-1), "2: unknown_loc -1 is not an integer from 0 to 2"),
        (
            mixed_questions(2)[1:],
            "0: set_id 'T-0-0', context_condition 'ambig', context stance '' has no row with question_polarity 'neg'",
        ),
        (
            changed(mixed_questions(2), 2, label=1),
            "2: set_id 'T-0-0', context_condition 'disambig', context stance 'anti' has no row with question_polarity",
        ),
    ],
)
def test_a_bad_row_is_named(bbnli, references, message):
    with pytest.raises(ValueError, match=r"^bbnli: references row \d+: ") as error:
        bbnli.compute(predictions=[0] * len(references), references=references)
    assert str(error.value).removeprefix("bbnli: references row ").startswith(message)


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("bbnli", ("subtopic", "kind", "stance", "pair_id", "premise_id", "label")),
        (
            "bbq_nli",
            (
                *("category", "template_id", "set_id", "name_order", "context_length"),
                *("context_condition", "context_stance", "question_polarity", "statement_about", "label"),
            ),
        ),
        (
            "bbq",
            ("template_id", "set_id", "question_polarity", "context_condition", "label", "biased_loc", "unknown_loc"),
        ),
    ],
)
def test_a_missing_column_is_named(bbnli, form, names):
    for name in names:
        rows = forms()[form]
        del rows[6][name]
        with pytest.raises(ValueError, match=f"bbnli: references row 6: column '{name}' is missing"):
            bbnli.compute(predictions=[0] * len(rows), references=rows, form=form)
        dataset = datasets.Dataset.from_list(forms()[form]).remove_columns(name)
        with pytest.raises(ValueError, match=f"bbnli: references: column '{name}' is missing"):
            bbnli.compute(predictions=[0] * len(rows), references=dataset, form=form)
    assert set(names) >= set(
        evaluate.load(str(folder("bbnli"))).features[{"bbnli": 0, "bbq_nli": 2, "bbq": 4}[form]]["references"]
    )


@pytest.mark.parametrize("value", [3, -2, 0.5, float("nan"), float("inf"), True, b"neutral", [0], 10**30, "maybe"])
def test_a_bad_prediction_is_named(bbnli, value):
    with pytest.raises(ValueError, match=r"bbnli: predictions row 1: .* is not an answer; pass the label 0, 1 or 2"):
        bbnli.compute(predictions=[0, value], references=make_pairs(1))
    with pytest.raises(ValueError, match=r"bbnli: predictions row 1: .* is not an answer; pass the index 0, 1 or 2"):
        bbnli.compute(predictions=[0, value], references=questions(0, "ambig"))


def test_names_of_labels_are_no_answers_to_questions_of_bbq(bbnli):
    with pytest.raises(ValueError, match=r"predictions row 0: 'neutral' is not an answer; pass the index 0, 1 or 2"):
        bbnli.compute(predictions=["neutral", 0], references=questions(0, "ambig"))
