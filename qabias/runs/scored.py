"""A run with its scores: `scores.json`, outcomes of written answers, and the figures of another tool."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from qabias.answers.outcomes import ANSWERED, OUTCOMES
from qabias.answers.services import USAGE
from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.base import ReportedScore
from qabias.runs.folder import SCORES_FILE, RunFile
from qabias.scores.formatting import percent
from qabias.scores.score import MOST_MISSING, reasons
from qabias.support.stored import read_stored, write_stored
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


def cost_in_words(cost: Mapping[str, float]) -> str:
    """What a service has counted, and the dollars if a price was given; "" without a service."""
    if not cost:
        return ""
    n = {name: int(cost.get(name, 0)) for name in ("requests", "retries", *USAGE)}
    parts = [f"{n['requests']:,} requests" + (f" ({n['retries']:,} retries)" if n["retries"] else "")]
    for kind, some, what in (("prompt", "cached", "in"), ("generated", "reasoning", "out")):
        if n[f"{kind}_tokens"]:
            of_them = f" ({n[f'{some}_tokens']:,} {some})" if n[f"{some}_tokens"] else ""
            parts.append(f"{n[f'{kind}_tokens']:,} tokens {what}{of_them}")
    if len(parts) > 1 and "price_in" in cost:
        dollars = n["prompt_tokens"] * cost["price_in"] + n["generated_tokens"] * cost["price_out"]
        parts.append(f"${dollars / 1e6:,.2f}")
    return ", ".join(parts)


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


def scores_content(benchmark: Benchmark, signature: str, scores: Mapping[str, Any]) -> dict[str, Any]:
    """Content of `scores.json`: scores with signature, and reasons for undefined ones."""
    return {
        "benchmark": benchmark.name,
        "signature": signature,
        "scores": scores,
        "reasons": reasons(benchmark.facts, scores),
    }


def write_scores(run: RunFile, scores: Mapping[str, Any]) -> None:
    """Write `scores.json`."""
    write_stored(
        run.folder / SCORES_FILE, scores_content(load_benchmark(run.arguments.benchmark), run.signature, scores)
    )


LOG_FILE = "log.json"
OTHER_FIGURES = "other_tool"  # name of the table of the other tool's figures


@dataclass(frozen=True)
class OtherTool:
    """The other tool whose log a run scores."""

    tool: str
    version: str
    task: str
    file: str
    figures: tuple[ReportedScore, ...]
    notes: tuple[str, ...]


def write_other_tool(folder: Path, other: OtherTool) -> None:
    """Write `log.json` into a run folder."""
    write_stored(folder / LOG_FILE, asdict(other))


def read_other_tool(folder: Path) -> OtherTool | None:
    """Read `log.json` of a run folder; None if it is missing."""
    try:
        return read_stored(folder / LOG_FILE, OtherTool, "score the log again into another folder")
    except FileNotFoundError:
        return None


def without_reasons(other: OtherTool) -> OtherTool:
    """Remove explanations of figures that do not apply after scoring by other rules."""
    note = "Answers are counted by other rules here, which can explain different figures."
    figures = tuple(replace(figure, why="") for figure in other.figures)
    return replace(other, figures=figures, notes=(*other.notes, note))


def other_figures(other: OtherTool, scores: Mapping[str, Any]) -> Table | None:
    """Table of another tool's figures next to the scores here; None if it printed none."""
    if not other.figures:
        return None
    rows = tuple((one.name, _defined(one.value), _defined(_ours(one, scores)), one.why) for one in other.figures)
    return Table(
        OTHER_FIGURES,
        f"What {other.tool} printed",
        "",
        f"The figures of {other.tool} {other.version}".rstrip()
        + f" for the same answers (task {other.task}), as fractions, with explanations of differences.",
        (
            Column("score", "Score there", "text"),
            Column("theirs", other.tool, "number"),
            Column("ours", "here", "number"),
            Column("why", "Why they differ", "text"),
        ),
        rows,
        None,
        "Other tools",
    )


def _ours(figure: ReportedScore, scores: Mapping[str, Any]) -> float | None:
    """Return the score here for a figure of the other tool; None if there is none."""
    value: Any = scores
    for key in figure.ours:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return float(value) if figure.ours and isinstance(value, int | float) else None


def _defined(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
