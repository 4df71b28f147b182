"""Token sequences that share beginnings, laid out as one row in which every shared beginning stands once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class PrefixTree:
    """A forest of token prefixes in depth-first order, with n nodes."""

    tokens: np.ndarray
    depths: np.ndarray
    ends: np.ndarray
    predictors: list[np.ndarray]
    targets: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.tokens)


def shared_lengths(sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """Count the tokens at the beginning of each sequence that its predecessor has too."""
    shared = np.zeros(len(sequences), dtype=np.int64)
    arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    for i in range(1, len(arrays)):
        length = min(len(arrays[i - 1]), len(arrays[i]))
        differs = np.flatnonzero(arrays[i - 1][:length] != arrays[i][:length])
        shared[i] = differs[0] if len(differs) else length
    return shared


def build_tree(sequences: Sequence[Sequence[int]], n_scored: Sequence[int]) -> PrefixTree:
    """Build the prefix tree of token sequences whose last tokens are to be scored."""
    read = [tuple(sequence[:-1]) for sequence in sequences]
    order = sorted(range(len(read)), key=read.__getitem__)
    shared = shared_lengths([read[i] for i in order])
    n_nodes = sum(len(read[i]) for i in order) - int(shared.sum())
    tokens = np.empty(n_nodes, dtype=np.int64)
    depths = np.empty(n_nodes, dtype=np.int64)
    ends = np.full(n_nodes, n_nodes, dtype=np.int64)
    predictors: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(read)
    path = np.empty(0, dtype=np.int64)
    n = 0
    for i, n_shared in zip(order, shared, strict=True):
        new = np.arange(n, n + len(read[i]) - n_shared)
        if len(new):
            ends[path[n_shared:]] = n  # the branch left here has no more descendants
        tokens[new] = read[i][n_shared:]
        depths[new] = np.arange(n_shared, len(read[i]))
        path = np.concatenate([path[:n_shared], new])
        predictors[i] = path[len(path) - n_scored[i] :]
        n += len(new)
    return PrefixTree(
        tokens=tokens,
        depths=depths,
        ends=ends,
        predictors=predictors,
        targets=[
            np.asarray(sequence[len(sequence) - k :], dtype=np.int64)
            for sequence, k in zip(sequences, n_scored, strict=True)
        ],
    )


def ancestor_mask(ends: np.ndarray) -> np.ndarray:
    """Tell which nodes each node may look at: itself and its ancestors."""
    index = np.arange(ends.shape[-1])
    return (index <= index[:, None]) & (index[:, None] < ends[..., None, :])


def split_into_trees(lengths: np.ndarray, shared: np.ndarray, bound: int) -> list[range]:
    """Cut sorted sequences into groups whose trees have at most `bound` nodes."""
    nodes_before = np.concatenate([[0], np.cumsum(lengths - shared)])
    groups = []
    pending = [(0, len(lengths))] if len(lengths) else []
    while pending:
        start, stop = pending.pop()
        size = nodes_before[stop] - nodes_before[start] + shared[start]
        if size <= bound or stop - start == 1:
            groups.append(range(start, stop))
            continue
        inner = shared[start + 1 : stop]
        cuts = start + 1 + np.flatnonzero(inner == inner.min())
        middle = (nodes_before[start] + nodes_before[stop]) / 2
        cut = int(cuts[np.abs(nodes_before[cuts] - middle).argmin()])
        pending += [(cut, stop), (start, cut)]
    return groups


def split_into_chains(lengths: np.ndarray, shared: np.ndarray) -> list[range]:
    """Group sorted sequences of which each is the beginning of the next: their tree is the last sequence itself."""
    if not len(lengths):
        return []
    starts = [0, *(1 + np.flatnonzero(shared[1:] < lengths[:-1])), len(lengths)]
    return [range(int(start), int(stop)) for start, stop in pairwise(starts)]
