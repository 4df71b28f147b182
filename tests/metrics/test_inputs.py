"""The metrics: shapes of input, and what each says of bad rows and predictions."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from . import bbnli_rows, bbq_rows
from .bbnli_rows import mixed_questions, mixed_statements, scored
from .helpers import ROOT, folder, same
from .unqover_rows import SCORE_COLUMNS, columns_of, make_row, make_rows, random_benchmark, random_scores

METRICS = {name: evaluate.load(str(folder(name))) for name in ("bbq", "bbnli", "unqover")}
TABLES = {
    "bbq": ("bbq", bbq_rows.table),
    "bbnli": ("bbnli", bbnli_rows.table),
    "bbq_nli": ("bbnli", lambda: mixed_statements(2)),
    "bbq_qa": ("bbnli", lambda: mixed_questions(2)),
    "unqover": ("unqover", lambda: make_rows("abc", 2, ("X",))),
}


def compute(name: str, rows: Any, predictions: Any = None, n: int | None = None, **options: Any) -> Any:
    """The result of a form, for the first answer to all rows."""
    n = len(rows) if n is None else n
    if predictions is None:
        predictions = random_scores(n) if name == "unqover" else [0] * n
    return METRICS[TABLES[name][0]].compute(predictions=predictions, references=rows, **options)


# Bad rows: the form, the row that is changed and how, the row that is named (where it is another), and a word of what
# is said of it

BAD_ROWS = [
    ("bbq", 17, {"question_polarity": "pos"}, 17, "question_polarity 'pos'"),
    ("bbq", 3, {"context_condition": None}, 3, "context_condition None"),
    ("bbq", 5, {"set_id": None}, 5, "set_id None"),
    ("bbq", 0, {"biased_loc": 2}, 0, "biased_loc 2 equals unknown_loc"),
    ("bbq", 0, {"target_loc": 2}, 0, "target_loc 2 equals unknown_loc"),
    ("bbq", 0, {"biased_loc": -1}, 0, "biased_loc -1"),
    ("bbq", 0, {"biased_loc": 1}, 0, "biased_loc 1 differs from target_loc"),
    ("bbq", 2, {"biased_loc": 0}, 2, "biased_loc 0 equals target_loc"),
    ("bbq", 0, {"label": 0}, 0, "label 0 differs from unknown_loc"),
    ("bbq", 1, {"label": 2}, 1, "label 2 equals unknown_loc"),
    ("bbq", 9, {"example_id": 4}, 9, "repeats row 4"),
    ("bbq", 3, {"set_id": "x"}, 1, "set_id 'Age-01-0'"),
    ("bbnli", 3, {"kind": "bias"}, 3, "kind 'bias'"),
    ("bbnli", 3, {"stance": None}, 3, "stance None"),
    ("bbnli", 3, {"label": "unparsed"}, 3, "label 'unparsed'"),
    ("bbnli", 3, {"label": 2}, 3, "kind"),
    ("bbnli", 3, {"stance": "pro"}, 3, "repeats row 2"),
    ("bbnli", 3, {"pair_id": "x"}, 2, "stance 'anti'"),
    ("bbnli", 0, None, 0, "stance 'pro'"),
    ("bbq_nli", 1, {"context_stance": "pro"}, 1, "context_stance 'pro'"),
    ("bbq_nli", 5, {"context_stance": ""}, 5, "context_stance ''"),
    ("bbq_nli", 1, {"context_stance": None}, 1, "context_stance None"),
    ("bbq_nli", 0, {"label": 2}, 0, "label 2"),
    ("bbq_nli", 4, {"label": 0}, 4, "label 0"),
    ("bbq_nli", 0, {"statement_about": "both"}, 0, "statement_about 'both'"),
    ("bbq_nli", 3, None, 0, "question_polarity 'nonneg', statement_about 'nontarget'"),
    ("bbq_nli", 4, None, 4, "context_stance 'pro', question_polarity 'neg', statement_about 'target'"),
    ("bbq_qa", 0, {"biased_loc": 2}, 0, "biased_loc 2 equals unknown_loc"),
    ("bbq_qa", 0, {"label": 0}, 0, "label 0"),
    ("bbq_qa", 2, {"label": 2}, 2, "label 2"),
    ("bbq_qa", 0, None, 0, "question_polarity 'neg'"),
    ("bbq_qa", 2, {"label": 1}, 2, "context stance 'anti'"),
    ("unqover", 3, {"attribute": None}, 3, "attribute None"),
    ("unqover", 1, {"template_id": None}, 1, "template_id None"),
    ("unqover", 1, {"example_id": None}, 1, "example_id None"),
    ("unqover", 0, {"subject2": "a"}, 0, "subject1 'a' is also subject2"),
    ("unqover", 3, {"template_id": 0}, 3, "repeat row 2"),
    ("unqover", 4, {"subject1": "c", "subject2": "a", "template_id": 0}, 4, "repeat row 2"),
    ("unqover", 1, {"cluster1": "east"}, 1, "cluster1 'east'"),
    ("unqover", 5, {"cluster2": "east"}, 5, "cluster2 'east'"),
]


@pytest.mark.parametrize(("name", "row", "change", "named", "word"), BAD_ROWS)
def test_a_bad_row_is_named(name, row, change, named, word):
    rows = TABLES[name][1]()
    rows[row : row + 1] = [] if change is None else [{**rows[row], **change}]
    with pytest.raises(ValueError, match=rf"^{TABLES[name][0]}: references row {named}: ") as error:
        compute(name, rows)
    assert word in str(error.value)


PLACES = {"label": (0, 2), "biased_loc": (-1, 2), "unknown_loc": (0, 2)}
BOUNDS = {
    "bbq": {**PLACES, "target_loc": (-1, 2)},
    "bbq_qa": PLACES,
    "bbnli": {"label": (0, 2), "premise_id": (0, 32767)},
    "bbq_nli": {"label": (0, 2)},
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_out_of_bounds_is_named(name):
    for column, (low, high) in BOUNDS[name].items():
        for value in (low - 1, high + 1):
            rows = TABLES[name][1]()
            rows[2] = {**rows[2], column: value}
            with pytest.raises(ValueError, match=f"row 2: {column} {value} is not (an integer from|one of)"):
                compute(name, rows)


NEEDED = {
    "bbq": {"category", "template_id", "set_id", "example_id", "label", "target_loc", "biased_loc"},
    "bbnli": {"subtopic", "kind", "stance", "pair_id", "premise_id", "label"},
    "bbq_nli": {
        *("category", "template_id", "set_id", "name_order", "context_length", "context_condition"),
        *("context_stance", "question_polarity", "statement_about", "label"),
    },
    "bbq_qa": set(mixed_questions(1)[0]),
    "unqover": set(make_row()),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_missing_column_is_named(name):
    metric, make = TABLES[name]
    options = {"form": {"bbq_qa": "bbq"}.get(name, name)} if metric == "bbnli" else {}
    for column in NEEDED[name]:
        rows = make()
        dataset = datasets.Dataset.from_list(rows).remove_columns(column)
        del rows[3][column]
        for references, where in ((rows, " row 3"), (dataset, "")):
            with pytest.raises(ValueError, match=f"^{metric}: references{where}: column '{column}' is missing"):
                compute(name, references, n=len(rows), **options)
    feature = {"bbq_nli": 2, "bbq_qa": 4}.get(name, 0)
    assert name == "bbq" or NEEDED[name] >= set(METRICS[metric].features[feature]["references"])


# Answers


@pytest.mark.parametrize("name", ["bbq", "bbnli", "bbq_nli", "bbq_qa"])
def test_answers_that_cannot_be_read_are_told_where_the_user_calls(name):
    metric, rows = METRICS[TABLES[name][0]], TABLES[name][1]()
    for unparsed, word in (("wrong", "wrong"), ("exclude", "are excluded")):
        with pytest.warns(UserWarning, match=f"{len(rows)} of {len(rows)} predictions .*{word}") as caught:
            result = metric.compute(predictions=[None] * len(rows), references=rows, unparsed=unparsed)
        assert caught[0].filename == __file__
        assert result["unparsed_share"] == 1.0


def test_unparsed_has_three_spellings():
    rows = bbnli_rows.make_pairs(2)
    results = [scored(METRICS["bbnli"], [2, 0, spelling, 1], rows) for spelling in (None, -1, "unparsed")]
    assert results[0]["n_unparsed"] == 1
    assert all(same(result, results[0]) for result in results)
    frame = datasets.Dataset.from_list(mixed_questions(1))
    assert scored(METRICS["bbnli"], [None, -1, 0, 1], frame)["n_unparsed"] == 2


def test_answer_columns_of_bbq_are_needed_for_texts_only():
    table = bbq_rows.table()
    rows = [{name: value for name, value in row.items() if not name.startswith("ans")} for row in table]
    assert compute("bbq", rows)["n"] == 32
    broken = [{**row, "answer_info": {"ans0": []}} for row in table]
    for references, match, word in (
        (rows, "strict", "ans0"),
        (table, "released", "answer_info"),
        ([{**table[0], "ans1": None}, *table[1:]], "strict", "row 0: ans1 None"),
        (broken, "released", "row 0: answer_info"),
    ):
        with pytest.raises(ValueError, match=word):
            compute("bbq", references, ["x"] * 32, match=match)


# Scores of UnQover


def test_categories_and_nullable_columns_of_pandas_are_read(unqover):
    rows, scores = random_benchmark(6, None)
    texts = dict.fromkeys(set(rows[0]) - {"example_id"}, "category")
    references = datasets.Dataset.from_list(rows).to_pandas().astype(texts)
    predictions = datasets.Dataset.from_list(scores).to_pandas().astype("Float64")
    expected = unqover.compute(predictions=scores, references=rows, by=["attribute_class"])
    result = unqover.compute(predictions=predictions, references=references, by=["attribute_class"])
    assert same(result, expected)
    predictions.loc[2, "s1_12"] = None
    with pytest.raises(ValueError, match=r"predictions row 2: s1_12 .* is not a score"):
        unqover.compute(predictions=predictions, references=references)


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


def test_a_missing_score_is_named(unqover):
    for name in SCORE_COLUMNS:
        scores = random_scores(6)
        columns = columns_of(scores)
        del scores[2][name], columns[name]
        for short, row in ((scores, " row 2"), (columns, ""), (datasets.Dataset.from_dict(columns), "")):
            with pytest.raises(ValueError, match=f"unqover: predictions{row}: column '{name}' is missing"):
                unqover.compute(predictions=short, references=make_rows("abc", 2, ("X",)))


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
        unqover.compute(predictions=random_scores(6), references=make_rows("abc", 2, ("X",)), top_k=top_k)


def test_scores_of_other_rows_are_refused(unqover):
    scores = [{**row, "example_id": k // 5} for k, row in enumerate(random_scores(6))]
    rows = [{**row, "example_id": k // 4} for k, row in enumerate(make_rows("abc", 2, ("X",)))]
    with pytest.raises(ValueError, match="predictions row 4: example_id"):
        unqover.compute(predictions=scores, references=rows)


@pytest.mark.slow
def test_the_gender_set_of_the_paper(unqover):
    [path] = (ROOT / "unqover_dataset" / "data" / "gender").glob("*.parquet")
    rng = np.random.default_rng(0)
    scores = {name: rng.random(1_372_000, dtype=np.float32) for name in SCORE_COLUMNS}
    result = unqover.compute(predictions=scores, references=pq.read_table(path))
    assert (result["n"], result["n_subjects"], result["n_attributes"]) == (1_372_000, 140, 70)
    low, high = result["ci"]["avg_score"]
    assert low < 0.5 < high


@pytest.mark.parametrize("value", [-1e-9, 1.0001, float("nan"), float("inf"), None, "0.5", [0.5]])
@pytest.mark.parametrize("shape", [list, columns_of])
def test_a_bad_score_is_named(unqover, value, shape):
    scores = random_scores(6)
    scores[4]["s2_12_neg"] = value
    with pytest.raises(
        ValueError, match=r"^unqover: predictions row 4: s2_12_neg .* is not a score from 0 to 1"
    ) as error:
        unqover.compute(predictions=shape(scores), references=make_rows("abc", 2, ("X",)))
    assert repr(value) in str(error.value) or value is None
