"""`qabias.load` and `qabias.read`: the examples of a benchmark, and a run that was made before."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from qabias.api.calls import OptionValue, in_python_words, option_texts, upstream
from qabias.api.result import Result
from qabias.errors import QabiasError
from qabias.runs.arguments import RunArguments

if TYPE_CHECKING:
    import datasets


@in_python_words()
def load(
    benchmark: str,
    config: str | None = None,
    *,
    source: str | None = None,
    fixes: bool = False,
    limit: int | None = None,
    seed: int = 0,
    option: Mapping[str, OptionValue] | None = None,
    upstream_dir: str | Path | None = None,
) -> datasets.Dataset:
    """The examples of a benchmark, as `qabias run` would ask them.

    Args:
        benchmark: Name of the benchmark (see `qabias list`), or the path of a folder of templates.
        config: Configuration of the dataset; None for that of all examples.
        source: Source of the texts, such as bundled, official or release; None for the first one of the benchmark.
        fixes: Correct the known defects of published texts.
        limit: At most so many examples, as whole sets that are spread over all templates, and one set at least; None
            for all.
        seed: Seed of generation and of the sample.
        option: Options of the benchmark by name.
        upstream_dir: Local mirror of the published files; by default the environment variable `QABIAS_UPSTREAM`.

    Returns:
        One row for each example, with the columns and features of the benchmark's dataset card, and what else its
        examples are identified by (UnQover's `set`). Numbers of classes are `ClassLabel`s. `info` has the name of the
        benchmark, the configuration, whom to cite, and what the rows were loaded by, which `qabias.score` reads.

    Raises:
        QabiasError: If an argument is wrong or the files cannot be had.
    """
    from qabias.api.reading import as_dataset
    from qabias.benchmarks import load_benchmark
    from qabias.runs.arguments import RunArguments, check_arguments
    from qabias.runs.question import load_examples
    from qabias.support.suggest import unknown

    options = option_texts(option)
    chosen = load_benchmark(benchmark)
    config, source = config or chosen.configs[-1], source or chosen.sources[0]
    arguments = RunArguments(
        benchmark, config=config, source=source, fixes=fixes, limit=limit, seed=seed, options=options
    )
    check_arguments(chosen, arguments)
    for name in arguments.scorer_options:
        if not chosen.options:
            raise QabiasError(f"{benchmark} has no option {name!r} that chooses its texts; it has none")
        raise unknown("option", name, chosen.options)
    return as_dataset(load_examples(arguments, upstream(upstream_dir)).table, chosen, arguments)


@in_python_words()
def read(folder: str | Path, *, upstream_dir: str | Path | None = None) -> Result:
    """A run that was made before, by `qabias.run` or by the command line.

    Args:
        folder: A run folder with scores.
        upstream_dir: Local mirror of the published files; by default the environment variable `QABIAS_UPSTREAM`.

    Raises:
        QabiasError: If the folder holds no scored run, or a damaged one.
    """
    return Result(folder, upstream_dir=upstream(upstream_dir))


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
_ORIGIN = ("benchmark", "config", "source", "fixes", "seed", "options")


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
    origin = {name: getattr(arguments, name) for name in _ORIGIN}
    info = DatasetInfo(
        description="\n\n".join(filter(None, (texts and texts.description, _MARK + json.dumps(origin, default=dict)))),
        citation="\n".join(benchmark.facts.citations),
        dataset_name=benchmark.name,
        config_name=arguments.config,
        features=features,
    )
    return Dataset(table.cast(plain).cast(features.arrow_schema), info=info)


def origin_of(rows: object) -> list[dict[str, Any]]:
    """What rows say of themselves."""
    from datasets import Dataset

    lines = (rows.info.description or "").splitlines() if isinstance(rows, Dataset) else []
    return [json.loads(line.removeprefix(_MARK)) for line in lines if line.startswith(_MARK)]


def is_table(given: object) -> bool:
    """Whether something is a table, and not a sequence of single values."""
    if isinstance(given, Mapping) or hasattr(given, "column_names") or hasattr(given, "columns"):
        return True
    return isinstance(given, Sequence) and bool(given) and all(isinstance(row, Mapping) for row in given)


def to_table(given: Any, what: str) -> pyarrow.Table:
    """A user's table as an Arrow table; NaN among its values is nothing, as None is."""
    import pyarrow as pa

    if not is_table(given):
        raise QabiasError(
            f"{what} are a {type(given).__name__}; give a datasets.Dataset, a data frame, an Arrow table, columns by "
            "name, or a list of rows"
        )
    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "with_format"):
        return given.with_format("arrow")[:]
    try:
        if hasattr(given, "columns"):
            return pa.Table.from_pandas(given, preserve_index=False).replace_schema_metadata(None)
        if isinstance(given, Mapping):
            return pa.table({name: to_column(values, f"{what}: column {name}") for name, values in given.items()})
        names = dict.fromkeys(name for row in given for name in row)
        return pa.table({name: to_column([row.get(name) for row in given], f"{what}: {name}") for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise QabiasError(f"{what}: not a table ({' '.join(str(error).split())})") from error


def to_column(values: Iterable[Any], what: str) -> pyarrow.Array:
    """A sequence of values of one type as an Arrow array; None and NaN are null."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(list(_with_none(values)))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise QabiasError(f"{what}: its values are not of one type ({error}); give numbers or texts") from error


def _with_none(values: Any) -> Iterator[Any]:
    for value in values.tolist() if hasattr(values, "tolist") else values:
        yield None if isinstance(value, float) and math.isnan(value) else value
