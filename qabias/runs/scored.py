"""A run with its scores: writes and reads `scores.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.base import OtherFigure
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import ANALYSIS_FILE, SCORES_FILE, RunFile, read_run
from qabias.runs.signature import format_name
from qabias.scorers.registry import BASELINE_PREFIX
from qabias.scores.score import reasons
from qabias.support.files import strict
from qabias.support.stored import read_fields, read_stored, write_stored
from qabias.tables.model import Analysis, Column, Table, read_analysis


class ScoredRun(NamedTuple):
    """A run with its scores."""

    file: RunFile
    scores: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.file.folder

    @property
    def arguments(self) -> RunArguments:
        """The arguments."""
        return self.file.arguments

    @property
    def signature(self) -> str:
        """The signature."""
        return self.file.signature

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return load_benchmark(self.file.benchmark)

    @property
    def format_name(self) -> str:
        """Name of the prompt format; "" if unknown."""
        return format_name(self.signature)

    @property
    def is_baseline(self) -> bool:
        """Whether a baseline answered."""
        return self.arguments.model.startswith(BASELINE_PREFIX)

    @property
    def is_question_only(self) -> bool:
        """Whether the model saw no context, which leaves only some scores meaningful."""
        return is_question_only(self.benchmark, self.signature)


def is_question_only(benchmark: Benchmark, signature: str) -> bool:
    """Return whether a signature names a format without contexts."""
    prompt_format = benchmark.formats.get(format_name(signature))
    return prompt_format is not None and prompt_format.question_only


def scores_content(benchmark: Benchmark, signature: str, scores: Mapping[str, Any]) -> dict[str, Any]:
    """Content of `scores.json`: scores with signature, and reasons for undefined ones."""
    return {
        "benchmark": benchmark.name,
        "signature": signature,
        "scores": scores,
        "reasons": reasons(benchmark.facts, scores),
    }


def write_scores(run: RunFile, scores: Mapping[str, Any]) -> ScoredRun:
    """Write `scores.json` and return what `read_scored` would read."""
    benchmark = load_benchmark(run.benchmark)
    write_stored(run.folder / SCORES_FILE, scores_content(benchmark, run.signature, scores))
    return ScoredRun(_writable(run), strict(scores))


def read_scored(folder: Path) -> ScoredRun:
    """Read a run with its scores."""
    run = read_run(folder)
    path = folder / SCORES_FILE
    try:
        content = read_fields(path, _score_again(folder))
    except FileNotFoundError as error:
        raise QabiasError(
            f"{folder}: has no scores yet (no {SCORES_FILE}).",
            "Finish the run with `qabias run`, or score it with `qabias score`.",
        ) from error
    if content["signature"] != run.signature:
        raise QabiasError(
            f"{path}: its signature {content['signature']!r} differs from the one in run.json, {run.signature!r}.",
            f"{_score_again(folder)}.",
        )
    return ScoredRun(_writable(run), content["scores"])


def read_tables(run: ScoredRun) -> Analysis:
    """Read the tables of a run."""
    return read_analysis(run.folder / ANALYSIS_FILE)


def _score_again(folder: Path) -> str:
    return f"Score the run again with `qabias score {folder}`"


def _writable(run: RunFile) -> RunFile:
    """Replace halves of surrogate pairs, which JSON can spell and files cannot contain."""

    def clean(text: str) -> str:
        return text.encode("utf-8", errors="replace").decode("utf-8")

    arguments = replace(run.arguments, model=clean(run.arguments.model))
    return replace(run, arguments=arguments, signature=clean(run.signature))


LOG_FILE = "log.json"
OTHER_FIGURES = "other_tool"  # name of the table of the other tool's figures


@dataclass(frozen=True)
class OtherTool:
    """The other tool whose log a run scores."""

    tool: str
    version: str
    task: str
    file: str
    figures: tuple[OtherFigure, ...]
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


def _ours(figure: OtherFigure, scores: Mapping[str, Any]) -> float | None:
    """Return the score here for a figure of the other tool; None if there is none."""
    value: Any = scores
    for key in figure.ours:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return float(value) if figure.ours and isinstance(value, int | float) else None


def _defined(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
