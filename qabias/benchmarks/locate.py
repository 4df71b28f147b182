"""The dataset and metric folders: through the links of a checkout, or in an installed wheel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias import share
from qabias.building.folder import MARK, data_checksums, parquet_path
from qabias.errors import QabiasError
from qabias.support.arrow import read_parquet
from qabias.support.files import sha256_of

_SHARE = Path(share.__file__).parent


def dataset_folder(benchmark: str) -> Path:
    """The Hub-ready dataset repository of a benchmark, e.g. `toy_dataset`."""
    return _find(f"{benchmark}_dataset", "README.md")


def read_data(benchmark: str, name: str, **options: Any) -> pa.Table:
    """Read a committed table of a dataset.

    Raises:
        QabiasError: If the file differs from its checksum.
    """
    folder = dataset_folder(benchmark)
    path = folder / parquet_path(name)
    state = path.stat()
    if _checksum(path, state.st_size, state.st_mtime_ns) != _checksums(folder).get(parquet_path(name)):
        raise QabiasError(f"{path}: damaged, its content differs from its checksum in {MARK}", "Install qabias again.")
    return read_parquet(path, **options)


@cache
def _checksum(path: Path, size: int, changed: int) -> str:
    """The SHA-256 of a file in one state, computed once."""
    return sha256_of(path)


_checksums = cache(data_checksums)


def load_tables(benchmark: str, names: Sequence[str], origin: Any, schema: pa.Schema) -> pa.Table:
    """Concatenated tables of an origin, read from the committed files if they are equal."""
    if origin.is_committed:
        return pa.concat_tables([read_data(benchmark, name).cast(schema) for name in names])
    return pa.concat_tables([origin.table(name) for name in names])


def metric_folder(benchmark: str) -> Path:
    """The `evaluate` module of a benchmark, e.g. `metrics/toy`."""
    return _find(f"metrics/{benchmark}", f"{benchmark}.py")


def _find(name: str, needed: str) -> Path:
    folder = (_SHARE / name).resolve()
    if not (folder / needed).is_file():
        raise QabiasError(
            f"{name}: not found in {_SHARE}.", "Install qabias again. On Windows clone with core.symlinks."
        )
    return folder
