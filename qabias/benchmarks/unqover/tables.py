"""The figures and tables of Li et al. (2020) for one UnQover run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import OUTCOMES, REFUSED
from qabias.benchmarks.breakdowns import Breakdown, Group, columns, make_tables
from qabias.benchmarks.scoring import N_EXAMPLES
from qabias.benchmarks.unqover.facts import EVEN, MEASURES, PAPER
from qabias.benchmarks.unqover.questions import QUESTION_FIRST
from qabias.benchmarks.unqover.sets import NONE, set_contents, tables_of_set
from qabias.scores.facts import Scores
from qabias.scores.score import MOST_MISSING, ends_in_words, estimate
from qabias.share.metrics.unqover import scores as metric
from qabias.support.arrow import codes_and_values
from qabias.tables.model import Analysis, Column, Table, Value

LOW_COVERAGE = 0.5

_SET, _GROUP, _CLASS, _LEFT_OUT = columns(
    "text", set="Set", group="Set and class", attribute_class="Class", subjects_left_out="Subjects excluded"
)
_N, _N_TEMPLATES, _N_EXCLUDED = columns("count", n="Rows", n_templates="Templates", n_left_out="Rows excluded")
_N_EVEN = Column(EVEN, "Questions without probability", "count")
_INTENSITY = (
    *(*columns("number", mu="mu, intensity", eta="eta, consistency"), _N),
    *(*columns("count", n_subjects="Subjects", n_attributes="Attributes"), _N_TEMPLATES),
)
_ERRORS = (
    *columns("number", delta="delta, position", epsilon="epsilon, negation ignored", avg_score="Average score"),
    *(_N, _N_TEMPLATES),
)
_COVERAGE = (_SET, Column("coverage", "Scores that are not 0", "share"), _N, _N_EXCLUDED, _N_EVEN, _LEFT_OUT)
_OUTCOMES = columns("count", **{name: name.capitalize() for name in OUTCOMES})
_RANGES = columns("text", mu_range="mu, possible", eta_range="eta, possible")
_WRITTEN = (
    *(_SET, *_OUTCOMES, Column("n_declined", "Abstained", "count")),
    *(Column("rows_left_out", "Rows excluded", "share"), *_RANGES),
)
_PREFERENCES, _FIGURES = "Intensity and consistency of preferences", f"Figures 3 and 6 {PAPER}"
_BY_CLASS, _GROUPS = "Intensity by class of attributes", (_GROUP, _SET, _CLASS)
_TABLES = (
    Breakdown("intensity_by_set", "set", [_SET], _INTENSITY, "Intensity", "intervals", _FIGURES, _PREFERENCES),
    Breakdown("intensity_by_class", "class", _GROUPS, _INTENSITY, "Intensity", "intervals", title=_BY_CLASS),
    Breakdown("reasoning_errors", "set", [_SET], _ERRORS, "Reasoning errors", "intervals", f"Table 5 {PAPER}"),
    Breakdown("coverage", "coverage", _COVERAGE, (), "Coverage", "bars coverage", title="Coverage of the scores"),
    Breakdown("written_answers", "written", _WRITTEN, (), "Coverage", title="Outcomes of written answers"),
)


def analyse(table: pa.Table, answers: pa.Table, scores: Scores) -> Analysis:
    """All tables of an UnQover run, and a selection of its rows."""
    sets: Mapping[str, Scores] = scores["sets"]
    there = set(pc.unique(table["set"]).to_pylist())
    names = [name for name in sets if name in there]
    of_sets: list[Table] = []
    examples: list[dict[str, Any]] = []
    for name in names:
        of_set = pc.equal(table["set"], name)
        rows, of_rows = table.filter(of_set), answers.filter(of_set)
        comparative = comparative_scores(of_rows)
        if sets[name]["n"]:
            of_sets += tables_of_set(name, sets[name], set_contents(name, rows, ~np.isnan(comparative)))
        examples += _examples(rows, of_rows, comparative, N_EXAMPLES // len(names))
    examples.sort(key=lambda example: -abs(example["comparative"]))
    how_chosen = (
        f"{len(examples):,} of {table.num_rows:,} examples: the largest preference (|C|) per template and attribute, "
        "the strongest first. They show the most biased answers, not the average."
    )
    notes = tuple(note for name, group in sets.items() for note in _notes(name, group))
    return Analysis((*_summary(sets), *of_sets), tuple(examples), how_chosen, notes)


def comparative_scores(answers: pa.Table) -> np.ndarray:
    """C(subject1, subject2) of every row (Eq. 6), NaN without all scores."""
    columns = {name: answers[name].to_numpy().astype(np.float64) for name in metric.SCORE_COLUMNS}
    return metric.comparative_scores(columns)


def _summary(sets: Mapping[str, Scores]) -> list[Table]:
    """The tables of all sets."""
    written = {name: group for name, group in sets.items() if "outcomes" in group}
    ranged = any("range" in group for group in written.values())
    absent = {column.name for column in _RANGES if not ranged}
    if not any(EVEN in group for group in sets.values()):
        absent.add(EVEN)
    groups: dict[str, list[Group]] = {
        "set": [((name,), group) for name, group in sets.items()],
        "class": [
            ((f"{name}, {attribute_class}", name, attribute_class), of_class)
            for name, group in sets.items()
            if len(group["attribute_class"]) > 1
            for attribute_class, of_class in group["by"]["attribute_class"].items()
        ],
        "coverage": [((name, *_covered(group)), {}) for name, group in sets.items()],
        "written": [((name, *_written(group)), {}) for name, group in written.items()],
    }
    tables = make_tables(_TABLES, groups, _notes_of_tables(sets, ranged), MEASURES, absent)
    has_gender = any(name.startswith("gender") for name in sets)
    return [replace(one, source="") if one.name == "reasoning_errors" and not has_gender else one for one in tables]


def _covered(group: Scores) -> tuple[Value, ...]:
    counts = (group["n"], group["n_left_out"], group.get(EVEN, 0))
    return (estimate(group, "coverage"), *counts, ", ".join(group["subjects_left_out"]))


def _written(group: Scores) -> tuple[Value, ...]:
    ranges = [ends_in_words(group["range"][name], "number") if "range" in group else None for name in ("mu", "eta")]
    counts = (*(group["outcomes"][outcome] for outcome in OUTCOMES), group["n_declined"])
    return (*counts, group["unparsed_share"], *ranges)


def _notes_of_tables(sets: Mapping[str, Scores], ranged: bool) -> dict[str, str]:
    unknown = "Rows without single-token subjects are excluded."
    if any(EVEN in group for group in sets.values()):
        coverage = f"Scores are shares of the two subjects. Questions without probability count as even. {unknown}"
    elif any("outcomes" in group for group in sets.values()):
        coverage = (
            "The chosen subject has the score 1, the other 0: coverage is at most 50%. Rows with missing answers are "
            "excluded."
        )
    else:
        coverage = f"Two scores of 0 count as unbiased, even if the model offers neither subject. {unknown}"
    is_released = all("delta:released" in group["signature"] for group in sets.values() if group["n"])
    delta = (
        "delta includes the negated question, like the authors' script."
        if is_released
        else "Published values of delta probably follow --rule delta=released."
    )
    return {
        "intensity_by_set": "0 is best. Compare mu only between models with a similar average score. Chance raises mu "
        "and eta above 0.",
        "intensity_by_class": "A class with more attributes has a larger mu by chance.",
        "reasoning_errors": "delta: effect of the order of the subjects; epsilon: negation ignored. 0 is best. "
        + delta,
        "coverage": coverage,
        "written_answers": "Four answers per row. Abstentions and refusals count as no preference."
        + " Ranges are worst-case bounds with the missing answers." * ranged,
    }


def _notes(name: str, scores: Scores) -> list[str]:
    if "outcomes" not in scores:
        share = 1 - scores["coverage"]
        note = f"{name}: {share:.0%} of the scores are 0. Low bias scores do not prove the model unbiased."
        return [note] if scores["coverage"] < LOW_COVERAGE else []
    notes = []
    if scores["unparsed_share"] > MOST_MISSING:
        notes.append(
            f"{name}: {scores['unparsed_share']:.1%} of the rows are excluded because an answer is missing. See their "
            "possible ranges in the table of written answers."
        )
    share = (scores["n_declined"] + scores["outcomes"][REFUSED]) / sum(scores["outcomes"].values())
    if share > LOW_COVERAGE:
        notes.append(
            f"{name}: {share:.0%} of the answers abstain or refuse, which makes mu, eta, delta and epsilon small."
        )
    return notes


def _examples(table: pa.Table, answers: pa.Table, comparative: np.ndarray, limit: int) -> list[dict[str, Any]]:
    """The rows with the largest |C| of every template and attribute."""
    template, _ = codes_and_values(table["template_id"])
    attribute, attributes = codes_and_values(table["attribute"])
    strength = np.round(np.nan_to_num(np.abs(comparative), nan=-1.0), 9)
    order = np.argsort(-strength, kind="stable")
    order = order[strength[order] >= 0]
    _, first = np.unique((template * len(attributes) + attribute)[order], return_index=True)
    chosen = order[np.sort(first)][:limit]
    return examples(table.take(pa.array(chosen)), answers.take(pa.array(chosen)), comparative[chosen])


def examples(table: pa.Table, answers: pa.Table, comparative: np.ndarray) -> list[dict[str, Any]]:
    """Every row with its scores; `comparative` is C, NaN without all scores."""
    rows = zip(table.to_pylist(), answers.to_pylist(), comparative.tolist(), strict=True)
    return [_example(row, answer, value) for row, answer, value in rows]


def _example(row: Mapping[str, Any], answer: Mapping[str, Any], comparative: float) -> dict[str, Any]:
    asked = ("masked", "masked_negated") if "masked" in row else ("question", "negated_question")
    subjects = [row["subject1"], row["subject2"]]
    named = [row["answer1"], row["answer2"]] if "answer1" in row else subjects
    # Short facts first: the report shows subjects and scores next to each other.
    return {
        **{name: row[name] for name in ("set", "template_id", "example_id")},
        "comparative": _rounded(comparative),
        "preferred": subjects[comparative < 0] if abs(comparative) > 0 else None,
        "attribute": row["attribute"],
        "attribute_class": row["attribute_class"] if row["attribute_class"] not in ("", NONE) else None,
        **{name: row[name] for name in ("context_12", "context_21", *asked)},
        "subjects": subjects,
        "answers": named if named != subjects else None,
        "written": answer.get("outputs"),
        **{
            f"scores_{order}": [_rounded(answer[f"s{number}_{order}"]) for number in (1, 2)] for order in QUESTION_FIRST
        },
    }


def _rounded(score: float | None) -> float | None:
    return None if score is None or math.isnan(score) else round(score, 6)
