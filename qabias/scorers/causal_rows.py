"""Token sequences of options, in rows and batches, for causal language models."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from qabias.errors import QabiasError
from qabias.scorers.base import Request
from qabias.scorers.batches import Tokens, encode_each


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
    """Count the leading tokens that each sequence shares with its predecessor."""
    shared = np.zeros(len(sequences), dtype=np.int64)
    arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    for i in range(1, len(arrays)):
        length = min(len(arrays[i - 1]), len(arrays[i]))
        differs = np.flatnonzero(arrays[i - 1][:length] != arrays[i][:length])
        shared[i] = differs[0] if len(differs) else length
    return shared


def build_tree(sequences: Sequence[Sequence[int]], n_scored: Sequence[int]) -> PrefixTree:
    """Build the prefix tree of token sequences whose last tokens are scored."""
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
    """Which nodes each node attends to: itself and its ancestors."""
    index = np.arange(ends.shape[-1])
    return (index <= index[:, None]) & (index[:, None] < ends[..., None, :])


def split_into_trees(lengths: np.ndarray, shared: np.ndarray, bound: int) -> list[range]:
    """Split sorted sequences into groups whose trees have at most `bound` nodes."""
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
    """Group sorted sequences that each begin the next one: their tree is the last sequence."""
    if not len(lengths):
        return []
    starts = [0, *(1 + np.flatnonzero(shared[1:] < lengths[:-1])), len(lengths)]
    return [range(int(start), int(stop)) for start, stop in pairwise(starts)]


TREE_SIZE = 256  # A tree this large leaves little to share with the next one, and attention costs grow with its square
TREE_SIZE_PER_LONGEST = 3  # long prefixes (few-shot examples) are worth larger trees


class TokenSequence(NamedTuple):
    """Tokens of a prefix with an option; the last `n_scored` are the option's."""

    tokens: Tokens
    n_scored: int


@dataclass(frozen=True)
class Row:
    """One row of a batch: the tree of some sequences."""

    sequences: Sequence[TokenSequence]
    tree: PrefixTree

    @property
    def is_chain(self) -> bool:
        """Whether the tree has no branch; it cannot be split."""
        return len(self.tree) == 1 + int(self.tree.depths.max())


@dataclass(frozen=True)
class Limits:
    """How many tokens a model can read."""

    positions: float
    window: float

    @classmethod
    def read(cls, model: Any) -> Limits:
        """Read the limits from a model's configuration."""
        config = model.config.get_text_config()
        positions = getattr(config, "max_position_embeddings", None) or float("inf")
        windows = [getattr(config, name, None) or float("inf") for name in ("sliding_window", "attention_chunk_size")]
        return cls(positions=positions, window=min(windows))


def split_by_layout(
    sequences: Iterable[TokenSequence], layout: str, limits: Limits
) -> tuple[list[TokenSequence], list[TokenSequence]]:
    """Separate sequences for trees from sequences for flat rows: a tree's mask has no sliding window."""
    tree_limit = limits.window if layout == "tree" else 0
    short: list[TokenSequence] = []
    long: list[TokenSequence] = []
    for sequence in sequences:
        (short if len(sequence.tokens) - 1 <= tree_limit else long).append(sequence)
    return short, long


def plan_batches(sequences: Sequence[TokenSequence], layout: str, budget: int) -> list[list[Row]]:
    """Arrange sequences in rows and rows in batches, the largest first: memory then runs out early."""
    rows = sorted(_make_rows(sequences, layout, budget), key=lambda row: -len(row.tree))
    batches: list[list[Row]] = []
    for row in rows:
        if batches and (len(batches[-1]) + 1) * len(batches[-1][0].tree) <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def _make_rows(sequences: Sequence[TokenSequence], layout: str, budget: int) -> list[Row]:
    read = [sequence.tokens[:-1] for sequence in sequences]
    lengths = np.array([len(tokens) for tokens in read], dtype=np.int64)
    # Sorting with the last token may differ from sorting without it.
    order = sorted(range(len(read)), key=read.__getitem__)
    shared = shared_lengths([read[i] for i in order])
    lengths = lengths[order]
    if layout == "tree":
        bound = min(budget, max(TREE_SIZE, TREE_SIZE_PER_LONGEST * int(lengths.max(initial=0))))
        groups = split_into_trees(lengths, shared, bound)
    else:
        groups = split_into_chains(lengths, shared)
    return [make_row([sequences[order[i]] for i in group]) for group in groups]


def make_row(sequences: Sequence[TokenSequence]) -> Row:
    """The row of the tree of some sequences."""
    tokens = [sequence.tokens for sequence in sequences]
    return Row(sequences, build_tree(tokens, [sequence.n_scored for sequence in sequences]))


def padded_size(batch: list[Row]) -> int:
    """Tokens of a batch, including pads."""
    return len(batch) * max(len(row.tree) for row in batch)


def encode_options(tokenizer: Any, requests: Sequence[Request]) -> list[list[TokenSequence]]:
    """Encode options after their prefixes, as one text or, if that changes the prefix's tokens, each by itself.

    Llama 3 and Qwen, for example, join a full stop with the newline after it.
    """
    start = _StartToken.read(tokenizer)
    pairs = [[_move_spaces(request.prefix, option) for option in request.options] for request in requests]
    distinct = list(dict.fromkeys(pair for options in pairs for pair in options))
    texts = [text for prefix, option in distinct for text in (prefix, prefix + option)]
    has_start = [start.text is not None and text.startswith(start.text) for text in texts]
    encoded = encode_each(tokenizer, itertools.compress(texts, has_start), add_special_tokens=False)
    encoded |= encode_each(tokenizer, (text for text in texts if text not in encoded))
    ends = tuple(tokenizer("a")["input_ids"][-1:])  # some tokenizers end every text, and here it goes on
    if ends == (tokenizer.eos_token_id,):
        encoded = {text: tokens[:-1] if tokens[-1:] == ends else tokens for text, tokens in encoded.items()}
    # Beginnings without a token: the tokens of the whole follow the start token.
    bare = [prefix + option for prefix, option in distinct if not prefix or not encoded[prefix]]
    encoded_bare = encode_each(tokenizer, bare, add_special_tokens=False)
    joined = [option for prefix, option in distinct if _after(encoded[prefix], encoded[prefix + option]) is None]
    anchored = (anchor + option for option in ("", *joined) for anchor in _ANCHORS)
    apart = encode_each(tokenizer, anchored, add_special_tokens=False)

    def encode_one(request: Request, prefix: str, option: str) -> TokenSequence:
        before = encoded[prefix] if request.prefix else ()
        if before:
            scored = _after(before, encoded[prefix + option])
            if scored is None:
                scored = _own_tokens(tokenizer, option, before, encoded[prefix + option], apart)
            return TokenSequence(before + scored, len(scored))
        if start.id is None:
            raise QabiasError(f"request {request.key!r} has no prefix, and the model no start token.", "Add a prefix.")
        scored = encoded_bare[prefix + option]
        if scored[:1] == (start.id,):
            return TokenSequence(scored, len(scored) - 1)
        return TokenSequence((start.id, *scored), len(scored))

    return [
        [encode_one(request, prefix, option) for prefix, option in options]
        for request, options in zip(requests, pairs, strict=True)
    ]


_ANCHORS = ("", "\n", ".", "a")  # before an option: some tokenizers put a space before the first word of a text


def _after(before: Tokens, tokens: Tokens) -> Tokens | None:
    return tokens[len(before) :] if tokens[: len(before)] == before else None


def _own_tokens(tokenizer: Any, option: str, before: Tokens, joined: Tokens, apart: Mapping[str, Tokens]) -> Tokens:
    """For an option that the tokenizer joins with its prefix: tokens that add just its text to the prefix's tokens."""
    decode = partial(tokenizer.decode, clean_up_tokenization_spaces=False)
    for anchor in _ANCHORS:
        own = _after(apart[anchor], apart[anchor + option])
        if own and decode(before + own) == decode(joined):
            return own
    raise QabiasError(
        f"The tokenizer joins the option {option!r} with its prefix and has no tokens for it by itself.",
        "Use another prompt format.",
    )


def _move_spaces(prefix: str, option: str) -> tuple[str, str]:
    kept = prefix.rstrip()
    return kept, prefix[len(kept) :] + option


class _StartToken(NamedTuple):
    """The token before an option without prefix."""

    id: int | None
    text: str | None

    @classmethod
    def read(cls, tokenizer: Any) -> _StartToken:
        token = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        return cls(token, None if token is None else tokenizer.decode([token]))
