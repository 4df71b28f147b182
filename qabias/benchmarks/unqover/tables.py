"""The figures and tables of Li et al. (2020) for one UnQover run, as `Table`s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qabias.answers.outcomes import OUTCOMES, REFUSED
from qabias.benchmarks.caveats import MOST_MISSING, with_ranges
from qabias.benchmarks.facts import Scores
from qabias.benchmarks.scoring import N_EXAMPLES
from qabias.benchmarks.unqover.facts import MEASURES, PAPER
from qabias.benchmarks.unqover.questions import QUESTION_FIRST
from qabias.benchmarks.unqover.sets import NONE, set_contents, tables_of_set
from qabias.share.metrics.unqover import scores as metric
from qabias.support.arrow import codes_and_values
from qabias.tables.formatting import show
from qabias.tables.model import Analysis, Column, Figure, Table, values

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

_READ_INTERVALS = (
    "With 95 % intervals over templates; a single template has none. mu and eta are made of absolute values, and noise "
    "alone makes them larger than 0, the more the fewer rows there are: an interval is of the mean of the score over "
    "drawings of as many templates, and needs three. One that excludes 0 does not show a bias."
)


def analyse(table: pa.Table, answers: pa.Table, scores: Scores) -> Analysis:
    """All tables that an UnQover run has, and a selection of its rows."""
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
        f"{len(examples):,} of {table.num_rows:,} rows, as many of each set: of every template and attribute the row "
        "with the largest preference (|C|, the first in the file among equals), and of these the largest, shown in "
        "that order. They show what the model does at its worst, not on average."
    )
    summary = [_intensity(sets), *_intensity_by_class(sets), _reasoning_errors(sets), _coverage(sets), *_written(sets)]
    notes = tuple(note for name, group in sets.items() for note in _notes(name, group))
    return Analysis((*summary, *of_sets), tuple(examples), how_chosen, notes)


def comparative_scores(answers: pa.Table) -> np.ndarray:
    """C(subject1, subject2) of every row (Eq. 6), by the metric's own function; NaN where a score is."""
    columns = {name: answers[name].to_numpy().astype(np.float64) for name in metric.SCORE_COLUMNS}
    return metric.comparative_scores(columns)


# All sets


def _intensity(sets: Mapping[str, Scores]) -> Table:
    table = Table(
        "intensity_by_set",
        "How strong and how consistent the preferences are",
        f"Figures 3 and 6 {PAPER}",
        "mu is the mean over subjects of their strongest preference, for or against an attribute; eta says whether the "
        "same subject wins everywhere (1) or now this one, now that one (0). 0 is best for both. The paper finds eta "
        f"near 0.5 for all models. {_READ_INTERVALS} mu grows with the probability that a model gives to the subjects "
        "at all (avg S): compare it only where everything but the model is the same.",
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
        "The same scores from the attributes of one class alone. mu is made of maxima: a class with more "
        f"attributes has the larger mu from chance alone. {_READ_INTERVALS}",
        (Column("group", "Set and class", "text"), _SET, Column("attribute_class", "Class", "text"), *_INTENSITY),
        tuple((*key, *values(of_class, _INTENSITY)) for key, of_class in groups.items()),
        Figure("intervals", "group", ("mu", "eta")),
        "Intensity",
    )
    return [with_ranges(table, list(groups.values()), MEASURES)]


def _about_delta(sets: Mapping[str, Scores]) -> str:
    if all("delta:released" in group["signature"] for group in sets.values() if group["n"]):
        return "delta takes in the negated question, as the authors' script does and the published values probably do."
    return "delta is Eq. 2; the published values probably take in the negated question too (--rule delta=released)."


def _reasoning_errors(sets: Mapping[str, Scores]) -> Table:
    columns = (
        Column("delta", "delta, position", "number"),
        Column("epsilon", "epsilon, negation ignored", "number"),
        Column("avg_score", "avg S", "number"),
        _N,
        _N_TEMPLATES,
    )
    table = Table(
        "reasoning_errors",
        "Errors of reasoning",
        f"Table 5 {PAPER}" if any(name.startswith("gender") for name in sets) else "",
        "delta is how much a subject's score changes when the two change places, epsilon how far the scores are from "
        "turning round when the question is negated; 0 is best for both. These errors cancel out of mu, eta and "
        "gamma. avg S is the mean of all scores: how much probability the subjects get at all, at most 0.5 if those of "
        f"the two sum to at most 1. {_about_delta(sets)} The paper's table has the gender set only.",
        (_SET, *columns),
        tuple((name, *values(group, columns)) for name, group in sets.items()),
        Figure("intervals", "set", ("delta", "epsilon", "avg_score")),
        "Errors of reasoning",
    )
    return with_ranges(table, list(sets.values()), MEASURES)


def _coverage(sets: Mapping[str, Scores]) -> Table:
    columns = [Column("coverage", "Scores that are not 0", "share"), _N, Column("n_left_out", "Left out", "count")]
    unknown = "Rows with a subject that a masked model does not know as one token are left out of everything."
    if any("n_even" in group for group in sets.values()):
        columns.append(Column("n_even", "Questions without probability", "count"))
        read = (
            "The score of a subject is its share of the two. In a question without probability the model gives neither "
            "subject any, and the two count as even, 0.5 to 0.5: a model that offers nothing reads as unbiased. "
            f"{unknown}"
        )
    elif any("outcomes" in group for group in sets.values()):
        read = (
            "A written answer gives 1 to the subject that it chooses and 0 to the other, so that at most half of the "
            "scores are not 0; the rest are answers that prefer nobody. Rows of which an answer is missing are left "
            "out of everything."
        )
    else:
        read = (
            "A score of 0 often means that the model did not offer the subject at all, and two zeros show no "
            f"preference: a model that offers nothing reads as unbiased. {unknown}"
        )
    return Table(
        "coverage",
        "What the scores rest on",
        "",
        read,
        (_SET, *columns, Column("subjects_left_out", "Subjects left out", "text")),
        tuple((name, *values(group, columns), ", ".join(group["subjects_left_out"])) for name, group in sets.items()),
        Figure("bars", "set", ("coverage",)),
        "Coverage",
    )


def _written(sets: Mapping[str, Scores]) -> list[Table]:
    """What became of written answers, and what mu and eta could be with those that are missing."""
    written = {name: group for name, group in sets.items() if "outcomes" in group}
    if not written:
        return []
    ranged = ("mu", "eta") if any("range" in group for group in written.values()) else ()
    read_ranges = (
        " Wherever the missing answers had gone, the score of all rows lies in the range beside it; not all of the "
        "range need be possible, because its ends take every subject by itself."
    )
    return [
        Table(
            "written_answers",
            "What became of the written answers",
            "",
            "Four answers to every row. Among the answered, some say that it cannot be known or name neither subject; "
            "they, and those that refuse, count as no preference. Cut off, filtered and unread answers are missing."
            + read_ranges
            * bool(ranged),
            (
                _SET,
                *(Column(name, name.capitalize(), "count") for name in OUTCOMES),
                Column("n_declined", "Answered with neither", "count"),
                Column("rows_left_out", "Rows left out", "share"),
                *(Column(f"{name}_range", f"{name} with the missing", "text") for name in ranged),
            ),
            tuple(
                (
                    name,
                    *(group["outcomes"][outcome] for outcome in OUTCOMES),
                    group["n_declined"],
                    group["unparsed_share"],
                    *(_range(group, measure) for measure in ranged),
                )
                for name, group in written.items()
            ),
            None,
            "Coverage",
        )
    ]


def _range(scores: Scores, name: str) -> str | None:
    if "range" not in scores:
        return None
    low, high = scores["range"][name]
    return f"{show(low, 'number')} to {show(high, 'number')}"


def _notes(name: str, scores: Scores) -> list[str]:
    if "outcomes" not in scores:
        share = 1 - scores["coverage"]
        note = f"{name}: {share:.0%} of the scores are 0; low bias scores are then no evidence of a lack of bias."
        return [note] if scores["coverage"] < LOW_COVERAGE else []
    notes = []
    if scores["unparsed_share"] > MOST_MISSING:
        notes.append(
            f"{name}: {scores['unparsed_share']:.1%} of the rows are left out because an answer is missing; the scores "
            "are of the others, and the table of written answers has what they could be with all."
        )
    share = (scores["n_declined"] + scores["outcomes"][REFUSED]) / sum(scores["outcomes"].values())
    if share > LOW_COVERAGE:
        notes.append(f"{name}: {share:.0%} of the answers prefer nobody; that makes mu, eta, delta and epsilon small.")
    return notes


# Examples


def _examples(table: pa.Table, answers: pa.Table, comparative: np.ndarray, limit: int) -> list[dict[str, Any]]:
    """Of every template and attribute the row with the largest |C|, and of these the largest."""
    template, _ = codes_and_values(table["template_id"])
    attribute, attributes = codes_and_values(table["attribute"])
    strength = np.round(np.nan_to_num(np.abs(comparative), nan=-1.0), 9)
    order = np.argsort(-strength, kind="stable")
    order = order[strength[order] >= 0]
    _, first = np.unique((template * len(attributes) + attribute)[order], return_index=True)
    chosen = order[np.sort(first)][:limit]
    rows, of_rows = (columns.take(pa.array(chosen)).to_pylist() for columns in (table, answers))
    return [
        _example(row, answer, float(value))
        for row, answer, value in zip(rows, of_rows, comparative[chosen], strict=True)
    ]


def _example(row: Mapping[str, Any], answer: Mapping[str, Any], comparative: float) -> dict[str, Any]:
    asked = ("masked", "masked_negated") if "masked" in row else ("question", "negated_question")
    subjects = [row["subject1"], row["subject2"]]
    named = [row["answer1"], row["answer2"]] if "answer1" in row else subjects
    # Short facts first, and the two subjects beside their scores: so the report can set them side by side.
    return {
        **{name: row[name] for name in ("set", "template_id", "example_id")},
        "comparative": round(comparative, 6),
        "preferred": None if comparative == 0 else subjects[comparative < 0],
        "attribute": row["attribute"],
        "attribute_class": row["attribute_class"] if row["attribute_class"] not in ("", NONE) else None,
        **{name: row[name] for name in ("context_12", "context_21", *asked)},
        "subjects": subjects,
        "answers": named if named != subjects else None,
        "written": answer.get("outputs"),
        **{
            f"scores_{order}": [round(answer[f"s{number}_{order}"], 6) for number in (1, 2)] for order in QUESTION_FIRST
        },
    }
