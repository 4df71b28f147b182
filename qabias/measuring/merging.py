"""One run from the folders of its shards, which machines that share no disk have computed.

Nothing is written before everything has been checked: all folders must hold the same run, a part that two of them have
must be the same in both, and no part may be missing.
"""

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qabias.benchmarks import Benchmark
from qabias.errors import QabiasError
from qabias.measuring.run import RunResult, finish
from qabias.runs.folder import RUN_FILE, RunFile, check_free, is_complete, part_path, read_run
from qabias.runs.question import put_again
from qabias.support.files import write_atomically

_MOST_NAMED = 8


def merge(folders: Sequence[Path], output: Path, upstream_dir: str | None = None) -> RunResult:
    """Put the parts of several run folders into one, score it and write its report.

    Args:
        folders: Run folders of one and the same run, at least one.
        output: Run folder to write; if it holds this run already, what it lacks is added.
        upstream_dir: Local mirror of the published files.

    Raises:
        QabiasError: If a folder holds no run or another one, a part is damaged, differs between folders or is
            missing, or `output` holds something else.
    """
    if (output / RUN_FILE).exists():
        folders = [output, *folders]
    else:
        check_free(output)
    runs = [read_run(folder) for folder in folders]
    for other in runs[1:]:
        _check_same(runs[0], other)
    question = put_again(runs[0], upstream_dir)
    parts = question.parts
    sources = [_find_part(folders, question.benchmark, part, number) for number, part in enumerate(parts)]
    missing = [number for number, source in enumerate(sources) if source is None]
    if missing:
        raise QabiasError(
            f"missing: part {_some(map(str, missing))} of {len(parts)}; "
            f"compute with the same arguments and --shard {_some(shards_of(missing, len(parts)))}"
        )
    _copy(folders[0] / RUN_FILE, output / RUN_FILE)
    for number, source in enumerate(sources):
        if source is not None:
            _copy(source, part_path(output, number))
    return finish(read_run(output), question)


def shards_of(parts: Sequence[int], n_parts: int) -> list[str]:
    """The fewest shards "i/n" that compute these parts and no others.

    Args:
        parts: Distinct numbers of parts, in [0, n_parts).
        n_parts: Parts of the whole run.
    """
    wanted = set(parts)
    for n_shards in range(1, n_parts + 1):
        shards = {number % n_shards for number in wanted}
        if {number for number in range(n_parts) if number % n_shards in shards} == wanted:
            return [f"{shard}/{n_shards}" for shard in sorted(shards)]
    raise ValueError(f"parts {sorted(wanted)} are not all in [0, {n_parts})")


def _check_same(first: RunFile, other: RunFile) -> None:
    """Refuse two folders that hold different runs, and name in what they differ."""
    ours, theirs = asdict(first.arguments), asdict(other.arguments)
    differences = [f"{name} {ours[name]!r} and {theirs[name]!r}" for name in ours if ours[name] != theirs[name]]
    if not differences:
        fields = itertools.zip_longest(first.signature.split("|"), other.signature.split("|"))
        differences = [f"{our} and {their}" for our, their in fields if our != their]
    if first.units_per_part != other.units_per_part:
        differences.append(f"units_per_part {first.units_per_part} and {other.units_per_part}")
    if differences:
        raise QabiasError(
            f"{first.folder} and {other.folder} hold different runs ({', '.join(differences)}); merge shards of one run"
        )


def _find_part(folders: Sequence[Path], benchmark: Benchmark, part: pa.Table, number: int) -> Path | None:
    """The file of a part, after checking that all folders that have it agree; None if no folder has it."""
    paths = [path for path in (part_path(folder, number) for folder in folders) if path.exists()]
    for path in paths:
        if not is_complete(path, benchmark, part):
            raise QabiasError(f"{path}: holds other examples; remove the file and compute it again")
        if not _same_content(paths[0], path):
            raise QabiasError(f"{paths[0]} and {path} differ; remove the one that you do not trust")
    return paths[0] if paths else None


def _same_content(path: Path, other: Path) -> bool:
    # Equal bytes first: NaN equals itself there.
    return path.read_bytes() == other.read_bytes() or pq.read_table(path).equals(pq.read_table(other))


def _copy(source: Path, target: Path) -> None:
    if source != target:
        write_atomically(target, partial(shutil.copyfile, source))


def _some(names: Any) -> str:
    """The names as a list that a message can hold."""
    names = list(names)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
