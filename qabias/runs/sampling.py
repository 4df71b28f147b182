"""Samples of a benchmark's examples: whole sets, balanced, in proportion to their templates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from qabias.benchmarks import Benchmark


def sample(benchmark: Benchmark, table: pa.Table, limit: int | None, seed: int) -> pa.Table:
    """Draw at most `limit` examples (at least one block), each with the same probability, see `draw`."""
    if limit is None or limit >= table.num_rows:
        return table
    turn = draw(benchmark, table, seed)
    n_blocks = max(1, int(np.searchsorted(np.cumsum(np.bincount(turn)), limit, side="right")))
    return table.filter(pa.array(turn < n_blocks))


def draw(benchmark: Benchmark, table: pa.Table, seed: int, start: int | None = None) -> np.ndarray:
    """The place of every example's block in the seeded order of the blocks; shape (n_examples,), from 0.

    The first blocks of this order, however many, are a sample in which all blocks are equally likely. Their shares of
    strata are those of all blocks, so their scores estimate the scores of all examples. The order is that of a van der
    Corput sequence on the blocks in the order of strata, from a random `start` (systematic sampling, Cochran 1977).
    """
    block = blocks(benchmark, table, seed)
    n, rng = int(block.max()) + 1, np.random.default_rng(seed)
    if type(benchmark).cells is not Benchmark.cells:
        # Cells that cross strata: a cell of all strata, which are of one size, before the next.
        strata = benchmark.units(table)[1][_first_rows(block)]
        rank = np.arange(n) - np.searchsorted(strata, strata)
        keys = rank + rng.random(int(strata.max()) + 1)[strata]
    else:
        n_bits = n.bit_length()
        slots = ((np.arange(n) + (rng.integers(n) if start is None else start)) % n << n_bits) // n
        keys = sum(((slots >> bit) & 1) / 2.0 ** (bit + 1) for bit in range(n_bits))
    return _places(np.argsort(keys))[block]


def blocks(benchmark: Benchmark, table: pa.Table, seed: int) -> np.ndarray:
    """The block of every example, numbered along the strata and in random order within one; shape (n_examples,).

    A block is a unit. If a stratum has units of both sides (see `Benchmark.sides`), its blocks are pairs of them, and
    units without a partner.
    """
    unit_of, stratum_of = benchmark.units(table)
    first = _first_rows(unit_of)
    strata, sides = stratum_of[first], np.sign(np.bincount(unit_of, benchmark.sides(table))).astype(np.int8)
    n_pairs = np.minimum(*(np.bincount(strata, sides == side, int(strata.max()) + 1) for side in (1, -1)))[strata]
    queue = 3 * strata + np.where(n_pairs > 0, sides, 0)
    cells = _numbered(benchmark.cells(table)[first])
    narrow = queue.astype(np.min_scalar_type(-2 - int(queue.max())))  # numbers of 16 bits are sorted much faster
    shuffled = np.lexsort((np.random.default_rng(seed).random(int(cells.max()) + 1)[cells], narrow))
    if not n_pairs.any():
        return _places(shuffled)[unit_of]
    starts = np.flatnonzero(np.diff(queue[shuffled], prepend=-2))
    rank = np.empty(len(first), dtype=np.int64)
    rank[shuffled] = np.arange(len(first)) - np.repeat(starts, np.diff(np.append(starts, len(first))))
    del cells, shuffled, queue  # the largest set has millions of units
    # Both units of a pair have one name.
    kind = np.where((sides != 0) & (rank < n_pairs), 0, np.where(n_pairs > 0, 2 + sides, 0))
    names = (strata * (int(rank.max()) + 1) + rank) * 4 + kind
    return np.unique(names, return_inverse=True)[1][unit_of]


def _first_rows(codes: np.ndarray) -> np.ndarray:
    """The first row of every code from 0, as `np.unique` finds it by sorting."""
    first = np.empty(int(codes.max()) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def _numbered(values: np.ndarray) -> np.ndarray:
    """The numbers of distinct values in their order, as `np.unique` finds them; without sorting if they are dense."""
    if int(values.max()) > 4 * len(values):
        return np.unique(values, return_inverse=True)[1]
    is_there = np.zeros(int(values.max()) + 1, dtype=bool)
    is_there[values] = True
    return (np.cumsum(is_there) - 1)[values]


def _places(order: np.ndarray) -> np.ndarray:
    """The place of every number in an order of all numbers."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places
