"""What the tables of BBQ are made from: the metric's scores by any grouping, the targets' groups, and examples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias import catalog

Scores = Mapping[str, Any]
Key = tuple[str, ...]

N_EXAMPLES = 300

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
    """The metric's result, broken down by groups of rows in one call.

    Args:
        table: The examples.
        answers: Parallel to them, with `prediction`.
        groupings: By name the group of every row; None leaves the row out of all groups.

    Returns:
        The metric's result; its `by` holds for every grouping the scores by group, in sorted order of the groups.
    """
    import evaluate  # takes seconds, and only scoring needs it

    metric = evaluate.load(str(catalog.metric_folder("bbq")))
    columns = {name: table[name].to_pylist() for name in _METRIC_COLUMNS}
    groups = {name: sorted({key for key in keys if key is not None}) for name, keys in groupings.items()}
    for name, keys in groupings.items():
        # Numbers, for the metric joins the values of several columns by commas, which stereotypes hold too.
        code: dict[Key | None, str] = {key: str(number) for number, key in enumerate(groups[name])}
        columns[_column(name)] = [code.get(key, "") for key in keys]
    with warnings.catch_warnings():
        # That some answers are unparsed was said when the run was scored.
        warnings.filterwarnings("ignore", "bbq: ", UserWarning)
        result: dict[str, Any] = metric.compute(
            predictions=answers["prediction"].to_pylist(), references=columns, by=list(map(_column, groupings))
        )
    by = result["by"]
    result["by"] = {
        name: {key: by[_column(name)][str(number)] for number, key in enumerate(keys)} for name, keys in groups.items()
    }
    return result


def _column(grouping: str) -> str:
    return f"group of {grouping}"  # no column of the data set


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
    rows = zip(table["category"].to_pylist(), table["target_loc"].to_pylist(), *persons, strict=True)
    return [_group(category, *row_persons[target]) if target >= 0 else None for category, target, *row_persons in rows]


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


def most_biased_first(templates: Mapping[Key, Scores]) -> list[str]:
    """Template ids from the one that leans most towards the stereotype to the one that leans most against it.

    They are ordered by s_AMB, then by s_DIS; undefined scores come last.
    """

    def leaning(key: Key) -> tuple[float, float, str]:
        ambiguous, disambiguated = (templates[key][name] for name in ("bias_ambig", "bias_disambig"))
        return _descending(ambiguous), _descending(disambiguated), key[0]

    return [key[0] for key in sorted(templates, key=leaning)]


def _descending(value: float) -> float:
    return float("inf") if np.isnan(value) else -value


def select_examples(
    table: pa.Table, answers: pa.Table, ranked: Sequence[str]
) -> tuple[tuple[Mapping[str, Any], ...], str]:
    """A few hundred examples of the most biased templates, and how they were chosen.

    Args:
        table: The examples.
        answers: Parallel to them.
        ranked: Template ids, the most biased first.
    """
    chosen = pa.array(_chosen_rows(table, ranked), pa.int64())
    rows = table.take(chosen).to_pylist()
    examples = tuple(_example(row, answer) for row, answer in zip(rows, answers.take(chosen).to_pylist(), strict=True))
    how = (
        f"{len(examples):,} of {table.num_rows:,} examples: one whole set after another from every template in turn, "
        "in the order of the file, beginning with the template whose answers lean most towards the stereotype (largest "
        "s_AMB) and shown in that order. They show what the model does at its worst, not on average."
    )
    return examples, how


def _chosen_rows(table: pa.Table, ranked: Sequence[str]) -> list[int]:
    sets: dict[str, dict[str, list[int]]] = {template: {} for template in ranked}
    for number, (template, name) in enumerate(
        zip(table["template_id"].to_pylist(), table["set_id"].to_pylist(), strict=True)
    ):
        sets[template].setdefault(name, []).append(number)
    in_turn = sorted(
        (turn, rank, rows) for rank, template in enumerate(ranked) for turn, rows in enumerate(sets[template].values())
    )
    n_until = np.cumsum([len(rows) for *_, rows in in_turn])
    kept = in_turn[: max(1, int(np.searchsorted(n_until, N_EXAMPLES, side="right")))]
    return [number for _, _, rows in sorted(kept, key=lambda entry: (entry[1], entry[0])) for number in rows]


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
        "probabilities": _probabilities(answer.get("loglikelihoods")),
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


def _probabilities(loglikelihoods: Sequence[float] | None) -> list[float] | None:
    """Shares of the options in their total probability, whatever their lengths; None where none is possible."""
    if not loglikelihoods:
        return None
    values = np.array(loglikelihoods, dtype=np.float64)
    if not np.isfinite(values.max()):
        return None
    shares = np.exp(values - values.max())
    return [round(float(share), 6) for share in shares / shares.sum()]
