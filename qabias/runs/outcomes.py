"""Outcomes of written answers, and scores of runs with many missing answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabias.answers.outcomes import ANSWERED, OUTCOMES
from qabias.scores.formatting import percent
from qabias.scores.score import MOST_MISSING
from qabias.tables.model import Column, Table, Value

OUTCOMES_TABLE = "answers_by_run"  # name of the table of outcomes


def outcomes_of(scores: Mapping[str, Any]) -> dict[str, int]:
    """Number of written answers per outcome; empty without written answers."""
    counts = scores.get("outcomes") or {}
    return {name: int(counts[name]) for name in OUTCOMES if name in counts}


def answered_share(scores: Mapping[str, Any]) -> float | None:
    """Share of written answers that are answered; None without written answers."""
    counts = outcomes_of(scores)
    n = sum(counts.values())
    return counts[ANSWERED] / n if n else None


def answered_in_words(scores: Mapping[str, Any]) -> str:
    """Describe the outcomes of written answers in a sentence; "" without written answers."""
    share = answered_share(scores)
    if share is None:
        return ""
    counts = outcomes_of(scores)
    others = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n and name != ANSWERED)
    return f"{percent(share)} of {sum(counts.values()):,} answered" + (f" ({others})" if others else "")


def outcomes_tables(names: Sequence[str], scores: Sequence[Mapping[str, Any]], what: str = "run") -> list[Table]:
    """Table of the outcomes of every run; () without written answers."""
    if not any(map(outcomes_of, scores)):
        return []
    rows: list[tuple[Value, ...]] = []
    for name, of_run in zip(names, scores, strict=True):
        counts = outcomes_of(of_run)
        rows.append((name, answered_share(of_run), *(counts.get(outcome) for outcome in OUTCOMES)))
    return [
        Table(
            f"answers_by_{what}",
            "What became of the written answers",
            "",
            "Refused: the model declines to answer. Truncated: its text ends before an answer. Filtered: blocked by "
            f"a service. Unparseable: it names no answer, or several. A dash: the {what} has no written answers.",
            (
                Column(what, what.capitalize(), "text"),
                Column("answered_share", "Share answered", "share"),
                *(Column(outcome, outcome.capitalize(), "count") for outcome in OUTCOMES),
            ),
            tuple(rows),
            None,
            f"{what.capitalize()}s",
        )
    ]


def missing_notes(names: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes on runs with many missing answers."""
    return [
        f"{name}: only {answered_in_words(of_run)}. Scores with missing answers show their possible range."
        for name, of_run in zip(names, scores, strict=True)
        if (share := answered_share(of_run)) is not None and share < 1 - MOST_MISSING
    ]
