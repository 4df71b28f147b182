"""Where the dataset and metric folders lie: beside the links of a checkout, or in an installed wheel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias import share
from qabias.building.folder import parquet_path
from qabias.errors import QabiasError
from qabias.support.arrow import read_parquet

_SHARE = Path(share.__file__).parent


def dataset_folder(benchmark: str) -> Path:
    """The Hub-ready dataset repository of a benchmark, e.g. `toy_dataset`."""
    return _find(f"{benchmark}_dataset", "README.md")


def load_tables(benchmark: str, names: Sequence[str], origin: Any, schema: pa.Schema) -> pa.Table:
    """Tables of an origin one after the other, as they are committed where that is what it makes."""
    if origin.is_committed:
        folder = dataset_folder(benchmark)
        return pa.concat_tables([read_parquet(folder / parquet_path(name)).cast(schema) for name in names])
    return pa.concat_tables([origin.table(name) for name in names])


def metric_folder(benchmark: str) -> Path:
    """The `evaluate` module of a benchmark, e.g. `metrics/toy`."""
    return _find(f"metrics/{benchmark}", f"{benchmark}.py")


def _find(name: str, needed: str) -> Path:
    folder = (_SHARE / name).resolve()
    if not (folder / needed).is_file():
        raise QabiasError(f"{name}: not found in {_SHARE}; install qabias again (on Windows: clone with core.symlinks)")
    return folder
