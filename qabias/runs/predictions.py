"""Predictions that were made elsewhere: finding the examples that they answer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark
from qabias.benchmarks.base import RUN
from qabias.errors import QabiasError
from qabias.support.suggest import shortened
from qabias.support.table_files import check_columns


def join_answers(
    benchmark: Benchmark, table: pa.Table, found: pa.Table, where: str, *, of_log: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Find the examples that somebody's predictions answer."""
    check_columns(found, where)
    _refuse_truth_values(benchmark, found, where)
    if not of_log:  # where NaN says that an example has no answer
        _refuse_nan(benchmark, found, where)
    constant = _constant_keys(benchmark, table)
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
    keys = _keys(benchmark, table, {})
    known = set(keys)
    _check_keys(benchmark, found, where)
    row_of: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(_keys(benchmark, found, constant)):
        if key not in known or key in row_of:
            what = _spelled(benchmark, key)
            if key in row_of:
                raise QabiasError(f"{where}: row {row + 1}: {what} is answered twice{_several(found)}")
            raise QabiasError(f"{where}: row {row + 1}: no example with {what} in this configuration and source")
        row_of[key] = row
    answered = table.filter(pa.array([key in row_of for key in keys]))
    order = pa.array([row_of[key] for key in keys if key in row_of], pa.int64())
    optional = [name for name in benchmark.optional_columns if name in found.column_names]
    return answered, found.select([*benchmark.answer_columns, *optional]).take(order)


def _several(found: pa.Table) -> str:
    """What answers of several wordings or runs must be brought to, where they are these."""
    if RUN not in found.column_names:
        return ""
    names = ", ".join(map(str, found[RUN].unique().to_pylist()))
    return (
        f"; the column {RUN} tells several answers to it apart ({names}): give the rows of one, or score the run itself"
    )


def check_references(
    benchmark: Benchmark,
    table: pa.Table,
    references: pa.Table,
    where: str = "references",
    advice: str = "name source= (and fixes= and config=) of the rows",
) -> None:
    """Refuse rows that are not the examples with their keys."""
    check_columns(references, where)
    constant = _constant_keys(benchmark, table)
    missing = [name for name in benchmark.key if name not in references.column_names and name not in constant]
    if missing:
        raise QabiasError(
            f"{where}: no column {', '.join(missing)}, by which examples are found; they have "
            f"{', '.join(references.column_names)}"
        )
    _check_keys(benchmark, references, where)
    number_of = {key: number for number, key in enumerate(_keys(benchmark, table, {}))}
    keys = _keys(benchmark, references, constant)
    for row, key in enumerate(keys):
        if key not in number_of:
            raise QabiasError(
                f"{where}: row {row + 1}: no example with {_spelled(benchmark, key)} in this configuration and "
                "source; name benchmark=, config= and source= of the rows"
            )
    examples = table.take(pa.array([number_of[key] for key in keys], pa.int64()))
    for name in examples.column_names:
        if name not in references.column_names:
            continue
        ours, theirs = examples[name].to_pylist(), references[name].to_pylist()
        for row, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            if their is None or our == their:
                continue
            raise QabiasError(
                f"{where}: row {row + 1}, {_spelled(benchmark, keys[row])}: {name} is {shortened(their)}, but in the "
                f"texts that are scored {shortened(our)}; {advice}"
            )


def _check_keys(benchmark: Benchmark, found: pa.Table, where: str) -> None:
    """Refuse keys that are lists or objects."""
    for name in benchmark.key:
        if name in found.column_names and pa.types.is_nested(found[name].type):
            value = shortened(next((value for value in found[name].to_pylist() if value is not None), None))
            raise QabiasError(f"{where}: row 1: {name} is {value}; give a number or a text that one example has")


def _refuse_truth_values(benchmark: Benchmark, found: pa.Table, where: str) -> None:
    """Refuse answers that are true or false."""
    wanted = "a probability" if len(benchmark.answer_columns) > 1 else "the number of an answer, or its text"
    for name in benchmark.answer_columns:
        column = found[name] if name in found.column_names else pa.chunked_array([], pa.null())
        if pa.types.is_boolean(column.type) and column.null_count < len(column):
            row = column.is_valid().to_pylist().index(True)
            raise QabiasError(f"{where}: row {row + 1}: {name} is {column[row].as_py()}, a truth value; give {wanted}")


def _refuse_nan(benchmark: Benchmark, found: pa.Table, where: str) -> None:
    """Refuse probabilities that are no numbers; a single column of answers may have none for an example."""
    if len(benchmark.answer_columns) == 1:
        return
    for name in benchmark.answer_columns:
        values = found[name].to_pylist() if name in found.column_names else []
        odd = [row for row, value in enumerate(values) if isinstance(value, float) and math.isnan(value)]
        if odd:
            raise QabiasError(
                f"{where}: row {odd[0] + 1}: {name} is NaN; give a probability, or leave the row out where there "
                "is none"
            )


def _constant_keys(benchmark: Benchmark, table: pa.Table) -> dict[str, Any]:
    """Key columns that have but one value."""
    return {name: table[name][0].as_py() for name in benchmark.key if len(table[name].unique()) == 1}


def _keys(benchmark: Benchmark, table: pa.Table, constant: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The key of every row; a column that is not there has a constant value."""
    columns = [
        table[name].to_pylist() if name in table.column_names else [constant[name]] * table.num_rows
        for name in benchmark.key
    ]
    return list(zip(*columns, strict=True))


def _spelled(benchmark: Benchmark, key: Sequence[Any]) -> str:
    return ", ".join(f"{name} {shortened(value)}" for name, value in zip(benchmark.key, key, strict=True))
