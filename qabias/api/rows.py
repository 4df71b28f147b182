"""Benchmark rows as a `datasets.Dataset` with their origin, and users' tables as Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments

if TYPE_CHECKING:
    import datasets
    import pandas
    import pyarrow

    from qabias.benchmarks import Benchmark

Rows: TypeAlias = (
    "datasets.Dataset | pandas.DataFrame | pyarrow.Table | Mapping[str, Sequence[object]] | Sequence[Mapping[str, Any]]"
)
"""A table: a dataset, a data frame, an Arrow table, columns by name, or a list of rows."""

_MARK = "Loaded by qabias: "
# What determines the texts of rows, but for the sample that was drawn of them.
ORIGIN = ("benchmark", "config", "source", "fixes", "seed", "options")


def as_dataset(table: pyarrow.Table, benchmark: Benchmark, arguments: RunArguments) -> datasets.Dataset:
    """A table as a dataset with the features of the committed one."""
    import pyarrow as pa
    from datasets import ClassLabel, Dataset, DatasetInfo, Features

    plain = pa.schema(
        [
            field.with_type(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
            for field in table.schema.remove_metadata()
        ]
    )
    features = Features.from_arrow_schema(plain)
    for column, names in benchmark.class_labels.items():
        if column in features:
            features[column] = ClassLabel(names=list(names))
    texts = benchmark.facts.hub
    origin = {name: getattr(arguments, name) for name in ORIGIN}
    info = DatasetInfo(
        description="\n\n".join(filter(None, (texts and texts.description, _MARK + json.dumps(origin, default=dict)))),
        citation="\n".join(benchmark.facts.citations),
        dataset_name=benchmark.name,
        config_name=arguments.config,
        features=features,
    )
    return Dataset(table.cast(plain).cast(features.arrow_schema), info=info)


def origin_of(rows: object) -> list[dict[str, Any]]:
    """Return the origin that rows record."""
    lines = str(getattr(getattr(rows, "info", None), "description", None)).splitlines()
    return [json.loads(line.removeprefix(_MARK)) for line in lines if line.startswith(_MARK)]


def is_table(rows: object) -> bool:
    """Return whether an object is a table, not a sequence of single values."""
    if isinstance(rows, Mapping) or hasattr(rows, "column_names") or hasattr(rows, "columns"):
        return True
    return isinstance(rows, Sequence) and bool(rows) and all(isinstance(row, Mapping) for row in rows)


def to_table(rows: Any, what: str) -> pyarrow.Table:
    """A user's table as an Arrow table; NaN becomes null, like None."""
    import pyarrow as pa

    from qabias.support.table_files import from_rows, to_column

    if not is_table(rows):
        raise QabiasError(
            f"{what} are a {type(rows).__name__}.",
            "Give a datasets.Dataset, a data frame, an Arrow table, columns by name, or a list of rows.",
        )
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "with_format"):
        return rows.with_format("arrow")[:]
    if hasattr(rows, "notna"):  # a data frame, whose missing values have several types
        rows = rows.astype(object).where(rows.notna(), None)
    try:
        if not hasattr(rows, "items"):
            return from_rows(rows, what)
        columns = [to_column(values, f"{what}: column {name}") for name, values in rows.items()]
        return pa.table(columns, list(map(str, rows.keys())))
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError) as error:
        raise QabiasError(
            f"{what}: not a table ({' '.join(str(error).split())}).", "Give one value per row and column."
        ) from error
