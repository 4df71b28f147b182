"""Pairs of premise and hypothesis labelled by two annotators (Akyurek et al. 2022, section 2.2.1)."""

import csv
import json
import math
import random
from collections import Counter

import pytest
from typer.testing import CliRunner

from qabias.benchmarks import load_benchmark
from qabias.cli import app
from qabias.errors import QabiasError
from qabias.validation.items import KEY
from qabias.validation.pairs import are_pairs, draw_pairs, score_pairs
from qabias.validation.ratings import Rating, alpha, read_key

LABELS = ("contradiction", "neutral", "entailment")


def load(source="bundled", upstream=None, config="all"):
    bbnli = load_benchmark("bbnli")
    return bbnli.load(config, bbnli.origin(source, 0, False, upstream and str(upstream)))


@pytest.fixture(scope="module")
def rated():
    return load_benchmark("bbnli").facts.rated


def invoke(*arguments):
    return CliRunner().invoke(app, ["validate", *map(str, arguments)])


# The pairs.


def test_the_pairs_are_those_before_words_and_groups_are_exchanged(rated):
    table = load()
    rows = table.to_pylist()
    pairs = rated.pairs(table).to_pylist()
    # Every premise of a subtopic with every hypothesis of it, once.
    expected = 0
    for subtopic in {row["subtopic"] for row in rows}:
        of = [row for row in rows if row["subtopic"] == subtopic]
        hypotheses = {(row["kind"], row["hypothesis_id"]) for row in of}
        expected += len({row["premise_id"] for row in of}) * len(hypotheses)
    assert len(pairs) == expected == 884
    assert len({pair["source_id"] for pair in pairs}) == len(pairs)
    written = {(row["subtopic"], row["kind"], row["premise"], row["hypothesis"]): row for row in rows}
    for pair in pairs:
        row = written[pair["template_id"], pair["condition"], pair["premise"], pair["hypothesis"]]
        assert row["stance"] == "pro"
        assert row["variant_id"] == 0
        assert pair["label"] == row["label"]


def test_the_official_pairs_are_as_many_as_the_authors_file_of_validation_has(rated, upstream):
    if not (upstream / "feyzaakyurek" / "bbnli").exists():
        pytest.skip(f"no mirror of feyzaakyurek/bbnli in {upstream} (set QABIAS_UPSTREAM)")
    # Premises by hypotheses of the 16 released subtopics: 1,023 rows less those of three that were not released.
    pairs = rated.pairs(load("official", upstream))
    assert pairs.num_rows == 884
    assert Counter(pairs["condition"].to_pylist()).keys() == {"stereotypical", "test"}


def test_a_fifth_is_drawn_at_random_by_the_seed(rated):
    pairs = rated.pairs(load())
    drawn = draw_pairs(pairs, rated.answers, rated.share, seed=1)
    assert len(drawn) == round(0.2 * 884) == 177
    assert draw_pairs(pairs, rated.answers, rated.share, seed=1) == drawn
    other = {item.source_id for item in draw_pairs(pairs, rated.answers, rated.share, seed=2)}
    chosen = {item.source_id for item in drawn}
    assert len(chosen) == len(drawn)
    assert other != chosen
    assert len({item.template_id for item in drawn}) > 12
    places = [pairs["source_id"].to_pylist().index(item.source_id) for item in drawn]
    assert places != sorted(places)
    assert len(draw_pairs(pairs, rated.answers, rated.share, n_pairs=30)) == 30
    only = draw_pairs(pairs, rated.answers, rated.share, only=["man_is_to_surgeon"])
    assert {item.template_id for item in only} == {"man_is_to_surgeon"}
    with pytest.raises(QabiasError, match="cannot draw 885 examples; there are 884"):
        draw_pairs(pairs, rated.answers, rated.share, n_pairs=885)
    with pytest.raises(QabiasError, match="no template man_is"):
        draw_pairs(pairs, rated.answers, rated.share, only=["man_is"])


def test_annotators_see_premise_hypothesis_and_three_labels_and_no_key(tmp_path):
    items, key = tmp_path / "items.csv", tmp_path / "key.csv"
    exported = invoke("export", "--benchmark", "bbnli", "--output", items, "--key", key)
    assert exported.exit_code == 0, exported.output
    assert "177 of 884 pairs" in exported.output
    with items.open(newline="", encoding="utf-8") as file:
        shown = list(csv.DictReader(file))
    assert list(shown[0]) == ["item_id", "premise", "hypothesis", "ans0", "ans1", "ans2"]
    assert {(row["ans0"], row["ans1"], row["ans2"]) for row in shown} == {LABELS}
    rows = {(row["premise"], row["hypothesis"]): row["label"] for row in load().to_pylist()}
    known = read_key(key)
    assert [rows[row["premise"], row["hypothesis"]] for row in shown] == [
        int(known[row["item_id"]]["label"]) for row in shown
    ]
    assert {row["kind"] for row in known.values()} == {"pair"}
    refused = invoke("export", "--benchmark", "bbnli", "--output", items, "--key", key, "--fillers", 3)
    assert isinstance(refused.exception, QabiasError)
    assert "pairs have no filler items" in str(refused.exception)


# What the labels say.


def krippendorff(pairs):
    """Alpha of two annotators, nominal, without missing values: 1 - (n - 1) D_o / (n^2 - sum n_c^2), n = 2 N."""
    n = 2 * len(pairs)
    counts = Counter(label for pair in pairs for label in pair)
    disagreements = 2 * sum(one != other for one, other in pairs)
    return 1 - (n - 1) * disagreements / (n * n - sum(count**2 for count in counts.values()))


def test_alpha_of_two_observers_is_that_of_the_textbook():
    # Krippendorff (2011): Meg and Owen label ten articles with 0 and 1, and twelve with five letters.
    binary = [(int(one), int(other)) for one, other in zip("0100000010", "1110010000", strict=True)]
    letters = list(zip("aabbdcccedda", "babbbccceddd", strict=True))
    assert round(krippendorff(binary), 3) == 0.095
    assert round(krippendorff(letters), 3) == 0.692
    assert alpha(binary) == pytest.approx(krippendorff(binary), abs=1e-12)
    draw = random.Random(8)
    for _ in range(20):
        pairs = [(draw.randrange(3), draw.randrange(3)) for _ in range(40)]
        assert alpha(pairs) == pytest.approx(krippendorff(pairs), abs=1e-12)


def _key(labels):
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
    first = dict(labels)
    second = {name: (label + 1) % 3 if draw.random() < 0.03 else label for name, label in labels.items()}
    ratings = [Rating(name, who, given[name]) for who, given in (("a", first), ("b", second)) for name in labels]
    result = score_pairs(ratings, _key(labels))
    expected = krippendorff([(first[name], second[name]) for name in labels])
    assert 0.9 < expected < 1
    assert result["alpha"] == pytest.approx(expected, abs=1e-12)
    wrong = {name for name in labels if second[name] != labels[name]}
    assert result["agreement"] == pytest.approx(1 - len(wrong) / 177)
    assert (result["n_pairs"], result["n_rated"], result["n_shared"]) == (177, 177, 177)
    assert set(result["to_discuss"]) == wrong
    assert result["annotators"]["a"]["accuracy"] == 1
    of = result["annotators"]["b"]
    assert of["accuracy"] == pytest.approx(1 - len(wrong) / 177)
    for column, place in (("by_kind", 0), ("by_subtopic", 1)):
        for group, found in of[column].items():
            names = [name for name in labels if name.split("/")[place] == group]
            assert found["n"] == len(names)
            assert found["accuracy"] == pytest.approx(sum(name not in wrong for name in names) / len(names))
        assert sum(found["n"] for found in of[column].values()) == 177


def test_pairs_of_one_annotator_count_for_accuracy_and_not_for_alpha():
    labels = {"test/s/0": 0, "test/s/1": 1, "test/s/2": 2}
    ratings = [Rating("test/s/0", "a", 0), Rating("test/s/0", "b", 0), Rating("test/s/1", "a", 2)]
    result = score_pairs(ratings, _key(labels))
    assert math.isnan(result["alpha"])  # one shared pair, one label
    assert (result["n_rated"], result["n_shared"], result["agreement"]) == (2, 1, 1)
    assert result["annotators"]["a"]["accuracy"] == 0.5
    assert result["to_discuss"] == {"test/s/1": {"source_id": "test/s/1", "label": 1, "answers": {"a": 2}}}


def test_a_key_is_of_pairs_or_of_questions():
    key = _key({"test/s/0": 0})
    question = {"q": dict(zip(KEY, ("q", "0", "example", "t", "c", "s"), strict=True))}
    assert are_pairs(key)
    assert not are_pairs(question)
    with pytest.raises(QabiasError, match="the key holds pairs and questions"):
        are_pairs(key | question)


def test_export_label_and_score_from_the_command_line(tmp_path):
    items, key, ratings, output = (tmp_path / name for name in ("items.csv", "key.csv", "ratings.csv", "v.json"))
    assert invoke("export", "--benchmark", "bbnli", "--output", items, "--key", key, "--seed", 3).exit_code == 0
    known = read_key(key)
    wrong = list(known)[:4]
    given = {"a": {}, "b": {}}
    for name, row in known.items():
        given["a"][name] = int(row["label"])
        given["b"][name] = (int(row["label"]) + (name in wrong)) % 3
    with ratings.open("w", newline="") as file:
        csv.writer(file).writerows(
            [
                ("item_id", "annotator", "answer"),
                *((name, who, of[name]) for who, of in given.items() for name in known),
            ]
        )
    scored = invoke("score", ratings, "--key", key, "--output", output)
    assert scored.exit_code == 0, scored.output
    expected = krippendorff([(given["a"][name], given["b"][name]) for name in known])
    assert f"Krippendorff's alpha {expected:.3f} (published texts: 0.96)" in scored.output
    assert "4 pairs have a label that is not the right one" in scored.output
    assert "4 of 5" not in scored.output
    assert "passed" not in scored.output
    result = json.loads(output.read_text("utf-8"))
    assert result["alpha"] == pytest.approx(expected)
    assert set(result["to_discuss"]) == set(wrong)
