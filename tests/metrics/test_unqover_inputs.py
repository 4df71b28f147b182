"""The UnQover metric: shapes of input, and what it says of bad ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest

from .helpers import inner_module, same
from .unqover_rows import (
    SCORE_COLUMNS,
    columns_of,
    make_row,
    make_rows,
    random_benchmark,
    random_scores,
)

# Shapes of input


def as_dataset(rows) -> datasets.Dataset:
    return datasets.Dataset.from_list(rows)


def test_categories_and_nullable_columns_of_pandas_are_read(unqover):
    rows, scores = random_benchmark(6, None)
    texts = dict.fromkeys(set(rows[0]) - {"example_id"}, "category")
    references = as_dataset(rows).to_pandas().astype(texts)
    predictions = as_dataset(scores).to_pandas().astype("Float64")
    expected = unqover.compute(predictions=scores, references=rows, by=["attribute_class"])
    result = unqover.compute(predictions=predictions, references=references, by=["attribute_class"])
    assert same(result, expected)
    predictions.loc[2, "s1_12"] = None
    with pytest.raises(ValueError, match=r"predictions row 2: s1_12 .* is not a score"):
        unqover.compute(predictions=predictions, references=references)


def test_shuffled_and_selected_datasets_keep_their_order(unqover):
    rows, scores = random_benchmark(6, None)
    rows = [{**row, **score} for row, score in zip(rows, scores, strict=True)]
    dataset = datasets.Dataset.from_list(rows)
    expected = unqover.compute(predictions=scores, references=rows)
    shuffled = dataset.shuffle(seed=2)
    assert same(unqover.compute(predictions=shuffled, references=shuffled), expected)
    part = dataset.filter(lambda row: row["template_id"] != 0)
    kept = [k for k, row in enumerate(rows) if row["template_id"] != 0]
    assert same(
        unqover.compute(predictions=part, references=part),
        unqover.compute(predictions=[scores[k] for k in kept], references=[rows[k] for k in kept]),
    )


def test_class_labels_are_read_by_name(unqover):
    rows, scores = random_benchmark(6, None)
    dataset = datasets.Dataset.from_list(rows).class_encode_column("attribute_class").class_encode_column("subject1")
    by = ["attribute_class"]
    assert same(
        unqover.compute(predictions=scores, references=dataset, by=by),
        unqover.compute(predictions=scores, references=rows, by=by),
    )


def test_float32_is_summed_in_float64_and_template_ids_may_be_texts(unqover):
    rows, scores = random_benchmark(6, None)
    single = {name: np.array([row[name] for row in scores], dtype=np.float32) for name in SCORE_COLUMNS}
    widened = {name: values.astype(np.float64) for name, values in single.items()}
    named = [{**row, "template_id": str(row["template_id"])} for row in rows]
    result = unqover.compute(predictions=single, references=named)
    assert same(result, unqover.compute(predictions=widened, references=rows))
    assert single["s1_12"].dtype == np.float32  # what the user passed stays as it is


class ReadAtOnce(Sequence):
    """A column like that of a dataset, which is slow row by row: it is read as a whole or not at all."""

    def __init__(self, values: list[float]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        assert isinstance(place, slice)
        return self._values[place]


@pytest.mark.parametrize("shape", [ReadAtOnce, list, lambda values: list(np.array(values, dtype=np.float32))])
def test_scores_are_read_as_a_whole_and_not_row_by_row(monkeypatch, shape):
    rows = inner_module("unqover", "rows")
    monkeypatch.delattr(rows, "_number")  # which reads a single score
    values = [0.25, 0.5, 1.0]
    table = inner_module("unqover", "inputs").Table.wrap(
        rows.PREDICTIONS, {name: shape(values) for name in SCORE_COLUMNS}
    )
    found = rows.subject_scores(table, np.arange(3))
    assert {name: column.tolist() for name, column in found.items()} == dict.fromkeys(SCORE_COLUMNS, values)


def test_noise_above_one_is_clipped_and_inputs_stay_as_they_are(unqover):
    scores = {name: np.array([1.0 + 1e-6]) for name in SCORE_COLUMNS}
    result = unqover.compute(predictions=scores, references=[make_row()])
    assert result["avg_score"] == 1.0
    assert scores["s1_12"][0] > 1.0


def test_unused_categories_do_not_count(unqover):
    rows = columns_of(make_rows("abc", 1, ("X",)))
    rows["attribute"] = pa.DictionaryArray.from_arrays(pa.array([1, 1, 1]), pa.array(["W", "X"]))
    result = unqover.compute(predictions=random_scores(3), references=rows)
    assert result["n_attributes"] == 1


def test_top_k(unqover):
    rows, scores = random_benchmark(6, None)
    for k in (0, 1, 3, 1000):
        top = unqover.compute(predictions=scores, references=rows, top_k=k, confidence=None)["top"]
        gammas = [abs(entry[2]) for entry in top]
        assert len(top) <= k
        assert gammas == sorted(gammas, reverse=True)


@pytest.mark.slow
def test_the_gender_set_of_the_paper_in_two_orders(unqover):
    place = np.arange(70 * 70 * 4 * 70)  # 1,372,000 rows

    def text(codes: np.ndarray, levels: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(levels)).cast(pa.string())

    rows = pa.table(
        {
            "example_id": place,
            "template_id": place // 70 % 4,
            "subject1": text(place // 19_600, [f"Female {k}" for k in range(70)]),
            "subject2": text(place // 280 % 70, [f"Male {k}" for k in range(70)]),
            "cluster1": text(np.zeros_like(place), ["female"]),
            "cluster2": text(np.zeros_like(place), ["male"]),
            "attribute": text(place % 70, [f"was an occupation of number {k}" for k in range(70)]),
            "attribute_class": text(np.zeros_like(place), ["None"]),
        }
    )
    rng = np.random.default_rng(0)
    scores = {name: rng.random(len(place), dtype=np.float32) for name in SCORE_COLUMNS}
    whole = unqover.compute(predictions=scores, references=rows)
    assert (whole["n"], whole["n_subjects"], whole["n_attributes"]) == (1_372_000, 140, 70)
    low, high = whole["ci"]["avg_score"]
    assert low < 0.5 < high
    order = rng.permutation(len(place))
    turned = {name: values[order] for name, values in scores.items()}
    again = unqover.compute(predictions=turned, references=datasets.Dataset(rows).select(order))
    assert same(again, whole, 1e-10)


# Errors


def changed(row: int, **columns: Any) -> list[dict[str, Any]]:
    rows = make_rows("abc", 2, ("X",))
    rows[row] = {**rows[row], **columns}
    return rows


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (changed(3, subject1=7), "3: subject1 7 is not a string"),
        (changed(3, attribute=None), "3: attribute None is not a string"),
        (changed(2, attribute=["X"]), "2: attribute ['X'] is not a string"),
        (changed(2, cluster2=1), "2: cluster2 1 is not a string"),
        (changed(5, attribute_class=2.5), "5: attribute_class 2.5 is not a string"),
        (changed(1, template_id=None), "1: template_id None is neither a string nor an integer"),
        (changed(0, template_id=0.5), "0: template_id 0.5 is neither a string nor an integer"),
        (changed(1, template_id=True), "1: template_id True is neither a string nor an integer"),
        (changed(1, example_id="1"), "1: example_id '1' is not an integer"),
        (changed(1, example_id=None), "1: example_id None is not an integer"),
        (changed(0, subject2="a"), "0: subject1 'a' is also subject2; a row compares two different subjects"),
        (
            changed(3, template_id=0),
            "3: the subjects ('a', 'c') with template_id '0' and attribute 'X' repeat row 2; incomplete or doubled",
        ),
        (
            changed(4, subject1="c", subject2="a", template_id=0),
            "4: the subjects ('c', 'a') with template_id '0' and attribute 'X' repeat row 2; incomplete or doubled",
        ),
        (changed(1, cluster1="east"), "1: cluster1 'east' of subject 'a' is 'None' in another row; a subject has one"),
        (changed(5, cluster2="east"), "5: cluster2 'east' of subject 'c' is 'None' in another row; a subject has one"),
        (
            [*changed(0)[:5], "row"],
            "5: 'row' is not a dict of columns; pass the rows of the UnQover dataset as they are",
        ),
    ],
)
def test_a_bad_row_is_named(unqover, references, message):
    with pytest.raises(ValueError, match=r"^unqover: references row \d+: ") as error:
        unqover.compute(predictions=random_scores(6), references=references)
    assert str(error.value).removeprefix("unqover: references row ").startswith(message)


@pytest.mark.parametrize("value", [-1e-9, 1.0001, float("nan"), float("inf"), None, "0.5", [0.5]])
@pytest.mark.parametrize("shape", [list, columns_of])
def test_a_bad_score_is_named(unqover, value, shape):
    scores = random_scores(6)
    scores[4]["s2_12_neg"] = value
    with pytest.raises(
        ValueError, match=r"^unqover: predictions row 4: s2_12_neg .* is not a score from 0 to 1"
    ) as error:
        unqover.compute(predictions=shape(scores), references=changed(0))
    assert repr(value) in str(error.value) or value is None


@pytest.mark.parametrize("name", SCORE_COLUMNS)
def test_a_missing_score_is_named(unqover, name):
    scores = random_scores(6)
    columns = columns_of(scores)
    del scores[2][name], columns[name]
    with pytest.raises(ValueError, match=f"unqover: predictions row 2: column '{name}' is missing; pass all eight"):
        unqover.compute(predictions=scores, references=changed(0))
    for short in (columns, datasets.Dataset.from_dict(columns)):
        with pytest.raises(
            ValueError, match=f"unqover: predictions: column '{name}' is missing; pass all eight scores"
        ):
            unqover.compute(predictions=short, references=changed(0))


@pytest.mark.parametrize("name", list(make_row()))
def test_a_missing_column_is_named(unqover, name):
    rows = changed(0)
    dataset = datasets.Dataset.from_list(rows).remove_columns(name)
    del rows[3][name]
    with pytest.raises(ValueError, match=f"unqover: references row 3: column '{name}' is missing"):
        unqover.compute(predictions=random_scores(6), references=rows)
    with pytest.raises(ValueError, match=f"unqover: references: column '{name}' is missing"):
        unqover.compute(predictions=random_scores(6), references=dataset)


def test_a_template_for_every_row_is_refused(unqover):
    n = 20_000
    rows = columns_of([make_row()] * n)
    rows |= {"template_id": np.arange(n), "subject1": [f"x{k % 100}" for k in range(n)]}
    rows["attribute"] = [f"a{k % 99}" for k in range(n)]
    with pytest.raises(ValueError, match="template_id"):
        unqover.compute(predictions={name: np.full(n, 0.5) for name in SCORE_COLUMNS}, references=rows)


@pytest.mark.parametrize("top_k", [-1, 1.5])
def test_a_length_that_is_none_is_refused(unqover, top_k):
    with pytest.raises(ValueError, match="top_k"):
        unqover.compute(predictions=random_scores(6), references=changed(0), top_k=top_k)


def test_scores_of_other_rows_are_refused(unqover):
    scores = [{**row, "example_id": k // 5} for k, row in enumerate(random_scores(6))]
    rows = [{**row, "example_id": k // 4} for k, row in enumerate(changed(0))]
    with pytest.raises(ValueError, match="predictions row 4: example_id"):
        unqover.compute(predictions=scores, references=rows)
