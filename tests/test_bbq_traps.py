"""Traps that other implementations of BBQ fall into, where no other test module has a place for them.

The rest are tests named `test_t_b...` in `metrics/test_bbq_scores.py`, `test_bbq_targets.py` and `test_runs.py`.
"""

import re

import evaluate
import numpy as np
import pytest

from qabias.benchmarks.bbq.prompts import FORMATS, statement
from qabias.building import sources
from qabias.share.bbq_dataset import release
from qabias.share.bbq_dataset.origin import CATEGORIES

from .built import bbq_rows
from .conftest import ROOT


def _texts(row):
    return [row[field] for field in ("context", "question", "ans0", "ans1", "ans2")]


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
        for template in release.read_templates("Race_x_gender", upstream)
        if (template.question_index, template.second_group) == (13, "F")
    )
    good = next(row for row in bbq_rows("Race_x_gender", "official", upstream) if row["question_index"] == "13")
    row = {key: good[key] for key in release.RELEASED_KEYS}
    assert release.add_roles(row, template)["target_loc"] == good["target_loc"] != -1
    target = f"ans{good['target_loc']}"
    emptied = {**row, "answer_info": {**row["answer_info"], target: ["", ""]}}
    joined = release.add_roles(emptied, template)
    assert (joined["target_loc"], joined["biased_loc"]) == (-1, -1)


def test_t_b10_typing_errors_are_kept_as_published_and_fixed_on_request(upstream):
    def n_wrong(fixes):
        rows = bbq_rows("Disability_status", "official", upstream, fixes=fixes)
        return sum(any("monther" in text for text in _texts(row)) for row in rows)

    assert n_wrong(fixes=False) == 24
    assert n_wrong(fixes=True) == 0


def test_t_b10_answers_name_people_as_their_template_does_not_by_string_search():
    """Every bundled answer is one of exactly two people and UNKNOWN, told apart by position."""
    for category in CATEGORIES:
        for row in bbq_rows(category):
            infos = [info for _, info in row["answer_info"].values()]
            assert infos.count("unknown") == 1
            assert infos[row["unknown_loc"]] == "unknown"


@pytest.mark.parametrize("name", FORMATS)
def test_t_b18_every_question_offers_one_unknown_and_two_people(name):
    """Ten wordings of UNKNOWN against one of each person would be ten chances against one."""
    for row in bbq_rows("Religion"):
        _, options = FORMATS[name].render(row)
        assert len(options) == len(set(options)) == 3


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


def test_t_b25_published_files_are_pinned_and_no_folder_holds_a_loading_script():
    assert re.fullmatch("[0-9a-f]{40}", sources.commit("nyu-mll/BBQ"))
    for folder in ROOT.glob("*_dataset"):
        assert not (folder / f"{folder.name}.py").exists()
        assert (folder / "README.md").exists()


def test_t_e3_the_interval_is_as_wide_as_the_sampling_error_of_templates():
    """Templates that are right always or never: the accuracy of T templates has the standard error sqrt(p(1-p)/T)."""
    rows, predictions = [], []
    n_templates = 100
    for number in range(n_templates):
        for place, polarity in enumerate(("neg", "nonneg")):
            rows.append(
                {
                    "category": "Age",
                    "example_id": 2 * number + place,
                    "template_id": f"Age-{number:03d}",
                    "set_id": f"Age-{number:03d}-000",
                    "question_polarity": polarity,
                    "context_condition": "ambig",
                    "label": 2,
                    "target_loc": 0,
                    "biased_loc": 0 if polarity == "neg" else 1,
                    "unknown_loc": 2,
                }
            )
            predictions.append(2 if number % 2 else 0)
    metric = evaluate.load(str(ROOT / "metrics" / "bbq"))
    low, high = metric.compute(predictions=predictions, references=rows)["ci"]["accuracy_ambig"]
    expected = 2 * 1.96 * np.sqrt(0.25 / n_templates)
    # With 99 degrees of freedom a quantile is 1.98, and other things are small too.
    assert high - low == pytest.approx(expected, rel=0.1)
