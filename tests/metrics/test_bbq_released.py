"""The BBQ metric on the authors' released predictions of UnifiedQA-11B."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from .helpers import ROOT, quiet, same

UPSTREAM = Path(os.environ.get("QABIAS_UPSTREAM") or ROOT.parent / "shared" / "upstream")


PREDICTIONS = UPSTREAM / "nyu-mll" / "BBQ" / "results" / "UnifiedQA"

# The authors' released predictions of UnifiedQA-11B

REFERENCE = [  # category, prompt, accuracy and bias ambiguous, accuracy and bias disambiguated, accuracy cost (percent)
    ("Age", "race", 54.67, 29.78, 93.48, 1.16, -2.17),
    ("Age", "arc", 33.88, 48.94, 89.62, 3.32, -5.54),
    ("Religion", "race", 65.00, 14.33, 88.00, 0.18, -0.67),
    ("Religion", "arc", 43.83, 24.50, 85.17, 3.53, -4.33),
]


def released(category: str) -> list[dict[str, Any]]:
    """The released rows with the bias columns worked out here, on their own, from the authors' metadata."""
    path = PREDICTIONS / f"preds_{category}.jsonl"
    if not path.exists():
        pytest.skip(f"{path.name} is not here; set QABIAS_UPSTREAM to a mirror with nyu-mll/BBQ/results/UnifiedQA")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        groups = row["additional_metadata"]["stereotyped_groups"]
        persons = [row["answer_info"][f"ans{place}"] for place in range(3)]
        in_group = [info == groups[0] if category == "Age" else text in groups for text, info in persons]
        (target,) = [place for place in range(3) if in_group[place]]
        (unknown,) = [place for place in range(3) if persons[place][1] == "unknown"]
        row["target_loc"], row["unknown_loc"] = target, unknown
        row["biased_loc"] = target if row["question_polarity"] == "neg" else 3 - target - unknown
        row["template_id"] = f"{category}-{row['question_index']}"
        row["set_id"] = f"{category}-{row['example_id'] // 4}"
    return rows


@pytest.mark.parametrize("match", ["strict", "released"])
@pytest.mark.parametrize(("category", "prompt", "acc_amb", "s_amb", "acc_dis", "s_dis", "cost"), REFERENCE)
def test_t_b23_released_predictions_give_the_reference_scores(
    bbq, category, prompt, acc_amb, s_amb, acc_dis, s_dis, cost, match
):
    rows = released(category)
    predictions = [row[f"unifiedqa-t5-11b_pred_{prompt}"] for row in rows]
    result = quiet(bbq, predictions=predictions, references=rows, match=match)
    names = ("accuracy_ambig", "bias_ambig", "accuracy_disambig", "bias_disambig", "accuracy_cost")
    assert [round(100 * result[name], 2) for name in names] == [acc_amb, s_amb, acc_dis, s_dis, cost]
    unparsed = 1 if (category, prompt) == ("Age", "arc") else 0  # example 2242
    assert result["n_unparsed_ambig"] + result["n_unparsed_disambig"] == unparsed
    right = sum(text == row[f"ans{row['label']}"].lower() for text, row in zip(predictions, rows, strict=True))
    assert result["accuracy"] == right / (len(rows) - unparsed)
    low, high = result["ci"]["bias_ambig"]
    assert low < result["bias_ambig"] < high


@pytest.mark.parametrize(
    ("category", "right", "rows_parsed", "biased", "persons"),
    [("Age", 558, 1839, 1113, 1281), ("Religion", 348, 600, 190, 252)],
)
def test_released_question_only_predictions_give_the_reference_counts(
    bbq, category, right, rows_parsed, biased, persons
):
    rows = [row for row in released(category) if row["context_condition"] == "ambig"]
    predictions = [row["unifiedqa-t5-11b_pred_qonly"] for row in rows]
    result = quiet(bbq, predictions=predictions, references=rows)
    assert (result["n_correct_ambig"], result["n_ambig"] - result["n_unparsed_ambig"]) == (right, rows_parsed)
    assert (result["n_biased_ambig"], result["n_biased_ambig"] + result["n_counter_biased_ambig"]) == (biased, persons)
    assert result["bias_ambig"] == pytest.approx((2 * biased - persons) / rows_parsed, abs=1e-12)


def test_released_answers_verbatim_are_parsed_as_themselves(bbq):
    rows = released("Age")
    for place in range(3):
        by_text = bbq.compute(predictions=[row[f"ans{place}"] for row in rows], references=rows, confidence=None)
        assert same(by_text, bbq.compute(predictions=[place] * len(rows), references=rows, confidence=None))
