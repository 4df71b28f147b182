"""A run with its scores: `scores.json` written and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.caveats import reasons
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.folder import ANALYSIS_FILE, SCORES_FILE, RunFile, read_run
from qabias.runs.signature import format_name
from qabias.scorers.registry import BASELINE_PREFIX
from qabias.support.files import strict
from qabias.support.stored import read_fields, write_stored
from qabias.tables.model import Analysis, read_analysis


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
            f"{folder}: has no scores yet ({SCORES_FILE} does not exist); finish the run with `qabias run`, or make "
            "them with `qabias score`"
        ) from error
    if content["signature"] != run.signature:
        raise QabiasError(
            f"{path}: its signature {content['signature']!r} is not that of run.json, {run.signature!r}; "
            f"{_score_again(folder)}"
        )
    return ScoredRun(_writable(run), content["scores"])


def read_tables(run: ScoredRun) -> Analysis:
    """The tables of a run."""
    return read_analysis(run.folder / ANALYSIS_FILE)


def _score_again(folder: Path) -> str:
    return f"score the run again with `qabias score {folder}`"


def _writable(run: RunFile) -> RunFile:
    """The same with a question mark for half of a surrogate pair: JSON can spell one, and no file can hold it."""

    def clean(text: str) -> str:
        return text.encode("utf-8", errors="replace").decode("utf-8")

    arguments = replace(run.arguments, model=clean(run.arguments.model))
    return replace(run, arguments=arguments, signature=clean(run.signature))
