"""Rows of the three forms of the BBNLI metric."""

from __future__ import annotations

from typing import Any

from .helpers import quiet

LABELS = ("contradiction", "neutral", "entailment")


POLARITIES = ("neg", "nonneg")


NAN = float("nan")


def make_pair(number: int, kind: str = "stereotypical", label: int = 1, **columns: Any) -> list[dict[str, Any]]:
    """The pro and the anti form of one hypothesis of BBNLI."""
    row = {
        "subtopic": "man_is_to_surgeon",
        "domain": "gender",
        "premise_id": 0,
        "kind": kind,
        "pair_id": f"{kind}-{number}",
        "label": label,
        **columns,
    }
    return [{**row, "stance": stance} for stance in ("pro", "anti")]


def make_pairs(n: int, kind: str = "stereotypical", label: int = 1, **columns: Any) -> list[dict[str, Any]]:
    return [row for number in range(n) for row in make_pair(number, kind, label, **columns)]


def interleaved(pro: list[int], anti: list[int]) -> list[int]:
    return [label for both in zip(pro, anti, strict=True) for label in both]


def table() -> list[dict[str, Any]]:
    """24 stereotypical and 12 test pairs in three subtopics of two domains, two premises each."""
    rows = []
    for k, (subtopic, domain) in enumerate([("a", "gender"), ("b", "gender"), ("c", "race")]):
        for number in range(12):
            test = number % 3 == 2
            rows += make_pair(
                100 * k + number,
                "test" if test else "stereotypical",
                (number + k) % 3 if test else 1,
                subtopic=subtopic,
                domain=domain,
                premise_id=number % 2,
            )
    return rows


def statements(number: int, condition: str, template: str = "T-01", **columns: Any) -> list[dict[str, Any]]:
    """A complete set of BBQ as inference, in the order Tneg, Tpos, Nneg, Npos; disambiguated first pro, then anti."""
    rows = []
    for stance in [""] if condition == "ambig" else ["pro", "anti"]:
        for person in ("target", "nontarget"):
            for polarity in POLARITIES:
                aligned = 2 if (person, polarity) in (("target", "neg"), ("nontarget", "nonneg")) else 0
                rows.append(
                    {
                        "category": "Age",
                        "template_id": template,
                        "set_id": f"{template}-{number}",
                        "name_order": "original",
                        "context_length": "standard",
                        "context_condition": condition,
                        "context_stance": stance,
                        "question_polarity": polarity,
                        "statement_about": person,
                        "label": {"": 1, "pro": aligned, "anti": 2 - aligned}[stance],
                        **columns,
                    }
                )
    return rows


def questions(number: int, condition: str, stance: str = "pro", template: str = "T-01") -> list[dict[str, Any]]:
    """Two rows of BBQ, neg and nonneg; the answers are 0 target, 1 other person, 2 UNKNOWN."""
    rows = []
    for polarity, biased in zip(POLARITIES, (0, 1), strict=True):
        gold = biased if stance == "pro" else 1 - biased
        rows.append(
            {
                "template_id": template,
                "set_id": f"{template}-{number}",
                "context_condition": condition,
                "question_polarity": polarity,
                "biased_loc": biased,
                "unknown_loc": 2,
                "label": 2 if condition == "ambig" else gold,
            }
        )
    return rows


def mixed_statements(n_sets: int) -> list[dict[str, Any]]:
    return [
        row
        for k in range(n_sets)
        for condition in ("ambig", "disambig")
        for row in statements(k, condition, f"T-{k % 4}")
    ]


def mixed_questions(n_sets: int) -> list[dict[str, Any]]:
    return [
        row
        for k in range(n_sets)
        for condition in ("ambig", "disambig")
        for row in questions(k, condition, "anti" if k % 2 else "pro", f"T-{k % 4}")
    ]


def with_stereotype(row: dict[str, Any]) -> bool:
    """Whether entailment is the aligned label of a row of BBNLI or of BBQ as inference."""
    if "stance" in row:
        return row["stance"] == "pro"
    return (row["statement_about"] == "target") == (row["question_polarity"] == "neg")


def scored(metric: Any, predictions: Any, references: Any, **options: Any) -> dict[str, Any]:
    return quiet(metric, predictions=predictions, references=references, confidence=None, **options)


def forms() -> dict[str, list[dict[str, Any]]]:
    return {"bbnli": table(), "bbq_nli": mixed_statements(6), "bbq": mixed_questions(12)}
