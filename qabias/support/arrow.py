"""Arrow columns as NumPy arrays, and Parquet files as Arrow tables."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST_ROWS, MOST_DECODED = 2**25, 2**30
"""Rows and bytes in memory of a user's file."""


def read_parquet(path: Path, **options: Any) -> pa.Table:
    """One file as a table; `pyarrow.parquet.read_table` would import pandas."""
    with pq.ParquetFile(path, **options) as file:
        return file.read()


def read_users_parquet(path: Path) -> pa.Table:
    """A user's file as a table; refuses one that is small on the disk and fills the memory."""
    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        if metadata.num_rows > MOST_ROWS:
            raise pa.ArrowInvalid(f"its {metadata.num_rows:,} rows are more than {MOST_ROWS:,}")
        # A value is at most as long as its column on the disk, but may stand for many rows.
        longest = max([1, *(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))])
        batches, left = [], MOST_DECODED
        for batch in file.iter_batches(max(16, min(2**16, MOST_DECODED // 8 // longest))):
            batches.append(batch)
            left -= batch.nbytes
            if left < 0:
                raise pa.ArrowInvalid(f"its columns take more than {MOST_DECODED / 2**30:.0f} GB in memory")
        return pa.Table.from_batches(batches, file.schema_arrow)


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


def rows_near(
    table: pa.Table,
    names: Sequence[str],
    keys: Collection[tuple[Any, ...]],
    read: Callable[[Any], Any] = lambda one: one,
) -> np.ndarray:
    """Numbers of the rows, among all that have one of the keys, in which each value alone is one of a key.

    Few rows of a large table are left to be compared as Python objects. `read` makes a value one of a key.
    """
    rows = np.arange(table.num_rows)
    for place, name in enumerate(names):
        column, wanted = plain(table[name]).take(pa.array(rows)), {key[place] for key in keys}
        values = [one for one in column.unique().to_pylist() if read(one) in wanted]
        rows = rows[pc.is_in(column, value_set=pa.array(values, column.type)).to_numpy()]
    return rows
