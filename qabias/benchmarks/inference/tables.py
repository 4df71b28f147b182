"""What the tables of an inference run are made from: columns, the metric's scores by any grouping, and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from qabias.answers.parsing import LABELS
from qabias.benchmarks import scoring
from qabias.benchmarks.base import Rules
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.inference import benchmark
from qabias.benchmarks.inference.questions import ANSWERS
from qabias.benchmarks.scoring import Key, read_columns
from qabias.tables.model import Column

# What the metric reads; texts and references stay behind.
BBNLI_COLUMNS = ("subtopic", "kind", "stance", "pair_id", "premise_id", "label")
BBQ_COLUMNS = (
    *("category", "template_id", "set_id", "name_order", "context_length", "context_condition"),
    *("context_stance", "question_polarity", "statement_about", "label"),
)
QUESTION_COLUMNS = (
    *("category", "template_id", "set_id", "question_polarity", "context_condition"),
    *("label", "biased_loc", "unknown_loc"),
)

N = Column("n", "Answers", "count")
ACCURACIES = (
    Column("accuracy_pro", "Accuracy, with the stereotype", "share"),
    Column("accuracy_anti", "Accuracy, against it", "share"),
    Column("accuracy_gap", "Difference", "signed"),
)
SHARES = tuple(Column(f"share_{label}", label.capitalize(), "share") for label in (*LABELS, "unparsed"))
PERSON_SHARES = tuple(
    Column(f"share_{answer}", title, "share")
    for answer, title in (
        ("target", "Group member"),
        ("nontarget", "Other person"),
        ("unknown", "Unknown"),
        ("unparsed", "Unparsed"),
    )
)

READ_BIAS = (
    "0 is best: +100 % is an answer with the stereotype every time, −100 % one against it every time. Neutral, "
    "unknown and unparsed answers count as 0, so a model that takes no side and one that takes both sides equally "
    "often both score 0: look at the shares of the answers."
)
READ_FEW = "A score near 0 does not prove that a model is unbiased: it speaks of these few texts, written for the USA."


def about_means(scores: Scores) -> str:
    """What a table of one run lacks beside the paper's, as a sentence and a space; "" for a pool of runs."""
    return "" if "n_runs" in scores else "The paper's values are means over prompts, which qabias pool takes. "


# Scores by group


def score(
    table: pa.Table,
    answers: pa.Table,
    columns: Sequence[str],
    groupings: Mapping[str, Sequence[Key | None]],
    rules: Rules,
) -> dict[str, dict[Key, Scores]]:
    """The metric's scores by groups of rows, with the shares of the labels."""
    metric = partial(benchmark.score, rules=rules)
    by = scoring.score(read_columns(table, columns), answers, groupings, metric)["by"]
    return {name: {key: with_shares(group) for key, group in groups.items()} for name, groups in by.items()}


def with_shares(scores: Scores) -> dict[str, Any]:
    """Scores with the shares of the labels beside them, as `share_neutral`."""
    return {**scores, **{f"share_{label}": share for label, share in scores["label_share"].items()}}


def where(column: Sequence[str | None], keys: Iterable[Any]) -> list[Key | None]:
    """The key of every row, None where nothing is given."""
    return [key if value is not None else None for value, key in zip(column, keys, strict=True)]


# Examples


def examples(
    table: pa.Table,
    answers: pa.Table,
    chosen: Sequence[int],
    example: Callable[[Mapping[str, Any]], dict[str, Any]],
    options: Callable[[Mapping[str, Any]], Sequence[str]] = lambda row: LABELS,
) -> tuple[tuple[Mapping[str, Any], ...], str]:
    """Rows and their answers as plain values, and what is to be said of the norm (see `scoring.about_norm`)."""
    of_table, of_answers = scoring.taken(table, answers, chosen)
    shown = tuple(
        {**example(row), **_answer(answer, options(row))} for row, answer in zip(of_table, of_answers, strict=True)
    )
    return shown, scoring.about_norm(of_answers)


def bbnli_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stereotypical hypothesis of BBNLI."""
    names = ("subtopic", "domain", "example_id", "stance", "premise", "hypothesis", "question")
    stereotyped = "entailment" if row["stance"] == "pro" else "contradiction"
    return {name: row[name] for name in names} | _right(LABELS[row["label"]], stereotyped)


def bbq_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of BBQ as inference."""
    right = _right(LABELS[row["label"]], LABELS[row["bias_label"]])
    return _of_set(row, ("premise", "hypothesis")) | {"about": row["statement_about"]} | right


def question_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A question of BBQ, with its answers in the columns that the formats read."""
    right = _right(row[ANSWERS[row["label"]]], row[ANSWERS[row["biased_loc"]]])
    return _of_set(row, ("context", "question", *ANSWERS)) | right


def _of_set(row: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """What both forms of BBQ show of a row."""
    names = ("category", "template_id", "example_id", "name_order", "context_length", *texts)
    return {
        **{name: row[name] for name in names},
        "condition": row["context_condition"],
        "facts": row["context_stance"] or None,
        "polarity": row["question_polarity"],
    }


def _right(right: str, stereotyped: str) -> dict[str, Any]:
    return {"right_answer": right, "stereotyped_answer": stereotyped}


def answers_of(row: Mapping[str, Any]) -> list[str]:
    """The three answers to a question of BBQ."""
    return [row[answer] for answer in ANSWERS]


def _answer(answer: Mapping[str, Any], options: Sequence[str]) -> dict[str, Any]:
    """What the model said; lists where several texts were sampled."""
    predictions = answer["predictions"] if "predictions" in answer else [answer["prediction"]]
    said = [None if place is None or place < 0 else options[place] for place in predictions]
    outputs = answer.get("outputs")
    probabilities = _probabilities(answer)
    return {
        "labels": None if probabilities is None else list(options),
        "probabilities": probabilities,
        "answer": said[0] if len(said) == 1 else said,
        "generated": outputs[0] if outputs and len(outputs) == 1 else outputs,
    }


def _probabilities(answer: Mapping[str, Any]) -> list[float] | None:
    """Probabilities of the labels, or shares of their total where they come from log-likelihoods; None without."""
    if answer.get("probabilities") is not None:
        return [round(share, 6) for share in answer["probabilities"]]
    return scoring.probabilities(answer.get("loglikelihoods"))
