"""Examples of several runs in one table, one run after the other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from qabias.benchmarks.scoring import RUN
from qabias.support.arrow import column_codes


def stacked(table: pa.Table, runs: Sequence[str]) -> pa.Table:
    """A table once for each of several runs of it, one after the other, told apart by the column `RUN`."""
    column = pa.array(np.repeat(np.arange(len(runs), dtype=np.int32), table.num_rows))
    names = pa.DictionaryArray.from_arrays(column, pa.array(list(runs), pa.string()))
    return pa.concat_tables([table] * len(runs)).append_column(RUN, names)


def by_run(table: pa.Table) -> list[pa.Table]:
    """The tables of which a table was stacked, in their order; the table alone where it was not."""
    if RUN not in table.column_names:
        return [table]
    codes = column_codes(table[RUN])
    starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    return [table.slice(start, end - start) for start, end in itertools.pairwise([*starts, table.num_rows])]
