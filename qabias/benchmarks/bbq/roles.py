"""What the tables of BBQ are made from: the metric's scores by any grouping, the targets' groups, and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from qabias.benchmarks import locate
from qabias.tables.model import rows
from qabias.benchmarks.grouping import Key

_METRIC_COLUMNS = (
    *("category", "example_id", "template_id", "set_id", "question_polarity", "context_condition"),
    *("label", "target_loc", "biased_loc", "unknown_loc"),
)
# Categories that the paper, and so the metric, splits into labels and proper names.
_NAME_CATEGORIES = ("Gender_identity", "Race_ethnicity")
_TEXT_CATEGORIES = ("Nationality", "Religion", "Sexual_orientation")
_GENDER_OF_WORD = {"man": "M", "boy": "M", "woman": "F", "girl": "F"}
_PLACES = range(3)


def score(table: pa.Table, answers: pa.Table, groupings: Mapping[str, Sequence[Key | None]]) -> dict[str, Any]:
    """The metric's result, broken down by groups of rows (see `rows.score`)."""
    return rows.score(table.select(_METRIC_COLUMNS), answers, groupings, _metric)


def _metric(table: pa.Table, answers: pa.Table, by: Sequence[str]) -> dict[str, Any]:
    import evaluate  # takes seconds, and only scoring needs it

    metric = evaluate.load(str(locate.metric_folder("bbq")))
    references = {name: table[name].to_pylist() for name in table.column_names}
    result: dict[str, Any] = metric.compute(
        predictions=answers["prediction"].to_pylist(), references=references, by=list(by)
    )
    return result


def paper_categories(table: pa.Table) -> list[str]:
    """The category of every row as the paper splits them: names apart from labels in two categories."""
    return [
        f"{category} (names)" if category in _NAME_CATEGORIES and style == "name" else category
        for category, style in zip(table["category"].to_pylist(), table["label_type"].to_pylist(), strict=True)
    ]


def target_groups(table: pa.Table) -> list[str | None]:
    """The stereotyped group of every row, None where the target is undefined.

    It is the label itself where a category has labels (a religion, a nationality, a race), and the tag of the group
    where people are described in words of each template's own ("old", "lowSES", "disabled") or have names.
    """
    persons = [pc.struct_field(table["answer_info"], f"ans{place}").to_pylist() for place in _PLACES]
    of_rows = zip(table["category"].to_pylist(), table["target_loc"].to_pylist(), *persons, strict=True)
    return [_group(category, *people[target]) if target >= 0 else None for category, target, *people in of_rows]


def _group(category: str, text: str, tag: str) -> str:
    if category in _TEXT_CATEGORIES:
        return text
    if category == "Gender_identity":
        group = tag.split("_")[0]
        return _GENDER_OF_WORD.get(group, group)
    if category == "Race_ethnicity":
        return tag.split("-")[-1]
    if category == "Race_x_SES":
        # Names carry the gender too: lowSES-F-Black.
        status, *_, race = tag.split("-")
        return f"{status}-{race}"
    return tag


def select_examples(
    table: pa.Table, answers: pa.Table, ranked: Sequence[Key]
) -> tuple[tuple[Mapping[str, Any], ...], str]:
    """A few hundred examples of the most biased templates, and how they were chosen.

    Args:
        table: The examples.
        answers: Parallel to them.
        ranked: The templates, the most biased first.
    """
    templates = list(zip(table["template_id"].to_pylist(), strict=True))
    chosen = rows.chosen_rows(templates, table["set_id"].to_pylist(), ranked)
    of_table, of_answers = rows.taken(table, answers, chosen)
    examples = tuple(_example(row, answer) for row, answer in zip(of_table, of_answers, strict=True))
    how = (
        f"{len(examples):,} of {table.num_rows:,} examples: one whole set after another from every template in turn, "
        "in the order of the file, beginning with the template whose answers lean most towards the stereotype (largest "
        "s_AMB) and shown in that order. They show what the model does at its worst, not on average."
    )
    return examples, how + rows.about_norm(of_answers)


def _example(row: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    options = [row[f"ans{place}"] for place in _PLACES]
    prediction = answer["prediction"]
    outputs = answer.get("outputs")
    return {
        "category": row["category"],
        "template_id": row["template_id"],
        "example_id": row["example_id"],
        "condition": row["context_condition"],
        "polarity": row["question_polarity"],
        "context": row["context"],
        "question": row["question"],
        "options": options,
        "roles": [_role(row, place) for place in _PLACES],
        "probabilities": rows.probabilities(answer.get("loglikelihoods")),
        "answer": None if prediction is None or prediction < 0 else options[prediction],
        "right_answer": options[row["label"]],
        "stereotyped_answer": None if row["biased_loc"] < 0 else options[row["biased_loc"]],
        "generated": outputs[0] if outputs else None,
    }


def _role(row: Mapping[str, Any], place: int) -> str:
    if place == row["unknown_loc"]:
        return "UNKNOWN"
    if row["target_loc"] < 0:
        return "person"
    return "group member" if place == row["target_loc"] else "other person"
