"""Validation by people: the items they get, and what their ratings are made to say."""

import csv
import json
import math
from collections import Counter

import pytest
from typer.testing import CliRunner

from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.validation.items import FILLER_SHARE, KEY, SHOWN, draw_items, write_items
from qabias.validation.ratings import read_key, read_ratings, score_ratings


@pytest.fixture(scope="module")
def religion():
    bbq = load_benchmark("bbq")
    return bbq.load("Religion", bbq.origin("bundled", 0, False, None))


# The items.


@pytest.mark.parametrize(
    ("benchmark", "config", "column"), [("unqover", "religion", "ans0"), ("unqover", "religion_mlm", "ans0")]
)
def test_what_has_no_three_answers_cannot_be_rated(tmp_path, benchmark, config, column):
    paths = ["--output", str(tmp_path / "items.csv"), "--key", str(tmp_path / "key.csv")]
    result = CliRunner().invoke(app, ["validate", "export", "--benchmark", benchmark, "--config", config, *paths])
    assert isinstance(result.exception, QabiasError)
    assert "only questions with three answers can be rated" in str(result.exception)
    assert column in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_one_item_per_condition_of_every_template(religion):
    items = [item for item in draw_items(religion) if item.kind == "example"]
    conditions = Counter((item.template_id, item.condition) for item in items)
    assert set(conditions.values()) == {1}
    assert len(items) == 4 * len(set(religion["template_id"].to_pylist()))


def test_examples_are_shown_as_they_are_and_keyed_by_their_label(religion):
    rows = {row["example_id"]: row for row in religion.to_pylist()}
    for item in draw_items(religion):
        if item.kind == "example":
            row = rows[int(item.source_id.split("/")[1])]
            assert all(getattr(item, name) == row[name] for name in (*SHOWN[1:], "label", "template_id"))


def test_fillers_are_enough_half_short_and_break_the_pattern(religion):
    items = draw_items(religion)
    fillers = [item for item in items if item.kind == "filler"]
    assert FILLER_SHARE <= len(fillers) / len(items) < FILLER_SHARE + 0.02
    lengths = Counter(item.condition for item in fillers)
    assert abs(lengths["short"] - lengths["long"]) <= 1
    for item in fillers:
        answers = (item.ans0, item.ans1, item.ans2)
        assert len(set(answers)) == 3
        assert (answers[item.label] == "Not enough information") == (item.condition == "long")
        assert not any("{{" in text for text in (item.context, item.question, *answers))


def test_fillers_of_a_whole_validation_are_different_questions():
    bbq = load_benchmark("bbq")
    items = draw_items(bbq.load("all", bbq.origin("bundled", 0, False, None)))
    asked = Counter((item.context, item.question) for item in items if item.kind == "filler")
    assert len(asked) >= 0.9 * asked.total()


def test_the_number_of_fillers_can_be_set(religion):
    # The paper's estimate of human accuracy: 300 examples and 50 filler items.
    assert Counter(item.kind for item in draw_items(religion, n_examples=300, n_fillers=50)) == {
        "example": 300,
        "filler": 50,
    }
    assert {item.kind for item in draw_items(religion, n_fillers=0)} == {"example"}
    n = sum(item.kind == "filler" for item in draw_items(religion))
    assert draw_items(religion, n_fillers=n) == draw_items(religion)
    # The examples are the same, however many fillers there are.
    drawn = [{item.source_id for item in draw_items(religion, n_fillers=n) if item.kind == "example"} for n in (0, 7)]
    assert drawn[0] == drawn[1]


def test_the_kind_of_an_item_does_not_show_in_its_id_or_place(religion):
    items = draw_items(religion)
    assert [item.item_id for item in items] == [f"item-{i:05d}" for i in range(1, len(items) + 1)]
    fillers = [place for place, item in enumerate(items) if item.kind == "filler"]
    assert fillers[0] < len(items) / 2 < fillers[-1]


def test_the_same_seed_draws_the_same_items_and_another_seed_others(religion):
    assert draw_items(religion, seed=3) == draw_items(religion, seed=3) != draw_items(religion, seed=4)


def test_a_sample_for_human_accuracy_and_a_choice_of_templates(religion):
    assert sum(item.kind == "example" for item in draw_items(religion, n_examples=30)) == 30
    chosen = draw_items(religion, only=["Religion-01"])
    assert {item.template_id for item in chosen if item.kind == "example"} == {"Religion-01"}


def test_raters_do_not_see_the_key(religion, tmp_path):
    items = draw_items(religion)
    write_items(items, tmp_path / "items.csv", tmp_path / "key.csv")
    with (tmp_path / "items.csv").open(newline="") as file:
        assert tuple(next(csv.reader(file))) == SHOWN
    assert {name: row["label"] for name, row in read_key(tmp_path / "key.csv").items()} == {
        item.item_id: str(item.label) for item in items
    }
    with pytest.raises(QabiasError, match="must be two files"):
        write_items(items, tmp_path / "one.csv", tmp_path / "one.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"only": ["Religion-99"]}, "no template Religion-99; the templates are Religion-01 to"),
        ({"n_examples": 0}, "cannot draw 0 examples"),
        ({"n_examples": 10**6}, "cannot draw 1000000 examples"),
        ({"n_fillers": -1}, "cannot mix in -1 filler items; give 0 or more"),
    ],
)
def test_what_cannot_be_drawn_is_refused(religion, arguments, message):
    with pytest.raises(QabiasError, match=message):
        draw_items(religion, **arguments)


# The ratings.


def _key(**labels):
    """One example item per name, all of template T-1 unless the name says otherwise ("T2_a" -> T2)."""
    kinds = {name: "filler" if name.startswith("f") else "example" for name in labels}
    return {
        name: dict(zip(KEY, (name, str(label), kinds[name], name.split("_")[0], "c", "s"), strict=True))
        for name, label in labels.items()
    }


def _write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("item_id", "annotator", "answer"), *rows])
    return path


def _scored(tmp_path, key, answers):
    """Score answers given as item -> answers of raters r0, r1, ..."""
    rows = [(item, f"r{i}", a) for item, given in answers.items() for i, a in enumerate(given) if a is not None]
    return score_ratings(read_ratings(_write(tmp_path / "ratings.csv", rows), key), key)


def test_four_of_five_pass_and_three_of_five_do_not(tmp_path):
    key = _key(T1_a=0, T1_b=1, T2_a=2, T3_a=0)
    result = _scored(
        tmp_path,
        key,
        {"T1_a": [0, 0, 0, 0, 1], "T1_b": [1] * 5, "T2_a": [2, 2, 2, 0, 1], "T3_a": [0] * 4},
    )
    assert result["templates"] == {"T1": "passed", "T2": "failed", "T3": "incomplete"}
    assert result["to_edit"] == ["T2"]
    assert [result["items"][name]["n_right"] for name in key] == [4, 5, 3, 4]


def test_one_failed_item_fails_its_template_whatever_is_incomplete(tmp_path):
    result = _scored(tmp_path, _key(T1_a=0, T1_b=0, T1_c=0), {"T1_a": [0] * 5, "T1_b": [1] * 5})
    assert result["templates"] == {"T1": "failed"}
    assert result["items"]["T1_c"]["status"] == "incomplete"


def test_accuracy_of_ratings_and_of_majorities(tmp_path):
    # 5 + 3 + 2 of 15 ratings are right; the majority is right in two of three items, the 2-2-1 tie is wrong.
    result = _scored(tmp_path, _key(a=0, b=1, c=2), {"a": [0] * 5, "b": [1, 1, 1, 0, 0], "c": [2, 2, 1, 1, 0]})
    assert result["accuracy"] == 10 / 15
    assert result["majority_accuracy"] == 2 / 3


def test_alpha_of_a_case_worked_by_hand(tmp_path):
    # Units (0,0) (1,1) (0,1) (2,2): coincidences o_00 = 2, o_11 = 2, o_01 = o_10 = 1, o_22 = 2, n = 8, n_c = 3, 3, 2.
    # D_o = 2/8; D_e = (64 - 9 - 9 - 4) / (8 * 7) = 42/56; alpha = 1 - (2/8) / (42/56) = 2/3.
    result = _scored(tmp_path, _key(a=0, b=1, c=0, d=2), {"a": [0, 0], "b": [1, 1], "c": [0, 1], "d": [2, 2]})
    assert math.isclose(result["alpha"], 2 / 3, abs_tol=1e-12)


def test_alpha_leaves_out_fillers_and_single_ratings_and_may_be_undefined(tmp_path):
    key = _key(a=0, b=1, c=0, d=2, e=1, f1=0)
    answers = {"a": [0, 0], "b": [1, 1], "c": [0, 1], "d": [2, 2], "e": [2], "f1": [1, 2]}
    assert math.isclose(_scored(tmp_path, key, answers)["alpha"], 2 / 3, abs_tol=1e-12)
    assert math.isnan(_scored(tmp_path, key, {"a": [0, 0], "c": [0, 0]})["alpha"])
    assert math.isnan(_scored(tmp_path, key, {"a": [0], "b": [1]})["alpha"])


def test_annotators_are_judged_by_examples_and_by_fillers(tmp_path):
    fillers = {f"f{i:02d}": 0 for i in range(20)}
    # r0 has 18 of 20 fillers right (above 85 %), r1 17 of 20 (not above), r2 none to answer.
    answers = {name: [0 if i < 18 else 1, 0 if i < 17 else 1] for i, name in enumerate(fillers)}
    result = _scored(tmp_path, _key(T1_a=2, **fillers), {"T1_a": [2, 0, 2], **answers})["annotators"]
    assert result["r0"] == {"n": 1, "accuracy": 1.0, "n_fillers": 20, "filler_accuracy": 0.9, "careful": True}
    assert result["r1"] == {"n": 1, "accuracy": 0.0, "n_fillers": 20, "filler_accuracy": 0.85, "careful": False}
    assert result["r2"]["careful"] is None
    assert math.isnan(result["r2"]["filler_accuracy"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "r1", "0"), ("zz", "r1", "0")], "row 3: item_id: 'zz' is not in the key"),
        ([("a", " ", "0")], "row 2: annotator: empty"),
        ([("a", "r1", "3")], "row 2: answer: '3' is no answer"),
        ([("a", "r1", "")], "row 2: answer: '' is no answer"),
        ([("a", "r1", "0"), ("a", "r1", "1")], "row 3: r1 has rated a before"),
        ([], "no ratings"),
    ],
)
def test_a_faulty_rating_is_named_with_file_and_row(tmp_path, rows, message):
    path = _write(tmp_path / "ratings.csv", rows)
    with pytest.raises(QabiasError, match=r"ratings\.csv") as caught:
        read_ratings(path, _key(a=0))
    assert message in str(caught.value)


def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("item,answer\n1,2\n")
    with pytest.raises(QabiasError, match=r"x\.csv: no column item_id, annotator"):
        read_ratings(tmp_path / "x.csv", {})
    with pytest.raises(QabiasError, match="no such file"):
        read_key(tmp_path / "missing.csv")
    (tmp_path / "latin.csv").write_bytes("item_id,annotator,answer\na,Jos\xe9,0\n".encode("latin-1"))
    with pytest.raises(QabiasError, match="not a CSV file in UTF-8"):
        read_ratings(tmp_path / "latin.csv", {})


# Both commands together.


def test_export_rate_and_score_from_the_command_line(tmp_path):
    items, key, ratings = (str(tmp_path / f"{name}.csv") for name in ("items", "key", "ratings"))
    command = ["validate", "export", "--config", "Age", "--template", "Age-01", "--output", items, "--key", key]
    exported = CliRunner().invoke(app, command)
    assert exported.exit_code == 0, exported.output
    assert "4 examples and 1 filler items" in exported.output
    known = read_key(tmp_path / "key.csv")
    wrong = next(name for name, row in known.items() if row["condition"] == "neg ambig")
    _write(
        tmp_path / "ratings.csv",
        [
            (name, f"rater{i}", (int(row["label"]) + (name == wrong and i < 2)) % 3)
            for name, row in known.items()
            for i in range(5)
        ],
    )
    scored = CliRunner().invoke(app, ["validate", "score", ratings, "--key", key, "--output", str(tmp_path / "v.json")])
    assert scored.exit_code == 0, scored.output
    assert "0 passed, 1 failed, 0 with too few ratings" in scored.output
    assert "Age-01: neg ambig 3/5" in scored.output

    assert json.loads((tmp_path / "v.json").read_text())["to_edit"] == ["Age-01"]


def test_fillers_are_an_option_of_the_export(tmp_path):
    paths = ["--output", str(tmp_path / "items.csv"), "--key", str(tmp_path / "key.csv")]
    command = ["validate", "export", "--config", "Religion", "--sample", "300", "--fillers", "50", *paths]
    exported = CliRunner().invoke(app, command)
    assert exported.exit_code == 0, exported.output
    assert "300 examples and 50 filler items" in exported.output
    assert Counter(row["kind"] for row in read_key(tmp_path / "key.csv").values()) == {"example": 300, "filler": 50}
