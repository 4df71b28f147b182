"""The folder of a run: its arguments, and its answers in parts that detect any changed bit."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import itertools
import json
import platform
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qabias.benchmarks import Benchmark, benchmark_names
from qabias.benchmarks.base import LOOK, LOOK_GROUP
from qabias.benchmarks.registry import is_folder
from qabias.benchmarks.scoring import by_run
from qabias.errors import QabiasError, arg
from qabias.runs.arguments import RunArguments
from qabias.scorers.registry import BASELINE_PREFIX
from qabias.support.files import MOST_BYTES, remove_leftovers, require_regular_file, write_atomically, write_new
from qabias.support.outputs import ANSWERS_FOLDER
from qabias.support.stored import checked_text, read_fields, typed, write_stored
from qabias.support.suggest import choose, missing
from qabias.support.version import __version__

_KEY = b"qabias"
_NO_CHECKSUM = b"0" * 64
_COMPRESSION = "zstd"
_CHECKSUM = re.compile(rb"run=([0-9a-f]{64}) file=([0-9a-f]{64})")


def write_checked(path: Path, table: pa.Table, run: str, *, lasting: bool = False) -> None:
    """Write a part of a run with its checksum, atomically; equal answers give equal bytes."""
    marked = table.replace_schema_metadata({_KEY: b"run=%b file=%b" % (run.encode(), _NO_CHECKSUM)})
    buffer = pa.BufferOutputStream()
    pq.write_table(marked, buffer, compression=_COMPRESSION)
    content = bytearray(buffer.getvalue())
    [*_, checksum] = _CHECKSUM.finditer(content)
    content[slice(*checksum.span(2))] = hashlib.sha256(content).hexdigest().encode()
    write_atomically(path, partial(Path.write_bytes, data=content), lasting=lasting)


def read_checked(path: Path, run: str) -> pa.Table:
    """Read a part of a run and verify its checksum."""
    try:
        content = require_regular_file(path, MOST_BYTES).read_bytes()
    except OSError as error:
        raise QabiasError(
            f"{path} cannot be read: {error.strerror or error}.",
            "Keep the file, make it readable, and rerun the command.",
        ) from error
    _check(path, content, run)
    try:
        # Without threads: one that releases these bytes while Python ends would abort the process.
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        return table.replace_schema_metadata(None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, str(error)) from error


def _check(path: Path, content: bytes, run: str) -> None:
    checksums = list(_CHECKSUM.finditer(content))
    if not checksums:
        raise damaged(path, "its checksum is missing")
    begin, end = checksums[-1].span(2)
    digest = hashlib.sha256(content[:begin])
    digest.update(_NO_CHECKSUM)
    digest.update(memoryview(content)[end:])
    if digest.hexdigest().encode() != checksums[-1][2]:
        raise damaged(path, "it is not as it was written")
    if checksums[-1][1].decode() != run:
        raise QabiasError(
            f"{path}: holds answers of another run than {path.parent.parent / 'run.json'} names.",
            "Move the file to its own run.",
        )


def damaged(path: Path, why: str) -> QabiasError:
    """Return the error of a damaged part."""
    return QabiasError(f"{path}: damaged ({' '.join(why.split())}).", "Remove the file and run the same command again.")


RUN_FILE, SCORES_FILE, ANALYSIS_FILE, REPORT_FILE = "run.json", "scores.json", "analysis.json", "report.html"
COMPARISON_FILE, POOL_FILE = "compare.html", "pool.json"
"""Files of comparisons and averages, which mark a folder that is not a run."""

_VERSIONED = ("datasets", "evaluate", "numpy", "pyarrow", "tokenizers", "torch", "transformers")


@dataclass(frozen=True)
class RunContent:
    """Content of `run.json`."""

    arguments: RunArguments
    signature: str
    created: str
    qabias_version: str
    versions: Mapping[str, str]
    units_per_part: int
    model_digest: str
    cost: Mapping[str, float] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class RunFile(RunContent):
    """`run.json` with its folder and the SHA-256 of its question and of its model's files, in hexadecimal digits."""

    folder: Path
    digest: str


PRICES = ("price_in", "price_out")
"""Parts of a cost that are dollars for a million tokens, not sums."""


def with_cost(run: RunFile, cost: Mapping[str, float]) -> RunFile:
    """Write what a service has counted into `run.json`; a sum of another command, or a price, stays."""
    if not cost:
        return run
    there = read_run(run.folder).cost
    kept = {name: n for name, n in there.items() if name not in cost or (name not in PRICES and n > cost[name])}
    run = replace(run, cost={**cost, **kept})
    if run.cost != there:
        content = asdict(run)
        write_stored(run.folder / RUN_FILE, {each.name: content[each.name] for each in fields(RunContent)})
    return run


def added_costs(costs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The cost of several runs together."""
    names = {name for cost in costs for name in cost}
    return {name: (max if name in PRICES else sum)([cost.get(name, 0) for cost in costs]) for name in sorted(names)}


def read_run(folder: Path) -> RunFile:
    """Read and check `run.json`."""
    path, remedy = folder / RUN_FILE, "Repeat the run in another folder"
    try:
        fields = read_fields(path, remedy)
    except FileNotFoundError as error:
        raise no_run(folder) from error
    version = fields.get("qabias_version")
    if version != __version__:
        raise QabiasError(f"{path}: written by qabias {version}, and this is {__version__}.", f"{remedy}.")
    content = typed(RunContent, fields, path, remedy)
    if content.arguments.benchmark not in benchmark_names() and not is_folder(content.arguments.benchmark):
        raise QabiasError(
            f"{path}: unknown benchmark {content.arguments.benchmark!r}, here are {', '.join(benchmark_names())}.",
            "Install its package, or repeat the run in another folder.",
        )
    measured = [content.signature, asdict(content.arguments), *filter(None, [content.model_digest])]
    digest = hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()
    return RunFile(**vars(content), folder=folder, digest=digest)


def no_run(folder: Path) -> QabiasError:
    """Return the error of a path that is not a run folder; it names run folders nearby."""
    for name, what in ((COMPARISON_FILE, "a comparison"), (POOL_FILE, "an average of several runs")):
        if (folder / name).exists():
            return QabiasError(
                f"{folder} is {what}, not a run.", f"Use one of its runs, or `qabias show {quote(str(folder))}`."
            )
    if folder.is_file() and is_run(folder.parent):
        return QabiasError(f"{folder} is a file of a run.", f"Use its folder: {folder.parent}")
    runs = sorted(path.parent.name for path in folder.glob(f"*/{RUN_FILE}"))
    if runs:
        return QabiasError(f"{folder} is not a run folder. It contains {len(runs)}.", choose(runs, (), f"{folder}/"))
    if not folder.exists():
        return missing(folder)
    return QabiasError(f"{folder}: holds no run (no {RUN_FILE}).", "Use a folder that 'qabias run' wrote.")


_version = cache(importlib.metadata.version)


def create_or_resume(
    folder: Path, arguments: RunArguments, signature: str, units_per_part: int, model_digest: str = ""
) -> RunFile:
    """Write `run.json`, or check that the folder contains this run."""
    run_file = folder / RUN_FILE
    if not run_file.exists():
        try:
            check_free(folder)
            created = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            versions = {name: _version(name) for name in _VERSIONED if find_spec(name)}
            versions = {"python": platform.python_version(), **versions}
            content = RunContent(arguments, signature, created, __version__, versions, units_per_part, model_digest)
            write_new(run_file, checked_text(asdict(content)))
        except QabiasError:
            if not run_file.exists():  # else another shard has begun meanwhile
                raise
    run = read_run(folder)
    there, ours = asdict(run.arguments), asdict(arguments)
    different = [name for name in ours if there[name] != ours[name]]
    if different or run.signature != signature:
        what = ", ".join(f"{name} {there[name]!r} there, {ours[name]!r} here" for name in different)
        fixed = " Conditions are fixed before the first answer, or the error rate is lost." * ("until" in different)
        raise QabiasError(
            f"{folder}: holds another run ({what or run.signature}).{fixed}", f"Choose another {arg('output')}."
        )
    remove_leftovers(run_file)  # of one that was killed while another has written it
    return run


def check_free(folder: Path) -> None:
    """Refuse a folder that contains something else."""
    if folder.exists() and (not folder.is_dir() or any(path.name[:1] != "." for path in folder.iterdir())):
        raise QabiasError(f"{folder}: exists and holds no run.", f"Choose another {arg('output')}.")


def default_folder(arguments: RunArguments) -> Path:
    """`runs/<benchmark>-<config>-<model>-<hash of the arguments>` in the working directory."""
    named = {**asdict(arguments), "benchmark": arguments.benchmark_name}
    digest = zlib.crc32(json.dumps(named, sort_keys=True).encode())
    model = file_name(arguments.model)
    return Path("runs") / f"{arguments.benchmark_name}-{arguments.config}-{model}-{digest:08x}"


def file_name(model: str) -> str:
    """The name of a model in the name of a folder: of a path or Hub id the last part."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", Path(model).name if "/" in model else model).strip("-")


def cut_parts(benchmark: Benchmark, table: pa.Table, units_per_part: int) -> Iterator[pa.Table]:
    """Cut the examples into parts of whole units, each of one prompt variant."""
    for of_wording in by_run(table):
        for of_look in by_run(of_wording, LOOK):
            for of_group in by_run(of_look, LOOK_GROUP):
                yield from _cut(benchmark, of_group, units_per_part)


def _cut(benchmark: Benchmark, table: pa.Table, units_per_part: int) -> Iterator[pa.Table]:
    unit_of, _ = benchmark.units(table)
    starts = np.flatnonzero(np.diff(unit_of, prepend=-1))
    bounds = [*starts[::units_per_part].tolist(), table.num_rows]
    for begin, end in itertools.pairwise(bounds):
        yield table.slice(begin, end - begin)


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a run, even one without its `run.json`."""
    return (folder / RUN_FILE).exists() or (folder / ANSWERS_FOLDER).is_dir()


def part_path(folder: Path, number: int) -> Path:
    """Path of a part of a run."""
    return folder / ANSWERS_FOLDER / f"part-{number:05d}.parquet"


def write_part(run: RunFile, number: int, benchmark: Benchmark, part: pa.Table, answers: Mapping[str, Any]) -> None:
    """Write the answers to a part, atomically."""
    table = pa.table({**{name: part[name] for name in benchmark.key}, **answers})
    is_costly = not run.arguments.model.startswith(BASELINE_PREFIX)
    write_checked(part_path(run.folder, number), table, run.digest, lasting=is_costly)


def read_part(run: RunFile, number: int) -> pa.Table | None:
    """Read the answers in a part of a run; None if it is missing."""
    path = part_path(run.folder, number)
    return read_checked(path, run.digest) if path.exists() else None


def matches_part(written: pa.Table, benchmark: Benchmark, part: pa.Table) -> bool:
    """Return whether answers belong to exactly these examples."""
    key = list(benchmark.key)
    return bool(written.select(key).equals(part.select(key)))


def read_answers(run: RunFile, benchmark: Benchmark, parts: Mapping[int, pa.Table]) -> tuple[pa.Table, int]:
    """Read the answers of a run in the order of its examples, and count missing parts."""
    answers: list[pa.Table] = []
    n_missing = 0
    for number, part in parts.items():
        path = part_path(run.folder, number)
        written = read_part(run, number)
        if written is None:
            n_missing += 1
            continue
        if not matches_part(written, benchmark, part):
            raise QabiasError(f"{path}: holds other examples.", "Remove the file and run the same command again.")
        answers.append(written)
    # A part without reasoning has no column of it.
    return pa.concat_tables(answers, promote_options="default") if answers else pa.table({}), n_missing


def read_keys(run: RunFile, benchmark: Benchmark) -> pa.Table:
    """Read the key columns of all answers of a run, in order."""
    paths = sorted(part_path(run.folder, 0).parent.glob("part-*.parquet"))
    if not paths:
        raise QabiasError(f"{run.folder}: holds no answers.", "Score the original file again.")
    return pa.concat_tables([read_checked(path, run.digest).select(list(benchmark.key)) for path in paths])


def read_all_answers(run: RunFile, benchmark: Benchmark, table: pa.Table) -> pa.Table:
    """Read the answers of a complete run in the order of its examples."""
    answers, n_missing = read_answers(run, benchmark, dict(enumerate(cut_parts(benchmark, table, run.units_per_part))))
    if n_missing:
        raise QabiasError(f"{run.folder}: {n_missing} parts are missing.", "Run the same command again to finish it.")
    return answers
