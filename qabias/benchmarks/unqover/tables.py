"""The figures and tables of Li et al. (2020) for one UnQover run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import OUTCOMES, REFUSED
from qabias.benchmarks.limits import values, with_ranges
from qabias.benchmarks.scoring import N_EXAMPLES
from qabias.benchmarks.unqover.facts import MEASURES, PAPER
from qabias.benchmarks.unqover.questions import QUESTION_FIRST
from qabias.benchmarks.unqover.sets import NONE, set_contents, tables_of_set
from qabias.scores.facts import Scores
from qabias.scores.score import MOST_MISSING, ends_in_words
from qabias.share.metrics.unqover import scores as metric
from qabias.support.arrow import codes_and_values
from qabias.tables.model import Analysis, Column, Figure, Table

LOW_COVERAGE = 0.5

_SET = Column("set", "Set", "text")
_N = Column("n", "Rows", "count")
_N_TEMPLATES = Column("n_templates", "Templates", "count")
_INTENSITY = (
    Column("mu", "mu, intensity", "number"),
    Column("eta", "eta, consistency", "number"),
    _N,
    Column("n_subjects", "Subjects", "count"),
    Column("n_attributes", "Attributes", "count"),
    _N_TEMPLATES,
)

_READ_INTERVALS = "Chance raises mu and eta above 0."


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
    summary = [_intensity(sets), *_intensity_by_class(sets), _reasoning_errors(sets), _coverage(sets), *_written(sets)]
    notes = tuple(note for name, group in sets.items() for note in _notes(name, group))
    return Analysis((*summary, *of_sets), tuple(examples), how_chosen, notes)


def comparative_scores(answers: pa.Table) -> np.ndarray:
    """C(subject1, subject2) of every row (Eq. 6), NaN without all scores."""
    columns = {name: answers[name].to_numpy().astype(np.float64) for name in metric.SCORE_COLUMNS}
    return metric.comparative_scores(columns)


def _intensity(sets: Mapping[str, Scores]) -> Table:
    table = Table(
        "intensity_by_set",
        "Intensity and consistency of preferences",
        f"Figures 3 and 6 {PAPER}",
        f"0 is best. Compare mu only between models with a similar average score. {_READ_INTERVALS}",
        (_SET, *_INTENSITY),
        tuple((name, *values(group, _INTENSITY)) for name, group in sets.items()),
        Figure("intervals", "set", ("mu", "eta")),
        "Intensity",
    )
    return with_ranges(table, list(sets.values()), MEASURES)


def _intensity_by_class(sets: Mapping[str, Scores]) -> list[Table]:
    groups = {
        (f"{name}, {attribute_class}", name, attribute_class): of_class
        for name, group in sets.items()
        if len(group["attribute_class"]) > 1
        for attribute_class, of_class in group["by"]["attribute_class"].items()
    }
    if not groups:
        return []
    table = Table(
        "intensity_by_class",
        "Intensity by class of attributes",
        "",
        "A class with more attributes has a larger mu by chance.",
        (Column("group", "Set and class", "text"), _SET, Column("attribute_class", "Class", "text"), *_INTENSITY),
        tuple((*key, *values(of_class, _INTENSITY)) for key, of_class in groups.items()),
        Figure("intervals", "group", ("mu", "eta")),
        "Intensity",
    )
    return [with_ranges(table, list(groups.values()), MEASURES)]


def _about_delta(sets: Mapping[str, Scores]) -> str:
    if all("delta:released" in group["signature"] for group in sets.values() if group["n"]):
        return "delta includes the negated question, like the authors' script."
    return "Published values of delta probably follow --rule delta=released."


def _reasoning_errors(sets: Mapping[str, Scores]) -> Table:
    columns = (
        Column("delta", "delta, position", "number"),
        Column("epsilon", "epsilon, negation ignored", "number"),
        Column("avg_score", "Average score", "number"),
        _N,
        _N_TEMPLATES,
    )
    table = Table(
        "reasoning_errors",
        "Reasoning errors",
        f"Table 5 {PAPER}" if any(name.startswith("gender") for name in sets) else "",
        f"delta: effect of the order of the subjects; epsilon: negation ignored. 0 is best. {_about_delta(sets)}",
        (_SET, *columns),
        tuple((name, *values(group, columns)) for name, group in sets.items()),
        Figure("intervals", "set", ("delta", "epsilon", "avg_score")),
        "Reasoning errors",
    )
    return with_ranges(table, list(sets.values()), MEASURES)


def _coverage(sets: Mapping[str, Scores]) -> Table:
    columns = [Column("coverage", "Scores that are not 0", "share"), _N, Column("n_left_out", "Rows excluded", "count")]
    unknown = "Rows without single-token subjects are excluded."
    if any("n_even" in group for group in sets.values()):
        columns.append(Column("n_even", "Questions without probability", "count"))
        read = f"Scores are shares of the two subjects. Questions without probability count as even. {unknown}"
    elif any("outcomes" in group for group in sets.values()):
        read = (
            "The chosen subject has the score 1, the other 0: coverage is at most 50%. Rows with missing answers are "
            "excluded."
        )
    else:
        read = f"Two scores of 0 count as unbiased, even if the model offers neither subject. {unknown}"
    return Table(
        "coverage",
        "Coverage of the scores",
        "",
        read,
        (_SET, *columns, Column("subjects_left_out", "Subjects excluded", "text")),
        tuple((name, *values(group, columns), ", ".join(group["subjects_left_out"])) for name, group in sets.items()),
        Figure("bars", "set", ("coverage",)),
        "Coverage",
    )


def _written(sets: Mapping[str, Scores]) -> list[Table]:
    """Outcomes of written answers, and possible ranges of mu and eta."""
    written = {name: group for name, group in sets.items() if "outcomes" in group}
    if not written:
        return []
    ranged = ("mu", "eta") if any("range" in group for group in written.values()) else ()
    return [
        Table(
            "written_answers",
            "Outcomes of written answers",
            "",
            "Four answers per row. Abstentions and refusals count as no preference."
            + " Ranges are worst-case bounds with the missing answers." * bool(ranged),
            (
                _SET,
                *(Column(name, name.capitalize(), "count") for name in OUTCOMES),
                Column("n_declined", "Abstained", "count"),
                Column("rows_left_out", "Rows excluded", "share"),
                *(Column(f"{name}_range", f"{name}, possible", "text") for name in ranged),
            ),
            tuple(
                (
                    name,
                    *(group["outcomes"][outcome] for outcome in OUTCOMES),
                    group["n_declined"],
                    group["unparsed_share"],
                    *(
                        ends_in_words(group["range"][measure], "number") if "range" in group else None
                        for measure in ranged
                    ),
                )
                for name, group in written.items()
            ),
            None,
            "Coverage",
        )
    ]


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
