"""The folder of a run: what is measured, and the answers in parts.

    run.json                      what is measured: signature, arguments, versions
    predictions/part-00000.parquet  answers and log-likelihoods, written whole or not at all
    scores.json                   the metric's result, and why what is undefined is so
    analysis.json                 the tables and examples of the report
    report.html                   the same for people

The parts of a run are fixed by its arguments, and each is computed by itself; so a run that was killed, or that several
machines share out by `--shard`, ends with the same bytes as one that was not.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import itertools
import json
import platform
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qabias.benchmarks import Benchmark, benchmark_names, kept_source, load_benchmark
from qabias.benchmarks.registry import is_folder
from qabias.benchmarks.stacking import by_run
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments
from qabias.runs.signature import signature_fields
from qabias.support.files import read_json, remove_leftovers, write_atomically, write_json
from qabias.support.version import __version__

RUN_FILE, SCORES_FILE, ANALYSIS_FILE, REPORT_FILE = "run.json", "scores.json", "analysis.json", "report.html"
COMPARISON_FILE, POOL_FILE = "compare.html", "pool.json"
"""What the folders of a comparison and of a mean of several runs hold, which are none of a run."""

_VERSIONED = ("datasets", "evaluate", "numpy", "pyarrow", "tokenizers", "torch", "transformers")
_TEXTS = ("benchmark", "signature", "created", "qabias_version")


@dataclass(frozen=True)
class RunFile:
    """What `run.json` says.

    Attributes:
        folder: The run folder.
        arguments: What is measured.
        signature: The same in one line.
        created: When the run was begun, as text.
        qabias_version: The version that began it.
        versions: Versions of Python and libraries.
        units_per_part: See `qabias.benchmarks.Benchmark.units_per_part`.
    """

    folder: Path
    arguments: RunArguments
    signature: str
    created: str
    qabias_version: str
    versions: Mapping[str, Any]
    units_per_part: int

    @property
    def benchmark(self) -> str:
        """Name of the benchmark, or the path of a folder of templates."""
        return self.arguments.benchmark


def read_run(folder: Path) -> RunFile:
    """Read and check `run.json`.

    Raises:
        QabiasError: If there is none, it is damaged or from another version, or its benchmark is not installed.
    """
    path = folder / RUN_FILE
    try:
        content = read_json(path)
        for key in _TEXTS:
            if not isinstance(content[key], str):
                raise TypeError(f"{key!r} is no text")
        if not isinstance(content["versions"], dict):
            raise TypeError("'versions' is no object")
        arguments = RunArguments(**content["arguments"])
        if arguments.benchmark != content["benchmark"]:
            raise ValueError("'benchmark' is not that of 'arguments'")
        if not isinstance(arguments.model, str):
            raise TypeError("'model' is no text")
        found = RunFile(
            folder=folder,
            arguments=arguments,
            signature=content["signature"],
            created=content["created"],
            qabias_version=content["qabias_version"],
            versions=content["versions"],
            units_per_part=int(content["units_per_part"]),
        )
    except FileNotFoundError as error:
        raise QabiasError(_about_no_run(folder)) from error
    except OSError as error:
        raise QabiasError(f"cannot read {path}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise QabiasError(
            f"{path} is damaged or not of qabias {__version__}: {error!r}; repeat the run in another folder"
        ) from error
    if found.benchmark not in benchmark_names() and not is_folder(found.benchmark):
        raise QabiasError(
            f"{path}: unknown benchmark {found.benchmark!r}, here are {', '.join(benchmark_names())}; install the "
            "package that brings it, or repeat the run in another folder"
        )
    return _of_its_texts(found)


def _of_its_texts(run: RunFile) -> RunFile:
    """The run of the texts that its signature names, where its benchmark keeps them beside newer ones."""
    if is_folder(run.benchmark):
        return run
    version = signature_fields(run.signature).get("source", "")
    source = kept_source(load_benchmark(run.benchmark), run.arguments.source, version)
    return replace(run, arguments=replace(run.arguments, source=source))


def _about_no_run(folder: Path) -> str:
    """Why a folder without `run.json` is none of a run."""
    for name, what in ((COMPARISON_FILE, "a comparison"), (POOL_FILE, "a mean of several runs")):
        if (folder / name).exists():
            return f"{folder}: holds {what}, not a run; name one of its runs, or see it by `qabias show {folder}`"
    return f"{folder}: holds no run (no {RUN_FILE}); name a folder that `qabias run` wrote"


def claim(folder: Path, arguments: RunArguments, signature: str, units_per_part: int, *, alone: bool) -> RunFile:
    """Write `run.json`, or check that the folder holds this very run.

    Args:
        folder: The run folder.
        arguments: What is measured.
        signature: The same in one line.
        units_per_part: Units of sampling in a part.
        alone: Whether nobody else writes into the folder; what a killed run left is then removed.

    Raises:
        QabiasError: If the folder holds another run or something else.
    """
    run_file = folder / RUN_FILE
    if not run_file.exists():
        try:
            check_free(folder)
            _write_run(run_file, arguments, signature, units_per_part)
        except QabiasError:
            if not run_file.exists():  # else another shard has begun meanwhile
                raise
    found = read_run(folder)
    there, ours = asdict(found.arguments), asdict(arguments)
    different = [name for name in ours if there[name] != ours[name]]
    if different or found.signature != signature:
        what = ", ".join(f"{name} {there[name]!r} there, {ours[name]!r} here" for name in different)
        raise QabiasError(
            f"{folder}: holds another run ({what or found.signature}); choose another --output or remove the folder"
        )
    if alone:
        for name in (RUN_FILE, SCORES_FILE, ANALYSIS_FILE, REPORT_FILE):
            remove_leftovers(folder / name)
    return found


def check_free(folder: Path) -> None:
    """Refuse a folder that holds something else than a run.

    Raises:
        QabiasError: If the folder is a file or not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(path.name[:1] != "." for path in folder.iterdir())):
        raise QabiasError(f"{folder}: exists and holds no run; choose another --output")


def _write_run(path: Path, arguments: RunArguments, signature: str, units_per_part: int) -> None:
    write_json(
        path,
        {
            "benchmark": arguments.benchmark,
            "signature": signature,
            "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "qabias_version": __version__,
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in _VERSIONED},
            },
            "arguments": asdict(arguments),
            "units_per_part": units_per_part,
        },
    )


def default_folder(arguments: RunArguments) -> Path:
    """`runs/<benchmark>-<config>-<model>-<hash of the arguments>` in the working directory.

    The name of a benchmark of templates counts, not the path of its folder.
    """
    named = {**asdict(arguments), "benchmark": arguments.benchmark_name}
    if arguments.orders == 1:
        del named["orders"]  # runs that were begun before there were orders keep their names
    if not arguments.asked_by:
        del named["asked_by"]  # nor were there logs of other tools
    digest = zlib.crc32(json.dumps(named, sort_keys=True).encode())
    model = re.sub(r"[^A-Za-z0-9.]+", "-", Path(arguments.model).name if "/" in arguments.model else arguments.model)
    return Path("runs") / f"{arguments.benchmark_name}-{arguments.config}-{model.strip('-')}-{digest:08x}"


def cut_parts(benchmark: Benchmark, table: pa.Table, units_per_part: int) -> Iterator[pa.Table]:
    """Cut the examples into parts of whole units, each of one wording of a set."""
    for of_wording in by_run(table):
        yield from _cut(benchmark, of_wording, units_per_part)


def _cut(benchmark: Benchmark, table: pa.Table, units_per_part: int) -> Iterator[pa.Table]:
    unit_of, _ = benchmark.units(table)
    starts = np.flatnonzero(np.diff(unit_of, prepend=-1))
    bounds = [*starts[::units_per_part].tolist(), table.num_rows]
    for begin, end in itertools.pairwise(bounds):
        yield table.slice(begin, end - begin)


def part_path(folder: Path, number: int) -> Path:
    """File of a part of a run."""
    return folder / "predictions" / f"part-{number:05d}.parquet"


def write_part(folder: Path, number: int, benchmark: Benchmark, part: pa.Table, answers: Mapping[str, Any]) -> None:
    """Write the answers to a part, whole or not at all.

    A part has one writer; whatever a killed predecessor left of it is rubbish.

    Raises:
        OSError: If the file cannot be written.
    """
    path = part_path(folder, number)
    table = pa.table({**{name: part[name] for name in benchmark.key}, **answers})
    remove_leftovers(path)
    write_atomically(path, lambda temporary: pq.write_table(table, temporary, compression="zstd"))


def is_complete(path: Path, benchmark: Benchmark, part: pa.Table) -> bool:
    """Whether a part has been written for exactly these examples.

    Raises:
        QabiasError: If the file is damaged.
    """
    return path.exists() and _answers_part(_read_part(path), benchmark, part, path)


def read_answers(folder: Path, benchmark: Benchmark, parts: Iterable[pa.Table]) -> tuple[pa.Table, int]:
    """The answers of a run in the order of its examples, and the number of parts that are missing.

    Args:
        folder: The run folder.
        benchmark: The benchmark.
        parts: The examples in parts, as `cut_parts` gives them.

    Raises:
        QabiasError: If a part is damaged or belongs to other examples.
    """
    answers = []
    n_missing = 0
    for number, part in enumerate(parts):
        path = part_path(folder, number)
        if not path.exists():
            n_missing += 1
            continue
        written = _read_part(path)
        if not _answers_part(written, benchmark, part, path):
            raise QabiasError(f"{path}: holds other examples; remove the file and run the same command again")
        answers.append(written)
    # A part in which no model thought has no column of thoughts.
    return pa.concat_tables(answers, promote_options="default") if answers else pa.table({}), n_missing


def read_keys(folder: Path, key: Sequence[str]) -> pa.Table:
    """The key columns of all answers that a folder holds, in their order.

    Raises:
        QabiasError: If a part is damaged, or there is none.
    """
    paths = sorted(part_path(folder, 0).parent.glob("part-*.parquet"))
    if not paths:
        raise QabiasError(f"{folder}: holds no answers; score the file that they came from again")
    try:
        return pa.concat_tables([_read_part(path).select(list(key)) for path in paths])
    except KeyError as error:
        raise _damaged(paths[0], error) from error


def read_all_answers(run: RunFile, benchmark: Benchmark, table: pa.Table) -> pa.Table:
    """The answers of a whole run in the order of its examples.

    Raises:
        QabiasError: If a part is missing, damaged or belongs to other examples.
    """
    answers, n_missing = read_answers(run.folder, benchmark, cut_parts(benchmark, table, run.units_per_part))
    if n_missing:
        raise QabiasError(f"{run.folder}: {n_missing} parts are missing; run the same command again to finish it")
    return answers


def _read_part(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(path, error) from error


def _answers_part(written: pa.Table, benchmark: Benchmark, part: pa.Table, path: Path) -> bool:
    key = list(benchmark.key)
    try:
        return bool(written.select(key).equals(part.select(key)))
    except KeyError as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> QabiasError:
    return QabiasError(f"{path}: damaged ({error}); remove the file and run the same command again")
