"""The answers of two runs to the same examples, or to two forms, as scores of reweighted clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qabias.scores.facts import ALL
from qabias.support.arrow import column_codes, rows_of

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
ClusterScores = Callable[[Floats], Mapping[str, Floats]]


class AnsweredTable(NamedTuple):
    """The answers of a run, by cluster."""

    table: pa.Table
    answers: pa.Table
    clusters: Codes


class Pair(NamedTuple):
    """The answers of two runs to the same examples, or to two forms of them."""

    n_clusters: int
    first: ClusterScores
    second: ClusterScores
    exchanged: Callable[[Floats], tuple[Mapping[str, Floats], Mapping[str, Floats]]]
    sizes: Floats | None
    counted: tuple[Any, Any]
    again: Callable[[Any, Any], Pair]


class Cells(NamedTuple):
    """The counts of a form by cell, the cluster of every cell, and the cells of every group."""

    counts: Floats
    clusters: Codes
    groups: Mapping[str, Codes]

    def summed(self, cells: Codes, clusters: Codes) -> Floats:
        """The sums of some cells, one line for each of these clusters."""
        kept = cells[np.isin(self.clusters[cells], clusters)]
        kept = kept[np.argsort(self.clusters[kept], kind="stable")]
        sums: Floats = np.add.reduceat(self.counts[kept], np.searchsorted(self.clusters[kept], clusters), axis=0)
        return sums


def count_cells(
    form: AnsweredTable,
    columns: Mapping[str, pa.ChunkedArray],
    name_of: Callable[[str, str], str],
    count: Callable[[pa.Table, pa.Table, Codes], Floats],
) -> Cells:
    """Count once, by the finest cells, of which clusters and the groups of these columns are made."""
    cells = form.clusters
    for column in columns.values():
        codes = column_codes(column)
        cells = cells * (codes.max(initial=0) + 1) + codes
    _, rows, cells = np.unique(cells, return_index=True, return_inverse=True)
    groups = {
        name_of(name, value): of_group
        for name, column in columns.items()
        for value, of_group in rows_of(column.take(pa.array(rows))).items()
    }
    counts = count(form.table, form.answers, cells)
    return Cells(counts, form.clusters[rows], {**groups, ALL: np.arange(len(rows))})


def pair_cells(first: Cells, second: Cells, score: Callable[[Any], Mapping[str, Floats]]) -> dict[str, Pair]:
    """The answers of two forms by the clusters that both have, for every group that both have and for all examples."""
    pairs = {}
    for name in (name for name in first.groups if name in second.groups):
        cells = first.groups[name], second.groups[name]
        shared = np.intersect1d(first.clusters[cells[0]], second.clusters[cells[1]])
        sums = first.summed(cells[0], shared), second.summed(cells[1], shared)
        pairs[name] = pair_of_counts(sums, score)
    return pairs


def pair_of_counts(counts: Sequence[npt.ArrayLike], score: Callable[[npt.ArrayLike], Mapping[str, Floats]]) -> Pair:
    """Two runs whose scores come from sums of counts over clusters."""
    one, other = (np.asarray(matrix, dtype=np.float64) for matrix in counts)

    def weighted(matrix: Floats) -> ClusterScores:
        return lambda weights: score(np.tensordot(weights, matrix, axes=1))

    def exchanged(kept: Floats) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
        first = other.sum(axis=0) + np.tensordot(kept, one - other, axes=1)
        return score(first), score(one.sum(axis=0) + other.sum(axis=0) - first)

    # Every example is counted in about as many columns.
    sizes = (np.abs(one) + np.abs(other)).reshape(len(one), -1).sum(axis=1)

    def again(one: Floats, other: Floats) -> Pair:
        return pair_of_counts([one, other], score)

    return Pair(len(one), weighted(one), weighted(other), exchanged, sizes, (one, other), again)


def mean_of_pairs(pairs: Sequence[Pair]) -> Pair:
    """Two runs whose scores are means over several prompts."""
    if len(pairs) == 1:
        return pairs[0]

    def mean(scores: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
        return {name: np.mean([one[name] for one in scores], axis=0) for name in scores[0]}

    def exchanged(kept: Floats) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
        first, second = zip(*(pair.exchanged(kept) for pair in pairs), strict=True)
        return mean(first), mean(second)

    def again(one: Sequence[Any], other: Sequence[Any]) -> Pair:
        return mean_of_pairs(
            [pair.again(*both) for pair, both in zip(pairs, zip(one, other, strict=True), strict=True)]
        )

    one, other = ([pair.counted[place] for pair in pairs] for place in (0, 1))
    return Pair(
        pairs[0].n_clusters,
        lambda weights: mean([pair.first(weights) for pair in pairs]),
        lambda weights: mean([pair.second(weights) for pair in pairs]),
        exchanged,
        pairs[0].sizes,
        (one, other),
        again,
    )


def predictions(answers: pa.Table) -> Codes:
    """The column `prediction`, int64 of shape (n,), -1 for a missing answer."""
    return answers["prediction"].fill_null(-1).to_numpy().astype(np.int64)
