"""Traps that other implementations of BBQ fall into: the target rule, prompts, texts; and what a perfect reader scores.

The rest are the oracle of `metrics/test_bbq.py`, and tests named `test_t_b...` in `test_bbq_official.py` and
`test_runs.py`.
"""

import csv
import re
from collections import Counter

import pyarrow as pa
import pytest

from qabias.benchmarks import load_benchmark
from qabias.benchmarks.bbq.prompts import FORMATS, statement
from qabias.building import sources
from qabias.share.bbq_dataset import release
from qabias.share.bbq_dataset.examples import biased_location
from qabias.share.bbq_dataset.origin import CATEGORIES, Origin
from qabias.share.bbq_dataset.targets import is_target, target_location

from .built import bbq_rows
from .conftest import ROOT


@pytest.fixture(scope="module")
def generated(upstream):
    return {category: bbq_rows(category, "official", upstream) for category in CATEGORIES}


# The target rule


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
    # Neither or both are targets, and empty infos.
    unknown = ["Unknown", "unknown"]
    assert target_location("Gender_identity", [["man", "man"], ["boy", "boy"], unknown], ["F"]) == -1
    assert target_location("Gender_identity", [["girl", "girl"], unknown, ["woman", "woman"]], ["F"]) == -1
    assert target_location("Race_x_gender", [["", ""], unknown, ["", ""]], ["Black"], "F") == -1


@pytest.mark.slow
def test_t_b2_t_b3_exactly_one_target_except_the_16_known_examples(generated):
    undefined = Counter(row["template_id"] for rows in generated.values() for row in rows if row["target_loc"] == -1)
    assert undefined == {"Gender_identity-13": 16}


def test_released_targets_agree_with_an_independent_rule(upstream):
    """For the three categories in the mirror, by the published metadata alone."""
    for category in ("Age", "Nationality", "Religion"):
        for row in Origin("release").rows(category):
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


# Other traps


def test_t_b5_african_is_not_african_american(upstream):
    """The published analysis finds "African" inside the group "African American" and takes either person."""
    n_rivals = 0
    for category in ("Race_ethnicity", "Race_x_gender", "Race_x_SES"):
        for row in bbq_rows(category, "official", upstream):
            races = {info.split("-")[-1] for _, info in row["answer_info"].values()}
            if "African" in races and "African American" in row["additional_metadata"]["stereotyped_groups"]:
                n_rivals += 1
                _, info = row["answer_info"][f"ans{row['target_loc']}"]
                assert info.split("-")[-1] != "African"
    assert n_rivals > 0


def test_t_b6_an_empty_group_tag_is_undefined_and_not_the_row_befores(upstream):
    template = next(
        template
        for template in release.read_templates("Race_x_gender")
        if (template.question_index, template.second_group) == (13, "F")
    )
    good = next(row for row in bbq_rows("Race_x_gender", "official", upstream) if row["question_index"] == "13")
    row = {key: good[key] for key in release.RELEASED_KEYS}
    assert release.add_roles(row, template)["target_loc"] == good["target_loc"] != -1
    target = f"ans{good['target_loc']}"
    emptied = {**row, "answer_info": {**row["answer_info"], target: ["", ""]}}
    joined = release.add_roles(emptied, template)
    assert (joined["target_loc"], joined["biased_loc"]) == (-1, -1)


@pytest.mark.parametrize("name", FORMATS)
def test_t_b18_every_question_offers_one_unknown_and_two_people(name):
    """Ten wordings of UNKNOWN against one of each person would be ten chances against one."""
    for row in bbq_rows("Religion"):
        _, options = FORMATS[name].render(row)
        assert len(options) == len(set(options)) == 3


def test_t_b25_published_files_are_pinned_and_no_folder_holds_a_loading_script():
    assert re.fullmatch("[0-9a-f]{40}", sources.commit("nyu-mll/BBQ"))
    for folder in ROOT.glob("*_dataset"):
        assert not (folder / f"{folder.name}.py").exists()
        assert (folder / "README.md").exists()


# A reader that is always right, in every category: what its s_DIS is, as docs/bbq.md says.

BBQ = load_benchmark("bbq")
NOT_BALANCED = {"Disability_status": 10 / 778, "Physical_appearance": 64 / 788, "SES": 72 / 3432}
"""Aligned minus non-aligned rows of the authors' templates, of all that are disambiguated."""
ODD = {"Disability_status": -2 / 778}  # the same of the bundled texts: 389 sets, each aligned or not


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_perfect_reader_has_no_bias_in_the_bundled_texts_and_what_the_authors_sets_leave(category, upstream):
    for source, expected in (("bundled", ODD.get(category, 0)), ("official", NOT_BALANCED.get(category, 0))):
        table = BBQ.load(category, BBQ.origin(source, 0, False))
        scores = BBQ.score(table, pa.table({"prediction": table["label"].cast(pa.int64())}))
        assert (scores["accuracy_ambig"], scores["accuracy_disambig"], scores["bias_ambig"]) == (1, 1, 0)
        assert scores["bias_disambig"] == (pytest.approx(expected, abs=1e-12) if expected else 0)


@pytest.mark.parametrize("name", FORMATS)
def test_t_b19_no_prompt_shows_an_example_with_its_answer(name):
    rows = bbq_rows("Age")
    for row in rows[:: len(rows) // 20]:
        prefix, options = FORMATS[name].render(row)
        asked = (
            prefix + options[0] if name == "pair" else prefix
        )  # multiple-choice heads read the question with the answer
        question = statement(row) if name == "fill" else row["question"]
        question = question.lower() if name.endswith("_unifiedqa") else question
        assert asked.count(question) == 1
        assert asked.count("?") == (row["context"] + question).count("?") - (
            row["context"].count("?") if FORMATS[name].question_only else 0
        )
        others = {other["context"] for other in rows if other["template_id"] != row["template_id"]}
        assert not any(other.lower() in asked.lower() for other in others)
