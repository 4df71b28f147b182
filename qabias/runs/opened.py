"""A run: a folder whose content is read when it is first asked for, and kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark, load_benchmark
from qabias.benchmarks.headline import Finding, Headline, headline
from qabias.building.sources import mirror_folder, using_mirror
from qabias.errors import QabiasError
from qabias.runs.folder import ANALYSIS_FILE, SCORES_FILE, RunFile, read_all_answers, read_run
from qabias.runs.looks import CONFIDENCE, Outcome, read_outcome, verdict_lines
from qabias.runs.question import Question, read_question
from qabias.runs.signature import format_name
from qabias.scorers.registry import BASELINE_PREFIX
from qabias.support.stored import read_fields
from qabias.tables.model import Analysis, read_analysis


@dataclass(frozen=True)
class Run(RunFile):
    """A run folder. Its attributes are read when they are first asked for.

    Attributes:
        n_missing_parts: Number of parts without answers, of a run that was just continued.
        note: What the backend says of a batch that waits for its answers.
        warned: Warnings of the metric.
        mirror: Local mirror of the published files when the run was opened, to read its examples again.
    """

    n_missing_parts: int = 0
    note: str = ""
    warned: tuple[str, ...] = ()
    mirror: Path | None = field(default_factory=mirror_folder)

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Open a run folder. Raises `QabiasError` if it holds no run, or a damaged one."""
        return cls.from_file(read_run(folder))

    @classmethod
    def from_file(cls, file: RunFile, kept: Mapping[str, Any] = MappingProxyType({}), **state: Any) -> Run:
        """A run from its `run.json`, with attributes that are `kept` already, without halves of surrogate pairs."""
        content = {each.name: getattr(file, each.name) for each in fields(RunFile)}
        content["arguments"] = replace(file.arguments, model=_writable(file.arguments.model))
        run = cls(**{**content, "signature": _writable(file.signature)}, **state)
        vars(run).update(kept)
        return run

    @classmethod
    def scored(cls, folder: Path) -> Run:
        """Open a run folder that has scores."""
        run = cls.open(folder)
        run.scores  # noqa: B018 - raises without them
        return run

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return load_benchmark(self.arguments.benchmark)

    @cached_property
    def scores(self) -> Mapping[str, Any]:
        """The metric's result, with null for undefined scores."""
        path, fix = self.folder / SCORES_FILE, f"Score the run again with `qabias score {quote(str(self.folder))}`"
        try:
            content = read_fields(path, fix)
        except FileNotFoundError as error:
            raise QabiasError(
                f"{self.folder}: has no scores yet (no {SCORES_FILE}).",
                "Finish the run with `qabias run`, or score it with `qabias score`.",
            ) from error
        if _writable(content["signature"]) != self.signature:
            raise QabiasError(
                f"{path}: its signature {content['signature']!r} differs from the one in run.json, {self.signature!r}.",
                f"{fix}.",
            )
        scores: Mapping[str, Any] = content["scores"]
        return scores

    @cached_property
    def analysis(self) -> Analysis:
        """The tables, examples and notes."""
        return read_analysis(self.folder / ANALYSIS_FILE)

    @cached_property
    def question(self) -> Question:
        """The examples that the scores include, and how they were asked."""
        with using_mirror(self.mirror):
            return read_question(self)

    @cached_property
    def answers(self) -> pa.Table:
        """The answers, parallel to the examples of `question`."""
        return read_all_answers(self, self.benchmark, self.question.table)

    @cached_property
    def outcome(self) -> Outcome | None:
        """The verdicts of a run with conditions; None without."""
        return read_outcome(self)

    @cached_property
    def headline(self) -> Headline | None:
        """The verdict if the run has conditions, then what its scores show."""
        first = headline(self.benchmark, self.scores, self.arguments.model, self.is_question_only)
        if self.outcome is None or first is None:
            return first
        states = {one.state for one in self.outcome.verdicts}
        finding: Finding = "fail" if "fail" in states else "inconclusive" if "undecided" in states else "pass"
        line, *more = verdict_lines(self.outcome)
        text, end, interval = line.partition("). ")
        return Headline(finding, text + end.strip(), " ".join([interval, *more]))

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

    @property
    def stopped_early(self) -> bool:
        """Whether conditions ended the run before its last question, as is assumed of one that lost its verdict."""
        outcome = self.outcome
        return bool(self.arguments.until) and (outcome is None or outcome.stopped_early)

    @property
    def confidence(self) -> float:
        """Level of the intervals of the scores, above 0.95 for a run that stopped early."""
        match = re.search(r"\|confidence:([\d.]+)", str(self.scores.get("signature")))
        return float(match[1]) if match else CONFIDENCE

    def __getstate__(self) -> dict[str, Any]:
        """What other processes need; they read the rest themselves."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _writable(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON can spell and files cannot contain."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def is_question_only(benchmark: Benchmark, signature: str) -> bool:
    """Return whether a signature names a format without contexts."""
    prompt_format = benchmark.formats.get(format_name(signature))
    return prompt_format is not None and prompt_format.question_only
