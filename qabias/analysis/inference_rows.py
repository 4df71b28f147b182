"""Rows of an inference run: scored by groups, ranked, and chosen as examples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from qabias.analysis import Column, Value, estimate
from qabias.benchmarks import inference

Scores = Mapping[str, Any]
Key = tuple[str, ...]

N_EXAMPLES = 300

ALL = "All"
LABELS = ("contradiction", "neutral", "entailment")
# What the metric reads; texts and references stay behind.
BBNLI_COLUMNS = ("subtopic", "kind", "stance", "pair_id", "premise_id", "label")
BBQ_COLUMNS = (
    *("category", "template_id", "set_id", "name_order", "context_length", "context_condition"),
    *("context_stance", "question_polarity", "statement_about", "label"),
)

PAPER = "of Akyurek et al. (2022)"
N = Column("n", "Answers", "count")
ACCURACIES = (
    Column("accuracy_pro", "Accuracy, with the stereotype", "share"),
    Column("accuracy_anti", "Accuracy, against it", "share"),
    Column("accuracy_gap", "Difference", "signed"),
)
SHARES = tuple(Column(f"share_{label}", label.capitalize(), "share") for label in (*LABELS, "unparsed"))

READ_BIAS = (
    "0 is best: +100 % is an answer with the stereotype every time, -100 % one against it every time. Neutral and "
    "unparsed answers count as 0, so a model that takes no side and one that takes both sides equally often both score "
    "0: look at the shares of the labels."
)
READ_FEW = "A score near 0 does not prove that a model is unbiased: it speaks of these few texts, written for the USA."


# Scores by group


def score(
    table: pa.Table, answers: pa.Table, columns: Sequence[str], groupings: Mapping[str, Sequence[Key | None]]
) -> dict[str, dict[Key, Scores]]:
    """The metric's scores by groups of rows.

    Args:
        table: The examples.
        answers: Parallel to them.
        columns: What the metric reads.
        groupings: By name the group of every row; None leaves the row out of all groups.

    Returns:
        For every grouping the scores by group, in sorted order of the groups.
    """
    table = table.select(columns)
    groups = {name: sorted({key for key in keys if key is not None}) for name, keys in groupings.items()}
    for name, keys in groupings.items():
        # Numbers, for texts may hold the comma by which the metric joins values.
        code: dict[Key | None, str] = {key: str(number) for number, key in enumerate(groups[name])}
        table = table.append_column(_column(name), pa.array([code.get(key, "") for key in keys], pa.string()))
    with warnings.catch_warnings():
        # That some answers are unparsed was said when the run was scored.
        warnings.filterwarnings("ignore", "bbnli: ", UserWarning)
        by = inference.score(table, answers, list(map(_column, groupings)))["by"]
    return {
        name: {key: with_shares(by[_column(name)][str(number)]) for number, key in enumerate(keys)}
        for name, keys in groups.items()
    }


def _column(grouping: str) -> str:
    return f"group of {grouping}"  # no column of the data set


def with_shares(scores: Scores) -> dict[str, Any]:
    """Scores with the shares of the labels beside them, as `share_neutral`."""
    return {**scores, **{f"share_{label}": share for label, share in scores["label_share"].items()}}


def where(given: Sequence[str | None], keys: Iterable[Any]) -> list[Key | None]:
    """The key of every row, None where nothing is given."""
    return [key if value is not None else None for value, key in zip(given, keys, strict=True)]


def values(scores: Scores, columns: Sequence[Column]) -> list[Value]:
    """The scores and counts of the metric that the columns name."""
    return [int(scores[column.name]) if column.kind == "count" else estimate(scores, column.name) for column in columns]


def most_biased_first(groups: Mapping[Key, Scores], names: Sequence[str]) -> list[Key]:
    """The groups from the one that leans most towards the stereotype to the one that leans most against it."""

    def leaning(key: Key) -> tuple[tuple[float, ...], Key]:
        scores = [groups[key][name] for name in names]
        return tuple(float("inf") if np.isnan(score) else -score for score in scores), key

    return sorted(groups, key=leaning)


# Examples


def chosen_rows(groups: Sequence[Key | None], units: Sequence[Any], ranked: Sequence[Key]) -> list[int]:
    """Rows of whole units, one unit of every group in turn, until there are enough; in the order of the groups."""
    within: dict[Key, dict[Any, list[int]]] = {key: {} for key in ranked}
    for number, (key, unit) in enumerate(zip(groups, units, strict=True)):
        if key is not None:
            within[key].setdefault(unit, []).append(number)
    in_turn = sorted(
        (turn, rank, rows) for rank, key in enumerate(ranked) for turn, rows in enumerate(within[key].values())
    )
    n_until = np.cumsum([len(rows) for *_, rows in in_turn])
    kept = in_turn[: max(1, int(np.searchsorted(n_until, N_EXAMPLES, side="right")))]
    return [number for _, _, rows in sorted(kept, key=lambda entry: (entry[1], entry[0])) for number in rows]


def examples(
    table: pa.Table, answers: pa.Table, chosen: Sequence[int], about: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """Rows and their answers as plain values; `about` tells what is shown of a row."""
    rows, of_rows = (columns.take(pa.array(chosen, pa.int64())).to_pylist() for columns in (table, answers))
    return tuple({**about(row), **_answer(answer)} for row, answer in zip(rows, of_rows, strict=True))


def bbnli_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stereotypical hypothesis of BBNLI."""
    names = ("subtopic", "domain", "example_id", "stance", "premise", "hypothesis", "question")
    stereotyped = "entailment" if row["stance"] == "pro" else "contradiction"
    return {
        **{name: row[name] for name in names},
        "right_answer": LABELS[row["label"]],
        "stereotyped_answer": stereotyped,
    }


def bbq_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of BBQ as inference."""
    names = ("category", "template_id", "example_id", "name_order", "context_length", "premise", "hypothesis")
    return {
        **{name: row[name] for name in names},
        "condition": row["context_condition"],
        "facts": row["context_stance"] or None,
        "polarity": row["question_polarity"],
        "about": row["statement_about"],
        "right_answer": LABELS[row["label"]],
        "stereotyped_answer": LABELS[row["bias_label"]],
    }


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the model said; lists where several texts were sampled."""
    predictions = answer["predictions"] if "predictions" in answer else [answer["prediction"]]
    said = [None if label is None or label < 0 else LABELS[label] for label in predictions]
    outputs = answer.get("outputs")
    probabilities = _probabilities(answer)
    return {
        "labels": None if probabilities is None else list(LABELS),
        "probabilities": probabilities,
        "answer": said[0] if len(said) == 1 else said,
        "generated": outputs[0] if outputs and len(outputs) == 1 else outputs,
    }


def _probabilities(answer: Mapping[str, Any]) -> list[float] | None:
    """Probabilities of the labels, or shares of their total where they come from log-likelihoods; None without."""
    if answer.get("probabilities") is not None:
        return [round(share, 6) for share in answer["probabilities"]]
    if answer.get("loglikelihoods") is None:
        return None
    values = np.array(answer["loglikelihoods"], dtype=np.float64)
    if not np.isfinite(values.max()):
        return None
    shares = np.exp(values - values.max())
    return [round(float(share), 6) for share in shares / shares.sum()]
