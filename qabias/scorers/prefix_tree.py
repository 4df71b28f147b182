"""Token sequences that share beginnings, laid out as one row in which every shared beginning stands once.

Sorted lexicographically, sequences meet the nodes of their prefix tree in depth-first order: each sequence adds exactly
the tokens after the beginning it shares with its predecessor. So the tree needs no pointers while it is built, and the
descendants of a node are the half-open range from the node to its `end`.

NumPy only: nothing here knows a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class PrefixTree:
    """A forest of token prefixes in depth-first order, with n nodes.

    The last token of a sequence is predicted but never read, so it is a node only where another sequence goes on after
    it.

    Attributes:
        tokens: int64 array of shape (n,); token of each node.
        depths: int64 array of shape (n,); position of each node in its sequence, 0 for a root.
        ends: int64 array of shape (n,); node i and its descendants are the nodes i to ends[i] - 1.
        predictors: For each sequence, in the order given, the nodes whose next token is scored.
        targets: For each sequence, its scored tokens, parallel to `predictors`.
    """

    tokens: np.ndarray
    depths: np.ndarray
    ends: np.ndarray
    predictors: list[np.ndarray]
    targets: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.tokens)


def shared_lengths(sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """Count the tokens at the beginning of each sequence that its predecessor has too.

    Args:
        sequences: Token sequences, usually sorted.

    Returns:
        int64 array of shape (n_sequences,); the first entry is 0.
    """
    shared = np.zeros(len(sequences), dtype=np.int64)
    arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    for i in range(1, len(arrays)):
        length = min(len(arrays[i - 1]), len(arrays[i]))
        differs = np.flatnonzero(arrays[i - 1][:length] != arrays[i][:length])
        shared[i] = differs[0] if len(differs) else length
    return shared


def build_tree(sequences: Sequence[Sequence[int]], n_scored: Sequence[int]) -> PrefixTree:
    """Build the prefix tree of token sequences whose last tokens are to be scored.

    Args:
        sequences: Token sequences of at least two tokens, in any order.
        n_scored: Number of tokens at the end of each sequence that are scored, less than its length.

    Returns:
        The tree of all sequences without their last tokens.
    """
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
    """Tell which nodes each node may look at: itself and its ancestors.

    Args:
        ends: Array of shape (..., n), as in `PrefixTree`. A pad is a node of its own: its end is its index plus one.

    Returns:
        bool array of shape (..., n, n); entry [..., i, j] is true where j is i or an ancestor of i.
    """
    index = np.arange(ends.shape[-1])
    return (index <= index[:, None]) & (index[:, None] < ends[..., None, :])


def split_into_trees(lengths: np.ndarray, shared: np.ndarray, bound: int) -> list[range]:
    """Cut sorted sequences into groups whose trees have at most `bound` nodes.

    A cut costs the tokens shared across it, because both sides then run them, so each cut is made where the fewest are
    shared; among equals, in the middle.

    Args:
        lengths: Length of each sequence, in sorted order.
        shared: Result of `shared_lengths`.
        bound: Largest tree; a longer sequence gets a group of its own.

    Returns:
        Consecutive ranges of sequences, in order.
    """
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
    """Group sorted sequences of which each is the beginning of the next: their tree is the last sequence itself.

    Args:
        lengths: Length of each sequence, in sorted order.
        shared: Result of `shared_lengths`.

    Returns:
        Consecutive ranges of sequences, in order.
    """
    if not len(lengths):
        return []
    starts = [0, *(1 + np.flatnonzero(shared[1:] < lengths[:-1])), len(lengths)]
    return [range(int(start), int(stop)) for start, stop in pairwise(starts)]
