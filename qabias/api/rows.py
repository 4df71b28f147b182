"""Benchmark rows as a `datasets.Dataset` with their origin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

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

# What determines the texts of rows, but for the sample that was drawn of them.
ORIGIN = ("benchmark", "config", "source", "fixes", "seed", "options")


def as_dataset(table: pyarrow.Table, benchmark: Benchmark, arguments: RunArguments) -> datasets.Dataset:
    """A table as a dataset with the features of the committed one."""
    import pyarrow as pa
    from datasets import ClassLabel, Dataset, DatasetInfo, Features

    from qabias.support.table_files import ORIGIN_MARK

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
        description="\n\n".join(
            filter(None, (texts and texts.description, ORIGIN_MARK + json.dumps(origin, default=dict)))
        ),
        citation="\n".join(benchmark.facts.citations),
        dataset_name=benchmark.name,
        config_name=arguments.config,
        features=features,
    )
    return Dataset(table.cast(plain).cast(features.arrow_schema), info=info)
