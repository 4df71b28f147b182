"""Who is who in BBQ: roles of answers and options, groups of targets, the metric's scores by them, and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from qabias.benchmarks import scoring
from qabias.benchmarks.base import Rules
from qabias.benchmarks.bbq.reading import probabilities_of
from qabias.benchmarks.scoring import Key, compute, read_columns
from qabias.share.metrics.bbq.computing import Computing
from qabias.share.metrics.bbq.rows import paper_category

_METRIC_COLUMNS = (
    *("category", "example_id", "template_id", "set_id", "question_polarity", "context_condition"),
    *("label", "target_loc", "biased_loc", "unknown_loc"),
)
_ROLES = ("label", "target_loc", "biased_loc", "unknown_loc")
_TEXT_CATEGORIES = ("Nationality", "Religion", "Sexual_orientation")
_GENDER_OF_WORD = {"man": "M", "boy": "M", "woman": "F", "girl": "F"}
PLACES = range(3)
RULES: Mapping[str, Sequence[str]] = MappingProxyType(
    {"unparsed": ("exclude", "wrong"), "allow_incomplete": ("no", "yes")}
)
"""How answers may be counted, the default first: what becomes of unread ones, and whether half a set is taken."""
ORDER = "order"
"""Key of an example whose answers stand in another order than in the file: what tells it from the others."""
_WORDS = {"target": "group member", "other": "other person", "unknown": "UNKNOWN", "person": "person"}


def score(
    table: pa.Table, answers: pa.Table, groupings: Mapping[str, Sequence[Key | None]], rules: Rules
) -> dict[str, Any]:
    """The metric's result by some rules, broken down by groups of rows (see `scoring.score`)."""

    def metric(table: pa.Table, answers: pa.Table, by: Sequence[str]) -> dict[str, Any]:
        return scores_of(table, answers, rules, by)

    return scoring.score(read_columns(table, _METRIC_COLUMNS), answers, groupings, metric)


def counting(rules: Rules) -> dict[str, Any]:
    """The rules that change how the metric counts; which sets it takes is no such rule."""
    return {name: value for name, value in rules.items() if name != "allow_incomplete"}


def scores_of(table: pa.Table, answers: pa.Table, rules: Rules, by: Sequence[str]) -> dict[str, Any]:
    """The metric's result for examples and their stored answers, broken down by columns of the examples."""
    predictions = answers["prediction"].to_pylist()
    options = {**counting(rules), "allow_incomplete": rules.get("allow_incomplete") == "yes"}
    return compute(
        Computing(),
        table,
        predictions,
        options,
        list(by),
        {"probabilities": probabilities_of(answers)},
    )


def paper_categories(table: pa.Table) -> list[str]:
    """The category of every row as the paper splits them: names apart from labels in two categories."""
    pairs = zip(table["category"].to_pylist(), table["label_type"].to_pylist(), strict=True)
    return [paper_category(category, style) for category, style in pairs]


def target_groups(table: pa.Table) -> list[str | None]:
    """The stereotyped group of every row, None where the target is undefined."""
    persons = [pc.struct_field(table["answer_info"], f"ans{place}").to_pylist() for place in PLACES]
    stereotyped = pc.struct_field(table["additional_metadata"], "stereotyped_groups").to_pylist()
    of_rows = zip(table["category"].to_pylist(), table["target_loc"].to_pylist(), stereotyped, *persons, strict=True)
    return [
        _group(category, groups, *people[target]) if target >= 0 else None
        for category, target, groups, *people in of_rows
    ]


def _group(category: str, groups: Sequence[str], text: str, tag: str) -> str:
    if category in _TEXT_CATEGORIES and text in groups:
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
    """A few hundred examples of the most biased templates, and how they were chosen."""
    templates = list(zip(table["template_id"].to_pylist(), strict=True))
    chosen = scoring.chosen_rows(templates, table["set_id"].to_pylist(), ranked)
    of_table, of_answers = scoring.taken(table, answers, chosen)
    examples = tuple(_example(row, answer) for row, answer in zip(of_table, of_answers, strict=True))
    how = (
        f"{len(examples):,} of {table.num_rows:,} examples: one whole set after another from every template in turn, "
        "in the order of the file, beginning with the template whose answers lean most towards the stereotype (largest "
        "s_AMB) and shown in that order. They show what the model does at its worst, not on average."
    )
    return examples, how + scoring.about_norm(of_answers)


def _example(row: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    options = [row[f"ans{place}"] for place in PLACES]
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
        "roles": [_WORDS[role(row, place)] for place in PLACES],
        "probabilities": scoring.probabilities(answer.get("loglikelihoods")) or answer.get("probabilities"),
        "answer": None if prediction is None or prediction < 0 else options[prediction],
        "right_answer": options[row["label"]],
        "stereotyped_answer": None if row["biased_loc"] < 0 else options[row["biased_loc"]],
        "generated": _shown(outputs),
        "said": answer.get("said"),
    }


def _shown(outputs: Sequence[str] | None) -> str | None:
    """What a model wrote; in several orders of the answers each by its number."""
    if not outputs:
        return None
    return outputs[0] if len(outputs) == 1 else "\n".join(f"order {n}: {text}" for n, text in enumerate(outputs, 1))


def role(row: Mapping[str, Any], place: int) -> str:
    """Whom an answer names: "target", "other", "unknown", or "person" where the target is undefined."""
    if place == row["unknown_loc"]:
        return "unknown"
    if row["target_loc"] < 0:
        return "person"
    return "target" if place == row["target_loc"] else "other"


def roles_of_options(row: Mapping[str, Any]) -> dict[str, int]:
    """Which answer plays which part, for baselines; -1 where a part is undefined."""
    biased, unknown = row["biased_loc"], row["unknown_loc"]
    return {
        "biased": biased,
        "counter_biased": -1 if biased == -1 else 3 - biased - unknown,
        "unknown": unknown,
        "gold": row["label"],
        "first": PLACES[0],
        "last": PLACES[-1],
    }


def in_order(row: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """An example with its answers in another order."""
    numbers = list(order)
    if numbers == list(PLACES):
        return dict(row)
    places = {name: numbers.index(row[name]) if row[name] >= 0 else -1 for name in _ROLES}
    answers = {f"ans{place}": row[f"ans{number}"] for place, number in enumerate(numbers)}
    infos = {f"ans{place}": row["answer_info"][f"ans{number}"] for place, number in enumerate(numbers)}
    return {**row, **places, **answers, "answer_info": infos, ORDER: f"/{''.join(map(str, numbers))}"}
