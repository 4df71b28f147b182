"""What results of runs and of comparisons have in common: tables and figures by name, and how they print."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, overload

from qabias.errors import QabiasError
from qabias.tables.model import Analysis, Column, Estimate, Table, find

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from qabias.tables.drawing import Drawing
    from qabias.tables.terminal import Console


class Tabled(ABC):
    """Tables and figures by name, and how they print."""

    @property
    @abstractmethod
    def _analysis(self) -> Analysis:
        """The tables, with their meaning."""

    @abstractmethod
    def _print(self, console: Console) -> None:
        """Print what the command line prints."""

    @property
    def tables(self) -> dict[str, pandas.DataFrame]:
        """All tables by name, as data frames; see `table`."""
        from qabias.api.tabled import to_pandas

        return {table.name: to_pandas(table) for table in self._analysis.tables}

    @overload
    def table(self, name: str, format: Literal["pandas"] = "pandas") -> pandas.DataFrame: ...

    @overload
    def table(self, name: str, format: Literal["arrow"]) -> pyarrow.Table: ...

    def table(self, name: str, format: Literal["pandas", "arrow"] = "pandas") -> pandas.DataFrame | pyarrow.Table:
        """A table with every digit: shares and biases as fractions, interval ends in columns NAME_low and NAME_high."""
        from qabias.api.tabled import to_arrow, to_pandas

        makers = {"pandas": to_pandas, "arrow": to_arrow}
        if format not in makers:
            raise QabiasError(f"a table is given as pandas or arrow, not as {format!r}")
        return makers[format](find(self._analysis.tables, name))

    def figure(self, name: str) -> Drawing:
        """The figure of a table, as in the report; `save` writes it as SVG, PDF or PNG."""
        from qabias.tables.figures import draw

        table = find(self._analysis.tables, name)
        if table.figure is None or not table.rows:
            drawn = [other.name for other in self._analysis.tables if other.figure is not None and other.rows]
            raise QabiasError(f"table {name!r} has no figure; there is one of {', '.join(drawn)}")
        return draw(table)

    def __str__(self) -> str:
        from qabias.tables.terminal import Console

        text = io.StringIO()
        # In a notebook rich would show the tables itself and leave the text empty, and a kernel asks for colours.
        self._print(Console(file=text, width=150, force_jupyter=False, force_terminal=False, color_system=None))
        return text.getvalue().rstrip("\n")


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
