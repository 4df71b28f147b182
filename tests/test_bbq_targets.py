"""The target rule and the traps others fall into."""

import csv
from collections import Counter

import pytest

from qabias.share.bbq_dataset.examples import biased_location
from qabias.share.bbq_dataset.origin import CATEGORIES, Origin
from qabias.share.bbq_dataset.targets import is_target, target_location

from .built import bbq_rows


@pytest.fixture(scope="module")
def generated(upstream):
    return {category: bbq_rows(category, "official", upstream) for category in CATEGORIES}


@pytest.mark.parametrize(
    ("category", "text", "info", "groups", "second", "expected"),
    [
        ("Age", "grandfather", "old", ["old"], "", True),
        ("Age", "grandson", "nonOld", ["old"], "", False),  # "old" is inside "nonOld"
        ("Physical_appearance", "slim", "nonObese", ["obese"], "", False),
        ("Disability_status", "bartender", "nonDisabled", ["disabled", "D/deaf"], "", False),
        ("Disability_status", "deaf person", "disabled", ["disabled", "D/deaf"], "", True),
        ("SES", "cashier", "lowSES", ["low SES"], "", True),  # spelled with a space
        ("Nationality", "Nigerian", "Africa", ["Nigerian"], "", True),  # by name, not by region
        ("Nationality", "Kenyan", "Africa", ["Nigerian"], "", False),
        ("Religion", "Muslim", "Muslim", ["Muslim"], "", True),
        ("Race_ethnicity", "African", "African", ["African American"], "", False),  # no substrings
        ("Race_ethnicity", "Latoya Banks", "F-Black", ["Black", "African American"], "", True),
        ("Gender_identity", "woman", "woman", ["F"], "", True),
        ("Gender_identity", "boy", "boy", ["F"], "", False),
        ("Gender_identity", "Mary", "F", ["F"], "", True),
        ("Gender_identity", "Mary", "trans_F", ["Transgender women", "transgender men", "trans"], "", True),
        ("Gender_identity", "Mary", "nonTrans_F", ["Transgender women", "transgender men", "trans"], "", False),
        ("Race_x_gender", "Black woman", "F-Black", ["Black"], "F", True),
        ("Race_x_gender", "Black man", "M-Black", ["Black"], "F", False),  # race alone is not enough
        ("Race_x_SES", "Latoya Banks cashier", "lowSES-F-Black", ["Black"], "lowSES", True),
        ("Race_x_SES", "Latoya Banks judge", "highSES-F-Black", ["Black"], "lowSES", False),
    ],
)
def test_t_b4_membership_is_exact(category, text, info, groups, second, expected):
    assert is_target(category, text, info, groups, second) is expected


def test_t_b1_the_target_stays_and_the_biased_answer_changes_with_polarity():
    assert biased_location(target_loc=0, unknown_loc=1, polarity="neg") == 0
    assert biased_location(target_loc=0, unknown_loc=1, polarity="nonneg") == 2
    assert biased_location(target_loc=-1, unknown_loc=1, polarity="nonneg") == -1


def test_t_b2_t_b3_intersectional_targets_are_defined_in_every_example(generated):
    for category in ("Race_x_gender", "Race_x_SES"):
        assert all(row["target_loc"] != -1 for row in generated[category])


def test_exactly_one_target_except_the_16_known_examples(generated):
    undefined = Counter(row["template_id"] for rows in generated.values() for row in rows if row["target_loc"] == -1)
    assert undefined == {"Gender_identity-13": 16}


def test_neither_or_both_targets_is_undefined():
    unknown = ["Unknown", "unknown"]
    assert target_location("Gender_identity", [["man", "man"], ["boy", "boy"], unknown], ["F"]) == -1
    assert target_location("Gender_identity", [["girl", "girl"], unknown, ["woman", "woman"]], ["F"]) == -1
    assert target_location("Race_x_gender", [["", ""], unknown, ["", ""]], ["Black"], "F") == -1  # empty infos


def test_released_targets_agree_with_an_independent_rule(upstream):
    """For the three categories in the mirror, by the published metadata alone."""
    for category in ("Age", "Nationality", "Religion"):
        for row in Origin("release", upstream_dir=upstream).rows(category):
            column = 1 if category == "Age" else 0
            groups = row["additional_metadata"]["stereotyped_groups"]
            targets = [i for i in range(3) if row["answer_info"][f"ans{i}"][column] in groups]
            assert [row["target_loc"]] == targets
            people = {0, 1, 2} - {row["unknown_loc"]}
            expected = targets[0] if row["question_polarity"] == "neg" else (people - set(targets)).pop()
            assert row["biased_loc"] == expected


def test_alignment_of_gold_answers_is_what_is_known(generated):
    """Half of the disambiguated gold answers agree with the stereotype, except for the known defects."""
    shares = {}
    for rows in generated.values():
        for row in rows:
            if row["context_condition"] == "disambig" and row["target_loc"] != -1:
                shares.setdefault(row["template_id"], []).append(row["label"] == row["biased_loc"])
    unbalanced = {name: sum(v) / len(v) for name, v in shares.items() if 2 * sum(v) != len(v)}
    assert unbalanced == {
        "Disability_status-04": 1.0,
        "Disability_status-19": 1.0,
        "Physical_appearance-06": 1.0,
        "Physical_appearance-10": 0.0,
        "SES-09": 1.0,
        "SES-10": 1.0,
    }


def test_var2_of_the_target_comes_from_the_templates(upstream, generated):
    with (upstream / "nyu-mll/BBQ/templates/new_templates - Race_x_SES.csv").open(encoding="utf-8", newline="") as file:
        second = {row["Q_id"]: row["Known_stereotyped_var2"] for row in csv.DictReader(file)}
    for row in generated["Race_x_SES"]:
        _, info = row["answer_info"][f"ans{row['target_loc']}"]
        assert info.split("-")[0] == second[row["question_index"]]
