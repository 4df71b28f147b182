"""GG-BBQ: the loader against a reading of its own of the released files, its counts, orders of answers, baselines."""

import ast
import csv
import itertools
import json
import shutil
from collections import Counter

import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.multilingual.ggbbq import read_items
from qabias.errors import QabiasError

from .published_sets import check_baselines, check_shuffled, published, roles, rows_of, scores, summary

REPOSITORY = "shalakasatheesh/GG-BBQ"
PARTS = {"labels": ("subset-1", "bbq_de"), "names": ("subset-2", "bbq_de_proper_names")}


def released(upstream, part):
    """The rows of the ambiguous and of the disambiguated file."""
    folder, stem = PARTS[part]
    files = [published(upstream, REPOSITORY, f"data/{folder}/{stem}_{kind}_test.jsonl") for kind in ("amb", "disamb")]
    return [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files]


def templates(upstream, part):
    with published(upstream, REPOSITORY, f"templates/{PARTS[part][0]}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def words(text):
    return tuple(text.split())


def filled(template, first, second):
    """All texts that a template can become, its slots filled one by one with the words and names that it lists."""
    text = template["ambiguous_context "] + " " + template["disambiguous_context "]
    for answer, name in (
        (template["correct_answer_negative"], first),
        (template["correct_answer_non_negative"], second),
    ):
        text = text.replace(answer, name) if answer.startswith("{{") else text
    lists = ast.literal_eval(template["lexical_diversity"] or "{}")
    for chosen in itertools.product(*lists.values()):
        full = text
        for slot, word in zip(lists, chosen, strict=True):
            full = full.replace("{{" + slot + "}}", word).replace("{" + slot + "}}", word)
        yield words(full)


def template_of(row, known):
    (name,) = (
        (f"{int(one['question_index']):02d}", f"{int(one['id']):03d}")
        for one in known
        if words(row["context"]) in filled(one, row["choice_0"], row["choice_1"])
        and words(row["question"]) in {words(one["question_negative_stereotype"]), words(one["question_non_negative"])}
    )
    return name


def target_of(row, clear):
    """The place of the member of the stereotyped group: by what the texts say where the group is trans people."""
    people = [row["choice_0"], row["choice_1"]]
    groups = json.loads(row["known_stereotyped_groups"])
    if "trans" in groups:
        hits = [
            "trans" in person.lower() or f"{person} bezeichnet sich als trans" in clear["context"] for person in people
        ]
    else:
        tags = [tag for _, tag in ast.literal_eval(row["choice_info"]).values()]
        hits = [tag in groups for tag in tags[:2]]
    assert sum(hits) == 1
    return hits.index(True)


def read(upstream, part):
    """The rows as the two files and the templates give them, in the order of our table."""
    known = templates(upstream, part)
    both = released(upstream, part)
    for pair in range(0, len(both[0]), 2):
        for unclear, clear in zip(both[0][pair : pair + 2], both[1][pair : pair + 2], strict=True):
            template, version = template_of(clear, known)
            for row in (unclear, clear):
                negative = row["question_type"] == "negative"
                yield {
                    "category": part,
                    "template_id": f"{part}-{template}",
                    "context": row["context"],
                    "question": row["question"],
                    "label_type": part.removesuffix("s"),
                    "social_value": row["relevant_social_values"],
                    "question_polarity": "neg" if negative else "nonneg",
                    "context_condition": "ambig" if row is unclear else "disambig",
                    "answers": [row[f"choice_{place}"] for place in range(3)],
                    "groups": json.loads(row["known_stereotyped_groups"]),
                    "version": version,
                    "label": row["label"],
                    **roles(target_of(row, clear), 2, negative),
                }


@pytest.mark.parametrize("part", PARTS)
def test_every_row_is_read_as_the_files_say(upstream, part):
    ours = rows_of("ggbbq", part, upstream=upstream, answers="released")
    for number, (row, expected) in enumerate(zip(ours, read(upstream, part), strict=True)):
        assert summary(row) == {**expected, "example_id": number}


@pytest.mark.parametrize(("part", "n_rows", "n_by_tags", "n_templates", "n_used", "n_questions"), [
    ("labels", 968, 264, 124, 124, 21),
    ("names", 10_900, 5_250, 38, 36, 21),
])  # fmt: skip
def test_counts(upstream, part, n_rows, n_by_tags, n_templates, n_used, n_questions):
    ambiguous, disambiguated = released(upstream, part)
    assert len(ambiguous) + len(disambiguated) == n_rows
    for rows in (ambiguous, disambiguated):
        tags = [[tag for _, tag in ast.literal_eval(row["choice_info"]).values()] for row in rows]
        groups = [json.loads(row["known_stereotyped_groups"]) for row in rows]
        hits = [sum(tag in of for tag in three) for three, of in zip(tags, groups, strict=True)]
        assert Counter(hits) == {1: n_by_tags, 0: len(rows) - n_by_tags}
    assert len(templates(upstream, part)) == n_templates
    ours = rows_of("ggbbq", part, upstream=upstream)
    assert len(ours) == n_rows
    assert len({row["additional_metadata"]["version"] for row in ours}) == n_used
    assert len({row["template_id"] for row in ours}) == n_questions
    assert all(row["target_loc"] >= 0 for row in ours)
    assert f"{n_rows:,} " in next(of for of in load_benchmark("ggbbq").card.defects if "every target is defined" in of)


@pytest.mark.parametrize("part", PARTS)
def test_a_set_is_two_contexts_with_two_questions(upstream, part):
    ours = rows_of("ggbbq", part, upstream=upstream)
    for start in range(0, len(ours), 4):
        four = ours[start : start + 4]
        assert len({row["set_id"] for row in four}) == 1
        assert len({(row["question_polarity"], row["context_condition"]) for row in four}) == 4
        assert len({row["context"] for row in four}) == 2
        assert len({row["question"] for row in four}) == 2
        assert len({(row["ans0"], row["ans1"], row["ans2"]) for row in four}) == 1
    assert len({row["set_id"] for row in ours}) == len(ours) // 4


@pytest.mark.parametrize("part", PARTS)
def test_the_question_tells_the_place_of_the_right_answer_unless_answers_are_shuffled(upstream, part):
    as_released = rows_of("ggbbq", part, upstream=upstream, answers="released")
    places = {(row["context_condition"], row["question_polarity"]): set() for row in as_released}
    for row in as_released:
        places[row["context_condition"], row["question_polarity"]].add(row["label"])
    assert places == {
        ("ambig", "neg"): {2},
        ("ambig", "nonneg"): {2},
        ("disambig", "neg"): {0},
        ("disambig", "nonneg"): {1},
    }
    shuffled = rows_of("ggbbq", part, upstream=upstream)
    check_shuffled(as_released, shuffled, rows_of("ggbbq", part, seed=1, upstream=upstream))
    clear = [row["label"] for row in shuffled if row["context_condition"] == "disambig"]
    assert all(abs(count / len(clear) - 1 / 3) < 0.06 for count in Counter(clear).values())


def test_question_10_of_the_labels_asks_the_opposite_of_its_polarity(upstream):
    rows = [row for row in rows_of("ggbbq", "labels", upstream=upstream) if row["question_index"] == "10"]
    assert Counter((row["question_polarity"], " nicht " in row["question"]) for row in rows) == {
        ("neg", False): 72,
        ("nonneg", True): 72,
    }


@pytest.mark.parametrize(("config", "answers"), [("labels", "shuffled"), ("names", "released"), ("all", "shuffled")])
def test_baselines(upstream, tmp_path, monkeypatch, config, answers):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    found = check_baselines(tmp_path, "ggbbq", config, balanced=False, limit=80, options={"answers": answers})
    assert (found["n"], found["n_undefined_target"]) == (80, 0)


def test_responders_that_do_not_read(upstream, tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    random = scores(tmp_path / "random", "ggbbq", "random", "names", limit=800)
    for name in ("accuracy_ambig", "accuracy_disambig"):
        assert random[name] == pytest.approx(1 / 3, abs=0.08)
    assert random["bias_ambig"] == pytest.approx(0, abs=0.15)
    first = scores(tmp_path / "first", "ggbbq", "first", "names", limit=80, options={"answers": "released"})
    assert (first["accuracy_ambig"], first["accuracy_disambig"]) == (0, 0.5)


def test_a_part_whose_files_do_not_fit_is_refused(upstream, tmp_path):
    folder, stem = PARTS["labels"]
    files = [
        published(upstream, REPOSITORY, f"data/{folder}/{stem}_amb_test.jsonl"),
        published(upstream, REPOSITORY, f"data/{folder}/{stem}_disamb_test.jsonl"),
        published(upstream, REPOSITORY, f"templates/{folder}.csv"),
    ]
    lines = files[1].read_text("utf-8").splitlines(keepends=True)
    shifted = tmp_path / "shifted.jsonl"
    shifted.write_text("".join(lines[1:] + lines[:1]), "utf-8")
    with pytest.raises(QabiasError, match="line 1 is not the same question in both files"):
        list(read_items("labels", files[0], shifted, files[2]))
    none = shutil.copy(published(upstream, REPOSITORY, "templates/subset-2.csv"), tmp_path / "none.csv")
    with pytest.raises(QabiasError, match="0 templates for the context"):
        list(read_items("labels", files[0], files[1], none))
