"""Reads answers that others collected: tables, logs of other tools, batches, and Python values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark, choose_format, load_benchmark, loadable_benchmarks
from qabias.benchmarks.base import External
from qabias.benchmarks.registry import default_name
from qabias.benchmarks.text_logs import batched, read_inspect
from qabias.errors import QabiasError, arg
from qabias.logs import Log, Sample, as_written, openai_batch
from qabias.logs.detect import find_logs, read_log, refuse_others
from qabias.models.loading import check_name
from qabias.runs.arguments import signed_norm
from qabias.runs.collected import keys_of, spelled
from qabias.support.suggest import choose, unknown
from qabias.support.table_files import check_columns, is_table, origin_of, read_table, to_table


def read_external(source: Any, asked: Mapping[str, Any]) -> External:
    """Read the answers of one model.

    Args:
        source: A file, a folder with one log, a log, a table (see `to_table`), or a sequence of answers parallel to
            the references.
        asked: The arguments of `qabias.score` that the caller gave, by name.

    Raises:
        QabiasError: If the answers are unreadable, or contradict the arguments or their references.
    """
    asked = dict(asked)
    if "model" in asked:
        check_name(asked["model"], "model")
    if "parser" in asked:
        asked["norm"] = signed_norm(asked.pop("parser"))
    log = log_at(Path(source)) if isinstance(source, str | Path) else source
    return _read_log(log, asked) if isinstance(log, Log) else _read_table(source, asked)


def refuse(names: Iterable[str], why: str) -> None:
    """Refuse arguments that have no effect."""
    for name in names:
        raise QabiasError(f"{arg(_called(name))} is for {why}.", f"Remove {arg(_called(name))}.")


def _called(name: str) -> str:
    return "option" if name == "options" else name


# Tables


def _read_table(source: Any, asked: dict[str, Any]) -> External:
    # Rows of `load` with a column of answers are their own references.
    references = asked.pop("references", source if origin_of(source) else None)
    asked = _with_origins(asked, origin_of(references))
    rows = None if references is None else to_table(references, "references")
    called = asked.pop("benchmark", default_name())
    benchmark = load_benchmark(called)
    where = str(source) if isinstance(source, str | Path) else "predictions"
    table = _table(source, benchmark, where, rows is not None)
    if rows is not None and any(key in table.column_names for key in benchmark.key):
        _refuse_unasked(rows, table, benchmark, where)
    elif rows is not None:
        table = _beside(rows, table, benchmark)
    external = _choose(benchmark, table, asked.pop("answers", None), where)
    texts, fixes = asked.get("source", external.source), asked.get("fixes")
    if external.source and (texts != external.source or fixes):
        both = f"{texts}{' with fixes' if fixes else ''}"
        raise QabiasError(
            f"{where} answers source {external.source}, not {both}.", f"Remove {arg('source')} and {arg('fixes')}."
        )
    known = replace(
        external,
        benchmark=called,
        model=external.model or Path(where).stem,
        config=benchmark.configs[-1],
        source=external.source or benchmark.sources[0],
        where=where,
        references=rows,
    )
    return replace(known, **asked)


def _with_origins(asked: Mapping[str, Any], origins: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the caller and the references state about the texts."""
    known = dict(asked)
    for name in dict.fromkeys(name for origin in origins for name in origin):
        called = _called(name)
        stated = list({str(origin.get(name)): origin.get(name) for origin in origins}.values())
        if len(stated) == 1 and known.setdefault(name, stated[0]) != stated[0]:
            raise QabiasError(
                f"{called} is {known[name]!r}, but the references were loaded with {called} {stated[0]!r}.",
                f"Remove {called}, or load the rows that were asked.",
            )
        if name not in known:
            both = " and ".join(map(repr, stated))
            raise QabiasError(f"the references were loaded with {called} {both}.", f"Name {called}=.")
    return known


def _table(source: Any, benchmark: Benchmark, where: str, has_rows: bool) -> pa.Table:
    """The answers as a table; a sequence is its column of answers."""
    if isinstance(source, str | Path):
        return read_table(Path(source))
    if is_table(source):
        return to_table(source, where)
    if not has_rows:
        raise QabiasError(
            "a sequence of answers does not name its questions.",
            "Give the rows as references, such as "
            f"qabias.load({benchmark.name!r}, ...), or a table with {', '.join(benchmark.key)}.",
        )
    if len(benchmark.answer_columns) > 1:
        names = ", ".join(benchmark.answer_columns)
        raise QabiasError(f"an answer to {benchmark.name} is several numbers.", f"Give a table with {names}.")
    return to_table({benchmark.answer_columns[0]: source}, where)


def _beside(rows: pa.Table, answers: pa.Table, benchmark: Benchmark) -> pa.Table:
    """Answers with the keys of the references, which are parallel to them."""
    if answers.num_rows != rows.num_rows:
        raise QabiasError(f"{answers.num_rows:,} predictions and {rows.num_rows:,} references.", "Give one for each.")
    for name in benchmark.key:
        if name in rows.column_names:
            answers = answers.append_column(name, rows[name])
    return answers


def _refuse_unasked(rows: pa.Table, answers: pa.Table, benchmark: Benchmark, where: str) -> None:
    """Refuse answers whose keys the references lack."""
    keys = [name for name in benchmark.key if name in rows.column_names and name in answers.column_names]
    known = {*keys_of(keys, rows)}
    for row, key in enumerate(keys_of(keys, answers), start=1):
        if key not in known:
            problem = f"{where}: row {row}: the references have no {spelled(keys, key)}."
            raise QabiasError(problem, "Remove the row, or add its example.")


def _choose(benchmark: Benchmark, table: pa.Table, name: str | None, where: str) -> External:
    """One model's answers in a table, which may have the form of the benchmark's authors."""
    check_columns(table, where)
    is_general = set(benchmark.answer_columns) <= set(table.column_names)
    published = () if is_general else benchmark.recognise(table)
    known = {answers.name: answers for answers in published}
    if name is None and len(known) > 1:
        raise QabiasError(f"{where} has the answers of {len(known)} models.", choose(list(known), (), arg("answers")))
    if name is None:
        return next(iter(known.values()), External(table))
    if not known:
        raise QabiasError(f"{where}: has one column of answers.", f"Remove {arg('answers')}.")
    if name not in known:
        raise unknown(f"model in {where}:", name, known, arg("answers"))
    return known[name]


# Logs


def log_at(path: Path) -> Log | None:
    """Read the log in a file, or the only one in a folder; None for a file without one."""
    if not path.is_dir():
        return read_log(path, refuse_others) if path.is_file() else None
    content = find_logs(path)
    if content.unreadable:
        raise content.unreadable[0]
    if len(content.logs) > 1:
        names = ", ".join(str(log.path.relative_to(path)) for log in content.logs)
        raise QabiasError(f"{path}: contains {len(content.logs)} logs ({names}).", "Score one of them.")
    return content.logs[0]


def folder_name(log: Log) -> str:
    """Name of a log's run folder: the file's name without its ending."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", log.path.stem if log.path.is_file() else log.path.name).strip("-.") or "log"


def _read_log(log: Log, asked: Mapping[str, Any]) -> External:
    # The results of a batch do not record which texts were drawn.
    is_batch = _has_only_keys(log)
    names = ("answers", "references", *(() if is_batch else ("fixes", "seed", "options")))
    refuse([name for name in names if name in asked], "a table of answers, and a log records its own")
    _check_names(asked)
    samples = failed = 0
    first = ""

    def counted() -> Iterator[Sample]:
        nonlocal samples, failed, first
        samples = failed = 0
        for sample in log.samples():
            samples += 1
            if sample.error:
                failed += 1
                first = first or f"{sample.where}: {sample.error}"
            yield sample

    # The last guard, after the readers' own, which name the place.
    with as_written(log.called, log.tool):
        external = _of_benchmark(replace(log, samples=counted), asked)
    notes = [f"Asked by {log.called}.", *log.notes, *external.notes]
    if failed:
        notes.append(f"{failed:,} of {samples:,} samples failed and {external.failed}; the first, {first}.")
    if log.n_expected is not None and samples < log.n_expected:
        notes.append(f"The log has {samples:,} of the {log.n_expected:,} samples that {log.tool} planned.")
    external = replace(
        external,
        model=asked.get("model") or external.model or log.model or log.path.stem,
        source=external.source or load_benchmark(external.benchmark).sources[0],
        where=str(log.path),
        notes=tuple(notes),
        log=log,
    )
    if not is_batch:
        _check_contradictions(log, asked, external)
    return external


def _has_only_keys(log: Log) -> bool:
    """Whether a log's answers have only the keys of their questions: a batch, or the task of an `eval.yaml`."""
    return log.tool == openai_batch.TOOL or log.task.startswith("hf/")


def _of_benchmark(log: Log, asked: Mapping[str, Any]) -> External:
    own = read_inspect(log)
    if own is not None:
        return own
    wanted = asked.get("benchmark")
    if _has_only_keys(log):
        if wanted is None:
            raise QabiasError(
                f"{log.called}: it has the keys of the questions, not their benchmark.",
                f"Add {arg('benchmark')}, {arg('config')}, {arg('source')} and {arg('format')}.",
            )
        return replace(batched(load_benchmark(wanted), log, asked), benchmark=wanted)
    for name, benchmark in loadable_benchmarks().items():
        for read in benchmark.log_readers if wanted in (None, name) else ():
            external = read(log, benchmark, asked)
            if external is not None:
                return replace(external, benchmark=name)
    first = next(log.samples(), None)
    kept = f"its samples keep {', '.join(first.asked) or 'nothing of the question'}" if first else "it has no sample"
    raise QabiasError(
        f"{log.called}: no benchmark here reads this task ({kept}).",
        "Score a table of key columns and answers instead. See: qabias list",
    )


def _check_names(asked: Mapping[str, Any]) -> None:
    if "benchmark" not in asked:
        return
    benchmark = load_benchmark(asked["benchmark"])
    if "source" in asked and asked["source"] not in benchmark.sources:
        raise unknown("source", asked["source"], benchmark.sources)
    if "format" in asked:
        choose_format(benchmark.formats, asked["format"])


def _check_contradictions(log: Log, asked: Mapping[str, Any], external: External) -> None:
    """Refuse arguments that contradict the log."""
    for name in ("benchmark", "config", "source", "format", "norm"):
        recorded = getattr(external, name)
        if name in asked and asked[name] != recorded:
            called = {"norm": "parser"}.get(name, name)
            there = f"{recorded!r} in the log" if recorded else "but the log has its own"
            raise QabiasError(f"{log.called}: {called} is {asked[name]!r} here, {there}.", f"Remove {called}.")
