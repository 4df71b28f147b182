"""Predictions that were made elsewhere: reading a file and finding the examples it answers."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark
from qabias.errors import QabiasError
from qabias.support.table_files import read_table


def join_predictions(benchmark: Benchmark, table: pa.Table, path: Path) -> tuple[pa.Table, pa.Table]:
    """Read somebody's predictions file and find the examples it answers.

    Args:
        benchmark: The benchmark.
        table: All its examples.
        path: CSV, JSON lines or Parquet with the benchmark's key columns (one may be left out where the examples have
            but one value of it) and its `answer_columns`: `prediction`, an index or an answer's text; UnQover's eight
            probabilities.

    Returns:
        The answered examples in file order, and their answers, parallel to them.

    Raises:
        QabiasError: If the file cannot be read, lacks a column, or answers an example that does not exist or one twice.
    """
    found = read_table(path)
    constant = {name: table[name][0].as_py() for name in benchmark.key if len(table[name].unique()) == 1}
    missing = [
        name
        for name in (*benchmark.key, *benchmark.answer_columns)
        if name not in found.column_names and name not in constant
    ]
    if missing:
        raise QabiasError(
            f"{path}: no column {', '.join(missing)}; it needs {', '.join(benchmark.key)} and "
            f"{', '.join(benchmark.answer_columns)}, and has {', '.join(found.column_names)}"
        )
    values = [
        found[name].to_pylist() if name in found.column_names else [constant[name]] * found.num_rows
        for name in benchmark.key
    ]
    keys = list(zip(*(table[name].to_pylist() for name in benchmark.key), strict=True))
    known = set(keys)
    row_of: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(zip(*values, strict=True)):
        if key not in known or key in row_of:
            what = ", ".join(f"{name} {value!r}" for name, value in zip(benchmark.key, key, strict=True))
            if key in row_of:
                raise QabiasError(f"{path}: row {row + 1}: {what} is answered twice")
            raise QabiasError(f"{path}: row {row + 1}: no example with {what} in this configuration and source")
        row_of[key] = row
    answered = table.filter(pa.array([key in row_of for key in keys]))
    order = pa.array([row_of[key] for key in keys if key in row_of], pa.int64())
    return answered, found.select(list(benchmark.answer_columns)).take(order)
