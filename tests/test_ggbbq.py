"""GG-BBQ: the loader against a reading of its own of the released files, its counts, orders of answers, baselines."""

import ast
import csv
import itertools
import json

import pytest

from .published_sets import partition, published, roles, rows_of, summary

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


@pytest.mark.parametrize("part", ["labels", pytest.param("names", marks=pytest.mark.slow)])
def test_every_row_is_read_as_the_files_say(upstream, part):
    ours = rows_of("ggbbq", part, upstream=upstream, answers="released")
    assert partition(ours, lambda row: row["set_id"]) == {tuple(range(n, n + 4)) for n in range(0, len(ours), 4)}
    for number, (row, expected) in enumerate(zip(ours, read(upstream, part), strict=True)):
        assert summary(row) == {**expected, "example_id": number}
