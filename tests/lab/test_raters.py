"""Validation by people: the items they get, and the result of their ratings."""

import csv
import json
import math
import random
from collections import Counter

import pytest

from lab.raters.__main__ import main
from lab.raters.items import FILLER_SHARE, KEY, PAIRS, SHOWN, draw_items, draw_pairs, write_items
from lab.raters.ratings import (
    Rating,
    alpha,
    are_pairs,
    read_key,
    read_ratings,
    score_pairs,
    score_ratings,
)
from qabias.errors import QabiasError
from qabias.share.bbnli_dataset.pairs import LABELS

from ..kit.rows import load


@pytest.fixture(scope="module")
def religion():
    return load("bbq", "Religion")


@pytest.fixture(scope="module")
def bbnli():
    return load("bbnli", "all")


@pytest.fixture
def call(monkeypatch, capsys):
    """The command, as its exit code and what it prints."""

    def call(*words):
        monkeypatch.setattr("sys.argv", ["raters", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code
        printed = capsys.readouterr()
        return code, printed.err if code else " ".join(printed.out.split())

    return call


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_answers(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("item_id", "annotator", "answer"), *rows])
    return path


# Questions.


@pytest.mark.parametrize("config", ["religion", "religion_mlm"])
def test_what_has_no_three_answers_cannot_be_rated(tmp_path, call, config):
    paths = ["--output", tmp_path / "items.csv", "--key", tmp_path / "key.csv"]
    code, said = call("export", "--benchmark", "unqover", "--config", config, *paths)
    assert code == 2
    assert "ans0" in said
    assert list(tmp_path.iterdir()) == []


def test_one_item_per_condition_of_every_template_shown_as_it_is(religion):
    items = draw_items(religion)
    examples = [item for item in items if item.kind == "example"]
    assert set(Counter((item.template_id, item.condition) for item in examples).values()) == {1}
    assert len(examples) == 4 * len(set(religion["template_id"].to_pylist()))
    rows = {row["example_id"]: row for row in religion.to_pylist()}
    for item in examples:
        row = rows[int(item.source_id.split("/")[1])]
        assert all(getattr(item, name) == row[name] for name in (*SHOWN[1:], "label", "template_id"))
    # Neither the number nor the place of an item says what it is.
    assert [item.item_id for item in items] == [f"item-{i:05d}" for i in range(1, len(items) + 1)]
    fillers = [place for place, item in enumerate(items) if item.kind == "filler"]
    assert fillers[0] < len(items) / 2 < fillers[-1]


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


def test_what_is_drawn_depends_on_the_seed_and_the_choices(religion):
    assert draw_items(religion, seed=3) == draw_items(religion, seed=3) != draw_items(religion, seed=4)
    # The paper's estimate of human accuracy: 300 examples and 50 filler items.
    drawn = draw_items(religion, n_examples=300, n_fillers=50)
    assert Counter(item.kind for item in drawn) == {"example": 300, "filler": 50}
    chosen = draw_items(religion, only=["Religion-01"])
    assert {item.template_id for item in chosen if item.kind == "example"} == {"Religion-01"}
    # The examples are the same, however many fillers there are.
    examples = [
        {item.source_id for item in draw_items(religion, n_fillers=n) if item.kind == "example"} for n in (0, 7)
    ]
    assert examples[0] == examples[1]
    assert {item.kind for item in draw_items(religion, n_fillers=0)} == {"example"}


def test_raters_do_not_see_the_key(religion, tmp_path):
    items = draw_items(religion)
    write_items(items, tmp_path / "items.csv", tmp_path / "key.csv")
    assert tuple(rows_of(tmp_path / "items.csv")[0]) == SHOWN
    labels = {name: row["label"] for name, row in read_key(tmp_path / "key.csv").items()}
    assert labels == {item.item_id: str(item.label) for item in items}
    with pytest.raises(QabiasError, match="same file"):
        write_items(items, tmp_path / "one.csv", tmp_path / "one.csv")


@pytest.mark.parametrize(
    ("arguments", "token"),
    [
        ({"only": ["Religion-99"]}, "Religion-99"),
        ({"n_examples": 0}, "0 examples"),
        ({"n_examples": 10**6}, "1000000"),
        ({"n_fillers": -1}, "-1"),
        ({"n_fillers": 10**14}, "--fillers"),
    ],
)
def test_what_cannot_be_drawn_is_refused(religion, arguments, token):
    with pytest.raises(QabiasError, match=token):
        draw_items(religion, **arguments)


# Ratings of questions.


def key_of(**labels):
    """One example item per name, of the template before "_"; names that begin with "f" are fillers."""
    kinds = {name: "filler" if name.startswith("f") else "example" for name in labels}
    return {
        name: dict(zip(KEY, (name, str(label), kinds[name], name.split("_")[0], "c", "s"), strict=True))
        for name, label in labels.items()
    }


def score(key, answers):
    """Score answers given as item -> answers of raters r0, r1, ..."""
    ratings = [Rating(item, f"r{i}", answer) for item, own in answers.items() for i, answer in enumerate(own)]
    return score_ratings(ratings, key)


def test_four_of_five_pass_and_three_of_five_do_not():
    key = key_of(T1_a=0, T1_b=1, T2_a=2, T3_a=0, T4_a=0, T4_b=0)
    answers = {"T1_a": [0, 0, 0, 0, 1], "T1_b": [1] * 5, "T2_a": [2, 2, 2, 0, 1], "T3_a": [0] * 4, "T4_a": [1] * 5}
    result = score(key, answers)
    # One failed item fails its template, whatever is incomplete.
    assert result["templates"] == {"T1": "passed", "T2": "failed", "T3": "incomplete", "T4": "failed"}
    assert result["to_edit"] == ["T2", "T4"]
    assert [result["items"][name]["n_right"] for name in key] == [4, 5, 3, 4, 0, 0]
    assert result["items"]["T4_b"]["status"] == "incomplete"


def test_accuracy_of_ratings_and_of_majorities():
    # 5 + 3 + 2 of 15 ratings are right; the majority is right in two of three items, the 2-2-1 tie is wrong.
    result = score(key_of(a=0, b=1, c=2), {"a": [0] * 5, "b": [1, 1, 1, 0, 0], "c": [2, 2, 1, 1, 0]})
    assert result["accuracy"] == 10 / 15
    assert result["majority_accuracy"] == 2 / 3


def test_alpha_of_a_case_worked_by_hand_leaves_out_fillers_and_single_ratings():
    # Units (0,0) (1,1) (0,1) (2,2): coincidences o_00 = 2, o_11 = 2, o_01 = o_10 = 1, o_22 = 2, n = 8, n_c = 3, 3, 2.
    # D_o = 2/8; D_e = (64 - 9 - 9 - 4) / (8 * 7) = 42/56; alpha = 1 - (2/8) / (42/56) = 2/3.
    key = key_of(a=0, b=1, c=0, d=2, e=1, f1=0)
    answers = {"a": [0, 0], "b": [1, 1], "c": [0, 1], "d": [2, 2], "e": [2], "f1": [1, 2]}
    assert math.isclose(score(key, answers)["alpha"], 2 / 3, abs_tol=1e-12)
    assert math.isnan(score(key, {"a": [0, 0], "c": [0, 0]})["alpha"])
    assert math.isnan(score(key, {"a": [0], "b": [1]})["alpha"])


def test_annotators_are_judged_by_examples_and_by_fillers():
    fillers = {f"f{i:02d}": 0 for i in range(20)}
    # r0 has 18 of 20 fillers right (above 85 %), r1 17 of 20 (not above), r2 none to answer.
    answers = {name: [0 if i < 18 else 1, 0 if i < 17 else 1] for i, name in enumerate(fillers)}
    result = score(key_of(T1_a=2, **fillers), {"T1_a": [2, 0, 2], **answers})["annotators"]
    assert result["r0"] == {"n": 1, "accuracy": 1.0, "n_fillers": 20, "filler_accuracy": 0.9, "careful": True}
    assert result["r1"] == {"n": 1, "accuracy": 0.0, "n_fillers": 20, "filler_accuracy": 0.85, "careful": False}
    assert result["r2"]["careful"] is None
    assert math.isnan(result["r2"]["filler_accuracy"])


@pytest.mark.parametrize(
    ("rows", "token"),
    [
        ([("a", "r1", "0"), ("zz", "r1", "0")], "row 3: item_id"),
        ([("a", " ", "0")], "row 2: annotator"),
        ([("a", "r1", "3")], "row 2: answer"),
        ([("a", "r1", "")], "row 2: answer"),
        ([("a", "r1", "0"), ("a", "r1", "1")], "row 3: r1"),
        ([], "no ratings"),
    ],
)
def test_a_faulty_rating_is_named_with_file_and_row(tmp_path, rows, token):
    path = write_answers(tmp_path / "ratings.csv", rows)
    with pytest.raises(QabiasError, match=rf"ratings\.csv: {token}"):
        read_ratings(path, key_of(a=0))


def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("item,answer\n1,2\n")
    with pytest.raises(QabiasError, match="annotator"):
        read_ratings(tmp_path / "x.csv", {})
    with pytest.raises(QabiasError, match=r"missing\.csv"):
        read_key(tmp_path / "missing.csv")


@pytest.mark.slow
def test_export_rate_and_score_from_the_command_line(tmp_path, call):
    items, key, ratings, output = (tmp_path / name for name in ("items.csv", "key.csv", "ratings.csv", "v.json"))
    command = ("export", "--config", "Age", "--template", "Age-01", "--output", items, "--key", key)
    assert "4 examples and 1 filler items" in call(*command)[1]
    known = read_key(key)
    wrong = next(name for name, row in known.items() if row["condition"] == "neg ambig")
    rows = [
        (name, f"rater{i}", (int(row["label"]) + (name == wrong and i < 2)) % 3)
        for name, row in known.items()
        for i in range(5)
    ]
    write_answers(ratings, rows)
    code, printed = call("score", ratings, "--key", key, "--output", output)
    assert code == 0
    assert "0 passed, 1 failed, 0 with too few ratings" in printed
    assert "Age-01: neg ambig 3/5" in printed
    assert json.loads(output.read_text("utf-8"))["to_edit"] == ["Age-01"]
    before = ratings.read_bytes()
    for flags in ((), ("--overwrite",)):
        assert call("score", ratings, "--key", key, "--output", ratings, *flags)[0] == 2
    assert ratings.read_bytes() == before
    assert call(*command[:-4], "--seed", 1, *command[-4:])[0] == 2  # another draw does not replace these


# Pairs of premise and hypothesis.


def test_the_pairs_are_those_before_words_and_groups_are_exchanged(bbnli):
    rows = bbnli.to_pylist()
    pairs = PAIRS["bbnli"](bbnli).to_pylist()
    # Every premise of a subtopic with every hypothesis of it, once.
    expected = 0
    for subtopic in {row["subtopic"] for row in rows}:
        members = [row for row in rows if row["subtopic"] == subtopic]
        hypotheses = {(row["kind"], row["hypothesis_id"]) for row in members}
        expected += len({row["premise_id"] for row in members}) * len(hypotheses)
    assert len(pairs) == expected == 884
    assert len({pair["source_id"] for pair in pairs}) == len(pairs)
    written = {(row["subtopic"], row["kind"], row["premise"], row["hypothesis"]): row for row in rows}
    for pair in pairs:
        row = written[pair["template_id"], pair["condition"], pair["premise"], pair["hypothesis"]]
        assert (row["stance"], row["variant_id"], pair["label"]) == ("pro", 0, row["label"])


def test_a_fifth_is_drawn_at_random_by_the_seed(bbnli):
    pairs = PAIRS["bbnli"](bbnli)
    drawn = draw_pairs(pairs, seed=1)
    assert len({item.source_id for item in drawn}) == len(drawn) == round(0.2 * 884) == 177
    assert draw_pairs(pairs, seed=1) == drawn
    assert {item.source_id for item in draw_pairs(pairs, seed=2)} != {item.source_id for item in drawn}
    assert len({item.template_id for item in drawn}) > 12
    places = [pairs["source_id"].to_pylist().index(item.source_id) for item in drawn]
    assert places != sorted(places)
    assert {item.template_id for item in draw_pairs(pairs, only=["man_is_to_surgeon"])} == {"man_is_to_surgeon"}
    for choice, token in (({"n_pairs": 885}, "885"), ({"only": ["man_is"]}, "man_is")):
        with pytest.raises(QabiasError, match=token):
            draw_pairs(pairs, **choice)


def krippendorff(answers):
    """Alpha of complete nominal answers, item by item, from the coincidences of all ordered pairs."""
    n = sum(map(len, answers))
    observed = sum(sum(one != other for one in item for other in item) / (len(item) - 1) for item in answers)
    counts = Counter(answer for item in answers for answer in item)
    expected = sum(counts[one] * counts[other] for one in counts for other in counts if one != other) / (n - 1)
    return 1 - observed / expected


def test_alpha_of_two_observers_is_that_of_the_textbook():
    # Krippendorff (2011): Meg and Owen label ten articles with 0 and 1, and twelve with five letters.
    binary = [(int(one), int(other)) for one, other in zip("0100000010", "1110010000", strict=True)]
    letters = list(zip("aabbdcccedda", "babbbccceddd", strict=True))
    assert round(krippendorff(binary), 3) == 0.095
    assert round(krippendorff(letters), 3) == 0.692
    draw = random.Random(8)
    for pairs in (binary, *([(draw.randrange(3), draw.randrange(3)) for _ in range(40)] for _ in range(20))):
        assert alpha(pairs) == pytest.approx(krippendorff(pairs), abs=1e-12)


def pair_key(labels):
    """A key of pairs; their kind and subtopic are in the name: "test/surgeon/3"."""
    return {
        name: dict(zip(KEY, (name, str(label), "pair", name.split("/")[1], name.split("/")[0], name), strict=True))
        for name, label in labels.items()
    }


def test_two_annotators_who_agree_as_in_the_paper():
    draw = random.Random(7)
    labels = {
        f"{'test' if n % 3 else 'stereotypical'}/s{n % 4}/{n}": 1 if n % 3 == 0 else n % 2 * 2 for n in range(177)
    }
    second = {name: (label + 1) % 3 if draw.random() < 0.03 else label for name, label in labels.items()}
    ratings = [Rating(name, who, answers[name]) for who, answers in (("a", labels), ("b", second)) for name in labels]
    result = score_pairs(ratings, pair_key(labels))
    expected = krippendorff([(labels[name], second[name]) for name in labels])
    assert 0.9 < expected < 1
    assert result["alpha"] == pytest.approx(expected, abs=1e-12)
    wrong = {name for name in labels if second[name] != labels[name]}
    assert result["agreement"] == pytest.approx(1 - len(wrong) / 177)
    assert (result["n_pairs"], result["n_rated"], result["n_shared"]) == (177, 177, 177)
    assert set(result["to_discuss"]) == wrong
    assert result["annotators"]["a"]["accuracy"] == 1
    scores = result["annotators"]["b"]
    assert scores["accuracy"] == pytest.approx(1 - len(wrong) / 177)
    for column, place in (("by_kind", 0), ("by_subtopic", 1)):
        for group, group_scores in scores[column].items():
            names = [name for name in labels if name.split("/")[place] == group]
            assert group_scores["n"] == len(names)
            assert group_scores["accuracy"] == pytest.approx(sum(name not in wrong for name in names) / len(names))
        assert sum(group_scores["n"] for group_scores in scores[column].values()) == 177


def test_pairs_of_one_annotator_count_for_accuracy_and_not_for_alpha():
    labels = {"test/s/0": 0, "test/s/1": 1, "test/s/2": 2}
    ratings = [Rating("test/s/0", "a", 0), Rating("test/s/0", "b", 0), Rating("test/s/1", "a", 2)]
    result = score_pairs(ratings, pair_key(labels))
    assert math.isnan(result["alpha"])  # one shared pair, one label
    assert (result["n_rated"], result["n_shared"], result["agreement"]) == (2, 1, 1)
    assert result["annotators"]["a"]["accuracy"] == 0.5
    assert result["to_discuss"] == {"test/s/1": {"source_id": "test/s/1", "label": 1, "answers": {"a": 2}}}


def test_a_key_is_of_pairs_or_of_questions():
    key, question = pair_key({"test/s/0": 0}), key_of(q=0)
    assert are_pairs(key)
    assert not are_pairs(question)
    with pytest.raises(QabiasError, match="pairs and questions"):
        are_pairs(key | question)


# BBQ as inference.


def test_all_lengths_of_the_context_study_are_rated():
    table = load("bbq_nli", "Gender_identity_nli_context")
    pairs = PAIRS["bbq_nli"](table)
    first = {row["template_id"]: row["set_id"] for row in reversed(table.to_pylist())}
    expected = [row for row in table.to_pylist() if row["set_id"] == first[row["template_id"]]]
    assert pairs["premise"].to_pylist() == [row["premise"] for row in expected]
    assert len(set(pairs["source_id"].to_pylist())) == pairs.num_rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "sample", "n_raters"), [("bbnli", (), 2), ("bbq_nli", ("--sample", 300), 5)], ids=["bbnli", "bbq_nli"]
)
def test_pairs_are_exported_labelled_and_scored(tmp_path, call, benchmark, sample, n_raters):
    items, key, ratings, output = (tmp_path / name for name in ("items.csv", "key.csv", "ratings.csv", "v.json"))
    command = ("export", "--benchmark", benchmark, "--output", items, "--key", key)
    n = {"bbnli": "177 of 884 pairs", "bbq_nli": "300 of 8,232 pairs"}[benchmark]
    assert n in call(*command, *sample)[1]
    shown, known = rows_of(items), read_key(key)
    assert list(shown[0]) == ["item_id", "premise", "hypothesis", "ans0", "ans1", "ans2"]
    assert {(row["ans0"], row["ans1"], row["ans2"]) for row in shown} == {LABELS}
    assert list(known) == [row["item_id"] for row in shown]
    draw = random.Random(4)
    answers = {
        name: [draw.randrange(3) if draw.random() < 0.1 else int(row["label"]) for _ in range(n_raters)]
        for name, row in known.items()
    }
    write_answers(ratings, [(name, f"r{i}", answer) for name, item in answers.items() for i, answer in enumerate(item)])
    code, printed = call("score", ratings, "--key", key, "--output", output)
    assert code == 0
    assert f"Krippendorff's alpha {krippendorff(list(answers.values())):.3f} (paper: 0.96)" in printed
    assert "passed" not in printed
    result = json.loads(output.read_text("utf-8"))
    assert result["alpha"] == pytest.approx(krippendorff(list(answers.values())))
    assert result["agreement"] == pytest.approx(sum(len(set(item)) == 1 for item in answers.values()) / len(answers))
    wrong = {name for name, item in answers.items() if set(item) != {int(known[name]["label"])}}
    assert set(result["to_discuss"]) == wrong
    assert sum(group["n"] for group in result["annotators"]["r0"]["by_kind"].values()) == len(known)
    code, said = call(*command, "--fillers", 3)
    assert code == 2
    assert "--fillers" in said


@pytest.mark.slow
def test_fillers_of_a_whole_validation_are_different_questions():
    items = draw_items(load("bbq", "all"))
    shown = Counter((item.context, item.question) for item in items if item.kind == "filler")
    assert len(shown) >= 0.9 * shown.total()


def test_the_official_pairs_are_as_many_as_the_authors_file_of_validation_has(upstream):
    if not (upstream / "feyzaakyurek" / "bbnli").exists():
        pytest.skip(f"no mirror of feyzaakyurek/bbnli in {upstream} (set QABIAS_UPSTREAM)")
    # Premises by hypotheses of the 16 released subtopics: 1,023 rows less those of three that were not released.
    pairs = PAIRS["bbnli"](load("bbnli", "all", "official"))
    assert pairs.num_rows == 884
    assert Counter(pairs["condition"].to_pylist()).keys() == {"stereotypical", "test"}


@pytest.mark.slow
def test_one_filling_of_every_template_is_rated_in_both_orders_of_the_names():
    inference = load("bbq_nli", "all_nli")
    pairs = PAIRS["bbq_nli"](inference).to_pylist()
    templates = set(inference["template_id"].to_pylist())
    by_set = Counter(pair["source_id"].partition("/")[0] for pair in pairs)
    assert {name.rpartition("-")[0] for name in by_set} == templates
    # Two orders, three contexts, and the two questions as hypotheses about each of the people.
    assert (len(by_set), set(by_set.values())) == (len(templates), {2 * 3 * 4}) == (343, {24})
    assert len({pair["source_id"] for pair in pairs}) == len(pairs)
    rows = {
        (row["category"], row["premise"], row["hypothesis"]): (row["label"], row["context_condition"])
        for row in inference.to_pylist()
    }
    for pair in pairs:
        label, condition = rows[pair["template_id"], pair["premise"], pair["hypothesis"]]
        assert pair["label"] == label
        # An ambiguous context settles no hypothesis; the facts settle each, one way or the other: the controls.
        assert pair["condition"] in (f"neg {condition}", f"nonneg {condition}")
        assert (label == LABELS.index("neutral")) == (condition == "ambig")
    assert Counter(pair["label"] for pair in pairs) == dict.fromkeys(range(3), 343 * 8)
