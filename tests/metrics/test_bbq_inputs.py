"""The BBQ metric: kinds of input, and what it says of bad ones."""

from __future__ import annotations

from typing import Any

import datasets
import numpy as np
import pytest
import torch

from .bbq_rows import table
from .helpers import inner_module, same

# Kinds of input


def test_batches_of_mixed_kinds_add_up_to_one_call(bbq):
    rows = [{**row, "context": "unread"} for row in table()]
    predictions = np.random.default_rng(4).integers(0, 3, len(rows)).tolist()
    expected = bbq.compute(predictions=predictions, references=rows)
    dataset = datasets.Dataset.from_list(rows)
    bbq.add_batch(predictions=predictions[:10], references=dataset[:10])
    bbq.add_batch(
        predictions=[row[f"ans{p}"] for row, p in zip(rows[10:20], predictions[10:20], strict=True)],
        references=rows[10:20],
    )
    bbq.add_batch(predictions=np.array(predictions[20:30]), references=dataset.select(range(20, 30)))
    bbq.add(prediction=predictions[30], reference=rows[30])
    assert same(bbq.compute(predictions=predictions[31:], references=rows[31:]), expected)
    with pytest.raises(ValueError, match="predictions are missing"):  # the batches are gone once scored
        bbq.compute()


# Errors


def changed(row: int, **columns: Any) -> list[dict[str, Any]]:
    rows = table()
    rows[row] = {**rows[row], **columns}
    return rows


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (changed(17, question_polarity="pos"), "17: question_polarity 'pos' is not one of ('neg', 'nonneg')"),
        (changed(3, context_condition=None), "3: context_condition None is not one of ('ambig', 'disambig')"),
        (changed(5, category=7), "5: category 7 is not a string"),
        (changed(5, set_id=None), "5: set_id None is not a string"),
        (changed(0, label=3), "0: label 3 is not an integer from 0 to 2"),
        (changed(0, label=-1), "0: label -1 is not an integer from 0 to 2"),
        (changed(1, unknown_loc=-1), "1: unknown_loc -1 is not an integer from 0 to 2"),
        (changed(1, biased_loc=-2), "1: biased_loc -2 is not an integer from -1 to 2"),
        (changed(1, target_loc=float("nan")), "1: target_loc nan is not an integer from -1 to 2"),
        (changed(1, example_id="1"), "1: example_id '1' is not an integer"),
        (changed(0, biased_loc=2), "0: biased_loc 2 equals unknown_loc"),
        (changed(0, target_loc=2), "0: target_loc 2 equals unknown_loc"),
        (changed(0, biased_loc=-1), "0: biased_loc -1 goes with a target_loc that is not"),
        (changed(0, biased_loc=1), "0: biased_loc 1 differs from target_loc though"),
        (changed(2, biased_loc=0), "2: biased_loc 0 equals target_loc though"),
        (changed(0, label=0), "0: label 0 differs from unknown_loc though context_condition is 'ambig'"),
        (changed(1, label=2), "1: label 2 equals unknown_loc though context_condition is 'disambig'"),
        (changed(9, example_id=4), "9: example_id 4 of category 'Age' repeats row 4; pass every example once"),
        (changed(3, set_id="x"), "1: set_id 'Age-01-0' has 1 'neg' and 0 'nonneg' rows"),
        ([*table()[:31], "row"], "31: 'row' is not a dict of columns; pass the rows of the BBQ dataset as they are"),
    ],
)
def test_a_bad_row_is_named(bbq, references, message):
    with pytest.raises(ValueError, match=r"^bbq: references row \d+: ") as error:
        bbq.compute(predictions=[0] * 32, references=references)
    assert str(error.value).removeprefix("bbq: references row ").startswith(message)


@pytest.mark.parametrize(
    "name", ["category", "template_id", "set_id", "example_id", "label", "target_loc", "biased_loc"]
)
def test_a_missing_column_is_named(bbq, name):
    rows = table()
    del rows[6][name]
    with pytest.raises(ValueError, match=f"bbq: references row 6: column '{name}' is missing"):
        bbq.compute(predictions=[0] * 32, references=rows)
    dataset = datasets.Dataset.from_list(table()).remove_columns(name)
    with pytest.raises(ValueError, match=f"bbq: references: column '{name}' is missing"):
        bbq.compute(predictions=[0] * 32, references=dataset)


def test_answer_columns_are_needed_for_texts_only(bbq):
    rows = [{name: value for name, value in row.items() if not name.startswith("ans")} for row in table()]
    assert bbq.compute(predictions=[0] * 32, references=rows)["n"] == 32
    with pytest.raises(ValueError, match="column 'ans0' is missing"):
        bbq.compute(predictions=["x"] * 32, references=rows)
    with pytest.raises(ValueError, match="column 'answer_info' is missing"):
        bbq.compute(predictions=["x"] * 32, references=table(), match="released")
    with pytest.raises(ValueError, match=r"row 0: ans1 None is not a string"):
        bbq.compute(predictions=["x"] * 32, references=changed(0, ans1=None))
    broken = [{**row, "answer_info": {"ans0": []}} for row in table()]
    with pytest.raises(ValueError, match=r"row 0: answer_info .* is not a dict from ans0, ans1, ans2"):
        bbq.compute(predictions=["x"] * 32, references=broken, match="released")


@pytest.mark.parametrize("value", [3, -2, 0.5, float("nan"), float("inf"), True, b"The grandson", [0], 10**30])
def test_a_bad_prediction_is_named(bbq, value):
    predictions: list[Any] = [0] * 32
    predictions[4] = value
    with pytest.raises(ValueError, match=r"bbq: predictions row 4: .* is not an answer; pass the index 0, 1 or 2"):
        bbq.compute(predictions=predictions, references=table())


@pytest.mark.parametrize("row", [np.array, lambda values: list(np.array(values)), torch.tensor])
def test_kinds_of_probabilities_are_looked_at_once_and_not_for_every_value(monkeypatch, row):
    answers, inputs = (inner_module("bbq", name) for name in ("answers", "inputs"))
    looked_at = []
    monkeypatch.setattr(answers, "is_boolean", looked_at.append)
    rows = [row([0.25, 0.25, 0.5]) for _ in range(100)]
    table = inputs.Table.wrap(answers.PROBABILITIES, {"probabilities": rows})
    assert answers.read_probabilities(table).tolist() == [[0.25, 0.25, 0.5]] * 100
    assert len(looked_at) <= 1


def test_true_among_probabilities_of_any_kind_is_refused():
    answers, inputs = (inner_module("bbq", name) for name in ("answers", "inputs"))
    for wrong in ([True, 0.0, 0.0], [np.True_, 0.0, 0.0], [np.array(True), 0, 0], np.array([True, False, False])):
        for good in ([1.0, 0.0, 0.0], np.array([1.0, 0.0, 0.0])):
            table = inputs.Table.wrap(answers.PROBABILITIES, {"probabilities": [good, good, wrong]})
            with pytest.raises(ValueError, match=r"row 2: .* are not three numbers"):
                answers.read_probabilities(table)
