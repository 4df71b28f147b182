"""The UnQover metric: shapes of input, and what it says of bad ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate
import numpy as np
import pyarrow as pa
import pytest

from .helpers import folder, inner_module, same
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


def as_dictionary_table(rows) -> pa.Table:
    """Strings dictionary-encoded in two chunks with dictionaries of their own."""
    halves = [pa.Table.from_pylist(part) for part in (rows[:7], rows[7:])]
    encoded = [
        pa.table(
            {
                n: c.dictionary_encode() if pa.types.is_string(c.type) else c
                for n, c in zip(t.column_names, t.columns, strict=True)
            }
        )
        for t in halves
    ]
    return pa.concat_tables(encoded)


@pytest.mark.parametrize(
    "shape",
    [
        columns_of,
        as_dataset,
        pa.Table.from_pylist,
        as_dictionary_table,
        tuple,
        lambda rows: {name: np.array(values) for name, values in columns_of(rows).items()},
        lambda rows: {name: np.array(values, dtype=object) for name, values in columns_of(rows).items()},
        lambda rows: as_dataset(rows).to_pandas(),
        lambda rows: {name: as_dataset(rows)[name] for name in rows[0]},
        lambda rows: as_dataset(rows).with_format("numpy"),
        lambda rows: datasets.concatenate_datasets([as_dataset(rows[:5]), as_dataset(rows[5:])]),
        lambda rows: as_dataset([*rows[::-1], *rows]).select([*range(len(rows))][::-1]),
    ],
)
def test_every_shape_of_input_gives_the_same(unqover, shape):
    rows, scores = random_benchmark(6, None)
    rows = [{**row, "context": "not read"} for row in rows]
    expected = unqover.compute(predictions=scores, references=rows, by=["attribute_class"])
    result = unqover.compute(predictions=shape(scores), references=shape(rows), by=["attribute_class"])
    assert same(result, expected)


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


def test_added_batches_give_the_result_of_one_call(unqover):
    rows, scores = random_benchmark(6, None)
    expected = unqover.compute(predictions=scores, references=rows, by=["template_id"])
    buffer = {name: np.array([row[name] for row in scores[:5]]) for name in SCORE_COLUMNS}
    metric = evaluate.load(str(folder("unqover")))
    metric.add_batch(predictions=buffer, references=columns_of(rows[:5]))
    buffer["s1_12"][:] = 0.0  # batches are copies
    metric.add_batch(predictions=as_dataset(scores[5:9]), references=as_dataset(rows[5:9]))
    metric.add(prediction=scores[9], reference=rows[9])
    with pytest.raises(ValueError, match="is not one of"):
        metric.compute(delta="eq2")  # batches survive an error
    assert same(metric.compute(predictions=scores[10:], references=rows[10:], by=["template_id"]), expected)
    with pytest.raises(ValueError, match="predictions are missing"):
        metric.compute()
    metric.add_batch(predictions=scores[:5], references=rows[:5])
    metric.add(prediction=scores[5], reference={k: v for k, v in rows[5].items() if k != "attribute"})
    with pytest.raises(ValueError, match=r"references row 5: column 'attribute' is missing"):
        metric.compute()


def test_result_can_be_written_as_json_and_holds_plain_numbers(unqover):
    rows, scores = random_benchmark(6, None)
    columns = {name: np.array([row[name] for row in scores]) for name in SCORE_COLUMNS}
    result = unqover.compute(predictions=columns, references=rows, by=["template_id"])
    assert same(json.loads(json.dumps(result)), result, 0.0)


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


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (
            random_scores(5),
            changed(0),
            "unqover: 5 predictions but 6 references; pass one prediction per row, in the same",
        ),
        (
            random_scores(6),
            "rows",
            "unqover: references are a str; pass a list of dicts, a dict of columns or a datasets.Dataset",
        ),
        (random_scores(6), {"subject1": "a"}, "unqover: references column 'subject1' is a str; pass one value per row"),
        (random_scores(1)[0], changed(0), "unqover: predictions column 's1_12' is a float; pass one value per row"),
        (
            [0.5] * 6,
            changed(0),
            "unqover: predictions row 0: 0.5 is not a dict of columns; pass all eight scores of each row by",
        ),
        (random_scores(6), {"a": [1], "b": []}, "unqover: references: the columns differ in length ({'a': 1, 'b': 0})"),
        (random_scores(6), None, "unqover: references are missing; pass predictions and references together"),
        (None, changed(0), "unqover: predictions are missing; pass predictions and references together"),
        (
            [{**row, "example_id": k // 5} for k, row in enumerate(random_scores(6))],
            [{**row, "example_id": k // 4} for k, row in enumerate(changed(0))],
            "unqover: predictions row 4: example_id 0 differs from that of the references, 1; pass one prediction",
        ),
        (
            random_scores(6),
            datasets.DatasetDict({"test": datasets.Dataset.from_list(changed(0))}),
            "unqover: references hold the splits ['test']; pass one of them",
        ),
    ],
)
def test_bad_inputs_are_named(unqover, predictions, references, message):
    with pytest.raises(ValueError, match=r"^unqover: ") as error:
        unqover.compute(predictions=predictions, references=references)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("empty", [[], {}, datasets.Dataset.from_dict({})])
def test_limit_empty_input_is_refused(unqover, empty):
    with pytest.raises(
        ValueError, match="unqover: predictions and references are empty; pass dataset rows and a prediction for each"
    ):
        unqover.compute(predictions=[], references=empty)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": "eq2"}, "unqover: delta 'eq2' is not one of ('paper', 'released')"),
        ({"top_k": -1}, "unqover: top_k -1 is not an integer of 0 or more"),
        ({"top_k": 1.5}, "unqover: top_k 1.5 is not an integer of 0 or more"),
        ({"confidence": 95}, "unqover: confidence 95 is not above 0 and below 1"),
        ({"by": ["topic"]}, "unqover: references row 0: column 'topic' is missing"),
        ({"by": [3]}, "unqover: by entry 3 is neither a column name nor a list of column names"),
        ({"by": [[]]}, "unqover: by entry [] is neither"),
        ({"by": "tags"}, "unqover: references row 0: tags ['a'] is not a single value; pass a text or a number"),
    ],
)
def test_bad_options_are_named(unqover, options, message):
    rows = [{**row, "tags": ["a"]} for row in changed(0)]
    with pytest.raises(ValueError, match=r"^unqover: ") as error:
        unqover.compute(predictions=random_scores(6), references=rows, **options)
    assert str(error.value).startswith(message)


def test_a_template_for_every_row_is_refused_and_so_are_several_processes(unqover):
    n = 20_000
    rows = columns_of([make_row()] * n)
    rows |= {"template_id": np.arange(n), "subject1": [f"x{k % 100}" for k in range(n)]}
    rows["attribute"] = [f"a{k % 99}" for k in range(n)]
    scores = {name: np.full(n, 0.5) for name in SCORE_COLUMNS}
    with pytest.raises(
        ValueError, match="template_id has 20000 values beside 101 subjects and 99 attributes, too many"
    ):
        unqover.compute(predictions=scores, references=rows)
    several = evaluate.load(str(folder("unqover")), num_process=2, process_id=0, experiment_id="unqover-test")
    with pytest.raises(ValueError, match="num_process 2 is not supported"):
        several.compute(predictions=random_scores(6), references=changed(0))
    with pytest.raises(TypeError, match="unexpected keyword argument 'normalise'"):
        unqover.compute(predictions=random_scores(6), references=changed(0), normalise=True)


def test_module_describes_itself(unqover):
    assert "Li, Tao" in unqover.citation
    assert "Args:" in unqover.inputs_description
    for features in unqover.features:
        assert set(features["references"]) == set(make_row())
        assert tuple(features["predictions"]) == SCORE_COLUMNS
