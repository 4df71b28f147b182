"""What another tool said of the answers of a run: `log.json`, beside the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from qabias.benchmarks.base import OtherFigure
from qabias.errors import QabiasError
from qabias.support.files import read_json, strict, write_json
from qabias.tables.model import Column, Table

LOG_FILE = "log.json"
OTHER_FIGURES = "other_tool"
"""Name of the table of the other tool's figures."""


@dataclass(frozen=True)
class OtherTool:
    """The evaluation of another tool, whose answers a run scores."""

    tool: str
    version: str
    task: str
    file: str
    figures: tuple[OtherFigure, ...]
    notes: tuple[str, ...]


def write_other_tool(folder: Path, other: OtherTool) -> None:
    """Write `log.json` into a run folder."""
    write_json(folder / LOG_FILE, strict(asdict(other)))


def read_other_tool(folder: Path) -> OtherTool | None:
    """What `log.json` of a run folder says; None where there is none."""
    path = folder / LOG_FILE
    if not path.exists():
        return None
    try:
        content = read_json(path)
        figures = tuple(
            OtherFigure(
                figure["name"],
                math.nan if figure["value"] is None else float(figure["value"]),
                tuple(figure["ours"]),
                figure["why"],
            )
            for figure in content.pop("figures")
        )
        return OtherTool(**{**content, "figures": figures, "notes": tuple(content["notes"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise QabiasError(f"{path}: damaged ({error!r}); score the log again into another folder") from error


def without_reasons(other: OtherTool) -> OtherTool:
    """What a tool said, beside scores that are counted by other rules than those of its reasons."""
    note = "Answers are counted by other rules than those of the reasons why figures differ; none is given."
    figures = tuple(replace(figure, why="") for figure in other.figures)
    return replace(other, figures=figures, notes=(*other.notes, note))


def other_figures(other: OtherTool, scores: Mapping[str, Any]) -> Table | None:
    """The figures of another tool beside the scores of the same answers here; None where it printed none."""
    if not other.figures:
        return None
    rows = tuple((one.name, _defined(one.value), _defined(_ours(one, scores)), one.why) for one in other.figures)
    return Table(
        OTHER_FIGURES,
        f"What {other.tool} printed",
        "",
        f"The figures of {other.tool} {other.version}".rstrip()
        + f" for the same answers (task {other.task}), as fractions, and why they differ where they do.",
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


def _ours(figure: OtherFigure, scores: Mapping[str, Any]) -> float | None:
    """The score that a figure stands beside; None where nothing corresponds, or it has no such group."""
    found: Any = scores
    for key in figure.ours:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return float(found) if figure.ours and isinstance(found, int | float) else None


def _defined(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
