"""EsBBQ and CaBBQ: our rows against a reading of the files by other code, and the nine wordings of UNKNOWN."""

import csv
import io
import re
from collections import Counter

import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.multilingual.sets import SETS

from .published_sets import invent, partition, published, roles, rows_of, summary

REPOSITORY = "langtech-bsc/EsBBQ-CaBBQ"
ROWS_AND_TEMPLATES = {
    **{"Age": (4068, 23), "DisabilityStatus": (2832, 27), "Gender": (4832, 66), "LGBTQIA": (2000, 31)},
    **{"Nationality": (504, 15), "PhysicalAppearance": (3528, 32), "RaceEthnicity": (3716, 51)},
    **{"Religion": (648, 16), "SES": (4204, 27), "SpanishRegion": (988, 35)},
}
# Contexts told with the same people: an ambiguous one, and what disambiguates it.
N_SETS = {
    **{"Age": 1292, "DisabilityStatus": 928, "Gender": 1504, "LGBTQIA": 576, "Nationality": 160},
    **{"PhysicalAppearance": 1176, "RaceEthnicity": 1228, "Religion": 216, "SES": 1380, "SpanishRegion": 324},
}


def reading(file):
    """The spec's words on the raw file: one dict a row, without the wording of UNKNOWN."""
    header, *lines = csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline=""))
    found = []
    n_sets, last = 0, None
    raws = [dict(zip(header, line, strict=True)) for line in lines]
    open_contexts = {(raw["template_id"], raw["context"]) for raw in raws if raw["context_condition"] == "ambig"}
    for number, raw in enumerate(raws):
        [begin] = [
            end for end in range(len(raw["context"]) + 1) if (raw["template_id"], raw["context"][:end]) in open_contexts
        ]
        groups = quoted_words(raw["stereotyped_groups"])
        texts = [raw["ans0"], raw["ans1"], raw["ans2"]]
        assert texts[2] == "unknown"
        of = [quoted_words(raw[f"answer_info.ans{place}"])[-1].split(", ")[-1] for place in range(2)]
        assert [group in groups for group in of].count(True) == 1
        target = 0 if of[0] in groups else 1
        people = [raw[name] for name in ("template_id", "version", "flipped", "ans0", "ans1", "stated_gender_info")]
        people.append(raw["context"][:begin])
        n_sets, last = n_sets + (people != last), people
        negative = {"neg": True, "nonneg": False}[raw["question_polarity"]]
        found.append(
            {
                "category": raw["category"],
                "example_id": number,
                "template_id": f"{raw['category']}-{raw['template_id'].rjust(2, '0')}",
                **{name: raw[name] for name in ("context", "question", "question_polarity", "context_condition")},
                "label_type": {"True": "name", "False": "label"}[raw["proper_nouns_only"]],
                "social_value": raw["relevant_social_value"],
                "answers": texts,
                "groups": groups,
                "version": raw["version"],
                "label": "012".index(raw["label"]),
                **roles(target, 2, negative),
                "set": n_sets,
            }
        )
    return found


def quoted_words(cell):
    """The words of a list, in single or double quotes."""
    return [single or double for single, double in re.findall("'([^']*)'|\"([^\"]*)\"", cell)]


def without_wording(row):
    read = summary(row)
    read["answers"][row["unknown_loc"]] = "unknown"
    return read


@pytest.mark.slow
@pytest.mark.parametrize("category", ROWS_AND_TEMPLATES)
def test_our_rows_are_those_of_another_reading(upstream, category):
    theirs = reading(published(upstream, REPOSITORY, f"data_es/{category}.full.csv"))
    ours = rows_of("esbbq", category, upstream=upstream, answers="released")
    n_rows, n_templates = ROWS_AND_TEMPLATES[category]
    assert len(ours) == n_rows
    assert len({row["template_id"] for row in ours}) == n_templates
    assert len({row["set_id"] for row in ours}) == N_SETS[category]
    assert partition(ours, lambda row: row["set_id"]) == partition(theirs, lambda row: row["set"])
    for our, their in zip(ours, theirs, strict=True):
        assert without_wording(our) == {name: value for name, value in their.items() if name != "set"}
        assert our[f"ans{our['unknown_loc']}"] in SETS["esbbq"]["wordings"]


def test_wordings_are_drawn_by_set(upstream):
    published(upstream, REPOSITORY, "data_es/Age.full.csv")
    rows, again, other = (
        rows_of("esbbq", "Age", seed=seed, upstream=upstream, answers="released") for seed in (0, 0, 1)
    )
    assert rows == again
    of_set = {(row["set_id"], row["ans2"]) for row in rows}
    n_sets = len({row["set_id"] for row in rows})
    assert len(of_set) == n_sets == N_SETS["Age"]
    drawn = Counter(text for _, text in of_set)
    assert set(drawn) == set(SETS["esbbq"]["wordings"])
    mean, error = n_sets / 9, (n_sets * 8 / 81) ** 0.5
    assert all(abs(count - mean) < 6 * error for count in drawn.values())
    assert [row["ans2"] for row in rows] != [row["ans2"] for row in other]


def test_catalan_is_read_by_the_same_code(monkeypatch, tmp_path, upstream):
    """The Spanish rows under the name of a Catalan file, which is not at hand."""
    text = published(upstream, REPOSITORY, "data_es/Religion.full.csv").read_text("utf-8")
    mirror = invent(monkeypatch, tmp_path, REPOSITORY, {"data_ca/Religion.full.csv": text})
    rows = rows_of("cabbq", "Religion", upstream=mirror, answers="released")
    spanish = rows_of("esbbq", "Religion", upstream=upstream, answers="released")
    assert list(map(without_wording, rows)) == list(map(without_wording, spanish))
    assert {row["ans2"] for row in rows} == set(SETS["cabbq"]["wordings"])
    assert load_benchmark("cabbq").language_of(rows[0]).name == "Catalan"
