"""Logs of other tools as runs: scored and reported, and comparable with other runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from qabias.answers.likelihoods import NORMS
from qabias.benchmarks import choose_format, load_benchmark, loadable_benchmarks
from qabias.benchmarks.base import Logged, LogReader
from qabias.benchmarks.batched import batched
from qabias.benchmarks.task_logs import own_answers
from qabias.errors import QabiasError
from qabias.logs import Log, Sample, openai_batch
from qabias.logs.detect import logs_in, read_log, refuse_others
from qabias.logs.model import as_written
from qabias.runs.arguments import RunArguments, norm_arguments
from qabias.runs.collected import Collected, collect, parted
from qabias.runs.folder import RUN_FILE
from qabias.runs.scored import OtherTool, without_reasons
from qabias.support.suggest import unknown


@dataclass
class _Counts:
    """Counts of samples and failures, and the first failure."""

    samples: int = 0
    failed: int = 0
    first: str = ""

    def through(self, samples: Iterator[Sample]) -> Iterator[Sample]:
        """Yield the samples and count them."""
        self.samples = self.failed = 0
        for sample in samples:
            self.samples += 1
            if sample.error:
                self.failed += 1
                self.first = self.first or f"{sample.where}: {sample.error}"
            yield sample


@dataclass
class FoundLogs:
    """Content of a folder."""

    logs: list[Log] = field(default_factory=list)
    unreadable: list[QabiasError] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)


def log_at(path: Path) -> Log | None:
    """Read the log in a file, or the only one in a folder; None if there is none."""
    if not path.is_dir():
        return read_log(path, refuse_others) if path.is_file() else None
    content = find_logs(path)
    if content.unreadable:
        raise content.unreadable[0]
    if len(content.logs) > 1:
        names = ", ".join(str(log.path.relative_to(path)) for log in content.logs)
        raise QabiasError(f"{path}: contains {len(content.logs)} logs ({names}).", "Score one of them.")
    return content.logs[0] if content.logs else None


def find_logs(folder: Path) -> FoundLogs:
    """Sort the files of a folder by type."""
    content = FoundLogs()
    for path, log in logs_in(folder, RUN_FILE):
        if path.is_dir():
            content.runs.append(path)
        elif isinstance(log, QabiasError):
            content.unreadable.append(log)
        elif log is None:
            content.others.append(path)
        else:
            content.logs.append(log)
    content.others = [path for path in content.others if not any(log.owns(path) for log in content.logs)]
    return content


def collect_log(
    log: Log,
    *,
    model: str | None = None,
    rules: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
) -> Collected:
    """Read the answers of a log and match them with examples."""
    hints = hints or {}
    _check_names(hints)
    counts = _Counts()
    counted = replace(log, samples=lambda: counts.through(log.samples()))
    # The last guard, after the readers' own, which name the place.
    with as_written(log.called, log.tool):
        name, logged = _benchmark_of(counted, hints)
    external = logged.external
    arguments = RunArguments(
        name,
        model=model or external.model or log.model or log.path.stem,
        config=logged.config,
        source=external.source or load_benchmark(name).sources[0],
        format=external.format or None,
        **norm_arguments(external.norm or NORMS[0]),
        seed=logged.seed,
        fixes=logged.fixes,
        options=logged.options,
        rules={**logged.rules, **(rules or {})},
        asked_by=" ".join((log.tool, log.task)).replace("|", " "),
    )
    if log.tool != openai_batch.TOOL:
        _check_hints(log, hints, arguments)
    # The arguments name the texts already, and whether they are corrected.
    external = replace(external, source="")
    with as_written(log.called, log.tool):
        collected = collect(external, arguments, str(log.path), logged.references, of_log=True)
    collected, about_parts = parted(collected)
    notes = [f"Asked by {log.called}.", *log.notes, *logged.notes, *_describe_missing(log, counts, logged.failed)]
    if about_parts:
        notes.append(about_parts)
    if collected.coverage:
        notes.append(f"{collected.coverage}.")
    other = OtherTool(log.tool, log.version, log.task, log.path.name, logged.figures, tuple(notes))
    return replace(collected, other=without_reasons(other) if rules else other)


def folder_name(log: Log) -> str:
    """Name of a log's run folder: the file's name without its ending."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", log.path.stem if log.path.is_file() else log.path.name).strip("-.") or "log"


def _benchmark_of(log: Log, hints: Mapping[str, str]) -> tuple[str, Logged]:
    own = own_answers(log)
    if own is not None:
        return own
    wanted = hints.get("benchmark")
    if log.tool == openai_batch.TOOL:
        if wanted is None:
            raise QabiasError(
                f"{log.called}: results of a batch do not include the questions.",
                "Add --benchmark, --config, --source and --format.",
            )
        return wanted, batched(load_benchmark(wanted), log, hints)
    for name, benchmark in loadable_benchmarks().items():
        if wanted in (None, name):
            logged = benchmark.logged(log, hints) if isinstance(benchmark, LogReader) else None
            if logged is not None:
                return name, logged
    first = next(log.samples(), None)
    kept = f"its samples keep {', '.join(first.asked) or 'nothing of the question'}" if first else "it has no sample"
    raise QabiasError(
        f"{log.called}: no benchmark here reads this task ({kept}).",
        "Score a table of key columns and answers instead. See: qabias list",
    )


def _check_names(hints: Mapping[str, str]) -> None:
    if "benchmark" not in hints:
        return
    benchmark = load_benchmark(hints["benchmark"])
    if "source" in hints and hints["source"] not in benchmark.sources:
        raise unknown("source", hints["source"], benchmark.sources)
    if "format" in hints:
        choose_format(benchmark.formats, hints["format"])


def _check_hints(log: Log, hints: Mapping[str, str], arguments: RunArguments) -> None:
    """Refuse arguments that contradict the log."""
    said = {
        "benchmark": arguments.benchmark,
        "config": arguments.config,
        "source": arguments.source,
        "format": arguments.format or "",
        "norm": arguments.norm,
    }
    for hint, value in hints.items():
        if value == said.get(hint):
            continue
        name = {"norm": "parser"}.get(hint, hint)
        there = f"{said[hint]!r} in the log" if said.get(hint) else "but the log has its own"
        raise QabiasError(f"{log.called}: {name} is {value!r} here, {there}.", f"Remove {name}.")


def _describe_missing(log: Log, counts: _Counts, failed: str) -> list[str]:
    """Describe missing samples of a log."""
    notes = []
    if counts.failed:
        notes.append(f"{counts.failed:,} of {counts.samples:,} samples failed and {failed}; the first, {counts.first}.")
    if log.n_expected is not None and counts.samples < log.n_expected:
        notes.append(f"The log has {counts.samples:,} of the {log.n_expected:,} samples that {log.tool} planned.")
    return notes
