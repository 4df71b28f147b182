"""Arrow columns as NumPy arrays, and Parquet files as Arrow tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def read_parquet(path: Path, **options: Any) -> pa.Table:
    """One file as a table; `pyarrow.parquet.read_table` would import pandas."""
    with pq.ParquetFile(path, **options) as file:
        return file.read()


def dicts(table: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of some columns, those that the table has; faster than `to_pylist` of a table."""
    there = [name for name in names if name in table.column_names]
    columns = [table[name].to_pylist() for name in there]
    return [dict(zip(there, values, strict=True)) for values in zip(*columns, strict=True)]


def column_codes(column: pa.ChunkedArray) -> np.ndarray:
    """Number the distinct values of a column by first occurrence; int64, shape (n,)."""
    codes: np.ndarray = column.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def codes_and_values(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """A column as numbers, int64 of shape (n,), and the values they index."""
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with its dictionary decoded."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def rows_of(column: pa.ChunkedArray) -> dict[str, np.ndarray]:
    """The row numbers of every value, with the values sorted."""
    codes = column_codes(column)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    names = plain(column.take(pa.array(order[starts]))).to_pylist()
    rows = dict(zip(names, np.split(order, starts[1:]), strict=True))
    return {name: rows[name] for name in sorted(rows)}
