"""BasqBBQ: the loader against a reading of its own of the released files at hand, and the others by the same path."""

import json
from collections import Counter

import pytest

from .published_sets import invent, partition, published, roles, rows_of, scores, summary

REPOSITORY = "orai-nlp/BasqBBQ"
HERE = {"Orientazio_sexual": (856, 25, 1), "Ezgaitasun_egoera": (1680, 25, 2)}
"""Rows, templates, and versions of each template, of the files at hand."""


def read(upstream, category):
    """The rows as the file gives them."""
    lines = published(upstream, REPOSITORY, f"data/BasqBBQ/{category}.jsonl").read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        row = json.loads(line)
        about = row["additional_metadata"]
        version = about["version"].replace("None", "")
        tags = [row["answer_info"][f"ans{place}"][1] for place in range(3)]
        (target,) = (place for place, tag in enumerate(tags) if tag in about["stereotyped_groups"])
        yield {
            "category": category,
            "example_id": number,
            "template_id": f"{category}-{int(row['question_index']):02d}",
            "label_type": "label",
            "social_value": "",
            "version": version,
            "groups": about["stereotyped_groups"],
            "answers": [row[f"ans{place}"] for place in range(3)],
            **{name: row[name] for name in ("context", "question", "question_polarity", "context_condition", "label")},
            **roles(target, tags.index("unknown"), row["question_polarity"] == "neg"),
        }


@pytest.mark.parametrize("category", HERE)
def test_every_row_is_read_as_the_file_says(upstream, category):
    expected = list(read(upstream, category))
    ours = rows_of("basqbbq", category, upstream=upstream)
    assert [summary(row) for row in ours] == expected
    assert partition(ours, lambda row: row["set_id"]) == {tuple(range(n, n + 4)) for n in range(0, len(ours), 4)}
    n_rows, n_templates, n_versions = HERE[category]
    assert len(ours) == n_rows
    versions = {(row["template_id"], row["additional_metadata"]["version"]) for row in ours}
    assert Counter(Counter(template for template, _ in versions).values()) == {n_versions: n_templates}


def set_of_four(groups, member, other, *, question=1, version="None"):
    """An invented set; the tag of the other person may be missing."""
    people = {"ans0": member, "ans1": ["ez dakit", "unknown"], "ans2": other}
    for negative in (True, False):
        for ambiguous in (True, False):
            yield {
                "example_id": 0,
                "question_index": str(question),
                "question_polarity": "neg" if negative else "nonneg",
                "context_condition": "ambig" if ambiguous else "disambig",
                "category": "X",
                "answer_info": people,
                "additional_metadata": {
                    "stereotyped_groups": groups,
                    "version": version,
                    "source": "",
                    "subcategory": "",
                },
                "context": "Bi pertsona zeuden." + ("" if ambiguous else " Batek hitz egin zuen."),
                "question": "Nork?" if negative else "Nor?",
                **{place: info[0] + ("k" if negative else "") for place, info in people.items()},
                "label": 1 if ambiguous else 0 if negative else 2,
            }


INVENTED = {
    "Adin": list(set_of_four(["Old"], ["70 urte", "Old"], ["20 urte", "nonOld"], version="b")),
    "Arraza_etnizitate": list(set_of_four(["Beltza"], ["Ane", "F-Beltza"], ["Leo", "F-Zuria"])),
    "Ezgaitasun_egoera": list(set_of_four(["disabled"], ["itsu", "disabled"], ["ez itsu", "nonDisabled"], version="a")),
    "Genero_identitate": list(set_of_four(["F"], ["Ane", "F"], ["Leo", "M"], version="")),
    "Itxura_fisikoa": list(set_of_four(["difference"], ["orbaina", "difference"], ["begiak", "noDifference"])),
    "MSE": list(set_of_four(["MSEbaxua"], ["langile", "MSEbaxua"], ["mediku", "MSEaltua"])),
    "Nazionalitate": list(set_of_four(["A", "B"], ["A", float("nan")], ["C", float("nan")])),
    "Orientazio_sexual": list(set_of_four(["X"], ["Y", "Y"], ["Z", "Z"])),
}


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror of invented files of all categories; that of the last one names no member of the group."""
    files = {
        f"data/BasqBBQ/{category}.jsonl": "".join(json.dumps(row) + "\n" for row in rows)
        for category, rows in INVENTED.items()
    }
    return invent(monkeypatch, tmp_path / "mirror", REPOSITORY, files)


def test_all_categories_load_by_one_path(mirror):
    ours = rows_of("basqbbq", "all", upstream=mirror)
    assert [row["category"] for row in ours] == [category for category in INVENTED for _ in range(4)]
    for row in ours:
        has_target = row["category"] != "Orientazio_sexual"
        assert row["target_loc"] == (0 if has_target else -1)
        assert row["biased_loc"] == ((0 if row["question_polarity"] == "neg" else 2) if has_target else -1)
        assert row["unknown_loc"] == 1
    assert {row["template_id"] for row in ours} == {f"{category}-01" for category in INVENTED}
    versions = {row["category"]: row["additional_metadata"]["version"] for row in ours}
    assert (versions["Adin"], versions["MSE"], versions["Genero_identitate"]) == ("b", "", "")
    tags = {row["category"]: [row["answer_info"][f"ans{place}"][1] for place in range(3)] for row in ours}
    assert tags["Nazionalitate"] == ["", "unknown", ""]  # NaN in the file


def test_undefined_targets_are_counted(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(mirror))
    found = scores(tmp_path / "run", "basqbbq", "oracle", "all")
    assert (found["n"], found["n_undefined_target"]) == (32, 4)
