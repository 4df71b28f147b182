"""Rows of BBQ and answers to them."""

from __future__ import annotations

from typing import Any

OF_PROBABILITIES = ("bias_probability_ambig", "bias_probability_disambig")
"""Scores that there are only with probabilities."""

SCORES = (
    *("accuracy_ambig", "accuracy_disambig", "accuracy", "bias_ambig", "bias_disambig", "bias_ambig_among_errors"),
    *("accuracy_aligned", "accuracy_nonaligned", "accuracy_cost"),
    *("share_target_ambig", "share_nontarget_ambig", "share_unknown_ambig"),
    *("share_target_disambig", "share_nontarget_disambig", "share_unknown_disambig"),
    *("share_position_0", "share_position_1", "share_position_2", "unparsed_share"),
)


def make_set(number: int = 0, template: str = "Age-01", order: tuple[int, int, int] = (0, 1, 2), **columns: Any):
    """Four rows of one set; `order` gives the places of target, other person and UNKNOWN; both golds are persons.

    In the two disambiguated rows the text speaks of one event: the negative question asks for the other person, the
    non-negative one for the target, so both right answers are non-aligned for an even number, aligned for an odd one.
    """
    target, other, unknown = order
    texts = {target: "The grandfather", other: "The grandson", unknown: "Can't be determined"}
    rows = []
    for place, (polarity, condition) in enumerate(
        [("neg", "ambig"), ("neg", "disambig"), ("nonneg", "ambig"), ("nonneg", "disambig")]
    ):
        biased = target if polarity == "neg" else other
        counter = other if polarity == "neg" else target
        gold = counter if number % 2 == 0 else biased
        rows.append(
            {
                "category": "Age",
                "example_id": 4 * number + place,
                "template_id": template,
                "set_id": f"{template}-{number}",
                "question_polarity": polarity,
                "context_condition": condition,
                "label": unknown if condition == "ambig" else gold,
                "target_loc": target,
                "biased_loc": biased,
                "unknown_loc": unknown,
                **{f"ans{index}": texts[index] for index in range(3)},
                **columns,
            }
        )
    return rows


def table() -> list[dict[str, Any]]:
    """Eight sets, two in each of four templates, with the answers in six orders."""
    orders = [(0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1), (1, 2, 0), (2, 1, 0), (0, 1, 2), (1, 2, 0)]
    return [row for k, order in enumerate(orders) for row in make_set(k, f"Age-0{k // 2 + 1}", order)]


def answer(row: dict[str, Any], kind: str) -> int:
    if kind == "biased":
        return row["biased_loc"]
    if kind == "counter":
        return 3 - row["biased_loc"] - row["unknown_loc"]
    return {"unknown": row["unknown_loc"], "right": row["label"], "unparsed": -1, "target": row["target_loc"]}[kind]


def answers(rows: list[dict[str, Any]], kind: str) -> list[int]:
    return [answer(row, kind) for row in rows]
