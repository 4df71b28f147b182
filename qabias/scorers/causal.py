"""Log-likelihoods of options under a causal language model, every distinct token run once.

The questions of a benchmark share contexts and the options of a question share the question. The scorer joins the token
sequences of many options into prefix trees, lays each tree out as one row of a batch in which a token attends to its
ancestors only, and reads every option off the same forward pass. Models that cannot be asked so (found out by asking
them, see `CausalScorer.layout`) get plain padded batches instead.

The boundary between prefix and option is the one of lm-evaluation-harness 0.4.13, so that figures are comparable:
blanks at the end of the prefix move to the option, the whole text is encoded at once, and the option's tokens are those
after as many tokens as the prefix alone has. Where the prefix alone is encoded differently than inside the whole, the
model reads the prefix's own tokens.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from qabias.errors import QabiasError
from qabias.scorers.base import OptionScores, Request
from qabias.scorers.memory import is_out_of_memory
from qabias.scorers.prefix_tree import (
    PrefixTree,
    ancestor_mask,
    build_tree,
    shared_lengths,
    split_into_chains,
    split_into_trees,
)

if TYPE_CHECKING:
    import torch

    from qabias.models.loading import LoadedModel

LAYOUTS = ("auto", "tree", "flat")
Layout = Literal["auto", "tree", "flat"]

# Tokens of a batch, pads included. A CPU is busy with few tokens and gains from caches that hold them.
CPU_TOKEN_BUDGET = 1024
GPU_TOKEN_BUDGET = 16384
# A tree this large leaves little to share with the next one, and attention costs grow with its square.
TREE_SIZE = 256
# Long prefixes (few-shot examples) are worth larger trees.
TREE_SIZE_PER_LONGEST = 3
# Logits in memory at once, in numbers: rows of vocabulary size are many times larger than the states they come from.
LOGITS_AT_ONCE = 2**22
LOGITS_PER_BATCH = 2**27
# Largest difference per token between the two layouts in the probe; wrong masks show as 0.1 and more in trained models.
PROBE_TOLERANCE = {"float32": 5e-5, "float16": 1e-2, "bfloat16": 5e-2}
PROBE_LENGTH = 32

_log = logging.getLogger(__name__)


class TokenSequence(NamedTuple):
    """Tokens of a prefix with an option, of which the last `n_scored` are the option's."""

    tokens: tuple[int, ...]
    n_scored: int


@dataclass
class Stats:
    """What the scorer has done since it was made.

    Attributes:
        tokens_run: Tokens run through the model, pads included.
        tokens_flat: Tokens that one sequence for every option would have taken, without pads.
        batches: Forward passes.
        seconds: Time spent in `score`.
    """

    tokens_run: int = 0
    tokens_flat: int = 0
    batches: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """One row of a batch: the tree of some sequences."""

    sequences: Sequence[TokenSequence]
    tree: PrefixTree

    @property
    def is_chain(self) -> bool:
        """Whether the tree has no branch, so that it cannot be split into smaller ones."""
        return len(self.tree) == 1 + int(self.tree.depths.max())


class CausalScorer:
    """Scores options by their log-likelihood after the prefix.

    Args:
        loaded: The model.
        token_budget: Most tokens of one forward pass, pads included; a longer sequence runs alone. It is halved when
            memory runs out. None for a default by device.
        layout: `"tree"` runs shared beginnings once, `"flat"` runs one row per sequence, `"auto"` is the tree where the
            model can be asked so.

    Attributes:
        model_signature: Version and precision of the model.
        layout: The layout in use, `"tree"` or `"flat"`.
        stats: Counts for reports.

    Raises:
        QabiasError: If the layout is unknown, or `"tree"` is asked of a model that cannot be asked so.
    """

    name = "causal"

    def __init__(self, loaded: LoadedModel, *, token_budget: int | None = None, layout: Layout = "auto") -> None:
        if layout not in LAYOUTS:
            raise QabiasError(f"causal: unknown layout {layout!r}; choose one of {', '.join(LAYOUTS)}")
        if token_budget is not None and token_budget < 1:
            raise QabiasError(f"causal: token budget {token_budget} is less than one token")
        self.stats = Stats()
        self.model_signature = loaded.signature
        self._name = loaded.name
        self._tokenizer = loaded.tokenizer
        self._network = _Network(loaded.model, loaded.device)
        self._limits = Limits.of(loaded.model)
        default_budget = CPU_TOKEN_BUDGET if loaded.device == "cpu" else GPU_TOKEN_BUDGET
        self._token_budget = token_budget or default_budget
        self.layout = self._choose_layout(layout, PROBE_TOLERANCE[loaded.dtype])

    def score(self, requests: Sequence[Request]) -> list[OptionScores]:
        """Score every option of every request, in order.

        Raises:
            QabiasError: If a request is too long for the model, an option adds no token to its prefix, one sequence
                alone does not fit in memory, or the model answers with NaN.
        """
        started = time.perf_counter()
        encoded = self._encode(requests)
        for request, sequences in zip(requests, encoded, strict=True):
            self._check(request, sequences)
        values = self._score_distinct(sorted({sequence for sequences in encoded for sequence in sequences}))
        scores = [
            self._collect(request, sequences, values) for request, sequences in zip(requests, encoded, strict=True)
        ]
        self.stats.tokens_flat += sum(len(sequence.tokens) - 1 for sequences in encoded for sequence in sequences)
        self.stats.seconds += time.perf_counter() - started
        return scores

    def _encode(self, requests: Sequence[Request]) -> list[list[TokenSequence]]:
        return encode_options(self._tokenizer, requests)

    def _check(self, request: Request, sequences: Sequence[TokenSequence]) -> None:
        for option, sequence in zip(request.options, sequences, strict=True):
            if sequence.n_scored == 0:
                raise QabiasError(f"request {request.key!r}: option {option!r} adds no token to its prefix")
            n_read = len(sequence.tokens) - 1
            if n_read > self._limits.positions:
                raise QabiasError(
                    f"request {request.key!r}: {n_read} tokens are more than the {self._limits.positions} that model "
                    f"{self._name!r} can read; use a shorter prompt or another model"
                )

    def _collect(
        self, request: Request, sequences: Sequence[TokenSequence], values: dict[TokenSequence, float]
    ) -> OptionScores:
        loglikelihoods = np.array([values[sequence] for sequence in sequences], dtype=np.float64)
        if np.isnan(loglikelihoods).any():
            raise QabiasError(
                f"request {request.key!r}: model {self._name!r} answers with NaN; try --dtype float32 or bfloat16"
            )
        return OptionScores(
            loglikelihoods=loglikelihoods,
            n_tokens=np.array([sequence.n_scored for sequence in sequences], dtype=np.int32),
            n_bytes=np.array([len(option.encode()) for option in request.options], dtype=np.int32),
        )

    def _score_distinct(self, sequences: list[TokenSequence]) -> dict[TokenSequence, float]:
        """Score distinct, sorted sequences."""
        short, long = split_by_layout(sequences, self.layout, self._limits)
        return self._score_within_memory(short, "tree") | self._score_within_memory(long, "flat")

    def _score_within_memory(self, sequences: list[TokenSequence], layout: str) -> dict[TokenSequence, float]:
        values: dict[TokenSequence, float] = {}
        remaining = sequences
        while remaining:
            too_large: list[Row] = []
            for batch in plan_batches(remaining, layout, min(self._token_budget, self._network.batch_limit)):
                try:
                    values |= self._run(batch, layout)
                except RuntimeError as error:
                    if not is_out_of_memory(error):
                        raise
                    too_large = batch
                    break
            if too_large:  # outside the handler, which would keep the tensors of the failed pass alive
                self._retreat(too_large)
            remaining = [sequence for sequence in remaining if sequence not in values]
        return values

    def _retreat(self, batch: list[Row]) -> None:
        """Halve the token budget after `batch` did not fit in memory."""
        size = padded_size(batch)
        if len(batch) == 1 and batch[0].is_chain:
            raise QabiasError(
                f"model {self._name!r}: {size} tokens do not fit in memory; use a smaller model, --dtype bfloat16 or "
                "a larger device"
            )
        self._token_budget = max(1, min(self._token_budget, size) // 2)
        self._network.free_memory()
        _log.warning("causal: out of memory; going on with batches of %d tokens", self._token_budget)

    def _run(self, batch: list[Row], layout: str) -> dict[TokenSequence, float]:
        values = self._network.score(batch, as_trees=layout == "tree")
        self.stats.tokens_run += padded_size(batch)
        self.stats.batches += 1
        return values

    def _choose_layout(self, wanted: Layout, tolerance: float) -> str:
        if wanted == "flat":
            return "flat"
        problem = self._probe_tree(tolerance)
        if problem is None:
            return "tree"
        if wanted == "tree":
            raise QabiasError(f"causal: model {self._name!r} cannot be asked in trees ({problem}); use layout 'flat'")
        warnings.warn(
            f"causal: model {self._name!r} cannot be asked in trees ({problem}); each option runs on its own, slower",
            stacklevel=3,
        )
        return "flat"

    def _probe_tree(self, tolerance: float) -> str | None:
        """Compare small trees with the same sequences asked one by one; None if equal, else what is wrong."""
        length = int(min(PROBE_LENGTH, self._limits.window, self._limits.positions))
        if length < 4:
            return f"its window of {length} tokens is too short"
        special = getattr(self._tokenizer, "all_special_ids", ())
        sequences = _probe_sequences(self._network.vocabulary_size, special, length)
        # Rows of unequal size, so that padding is asked too.
        batch = [_make_row(sequences[:-1]), _make_row(sequences[-1:])]
        try:
            found = self._network.score(batch, as_trees=True)
            expected = {sequence: self._network.score_alone(sequence) for sequence in sequences}
        except Exception as error:  # whatever a model that does not know such masks raises
            return f"{type(error).__name__}: {(str(error) or 'no message').splitlines()[0]}"
        difference = max(abs(found[sequence] - expected[sequence]) / sequence.n_scored for sequence in sequences)
        if not difference <= tolerance:
            return f"its log-likelihoods differ by {difference:.2g} per token from one sequence at a time"
        return None


def split_by_layout(
    sequences: Iterable[TokenSequence], layout: str, limits: Limits
) -> tuple[list[TokenSequence], list[TokenSequence]]:
    """Divide sequences into those run in trees and those run flat; a tree's mask has no sliding window."""
    tree_limit = limits.window if layout == "tree" else 0
    short: list[TokenSequence] = []
    long: list[TokenSequence] = []
    for sequence in sequences:
        (short if len(sequence.tokens) - 1 <= tree_limit else long).append(sequence)
    return short, long


def plan_batches(sequences: Sequence[TokenSequence], layout: str, budget: int) -> list[list[Row]]:
    """Arrange sequences in rows and rows in batches, largest first so that memory runs out early.

    Args:
        sequences: Distinct sequences, sorted.
        layout: `"tree"` or `"flat"`.
        budget: Most tokens of a batch, pads included; a longer sequence gets a batch of its own.
    """
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
    return [_make_row([sequences[order[i]] for i in group]) for group in groups]


def encode_options(tokenizer: Any, requests: Sequence[Request]) -> list[list[TokenSequence]]:
    """Encode the options of requests after their prefixes, with the boundary described at the top of this module."""
    start = _StartToken.of(tokenizer)
    pairs = [[_move_blanks(request.prefix, option) for option in request.options] for request in requests]
    distinct = list(dict.fromkeys(pair for options in pairs for pair in options))
    texts = [text for prefix, option in distinct for text in (prefix, prefix + option)]
    has_start = [start.text is not None and text.startswith(start.text) for text in texts]
    encoded = _encode_each(tokenizer, itertools.compress(texts, has_start), add_special_tokens=False)
    encoded |= _encode_each(tokenizer, (text for text in texts if text not in encoded))
    # Beginnings without a token: the tokens of the whole follow the start token.
    bare = [prefix + option for prefix, option in distinct if not prefix or not encoded[prefix]]
    encoded_bare = _encode_each(tokenizer, bare, add_special_tokens=False)

    def encode_one(request: Request, prefix: str, option: str) -> TokenSequence:
        before = encoded[prefix] if request.prefix else ()
        if before:
            scored = encoded[prefix + option][len(before) :]
            return TokenSequence(before + scored, len(scored))
        if start.id is None:
            raise QabiasError(f"request {request.key!r} has no prefix, and the tokenizer has no token to start with")
        scored = encoded_bare[prefix + option]
        if scored[:1] == (start.id,):
            return TokenSequence(scored, len(scored) - 1)
        return TokenSequence((start.id, *scored), len(scored))

    return [
        [encode_one(request, prefix, option) for prefix, option in options]
        for request, options in zip(requests, pairs, strict=True)
    ]


def _move_blanks(prefix: str, option: str) -> tuple[str, str]:
    kept = prefix.rstrip()
    return kept, prefix[len(kept) :] + option


class _StartToken(NamedTuple):
    """The token that stands before an option without prefix."""

    id: int | None
    text: str | None

    @classmethod
    def of(cls, tokenizer: Any) -> _StartToken:
        token = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        return cls(token, None if token is None else tokenizer.decode([token]))


def _encode_each(tokenizer: Any, texts: Iterable[str], **options: bool) -> dict[str, tuple[int, ...]]:
    """Encode every distinct text, all in one call."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    encoded = tokenizer(distinct, return_attention_mask=False, verbose=False, **options)["input_ids"]
    return {text: tuple(tokens) for text, tokens in zip(distinct, encoded, strict=True)}


@dataclass(frozen=True)
class Limits:
    """How many tokens a model can read.

    Attributes:
        positions: Most tokens of a sequence.
        window: Most tokens of a sequence in which every token sees all tokens before it.
    """

    positions: float
    window: float

    @classmethod
    def of(cls, model: Any) -> Limits:
        """Read the limits off a model's configuration."""
        config = model.config.get_text_config()
        positions = getattr(config, "max_position_embeddings", None) or float("inf")
        windows = [getattr(config, name, None) or float("inf") for name in ("sliding_window", "attention_chunk_size")]
        return cls(positions=positions, window=min(windows))


class _Network:
    """A model on its device that scores rows of trees."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._device = device
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.vocabulary_size = int(model.get_input_embeddings().weight.shape[0])
        self._has_plain_head = self._probe_head()

    @property
    def batch_limit(self) -> int:
        """Most tokens of a batch that keep its logits small; a plain head computes them in blocks."""
        return sys.maxsize if self._has_plain_head else max(1, LOGITS_PER_BATCH // self.vocabulary_size)

    def score(self, rows: list[Row], *, as_trees: bool) -> dict[TokenSequence, float]:
        """Run rows as one batch and return the log-likelihood of each of their sequences."""
        import torch

        length = max(len(row.tree) for row in rows)
        sequences = [sequence for row in rows for sequence in row.sequences]
        predictors = [i * length + nodes for i, row in enumerate(rows) for nodes in row.tree.predictors]
        targets = [tokens for row in rows for tokens in row.tree.targets]
        # Options of one question are predicted from the same nodes: compute these once.
        needed, index = np.unique(np.concatenate(predictors), return_inverse=True)
        with torch.inference_mode():
            inputs = self._make_inputs(rows, length, as_trees)
            values = _log_probabilities(self._logits(inputs, needed), index, np.concatenate(targets))
        starts = np.cumsum([0, *(len(tokens) for tokens in targets[:-1])])
        return dict(zip(sequences, np.add.reduceat(values, starts).tolist(), strict=True))

    def score_alone(self, sequence: TokenSequence) -> float:
        """Score one sequence in the plainest way."""
        import torch

        with torch.inference_mode():
            logits = self._model(input_ids=torch.tensor([sequence.tokens[:-1]], device=self._device)).logits[0]
            targets = torch.tensor(sequence.tokens[-sequence.n_scored :], device=self._device)
            scores = logits[-sequence.n_scored :].float().log_softmax(dim=-1)
            return float(scores.gather(1, targets[:, None]).cpu().double().sum())

    def free_memory(self) -> None:
        """Give cached memory back to the device."""
        import torch

        if self._device.startswith("cuda"):
            torch.cuda.empty_cache()

    def _make_inputs(self, rows: list[Row], length: int, as_trees: bool) -> dict[str, Any]:
        import torch

        tokens = np.zeros((len(rows), length), dtype=np.int64)
        for i, row in enumerate(rows):
            tokens[i, : len(row.tree)] = row.tree.tokens
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(tokens).to(self._device), "use_cache": False}
        if not as_trees:
            sizes = np.array([[len(row.tree)] for row in rows])
            real = (np.arange(length) < sizes).astype(np.int64)
            return inputs | {"attention_mask": torch.from_numpy(real).to(self._device)}
        positions = np.zeros_like(tokens)
        ends = np.tile(np.arange(1, length + 1), (len(rows), 1))  # a pad sees itself, for a softmax needs one token
        for i, row in enumerate(rows):
            positions[i, : len(row.tree)] = row.tree.depths
            ends[i, : len(row.tree)] = row.tree.ends
        visible = torch.from_numpy(ancestor_mask(ends)).to(self._device)
        mask = torch.zeros(visible.shape, dtype=self._model.dtype, device=self._device)
        mask.masked_fill_(~visible, torch.finfo(mask.dtype).min)
        return inputs | {
            "position_ids": torch.from_numpy(positions).to(self._device),
            "attention_mask": mask[:, None],
        }

    def _logits(self, inputs: dict[str, Any], needed: np.ndarray) -> Iterator[torch.Tensor]:
        """Yield the logits after the needed nodes of the flattened batch, in order and in blocks."""
        import torch

        if self._has_plain_head:
            states = self._model.base_model(**inputs)[0].flatten(0, 1)
            head = self._model.get_output_embeddings()
        else:
            states, needed = self._all_logits(inputs, needed)
            head = torch.nn.Identity()
        n_rows = max(1, LOGITS_AT_ONCE // self.vocabulary_size)
        for start in range(0, len(needed), n_rows):
            rows = torch.from_numpy(needed[start : start + n_rows]).to(self._device)
            yield head(states[rows]).float()

    def _all_logits(self, inputs: dict[str, Any], needed: np.ndarray) -> tuple[torch.Tensor, np.ndarray]:
        """Run the whole model for the columns in which any row needs logits."""
        import torch

        if not self._keeps_logits:
            return self._model(**inputs).logits.flatten(0, 1), needed
        length = inputs["input_ids"].shape[1]
        columns = np.unique(needed % length)
        kept = torch.from_numpy(columns).to(self._device)
        logits = self._model(**inputs, logits_to_keep=kept).logits.flatten(0, 1)
        return logits, needed // length * len(columns) + np.searchsorted(columns, needed % length)

    def _probe_head(self) -> bool:
        """Tell whether logits are the output embeddings of the last states and nothing else.

        Some models scale or cap their logits afterwards; for them the whole model must run. Exact equality is asked,
        because a cap hardly shows in small logits.
        """
        import torch

        head = self._model.get_output_embeddings()
        base = self._model.base_model
        if head is None or base is self._model:
            return False
        tokens = torch.arange(min(8, self.vocabulary_size), device=self._device)[None]
        with torch.inference_mode(), _recorded(base) as states, _recorded(head) as logits:
            final = self._model(input_ids=tokens).logits
        if len(states) != 1 or len(logits) != 1:
            return False
        ((_, state),), ((seen, logit),) = states, logits
        return len(seen) == 1 and torch.equal(seen[0], state[0]) and torch.equal(logit, final)


@contextmanager
def _recorded(module: Any) -> Iterator[list[tuple[Any, Any]]]:
    """Record the inputs and outputs of a module."""
    calls: list[tuple[Any, Any]] = []
    handle = module.register_forward_hook(lambda _, inputs, output: calls.append((inputs, output)))
    try:
        yield calls
    finally:
        handle.remove()


def _log_probabilities(blocks: Iterator[torch.Tensor], index: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Look up log-probabilities of tokens.

    Args:
        blocks: Logits after the needed nodes, float32 of shape (n_block, n_vocabulary), in order.
        index: For each looked-up token, the number of the node it follows.
        targets: The tokens, parallel to `index`.

    Returns:
        float64 array, parallel to `index`.
    """
    import torch

    values = np.empty(len(index), dtype=np.float64)
    start = 0
    for logits in blocks:
        stop = start + len(logits)
        here = np.flatnonzero((start <= index) & (index < stop))
        rows = torch.from_numpy(index[here] - start).to(logits.device)
        columns = torch.from_numpy(targets[here]).to(logits.device)
        values[here] = logits.log_softmax(dim=-1)[rows, columns].cpu().numpy()
        start = stop
    return values


def _make_row(sequences: Sequence[TokenSequence]) -> Row:
    tokens = [sequence.tokens for sequence in sequences]
    return Row(sequences, build_tree(tokens, [sequence.n_scored for sequence in sequences]))


def padded_size(batch: list[Row]) -> int:
    """Tokens of a batch, pads included."""
    return len(batch) * max(len(row.tree) for row in batch)


def _probe_sequences(vocabulary_size: int, special: Iterable[int], length: int) -> list[TokenSequence]:
    """Make four sequences that branch after a third and after two thirds, and one that stands apart."""
    ordinary = np.setdiff1d(np.arange(vocabulary_size), np.fromiter(special, dtype=np.int64))
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[int, ...]:
        return tuple(rng.choice(ordinary, size=n).tolist())

    third = length // 3
    trunk = draw(third)
    branches = [trunk + draw(third), trunk + draw(third)]
    tokens = [branch + draw(length + 1 - 2 * third) for branch in branches for _ in range(2)] + [draw(length // 2 + 1)]
    return [TokenSequence(sequence, len(sequence) - 1) for sequence in tokens]
