"""A run with its scores: writes and reads `scores.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.base import ReportedScore
from qabias.runs.folder import SCORES_FILE, RunFile
from qabias.scores.score import reasons
from qabias.support.stored import read_stored, write_stored
from qabias.tables.model import Column, Table


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
