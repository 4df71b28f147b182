"""Answers of a batch to the examples of any benchmark whose answers are texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from qabias.answers.outcomes import FILTERED, NO_ANSWER, TRUNCATED, Written, outcome
from qabias.benchmarks.base import Benchmark, External, make_origin
from qabias.benchmarks.prompt_format import choose_format
from qabias.errors import QabiasError, at_place
from qabias.logs import Log

_OTHERS = re.compile(r"[^0-9a-z]+")
_HASH = re.compile(r"[0-9a-f]{64}")
_AMBIGUOUS = -1
_NAMED = 3


def batched(benchmark: Benchmark, log: Log, asked: Mapping[str, Any]) -> External:
    """The answers of a batch."""
    if tuple(benchmark.answer_columns) != ("prediction",):
        raise QabiasError(
            f"{log.path}: {benchmark.name} needs {', '.join(benchmark.answer_columns)}, and batch results have texts.",
            f"Run it with a local model, or score a table with these columns: qabias list {benchmark.name}.",
        )
    stated = {name: asked[name] for name in ("config", "source", "norm", "seed", "fixes", "options") if name in asked}
    external = External(pa.table({}), benchmark.name, config=benchmark.configs[-1], source=benchmark.sources[0])
    external = replace(external, **stated)
    prompt_format = choose_format(benchmark.formats, asked["format"]) if "format" in asked else None
    benchmark.check_config(external.config)
    origin = make_origin(benchmark, external.source, external.seed, external.fixes, external.options)
    table = benchmark.load(external.config, origin)
    results = _by_row(log, _rows_by_id(benchmark, table))
    if not results.texts:
        first = next(iter(results.failures.values()), "it is empty")
        problem = f"{log.path}: all {results.n:,} requests failed; the first: {first.rstrip('.')}."
        raise QabiasError(problem, "Fix the cause, then send the requests again.")
    rows = sorted([*results.texts, *results.failures])
    texts = [results.texts.get(row) for row in rows]
    examples = table.take(pa.array(rows, pa.int64()))
    answers = pa.table({"prediction": pa.array(texts, pa.string())})
    if "outcome" in benchmark.optional_columns:
        with at_place(log.path):
            answers = _with_outcomes(benchmark.read_given(examples, answers, prompt_format, external.norm), texts)
    for name in reversed(benchmark.key):
        answers = answers.add_column(0, name, examples[name])
    assumed = f"Results do not name the source of the texts. qabias assumes {external.source} (--source)."
    notes = () if "source" in asked else (assumed,)
    return replace(external, answers=answers, format=prompt_format.name if prompt_format else "", notes=notes)


@dataclass
class _Found:
    """The content of a results file."""

    texts: dict[int, Written] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    n: int = 0


def _by_row(log: Log, row_of: Mapping[str, int]) -> _Found:
    results = _Found()
    strangers = []
    for sample in log.samples():
        name = str(sample.asked["custom_id"])
        row = row_of.get(_plain(name))
        if row is None:
            strangers.append(name)
            continue
        if row == _AMBIGUOUS:
            raise QabiasError(
                f"{log.path}: {sample.where}: the custom_id {name!r} fits several examples.",
                "Use the full key of the example.",
            )
        if row in results.texts and not sample.error:
            raise QabiasError(
                f"{log.path}: {sample.where}: a second answer to {name!r}.", "Send each request once, without n."
            )
        results.n += 1
        if sample.error:
            results.failures[row] = sample.error
        else:
            results.texts[row] = Written(sample.text or "", sample.finish, sample.thinking)
    if strangers:
        raise _of_strangers(log, strangers, row_of)
    results.failures = {row: why for row, why in results.failures.items() if row not in results.texts}
    return results


def _rows_by_id(benchmark: Benchmark, table: pa.Table) -> dict[str, int]:
    """The row of every example by each spelling of its key, `_AMBIGUOUS` if two share one."""
    columns = {name: table[name].to_pylist() for name in benchmark.key}
    # A key may omit a part that all examples share.
    varying = [name for name in benchmark.key if len(set(columns[name])) > 1] or list(benchmark.key)
    row_of: dict[str, int] = {}
    for names in dict.fromkeys((tuple(benchmark.key), tuple(varying))):
        for row, key in enumerate(zip(*(columns[name] for name in names), strict=True)):
            for written in (_written(key), _written((benchmark.name, *key))):
                row_of[written] = row if row_of.get(written, row) == row else _AMBIGUOUS
    return row_of


def _written(key: Sequence[Any]) -> str:
    return _plain("/".join(map(str, key)))


def _plain(name: str) -> str:
    """A `custom_id` or key without case and separators."""
    return _OTHERS.sub("/", name.lower()).strip("/")


def _of_strangers(log: Log, strangers: Sequence[str], row_of: Mapping[str, int]) -> QabiasError:
    """The error for names of no example."""
    if all(_HASH.fullmatch(name) for name in strangers):
        return QabiasError(
            f"{log.path}: answers to requests that qabias wrote.",
            f"Rerun the qabias run command that wrote them, with --option batch=read={log.path}.",
        )
    shown = ", ".join(map(repr, strangers[:_NAMED])) + (", ..." if len(strangers) > _NAMED else "")
    examples = ", ".join(map(repr, list(row_of)[:1]))
    return QabiasError(
        f"{log.path}: unknown custom_id in this config and source ({len(strangers):,} in all): {shown}.",
        f"Use the keys of examples, such as {examples}.",
    )


def _with_outcomes(read: pa.Table, texts: Sequence[Written | None]) -> pa.Table:
    """Parsed answers with the service's reason for those that are missing."""
    became = read["outcome"].to_pylist()
    for row, (text, place) in enumerate(zip(texts, read["prediction"].to_pylist(), strict=True)):
        if text is None:
            became[row] = None
        elif place is None or place == NO_ANSWER:
            ended = outcome(text, NO_ANSWER)
            became[row] = ended if ended in (TRUNCATED, FILTERED) else became[row]
    outputs = [None if text is None else [str(text)] for text in texts]
    read = read.set_column(read.column_names.index("outcome"), "outcome", pa.array(became, pa.string()))
    return read.set_column(read.column_names.index("outputs"), "outputs", pa.array(outputs, pa.list_(pa.string())))
