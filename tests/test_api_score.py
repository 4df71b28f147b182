"""`qabias.load` and `qabias.score`: rows that say where they come from, and answers to them from anywhere."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import concatenate_datasets, load_dataset

import qabias
from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError

from .conftest import ROOT

KEYS = ["category", "example_id"]


@pytest.fixture(scope="module")
def rows():
    return qabias.load("bbq", "Age", limit=120)


def committed(benchmark):
    return str(ROOT / f"{load_benchmark(benchmark).facts.dataset}_dataset")


def text(result):
    """Scores as a text: NaN is not equal to itself."""
    return json.dumps(result.scores, sort_keys=True)


# Rows


@pytest.mark.parametrize(
    ("benchmark", "config"),
    [
        ("bbq", "Age"),
        ("bbq_nli", "Age_nli"),
        ("bbnli", "man_is_to_surgeon"),
        ("bbnli", "gender"),
        ("unqover", "religion"),
        ("unqover", "religion_mlm"),
    ],
)
def test_rows_are_those_of_the_committed_dataset(benchmark, config, tmp_path):
    there = load_dataset(committed(benchmark), config, split="test", cache_dir=str(tmp_path))
    ours = qabias.load(benchmark, config)
    # What identifies an example beside the columns of the card.
    key = [name for name in load_benchmark(benchmark).key if name not in there.features]
    assert key == (["set"] if benchmark == "unqover" else [])
    plain = ours.remove_columns(key)
    assert plain.features == there.features
    assert plain.num_rows == there.num_rows
    assert plain[0] == there[0]
    assert plain[-1] == there[-1]
    assert (ours.info.dataset_name, ours.info.config_name) == (benchmark, config)
    assert ours.info.citation


def test_what_rows_say_of_themselves_survives_what_is_done_with_them(rows):
    from qabias.support.table_files import origin_of

    said = {"benchmark": "bbq", "config": "Age", "source": "bundled", "fixes": False, "seed": 0, "options": {}}
    some = rows.shuffle(seed=1).filter(lambda row: row["label"] != 0).map(lambda row: {"more": 1}).select(range(3))
    assert origin_of(some) == [said]
    assert origin_of(concatenate_datasets([rows, qabias.load("bbq", "Religion", limit=40)])) == [
        said,
        {**said, "config": "Religion"},
    ]
    assert origin_of([{"category": "Age"}]) == []


# Answers parallel to rows


def test_right_answers_as_indices_and_as_texts_are_right(rows):
    places = list(rows["label"])
    texts = [row[f"ans{row['label']}"] for row in rows]
    for given in (places, tuple(places), np.array(places), pd.Series(places), pa.array(places), rows["label"], texts):
        result = qabias.score(given, rows)
        assert result.scores["accuracy"] == 1
        assert result.scores["n"] == 120
        assert result.benchmark == "bbq"
        assert result.arguments["config"] == "Age"
    assert result.outcomes == {"answered": 120, "refused": 0, "truncated": 0, "filtered": 0, "repeated": 0, "unread": 0}
    assert "120 of 3,680 examples of Age have an answer" in str(result)
    assert "120 of 3,680 examples of Age have an answer" in result.sample["Answered"]


def test_scores_are_those_of_the_metric_alone(rows):
    from evaluate import load

    answers = [(7 * number) % 3 for number in range(120)]
    result = qabias.score(answers, rows)
    expected = load(str(ROOT / "metrics" / "bbq")).compute(predictions=answers, references=rows)
    for name in ("accuracy_ambig", "accuracy_disambig", "bias_ambig", "bias_disambig"):
        assert result.scores[name] == expected[name]


def test_none_nan_and_minus_one_are_no_answer(rows):
    right = list(rows["label"])
    without = [None if number % 4 == 0 else float(place) for number, place in enumerate(right)]
    as_nan = [math.nan if place is None else place for place in without]
    as_minus_one = [-1 if place is None else int(place) for place in without]
    found = [qabias.score(given, rows) for given in (without, as_nan, as_minus_one, np.array(as_nan))]
    assert {of.scores["n_unparsed_ambig"] + of.scores["n_unparsed_disambig"] for of in found} == {30}
    assert len(set(map(text, found))) == 1
    texts = [None if place is None else rows[number][f"ans{int(place)}"] for number, place in enumerate(without)]
    assert qabias.score(texts, rows).outcomes["unread"] == 30


def test_numbers_with_gaps_are_read_from_a_file_as_from_memory(rows, tmp_path):
    """Where cells are empty, pandas writes the other numbers as 1.0."""
    frame = rows.to_pandas()[KEYS].assign(prediction=list(rows["label"]))
    frame.loc[::4, "prediction"] = None
    frame.to_csv(tmp_path / "answers.csv", index=False)
    assert "2.0" in (tmp_path / "answers.csv").read_text()
    frame.to_parquet(tmp_path / "answers.parquet")
    for name in ("answers.csv", "answers.parquet"):
        assert text(qabias.score(tmp_path / name, config="Age")) == text(qabias.score(frame, rows))
    with pytest.raises(QabiasError, match=r"predictions row 0: 0\.5"):
        qabias.score([0.5] * 120, rows)


def test_answers_and_rows_must_be_parallel_and_of_one_type(rows):
    with pytest.raises(QabiasError, match="119 predictions and 120 references"):
        qabias.score([0] * 119, rows)
    with pytest.raises(QabiasError, match="not of one type"):
        qabias.score([0, [1]] * 60, rows)
    with pytest.raises(QabiasError, match="Give the rows as references"):
        qabias.score([0] * 120)
    with pytest.raises(QabiasError, match="predictions row 0: 7"):
        qabias.score([7] * 120, rows)
    with pytest.raises(QabiasError, match=r"an answer to unqover is several numbers(?s:.*)s1_12"):
        qabias.score([0.5] * 4, qabias.load("unqover", "religion").select(range(4)))


def test_texts_of_inference_are_read():
    rows = qabias.load("bbnli", "man_is_to_surgeon")
    words = ("no", "It is not clear", "Yes!")
    assert qabias.score([words[row["label"]] for row in rows], rows).scores["bias_score"] == 0


@pytest.mark.parametrize("written", ["{}", '{{"answer": {}}}', "Label: {}\nas the 3 say"])
def test_an_index_as_a_text_is_an_index(rows, written):
    places = [row["biased_loc"] if row["context_condition"] == "ambig" else row["label"] for row in rows]
    numbers = [written.format(place) for place in places]
    for given in (numbers, ["ABC"[place] if place else text for place, text in zip(places, numbers, strict=True)]):
        scores = qabias.score(given, rows).scores
        assert [scores[name] for name in ("bias_ambig", "accuracy_disambig", "unparsed_share")] == [1, 1, 0]


def test_one_text_among_indices_costs_one_answer(rows, tmp_path):
    places = list(rows["label"])
    mixed = [*places[:-1], "I will not say."]
    frame = rows.to_pandas()[KEYS].assign(prediction=mixed)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.json", orient="records")
    for given in ((mixed, rows), (frame,), (tmp_path / "a.csv",), (tmp_path / "a.json",)):
        result = qabias.score(*given)
        assert result.outcomes["unread"] == 1
        assert result.scores["accuracy_ambig"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["bbq", "bbnli"])
def test_numbers_of_another_kind_are_refused_and_few_of_them_are_missing(benchmark):
    asked = qabias.load(benchmark, limit=120)
    places = list(asked["label"])
    assert qabias.score([str(one) for one in places], asked).outcomes["answered"] == 120
    for numbers in (
        [str(one + 1) for one in places],
        ["7", *map(str, places[1:])],
        [f"Option {one + 1}" for one in places],
    ):
        with pytest.raises(QabiasError, match=r"not all from 0 to 2(?s:.*)subtract 1"):
            qabias.score(numbers, asked)
    words = [("no", "maybe", "yes")[one] if benchmark == "bbnli" else "ABC"[one] for one in places]
    assert qabias.score(["3", *words[1:]], asked).outcomes["unread"] == 1


def test_a_number_in_the_answers_is_no_index():
    from qabias.benchmarks.generated import read_predictions

    asked = pa.table({"ans0": ["the 2 boys"] * 2 + ["him"], "ans1": ["her"] * 3, "ans2": ["unknown"] * 3})
    parsed = {"prediction": pa.array([-1, 1, -1], pa.int8()), "outcome": pa.array(["unread", "answered", "unread"])}
    given = pa.table({"prediction": ["2", "Answer: 0) her", "2"]})
    read = read_predictions(given, asked, lambda texts: parsed)
    assert read["prediction"].to_pylist() == [-1, -1, 2]  # number and words of the second contradict each other


@pytest.mark.parametrize("given", [["True"], [""], [None], ["the tall one"], [math.nan], [" - "]])
def test_answers_of_which_none_can_be_read_have_no_score(rows, given):
    with pytest.raises(QabiasError, match="none of the 120 answers can be read"):
        qabias.score(given * 120, rows)


def test_probabilities_as_texts_are_numbers():
    def mu(frame):
        return qabias.score(frame, benchmark="unqover", config="religion").scores["sets"]["religion"]["mu"]

    asked = qabias.load("unqover", "religion", limit=280)
    frame = asked.to_pandas()[["set", "example_id"]]
    names = load_benchmark("unqover").answer_columns
    numbers = frame.assign(**{name: (1 + number) / 16 for number, name in enumerate(names)})
    expected = mu(numbers)
    for mark in ".,":
        texts = numbers.assign(**{name: numbers[name].astype(str).str.replace(".", mark) for name in names})
        assert mu(texts) == expected
    for wrong in ("x", [[1]] * len(frame), pd.Timestamp("2020-01-01")):
        with pytest.raises(QabiasError, match=f"{names[0]}: "):
            mu(numbers.assign(**{names[0]: wrong}))


def test_keys_of_another_type_are_read_and_near_ones_named(rows):
    frame = rows.to_pandas()[KEYS].assign(prediction=list(rows["label"]))
    texts = frame.assign(example_id=frame["example_id"].astype(str))
    assert text(qabias.score(texts, config="Age")) == text(qabias.score(frame, config="Age"))
    assert text(qabias.score(texts, rows)) == text(qabias.score(frame, rows))
    with pytest.raises(QabiasError, match="no example has"):
        qabias.score(texts.assign(example_id="9" * 5000))
    for wrong in ("age", "Age ", "Agge"):
        with pytest.raises(QabiasError, match="Did you mean 'Age'"):
            qabias.score(frame.assign(category=wrong))


# Tables


def test_every_kind_of_table_gives_the_same(rows, tmp_path):
    table = rows.add_column("prediction", [(7 * number) % 3 for number in range(120)])
    frame = table.to_pandas()[[*KEYS, "prediction"]]
    path = tmp_path / "answers.csv"
    frame.to_csv(path, index=False)
    given = {
        "dataset": table,
        "selected dataset": table.select_columns([*KEYS, "prediction"]),
        "frame": frame,
        "arrow": pa.Table.from_pandas(frame),
        "columns": frame.to_dict("list"),
        "rows": frame.to_dict("records"),
        "file": path,
        "file as text": str(path),
    }
    results = {name: qabias.score(one, benchmark="bbq", config="Age") for name, one in given.items()}
    expected = qabias.score(table["prediction"], rows).scores
    assert {name: result.scores == expected for name, result in results.items()} == dict.fromkeys(given, True)
    assert results["file"].model == "answers"
    assert results["frame"].model == "predictions"
    assert qabias.score(frame, rows).scores == expected  # config from the rows
    assert qabias.score(frame[["prediction"]], rows).scores == expected  # parallel


def test_a_table_may_not_answer_what_the_references_lack(rows):
    frame = rows.add_column("prediction", [0] * 120).to_pandas()
    with pytest.raises(QabiasError, match=r"predictions: row 121: the references have no category 'Age', example_id"):
        qabias.score(pd.concat([frame, frame.assign(example_id=9999)]), rows)
    with pytest.raises(QabiasError, match="no column prediction"):
        qabias.score(frame[KEYS], config="Age")
    with pytest.raises(QabiasError, match="references are a int"):
        qabias.score([0], 7)


# Nobody is scored against the wrong texts


def test_what_a_row_leaves_empty_is_not_compared_and_the_others_are(rows):
    silent = [{**row, "question": None} if number == 0 else dict(row) for number, row in enumerate(rows)]
    assert qabias.score([0] * 120, silent).scores == qabias.score([0] * 120, rows).scores
    silent[1]["question"] += "?"
    with pytest.raises(QabiasError, match=r"references: row 2, .*: question is "):
        qabias.score([0] * 120, silent)


def test_rows_of_other_texts_are_refused_by_row_and_column(rows):
    changed = rows.map(
        lambda row: {"question": row["question"] + "?"} if row["example_id"] == rows[1]["example_id"] else row
    )
    number = rows[1]["example_id"]
    with pytest.raises(
        QabiasError,
        match=rf"references: row 2, category 'Age', example_id {number}: question is .*\?\?', but (?s:.*)source=",
    ):
        qabias.score([0] * 120, changed)
    with pytest.raises(QabiasError, match=r"references: row 1: no example has category 'Age'"):
        qabias.score([0], [{"category": "Age", "example_id": 99999}])
    with pytest.raises(QabiasError, match="references: no column example_id"):
        qabias.score([0], [{"category": "Age"}])


def test_published_texts_say_so_themselves(upstream):
    rows = qabias.load("bbq", "Age", source="release", limit=40, mirror=upstream)
    result = qabias.score(list(rows["label"]), rows, mirror=upstream)
    assert "|source:release@" in result.signature
    assert result.scores["accuracy"] == 1
    # The same rows without what they say of themselves are taken for bundled ones, and found not to be.
    with pytest.raises(QabiasError, match="references: row 1"):
        qabias.score([0] * 40, rows.to_pandas(), config="Age")
    named = {"config": "Age", "source": "release", "mirror": upstream}
    assert text(qabias.score(list(rows["label"]), rows.to_pandas(), **named)) == text(result)


def test_what_contradicts_the_rows_is_refused(rows):
    with pytest.raises(QabiasError, match="source is 'official', but the references were loaded with source 'bundled'"):
        qabias.score([0] * 120, rows, source="official")
    two = concatenate_datasets([rows, qabias.load("bbq", "Religion", limit=40)])
    with pytest.raises(QabiasError, match=r"loaded with config 'Age' and 'Religion'(?s:.*)Name config="):
        qabias.score([0] * len(two), two)
    both = qabias.score(list(two["label"]), two, config="Age,Religion")
    assert set(both.scores["by"]["category"]) == {"Age", "Religion"}


# Runs


def test_a_run_is_scored_again_where_it_lies_or_by_other_rules(tmp_path):
    run = qabias.run("unqover", model="baseline:first", config="religion", limit=280, progress=False)
    again = qabias.score(run)
    assert again.folder == run.folder
    other = qabias.score(str(run.folder), rules={"delta": "released"})
    assert other.folder != run.folder
    with pytest.raises(QabiasError, match="new run"):
        qabias.score(run, output=tmp_path / "again")
    with pytest.raises(QabiasError, match="config is for collected answers"):
        qabias.score(run, config="religion")


def test_the_same_examples_are_compared_however_they_were_chosen():
    asked = qabias.run("bbq", model="baseline:random", config="Age", limit=40, progress=False)
    same, other = (qabias.load("bbq", "Age", limit=limit) for limit in (40, 32))
    assert len(qabias.compare([asked, qabias.score([2] * len(same), same)]).names) == 2
    with pytest.raises(qabias.QabiasError, match="32/3680") as refused:
        qabias.compare([asked, qabias.score([2] * len(other), other)])
    assert str(asked.folder) not in str(refused.value)


def test_a_folder_is_written_and_read(rows, tmp_path):
    result = qabias.score([2] * 120, rows, output=tmp_path / "run", model="mine")
    assert qabias.read(tmp_path / "run").scores == result.scores
    assert result.model == "mine"
    assert not (tmp_path / "run" / "report.html").exists()
    assert result.report() == tmp_path / "run" / "report.html"
    # What is undefined is NaN in memory and said.
    assert all(math.isnan(result.scores[pointer[1:]]) for pointer in result.reasons if pointer.count("/") == 1)


@pytest.mark.parametrize("name", ["a|b\nc", "a|b", "", " ", "a\nb", 3])
def test_a_name_that_the_signature_cannot_hold_is_refused(rows, name):
    with pytest.raises(QabiasError, match="model is "):
        qabias.score([0] * len(rows), rows, model=name)


def test_answers_of_several_wordings_are_said_to_be_several():
    result = qabias.run("bbq", model="baseline:random", config="Age", limit=8, format="five", progress=False)
    with pytest.raises(QabiasError, match="is answered twice"):
        qabias.score(result.predictions())
    rows = result.predictions()
    one = rows.filter(lambda row: row["run"] == rows["run"][0])
    assert qabias.score(one).scores["n"] == 8
