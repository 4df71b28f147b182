"""Predictions that were made elsewhere: finding the examples that they answer."""

from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark
from qabias.errors import QabiasError


def join_answers(benchmark: Benchmark, table: pa.Table, found: pa.Table, where: str) -> tuple[pa.Table, pa.Table]:
    """Find the examples that somebody's predictions answer.

    Args:
        benchmark: The benchmark.
        table: All its examples.
        found: The benchmark's key columns (one may be left out where the examples have but one value of it) and its
            `answer_columns`: `prediction`, an index or an answer's text; UnQover's eight probabilities. It may have the
            `optional_columns` too.
        where: What messages call the predictions.

    Returns:
        The answered examples in file order, and their answers, parallel to them.

    Raises:
        QabiasError: If a column is missing, or an example is answered that does not exist, or one twice.
    """
    constant = {name: table[name][0].as_py() for name in benchmark.key if len(table[name].unique()) == 1}
    missing = [
        name
        for name in (*benchmark.key, *benchmark.answer_columns)
        if name not in found.column_names and name not in constant
    ]
    if missing:
        raise QabiasError(
            f"{where}: no column {', '.join(missing)}; it needs {', '.join(benchmark.key)} and "
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
                raise QabiasError(f"{where}: row {row + 1}: {what} is answered twice")
            raise QabiasError(f"{where}: row {row + 1}: no example with {what} in this configuration and source")
        row_of[key] = row
    answered = table.filter(pa.array([key in row_of for key in keys]))
    order = pa.array([row_of[key] for key in keys if key in row_of], pa.int64())
    optional = [name for name in benchmark.optional_columns if name in found.column_names]
    return answered, found.select([*benchmark.answer_columns, *optional]).take(order)
