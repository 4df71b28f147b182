"""Samples that never cut a unit of a benchmark in two and that spread over all of its templates."""

import numpy as np
import pyarrow as pa

from qabias.benchmarks import Benchmark


def sample(benchmark: Benchmark, table: pa.Table, limit: int | None, seed: int) -> pa.Table:
    """Draw at most `limit` examples (at least one unit) as whole units, one of every stratum before a second of any."""
    if limit is None or limit >= table.num_rows:
        return table
    unit_of, stratum_of = benchmark.units(table)
    units, first, sizes = np.unique(unit_of, return_index=True, return_counts=True)
    strata = stratum_of[first]
    rng = np.random.default_rng(seed)
    # Within a stratum units come in random order; units of equal rank come in a random order of strata.
    by_stratum = np.lexsort((rng.random(len(units)), strata))
    starts = np.flatnonzero(np.diff(strata[by_stratum], prepend=-1))
    rank = np.empty(len(units), dtype=np.int64)
    rank[by_stratum] = np.arange(len(units)) - np.repeat(starts, np.diff(np.append(starts, len(units))))
    order = np.lexsort((rng.random(int(strata.max()) + 1)[strata], rank))
    fits = np.cumsum(sizes[order]) <= limit
    fits[0] = True
    return table.filter(pa.array(np.isin(unit_of, units[order[fits]])))
