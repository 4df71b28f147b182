"""Predictions that were made elsewhere: finding the examples that they answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from qabias.benchmarks import Benchmark
from qabias.benchmarks.scoring import RUN
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
    """Refuse rows that are not the examples with their keys.

    Args:
        benchmark: The benchmark.
        table: All its examples.
        references: Rows with the benchmark's key columns, and any of the other columns. A null in one of these says
            nothing of its row and is not compared.
        where: What messages call them.
        advice: What to do where they are other texts.

    Raises:
        QabiasError: If a key column is missing, an example does not exist, or a text or another value is not the same.
    """
    constant = _constant_keys(benchmark, table)
    missing = [name for name in benchmark.key if name not in references.column_names and name not in constant]
    if missing:
        raise QabiasError(
            f"{where}: no column {', '.join(missing)}, by which examples are found; they have "
            f"{', '.join(references.column_names)}"
        )
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
                f"{where}: row {row + 1}, {_spelled(benchmark, keys[row])}: {name} is {their!r}, but in the "
                f"texts that are scored {our!r}; {advice}"
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
    return ", ".join(f"{name} {value!r}" for name, value in zip(benchmark.key, key, strict=True))
