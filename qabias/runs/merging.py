"""Merges the run folders of shards that were computed on machines without a shared disk."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark
from qabias.errors import QabiasError, arg
from qabias.runs.folder import RUN_FILE, RunFile, check_free, matches_part, part_path, read_part, read_run
from qabias.runs.opened import Run
from qabias.runs.question import read_question
from qabias.runs.run import score_and_write
from qabias.scorers.journal import REQUESTS_FILE, SERVED, Journal
from qabias.support.files import write_atomically, write_new
from qabias.support.suggest import shortened

_MOST_NAMED = 8


def merge(folders: Sequence[Path], output: Path) -> Run:
    """Merge the parts of several run folders, and score the run."""
    if (output / RUN_FILE).exists():
        folders = [output, *folders]
    else:
        check_free(output)
    runs = [read_run(folder) for folder in folders]
    for other in runs[1:]:
        _check_same(runs[0], other)
    question = read_question(runs[0])
    parts = question.parts
    sources = [_find_part(runs, question.benchmark, part, number) for number, part in enumerate(parts)]
    missing = [number for number, source in enumerate(sources) if source is None]
    if missing:
        raise QabiasError(
            f"missing: part {_some(map(str, missing))} of {len(parts)}.",
            f"Compute with the same arguments and {arg('shard')} {_some(shards_of(missing, len(parts)))}.",
        )
    write_new(output / RUN_FILE, (runs[0].folder / RUN_FILE).read_text(encoding="utf-8"))
    merged = read_run(output)
    _check_same(runs[0], merged)  # another process may have begun a run there
    for number, source in enumerate(sources):
        if source is not None:
            _copy(source, part_path(output, number))
    return score_and_write(merged, question)


def shards_of(parts: Sequence[int], n_parts: int) -> list[str]:
    """Return the fewest shards "i/n" that compute exactly these parts."""
    wanted = set(parts)
    for n_shards in range(1, n_parts + 1):
        shards = {number % n_shards for number in wanted}
        if {number for number in range(n_parts) if number % n_shards in shards} == wanted:
            return [f"{shard}/{n_shards}" for shard in sorted(shards)]
    raise ValueError(f"parts {sorted(wanted)} are not all in [0, {n_parts})")


def _check_same(first: RunFile, other: RunFile) -> None:
    """Refuse folders of different runs, and name the fields that differ."""
    ours, theirs = (
        {**asdict(run.arguments), "model_digest": run.model_digest[:8], "units_per_part": run.units_per_part}
        for run in (first, other)
    )
    differences = [f"{name} {ours[name]!r} and {theirs[name]!r}" for name in ours if ours[name] != theirs[name]]
    if not differences:
        fields = itertools.zip_longest(first.signature.split("|"), other.signature.split("|"))
        differences = [f"{our} and {their}" for our, their in fields if our != their]
    served = {Journal(run.folder / REQUESTS_FILE).get(SERVED) for run in (first, other)} - {None}
    if len(served) > 1:
        differences.append(f"answers of {' and '.join(sorted(map(shortened, served)))}")
    if differences:
        raise QabiasError(
            f"{first.folder} and {other.folder} hold different runs ({', '.join(differences)}).",
            "Merge shards of one run.",
        )


def _find_part(runs: Sequence[RunFile], benchmark: Benchmark, part: pa.Table, number: int) -> Path | None:
    """Find the file of a part; all folders that have it must agree. None if it is missing."""
    first: tuple[Path, pa.Table] | None = None
    for run in runs:
        path, answers = part_path(run.folder, number), read_part(run, number)
        if answers is None:
            continue
        if not matches_part(answers, benchmark, part):
            raise QabiasError(f"{path}: holds other examples.", "Remove the file and compute it again.")
        first = first or (path, answers)
        # Equal bytes first: NaN equals itself there.
        if first[0].read_bytes() != path.read_bytes() and not first[1].equals(answers):
            raise QabiasError(f"{first[0]} and {path} differ.", "Remove the one that you do not trust.")
    return first and first[0]


def _copy(source: Path, target: Path) -> None:
    if source == target:
        return
    try:
        write_atomically(target, partial(shutil.copyfile, source), lasting=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error


def _some(names: Any) -> str:
    names = list(names)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
