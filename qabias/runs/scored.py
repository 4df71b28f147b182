"""A run with its scores: `scores.json` written and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.base import lacking
from qabias.benchmarks.caveats import reasons
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import ANALYSIS_FILE, RUN_FILE, SCORES_FILE, RunFile, read_run
from qabias.runs.outdated import about_left_out, about_outdated, analysis_without_intervals, without_intervals
from qabias.runs.signature import format_name
from qabias.runs.stored_scores import check_scores
from qabias.scorers.registry import BASELINE_PREFIX
from qabias.support.files import strict
from qabias.support.outputs import ANSWERS_FOLDER
from qabias.support.stored import read_stored, write_sealed_json
from qabias.tables import model
from qabias.tables.export import read_folder
from qabias.tables.model import Analysis, read_analysis


class ScoredRun(NamedTuple):
    """A run with its scores."""

    file: RunFile
    scores: Mapping[str, Any]
    left_out: str = ""

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.file.folder

    @property
    def arguments(self) -> RunArguments:
        """What was measured."""
        return self.file.arguments

    @property
    def signature(self) -> str:
        """The same in one line."""
        return self.file.signature

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return load_benchmark(self.file.benchmark)

    @property
    def format_name(self) -> str:
        """Name of its prompt format; "" where it is not known."""
        return format_name(self.signature)

    @property
    def is_baseline(self) -> bool:
        """Whether a baseline answered."""
        return self.arguments.model.startswith(BASELINE_PREFIX)

    @property
    def is_question_only(self) -> bool:
        """Whether the model saw no context, so that only some scores mean anything."""
        return is_question_only(self.benchmark, self.signature)


def is_question_only(benchmark: Benchmark, signature: str) -> bool:
    """Whether a signature names a format that leaves the context out."""
    prompt_format = benchmark.formats.get(format_name(signature))
    return prompt_format is not None and prompt_format.question_only


def scores_content(benchmark: Benchmark, signature: str, scores: Mapping[str, Any]) -> dict[str, Any]:
    """Scores as their file holds them: with the signature, and why what is undefined is so."""
    return {
        "benchmark": benchmark.name,
        "signature": signature,
        "scores": scores,
        "reasons": reasons(benchmark.facts, scores),
    }


def write_scores(run: RunFile, scores: Mapping[str, Any]) -> ScoredRun:
    """Write `scores.json`; returns what `read_scored` would read."""
    benchmark = load_benchmark(run.benchmark)
    write_sealed_json(run.folder / SCORES_FILE, scores_content(benchmark, run.signature, scores))
    return ScoredRun(_writable(run), strict(scores))


def read_scored(folder: Path) -> ScoredRun:
    """Read a run with its scores, without the intervals that an older version of the metric made."""
    run = read_run(folder)
    path = folder / SCORES_FILE
    benchmark = load_benchmark(run.benchmark)
    try:
        content = read_stored(path, _score_again(folder))
    except FileNotFoundError as error:
        raise QabiasError(
            f"{folder}: has no scores yet ({SCORES_FILE} does not exist); finish the run with `qabias run`, or make "
            "them with `qabias score`"
        ) from error
    for key, ours in (("benchmark", run.arguments.benchmark_name), ("signature", run.signature)):
        if content[key].text() != ours:
            raise QabiasError(
                f"{path}: its {key} {content[key].text()!r} is not that of run.json, {ours!r}; {_score_again(folder)}"
            )
    check_scores(content["scores"], benchmark.facts)
    scores = content["scores"].object()
    why = about_outdated(benchmark, scores, folder)
    return ScoredRun(_writable(run), without_intervals(scores) if why else scores, why)


def read_tables(run: ScoredRun) -> Analysis:
    """The tables of a run, without the intervals that are left out of its scores; the first note then says so."""
    analysis = read_analysis(run.folder / ANALYSIS_FILE)
    return analysis_without_intervals(analysis, run.left_out) if run.left_out else analysis


def read_notes(run: ScoredRun) -> tuple[str, ...]:
    """The notes of `read_tables`, much faster."""
    notes = model.read_notes(run.folder / ANALYSIS_FILE)
    return (about_left_out(run.left_out), *notes) if run.left_out else notes


def read_any_tables(folder: Path) -> Analysis:
    """The same of a folder that may also be one of a comparison or a pool."""
    return read_tables(read_scored(folder)) if _holds_scored_run(folder) else read_folder(folder)


def left_out_of(folder: Path) -> str:
    """Why intervals are left out of what is read of a folder; "" where none are."""
    return read_scored(folder).left_out if _holds_scored_run(folder) else ""


def _holds_scored_run(folder: Path) -> bool:
    """Whether there is a scored run, be it one that has lost the file that says what was asked."""
    holds_run = (folder / RUN_FILE).exists() or (folder / ANSWERS_FOLDER).is_dir()
    return holds_run and (folder / SCORES_FILE).exists()


def check_complete(run: ScoredRun) -> None:
    """Refuse scores that another version has made, without something that is shown or compared."""
    missing = lacking(run.benchmark, run.scores)
    if missing:
        raise QabiasError(
            f"{run.folder / SCORES_FILE}: made by another version of qabias, without {', '.join(missing)}; score the "
            f"run again with `qabias score {run.folder}`"
        )


def damaged(path: Path, fault: str) -> QabiasError:
    """The error of a damaged file that scoring the run again makes anew."""
    return QabiasError(f"{path} is damaged: {fault}; {_score_again(path.parent)}")


def _score_again(folder: Path) -> str:
    return f"score the run again with `qabias score {folder}`"


def _writable(run: RunFile) -> RunFile:
    """The same with a question mark for half of a surrogate pair: JSON can spell one, and no file can hold it."""

    def clean(text: str) -> str:
        return text.encode("utf-8", errors="replace").decode("utf-8")

    arguments = replace(run.arguments, model=clean(run.arguments.model))
    return replace(run, arguments=arguments, signature=clean(run.signature))
