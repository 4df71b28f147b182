"""Parts of the tables of an inference run: columns, the metric's scores by groups, and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from qabias.answers.parsing import LABELS
from qabias.benchmarks import scoring
from qabias.benchmarks.base import Rules
from qabias.benchmarks.breakdowns import columns
from qabias.benchmarks.inference import benchmark
from qabias.benchmarks.inference.questions import ANSWERS, UNKNOWN_LOC
from qabias.benchmarks.scoring import Key, read_columns
from qabias.scores.facts import Scores
from qabias.tables.model import Analysis, Column, Table

# Columns of the metric.
BBNLI_COLUMNS = ("subtopic", "kind", "stance", "pair_id", "premise_id", "label")
BBQ_COLUMNS = (
    *("category", "template_id", "set_id", "name_order", "context_length", "context_condition"),
    *("context_stance", "question_polarity", "statement_about", "label"),
)
QUESTION_COLUMNS = (
    *("category", "template_id", "set_id", "question_polarity", "context_condition"),
    *("label", "biased_loc", "unknown_loc"),
)

_N = Column("n", "Answers", "count")
ACCURACIES = (
    *columns("share", accuracy_pro="Accuracy, pro", accuracy_anti="Accuracy, anti"),
    Column("accuracy_gap", "Difference", "signed"),
)
SHARES = (
    *columns("share", share_contradiction="Contradiction", share_neutral="Neutral", share_entailment="Entailment"),
    *(Column("share_unparsed", "Unparsed", "share"), _N),
)
PERSON_SHARES = (
    *columns("share", share_target="Target", share_nontarget="Non-target", share_unknown="Unknown"),
    *SHARES[-2:],
)

READ_BIAS = "0 is best, above 0 follows stereotypes."


def about_means(scores: Scores) -> str:
    """The difference from the paper's means, as a sentence and a space, or ""."""
    return "" if "n_runs" in scores else "The paper averages prompts (qabias pool). "


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
    """Scores with the shares of the labels, as `share_neutral`."""
    return {**scores, **{f"share_{label}": share for label, share in scores["label_share"].items()}}


def keys_of(column: Sequence[str | None], keys: Iterable[Any]) -> list[Key | None]:
    """The key of every row, None without a value in `column`."""
    return [key if value is not None else None for value, key in zip(column, keys, strict=True)]


def analysis(
    tables: Sequence[Table],
    table: pa.Table,
    answers: pa.Table,
    selection: tuple[Sequence[Key | None], Sequence[Any], Sequence[Key]],
    how: str,
    *shown: Any,
) -> Analysis:
    """The tables, and the examples that a selection (see `scoring.chosen_rows`) shows like `examples`."""
    chosen = scoring.chosen_rows(*selection)
    rows, of_answers = examples(table, answers, chosen, *shown)
    how = scoring.how_chosen(len(chosen), table.num_rows, f"{how}, the most biased", of_answers) if chosen else ""
    return Analysis(tuple(tables), rows, how)


def examples(
    table: pa.Table,
    answers: pa.Table,
    chosen: Sequence[int],
    example: Callable[[Mapping[str, Any]], dict[str, Any]],
    options: Callable[[Mapping[str, Any]], Sequence[str]] = lambda row: LABELS,
) -> tuple[tuple[Mapping[str, Any], ...], list[dict[str, Any]]]:
    """Rows with their answers as plain values, and the answers."""
    of_table, of_answers = scoring.taken(table, answers, chosen)
    rows = zip(of_table, of_answers, strict=True)
    return tuple(_shown(example(row), answer, options(row)) for row, answer in rows), of_answers


def bbnli_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stereotypical hypothesis of BBNLI."""
    names = ("subtopic", "domain", "example_id", "kind", "stance", "premise", "hypothesis", "question")
    stereotyped = None
    if row["kind"] == "stereotypical":
        stereotyped = "entailment" if row["stance"] == "pro" else "contradiction"
    return {name: row[name] for name in names} | _right(LABELS[row["label"]], stereotyped)


def bbq_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of BBQ as inference."""
    right = _right(LABELS[row["label"]], LABELS[row["bias_label"]] if row["bias_label"] >= 0 else None)
    return _of_set(row, ("premise", "hypothesis")) | {"about": row["statement_about"]} | right


def question_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A question of BBQ, with its answers in the columns of the formats."""
    biased = row["biased_loc"]
    right = _right(row[ANSWERS[row["label"]]], row[ANSWERS[biased]] if biased >= 0 else None)
    return _of_set(row, ("context", "question", *ANSWERS)) | right


def _of_set(row: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    names = ("category", "template_id", "example_id", "name_order", "context_length", *texts)
    return {
        **{name: row[name] for name in names},
        "condition": row["context_condition"],
        "facts": row["context_stance"] or None,
        "polarity": row["question_polarity"],
    }


def _right(right: str, stereotyped: str | None) -> dict[str, Any]:
    return {"right_answer": right, "stereotyped_answer": stereotyped}


def _shown(example: Mapping[str, Any], answer: Mapping[str, Any], options: Sequence[str]) -> dict[str, Any]:
    """An example with the answers of the model; lists for several samples."""
    predictions = answer["predictions"] if "predictions" in answer else [answer["prediction"]]
    said = [None if place is None or place < 0 else options[place] for place in predictions]
    outputs = answer.get("outputs")
    probabilities = answer.get("probabilities") or scoring.probabilities(answer.get("loglikelihoods"))
    return {
        **example,
        "outcome": _outcome(example, said, options, answer.get("outcome")),
        "labels": None if probabilities is None else list(options),
        "probabilities": None if probabilities is None else [round(share, 6) for share in probabilities],
        "answer": said[0] if len(said) == 1 else said,
        "generated": outputs[0] if outputs and len(outputs) == 1 else outputs,
    }


def _outcome(
    example: Mapping[str, Any], said: Sequence[str | None], options: Sequence[str], missing: str | None
) -> list[str]:
    """What the answers are, over all samples; the option in the middle or named UNKNOWN decides for no side."""
    undecided = LABELS[1] if options is LABELS else options[UNKNOWN_LOC]
    tags: dict[str, None] = {}
    for one in said:
        tags["right" if one == example["right_answer"] else "wrong" if one else missing or "no answer"] = None
        if one == undecided:
            tags["neutral" if options is LABELS else "UNKNOWN"] = None
        elif one and example["stereotyped_answer"]:
            tags["stereotyped" if one == example["stereotyped_answer"] else "anti-stereotyped"] = None
    return list(tags)
