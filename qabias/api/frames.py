"""Tables of a run as Arrow tables and as pandas data frames: every digit, and the ends of intervals in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from qabias.tables.model import Column, Estimate, Table

if TYPE_CHECKING:
    import pandas
    import pyarrow

As = Literal["pandas", "arrow"]


def to_arrow(table: Table) -> pyarrow.Table:
    """A table as an Arrow table."""
    import pyarrow as pa

    columns = {}
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.rows]
        if any(isinstance(value, Estimate) for value in values):
            ends = [value if isinstance(value, Estimate) else Estimate(None) for value in values]
            columns[column.name] = pa.array([value.value for value in ends], pa.float64())
            columns[f"{column.name}_low"] = pa.array([value.low for value in ends], pa.float64())
            columns[f"{column.name}_high"] = pa.array([value.high for value in ends], pa.float64())
        else:
            columns[column.name] = pa.array(values, _type(column))
    return pa.table(columns).replace_schema_metadata(_about(table))


def to_pandas(table: Table) -> pandas.DataFrame:
    """A table as a data frame, with the columns of `to_arrow`; title, source and note stand in its `attrs`."""
    frame = to_arrow(table).replace_schema_metadata(None).to_pandas()
    frame.attrs.update(_about(table))
    return frame


def _about(table: Table) -> dict[str, str]:
    return {"title": table.title, "source": table.source, "note": table.note}


def _type(column: Column) -> pyarrow.DataType:
    import pyarrow as pa

    return {"text": pa.string(), "count": pa.int64()}.get(column.kind, pa.float64())
