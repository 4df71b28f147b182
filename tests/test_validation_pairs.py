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
    assert f"Krippendorff's alpha {expected:.3f} (of the paper: 0.96)" in scored.output
    assert "4 pairs have a label that is not the right one" in scored.output
    assert "4 of 5" not in scored.output
    assert "passed" not in scored.output
    result = json.loads(output.read_text("utf-8"))
    assert result["alpha"] == pytest.approx(expected)
    assert set(result["to_discuss"]) == set(wrong)


# BBQ as inference.


@pytest.fixture(scope="module")
def inference():
    benchmark = load_benchmark("bbq_nli")
    return benchmark.load("all_nli", benchmark.origin("bundled", 0, False, None))


def test_one_filling_of_every_template_is_rated_in_both_orders_of_the_names(inference):
    pairs = load_benchmark("bbq_nli").facts.rated.pairs(inference).to_pylist()
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


def test_all_lengths_of_the_context_study_are_rated():
    benchmark = load_benchmark("bbq_nli")
    table = benchmark.load("Gender_identity_nli_context", benchmark.origin("bundled", 0, False, None))
    pairs = benchmark.facts.rated.pairs(table)
    first = {row["template_id"]: row["set_id"] for row in reversed(table.to_pylist())}
    of_first = [row for row in table.to_pylist() if row["set_id"] == first[row["template_id"]]]
    assert pairs["premise"].to_pylist() == [row["premise"] for row in of_first]
    assert len(set(pairs["source_id"].to_pylist())) == pairs.num_rows


def test_inference_is_exported_labelled_by_five_and_scored(tmp_path):
    items, key, ratings, output = (tmp_path / name for name in ("items.csv", "key.csv", "ratings.csv", "v.json"))
    command = ("export", "--benchmark", "bbq_nli", "--output", items, "--key", key, "--sample", 300)
    exported = invoke(*command)
    assert exported.exit_code == 0, exported.output
    assert "300 of 8,232 pairs" in exported.output
    with items.open(newline="", encoding="utf-8") as file:
        shown = list(csv.DictReader(file))
    assert list(shown[0]) == ["item_id", "premise", "hypothesis", "ans0", "ans1", "ans2"]
    assert {(row["ans0"], row["ans1"], row["ans2"]) for row in shown} == {LABELS}
    known = read_key(key)
    assert list(known) == [row["item_id"] for row in shown]
    draw = random.Random(4)
    given = [
        (name, f"reader-{who}", draw.randrange(3) if draw.random() < 0.1 else int(row["label"]))
        for name, row in known.items()
        for who in range(5)
    ]
    with ratings.open("w", newline="") as file:
        csv.writer(file).writerows([("item_id", "annotator", "answer"), *given])
    scored = invoke("score", ratings, "--key", key, "--output", output)
    assert scored.exit_code == 0, scored.output
    result = json.loads(output.read_text("utf-8"))
    assert result["alpha"] == pytest.approx(_alpha(given), abs=1e-9)
    answers = {name: [answer for of, _, answer in given if of == name] for name in known}
    agreeing = [name for name, of in answers.items() if len(set(of)) == 1]
    assert result["agreement"] == pytest.approx(len(agreeing) / 300)
    assert set(result["to_discuss"]) == {name for name, of in answers.items() if set(of) != {int(known[name]["label"])}}
    kinds = result["annotators"]["reader-0"]["by_kind"]
    assert set(kinds) == {f"{asked} {context}" for asked in ("neg", "nonneg") for context in ("ambig", "disambig")}
    assert sum(of["n"] for of in kinds.values()) == 300
    assert "subtopic or category" in scored.output
    only = invoke(*command[:-2], "--template", "Age", "--sample", 24, "--overwrite")
    assert only.exit_code == 0, only.output
    assert {row["template_id"] for row in read_key(key).values()} == {"Age"}


def _alpha(given):
    """Alpha of complete ratings by several annotators, nominal, from the coincidences of all ordered pairs."""
    by_item = {}
    for name, _, answer in given:
        by_item.setdefault(name, []).append(answer)
    n = len(given)
    observed = sum(sum(one != other for one in of for other in of) / (len(of) - 1) for of in by_item.values())
    counts = Counter(answer for _, _, answer in given)
    expected = sum(counts[one] * counts[other] for one in counts for other in counts if one != other) / (n - 1)
    return 1 - observed / expected


def test_questions_of_inference_are_rated_as_questions():
    assert load_benchmark("bbq_qa").facts.rated is None
